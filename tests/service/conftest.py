"""A group service in virtual time, and a second one as another process would run it on the same database."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from groups.engine.service import GroupService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime


@pytest.fixture
def service(runtime: Runtime) -> GroupService:
    """The group service of this process."""
    return runtime.get(GroupService)


@pytest.fixture
async def other(database: str, clock: VirtualClock, config: Config) -> AsyncIterator[GroupService]:
    """The group service of another process on the same database: its own pool, cache, listener and parked requests."""
    runtime = Runtime(config, database, clock)
    await runtime.start()
    await runtime.notifications.wait_listening()
    yield runtime.get(GroupService)
    await runtime.stop()


@pytest.fixture
def config() -> Config:
    """Waiters do not look again by themselves within a test: a wake-up that is lost would go unnoticed."""
    return Config({"notifications.repair.interval.ms": 60_000})
