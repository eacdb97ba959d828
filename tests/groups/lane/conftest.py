"""Two processes that answer heartbeats from memory, and a member that sends them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from groups.core.model.replies import ConsumerHeartbeatReply, HeartbeatReply
from groups.engine.heartbeats import Flusher
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from tests.groups.lane.support import Process, joined_consumer, register
from tests.support.members import heartbeat, stable_member
from tests.support.steady import wait_out_stalls

Beat = Callable[[Process], Awaitable[HeartbeatReply | ConsumerHeartbeatReply]]


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions are stored when the test says so, and before something is looked at that seems overdue."""

    async def never(self: Flusher) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Flusher, "_run", never)


@pytest.fixture
async def one(runtime: Runtime, database: str) -> Process:
    """A process that answers from memory."""
    process = register(runtime, database, "one")
    await process.open()
    return process


@pytest.fixture
async def two(database: str, clock: VirtualClock, config: Config) -> AsyncIterator[Process]:
    """Another one."""
    runtime = wait_out_stalls(Runtime(config, database, clock))
    await runtime.start()
    await runtime.notifications.wait_listening()
    process = register(runtime, database, "two")
    await process.open()
    yield process
    await runtime.stop()


@pytest.fixture(params=["classic", "consumer"])
def protocol(request: pytest.FixtureRequest) -> str:
    """Of the group g."""
    found: str = request.param
    return found


@pytest.fixture
def session_ms(protocol: str) -> int:
    """The session of its member."""
    return {"classic": 10_000, "consumer": 45_000}[protocol]


@pytest.fixture
async def beat(protocol: str, one: Process, clock: VirtualClock) -> Beat:
    """A heartbeat of the only member of the group g, which joined at process one."""
    if protocol == "classic":
        member = await stable_member(one.groups, clock)
        await one.notified()
        return lambda process: settled(process.groups.heartbeat(heartbeat(member)))
    command = await joined_consumer(one)
    await one.notified()
    return lambda process: settled(process.groups.consumer_heartbeat(command))
