"""Clients, members and groups for the tests of the REST API."""

from __future__ import annotations

import pytest

from groups.catalogue.topics import TopicService
from groups.engine.service import GroupService
from kcoord.process.runtime import Runtime
from tests.api.conftest import client_with, members  # noqa: F401 - fixtures


@pytest.fixture
def service(runtime: Runtime) -> GroupService:
    """The group service of this process."""
    return runtime.get(GroupService)


@pytest.fixture
def topics(runtime: Runtime) -> TopicService:
    """The topic service of this process."""
    return runtime.get(TopicService)
