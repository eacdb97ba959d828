"""Commits that race with the end of their generation, at two servers and in SQL (architecture.md invariant 2).

A commit that was answered with success is never missing from what the next owner fetched, and none of an older
generation lands after the bump: neither in what members were told nor in the journal.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

import psycopg
import pytest

from tests.support.journal import assert_journal_agrees, journal_lines
from tests.support.processes import Running, start_server
from tests.support.racing_members import Arena, ClassicRacer, ConsumerRacer, arena

pytestmark = [pytest.mark.processes, pytest.mark.whole("a race for as long as it takes to see everything")]

PARTITIONS = 12
RACERS = 6
SECONDS = 3
"""A race lasts so long, and then until everything was seen that it is about."""

MOST_SECONDS = 90

SETTINGS = {
    "KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 50,
    "KCOORD_GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS": 100,
    "KCOORD_GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS": 100,
}


@pytest.fixture
def servers(database: str) -> Iterator[list[Running]]:
    """Two servers on one database."""
    with start_server(database, env=SETTINGS) as first, start_server(database, env=SETTINGS) as second:
        for server in (first, second):
            server.wait_ready()
        yield [first, second]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_no_commit_is_missed_and_none_lands_late(
    servers: list[Running], database: str, token: str, protocol: str
) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    async with arena(database, token, [server.url for server in servers], Random(seed), PARTITIONS) as racing:
        await race(racing, protocol)
        print(f"seen {dict(racing.ledger.seen)}, generation {racing.ledger.highest}")
        check_journal(racing, database)
        if protocol == "classic":
            check_bumps(database)
    assert_journal_agrees(database)


def is_enough(racing: Arena) -> bool:
    """The group rebalanced, commits of both ways were answered with success, and others came too late."""
    seen = racing.ledger.seen
    fenced = seen["ILLEGAL_GENERATION"] + seen["UNKNOWN_MEMBER_ID"] + seen["STALE_MEMBER_EPOCH"]
    return racing.ledger.highest > 12 and seen["NONE"] > 500 and seen["in_sql"] > 100 and fenced > 30


async def race(racing: Arena, protocol: str) -> None:
    """Let members live for a while, and replace those that leave. Raises what anybody found wrong."""

    def racer() -> asyncio.Task[None]:
        member = ClassicRacer(racing) if protocol == "classic" else ConsumerRacer(racing)
        return asyncio.create_task(member.run())

    loop = asyncio.get_running_loop()
    began = loop.time()
    running = {racer() for _ in range(RACERS)}
    try:
        while loop.time() < began + SECONDS or not is_enough(racing):
            assert loop.time() < began + MOST_SECONDS, f"no race: {dict(racing.ledger.seen)}"
            await asyncio.wait(running, timeout=0.05, return_when=asyncio.FIRST_COMPLETED)
            for task in [task for task in running if task.done()]:
                task.result()
                running.remove(task)
                running.add(racer())
            racing.check()
        racing.stop.set()
        await asyncio.wait_for(asyncio.gather(*running, racing.finish()), 30)
    finally:
        for task in (*running, *racing.committers):
            task.cancel()
        await asyncio.gather(*running, *racing.committers, return_exceptions=True)


def check_journal(racing: Arena, database: str) -> None:
    """Everything acknowledged is there, and on every partition generations never fall and offsets always rise."""
    by_partition: dict[int, list[dict[str, Any]]] = {}
    lines = journal_lines(database)
    for line in lines:
        by_partition.setdefault(line["partition"], []).append(line)
    assert racing.acknowledged <= {(line["partition"], line["committed_offset"], line["member_id"]) for line in lines}
    for partition, told in by_partition.items():
        for before, after in pairwise(told):
            assert before["generation_id"] <= after["generation_id"], (partition, before, after)
            assert before["committed_offset"] < after["committed_offset"], (partition, before, after)


def check_bumps(database: str) -> None:
    """No line of a generation was written after the next one had begun, or before its own had."""
    with psycopg.connect(database) as connection:
        misplaced = connection.execute(
            "select l.id, l.generation_id, l.at, e.generation_id, e.at from offset_commit_log l"
            " join groups_event e on e.kind = 'rebalance_completed'"
            " where (l.generation_id < e.generation_id and l.at > e.at)"
            "    or (l.generation_id >= e.generation_id and l.at < e.at) limit 5"
        ).fetchall()
        bumps = connection.execute("select count(*) from groups_event where kind = 'rebalance_completed'").fetchone()
    assert misplaced == [], "(line, its generation, its time, generation, its beginning)"
    assert bumps is not None
    assert bumps[0] > 10
