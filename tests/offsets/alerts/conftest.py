"""Fixtures of alerts."""

from __future__ import annotations

import pytest

from kcoord.process.runtime import Runtime
from tests.offsets.alerts.world import World


@pytest.fixture
def world(runtime: Runtime) -> World:
    """Writes groups and verdicts."""
    return World(runtime)
