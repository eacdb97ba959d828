"""A primary whose only synchronous standby dies: no request hangs, and each answer says why."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from groups.engine.agent import NodeAgent
from kcoord.config import Config
from kcoord.database import liveness
from kcoord.database.pool import Connection
from kcoord.door.http.health import readiness
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from tests.failover.pair import Pair, synchronous

LONGER_THAN_ANY_LIMIT = 60
"""Seconds. Without an end the waits of this module last until the standby is back."""

STUCK = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'"


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """A primary and a standby for this module."""
    with synchronous() as both:
        with psycopg.connect(both.conninfo) as connection:
            connection.execute("create table written (name text)")
        yield both


@pytest.fixture
async def runtime(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Runtime]:
    """A service whose database is the primary, and which waits for it 2.5 s before it asks what is wrong."""
    monkeypatch.setattr(liveness, "UNRESPONSIVE_SECONDS", 2.5)
    running = Runtime(Config({}), pair.conninfo)
    await running.start()
    await running.notifications.wait_listening()
    yield running
    await running.stop()


async def write(runtime: Runtime, name: str) -> None:
    async def work(connection: Connection) -> None:
        await connection.execute("insert into written values (%s)", [name])

    async with asyncio.timeout(LONGER_THAN_ANY_LIMIT):
        await runtime.db.transaction(work)


async def test_its_death_is_answered_and_told_until_it_is_back(pair: Pair, runtime: Runtime) -> None:
    await write(runtime, "before")
    pair.kill_standby()
    for name in ("one", "two"):
        with pytest.raises(ProtocolError, match="no synchronous standby") as refusal:
            await write(runtime, name)
        assert refusal.value.error is Error.COORDINATOR_NOT_AVAILABLE
    with psycopg.connect(pair.conninfo) as connection:
        assert connection.execute(STUCK).fetchone() == (0,), "sessions that nobody waits for are ended"
        stored = {name for (name,) in connection.execute("select name from written")}
    assert stored == {"before", "one", "two"}, "as the answer says"
    database = (await readiness(runtime))["database"]
    assert (database.ok, "waiting for a synchronous standby" in database.detail) == (False, True)
    pair.start_standby()
    await write(runtime, "after")
    assert (await readiness(runtime))["database"].ok


async def test_a_node_keeps_its_lease_without_a_standby(pair: Pair, runtime: Runtime) -> None:
    agent = runtime.get(NodeAgent)
    await agent.beat()
    pair.kill_standby()
    try:
        async with asyncio.timeout(LONGER_THAN_ANY_LIMIT):
            await agent.beat()
        assert agent.holds_lease
    finally:
        pair.start_standby()
