"""An identity provider in a process of its own, settings that name it, and a browser that may use http."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from pytest_django.fixtures import SettingsWrapper

from tests.frontend.identity.browsing import use
from tests.support.identity_provider import Provider, identity_provider


@pytest.fixture(scope="session")
def running() -> Iterator[Provider]:
    """The provider of the tests of this folder."""
    with identity_provider() as found:
        yield found


@pytest.fixture
def client(client: Client) -> Client:
    """A browser on the machine of the server, where http is allowed."""
    client.defaults["SERVER_NAME"] = "localhost"
    return client


@pytest.fixture
def provider(running: Provider, settings: SettingsWrapper, client: Client) -> Provider:
    """The provider, honest again, and settings that name it."""
    running.order()
    use(settings, running)
    Group.objects.all().delete()
    return running
