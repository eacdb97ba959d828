"""The connection of a node: what a node that stalls in a transaction holds up, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from groups.engine.agent import NodeConnection
from groups.nodes.store import NodeStore
from kcoord.config import Config
from kcoord.database import sessions
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime

LIMITED = Config({"database.transaction.timeout.ms": 2_000})


@pytest.fixture(params=["pipelined", "stepwise"], autouse=True)
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on PostgreSQL 17 and newer, and as on older servers, which have no bound for whole transactions."""
    if request.param == "stepwise":
        monkeypatch.setattr(sessions, "PIPELINED_FROM", 99_00_00)


@pytest.fixture
async def nodes(database: str) -> AsyncIterator[tuple[NodeConnection, NodeConnection]]:
    """The connections of two nodes. The second one waits longer for a lock than the first may hold it."""
    stalled, other = NodeConnection(database, LIMITED), NodeConnection(database, Config({}))
    yield stalled, other
    await stalled.close()
    await other.close()


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.whole("waits for the limits of transactions; the default freezes a server")
async def test_a_node_that_stalls_in_a_transaction_loses_its_locks(
    database: str, clock: VirtualClock, nodes: tuple[NodeConnection, NodeConnection], long: bool
) -> None:
    store = NodeStore(Runtime(LIMITED, database, clock))
    stalled, other = nodes
    locked, thawed = asyncio.Event(), asyncio.Event()

    async def stall() -> None:
        async with stalled.transaction(long=long) as connection:
            await store.lock(connection)
            await store.view(connection, clock.now_ms(), lock=True)
            locked.set()
            await thawed.wait()
            await store.tell(connection)

    task = asyncio.create_task(stall())
    await asyncio.wait({task, waiting := asyncio.create_task(locked.wait())}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    assert locked.is_set(), task.exception()
    async with asyncio.timeout(60):
        while True:
            try:
                async with other.transaction() as connection:
                    await store.lock(connection)
                break
            except psycopg.errors.LockNotAvailable:
                assert not task.done()
    thawed.set()
    with pytest.raises(psycopg.Error):
        await task
    async with stalled.transaction() as connection:
        assert await store.lock(connection) == clock.now_ms(), "a node that thaws connects again"


@pytest.mark.whole("waits for the limits of transactions; the default freezes a server")
async def test_what_takes_long_is_not_ended(nodes: tuple[NodeConnection, NodeConnection]) -> None:
    node, _ = nodes
    async with node.transaction(long=True) as connection:
        for _ in range(2):
            await connection.execute("select pg_sleep(1.1)")
