"""What an outage does to locks: none ends by time that nobody could renew. Real services, virtual time."""

from __future__ import annotations

from typing import Any

import httpx
import psycopg
import pytest

from groups.engine.agent import NodeAgent
from groups.topics import TopicService
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from offsets.share.timers import LockTimers
from tests.groups.nodes.conftest import cluster  # noqa: F401 - a fixture
from tests.groups.nodes.support import LEASE_MS, Cluster, beat
from tests.support.items import acquire, held, joined, settle

LOCK_MS = 30_000


@pytest.fixture
async def node(cluster: Cluster) -> NodeAgent:  # noqa: F811
    """A node that owns all partitions."""
    agent = await cluster.start("n1")
    await beat(agent)
    return agent


@pytest.fixture
async def lock(api: httpx.AsyncClient, topics: TopicService, node: NodeAgent) -> int:
    """Ten items that a worker has."""
    await topics.create("job", 1)
    await joined(api, "w")
    ((found, _, _),) = await held(api, "w", 10, end=10)
    return int(found)


def left(database: str, clock: VirtualClock) -> list[int]:
    """For how long each lock lasts (ms)."""
    with psycopg.connect(database) as connection:
        rows: list[Any] = connection.execute("select until from offsets_sharelock").fetchall()
    return [until - clock.now_ms() for (until,) in rows]


async def live_on(clock: VirtualClock, ms: int, node: NodeAgent) -> None:
    """Time goes by, and the node is there."""
    while ms > 0:
        step = min(ms, LEASE_MS // 3)
        clock.advance(step)
        await beat(node)
        ms -= step


async def test_while_a_server_is_there_locks_end(
    lock: int, runtime: Runtime, clock: VirtualClock, node: NodeAgent, database: str
) -> None:
    await live_on(clock, LOCK_MS - 1, node)
    assert await runtime.get(LockTimers).end_overdue() == 0
    await live_on(clock, 1, node)
    assert await runtime.get(LockTimers).end_overdue() == 1
    assert left(database, clock) == []


@pytest.mark.parametrize("outage_ms", [LOCK_MS, 3_600_000])
async def test_after_an_outage_every_lock_has_its_full_time(
    api: httpx.AsyncClient,
    lock: int,
    runtime: Runtime,
    clock: VirtualClock,
    node: NodeAgent,
    database: str,
    outage_ms: int,
) -> None:
    """Differs from Kafka: a broker that starts delivers what was acquired again."""
    await live_on(clock, LOCK_MS - 1, node)
    clock.advance(outage_ms)
    assert await runtime.get(LockTimers).end_overdue() == 0, "Celery alone ends none"
    with psycopg.connect(database) as connection:
        taken = connection.execute("select * from kcoord.acquire('mailing', 'other', 'job', 10)").fetchall()
    assert taken == [], "nor does a worker that needs no server"
    await beat(node)
    assert left(database, clock) == [LOCK_MS]
    assert (await settle(api, "w", {"lock": lock, "accept": [[0, 4]]}))[0]["error_code"] == 0
    await live_on(clock, LOCK_MS, node)
    assert await runtime.get(LockTimers).end_overdue() == 1, "a worker that does not come back is noticed after all"


async def test_nothing_ends_while_nobody_runs_the_timers_of_the_group(
    lock: int, runtime: Runtime, clock: VirtualClock, node: NodeAgent, database: str
) -> None:
    await live_on(clock, LOCK_MS, node)
    with psycopg.connect(database) as connection:
        connection.execute("update groups_coordinatorpartition set state = 'LOADING'")
    assert await runtime.get(LockTimers).end_overdue() == 0


async def test_where_no_server_has_ever_been_locks_end(
    api: httpx.AsyncClient, topics: TopicService, runtime: Runtime, clock: VirtualClock
) -> None:
    await topics.create("job", 1)
    await joined(api, "w")
    await acquire(api, "w", 10, end=10)
    clock.advance(LOCK_MS)
    assert await runtime.get(LockTimers).end_overdue() == 1
