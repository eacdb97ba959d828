"""The equivalence of the commit lane: whatever way commits take, they are answered the same and leave the same rows.

Random histories of groups of both protocols, with another process that changes the group in between, topics that are
deleted and created again, outages that start deadlines over, and time that passes.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from random import Random

import psycopg
import pytest

from groups import configs
from groups.topics import TopicService
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from tests.offsets.commit_function.test_commit_function_equivalence import COUNTS, PAUSES_MS
from tests.offsets.lane.twins import Ids, Twin, accepted, with_and_without
from tests.offsets.lane.ways import ways
from tests.support.journal import assert_journal_agrees
from tests.support.members import eventually

pytestmark = pytest.mark.whole("random histories; the other tests of the lane have its rules")

HISTORIES = 12
STEPS = 40
SETTINGS = {"notifications.repair.interval.ms": 60_000, "group.initial.rebalance.delay.ms": 500}

GAP = """
with node as (
    insert into groups_coordinatornode (node_id, url, version, started_at, renewed_at, expires_at, flushed_until)
    values ('n', '', '', 0, 0, 9e15::bigint, 9e15::bigint)
    on conflict (node_id) where ended_at is null do update set renewed_at = 0 returning id
)
insert into groups_coordinatorpartition as p (partition, owner_id, epoch, state, gap, state_since)
select partition, node.id, 1, 'ACTIVE', 1, 0 from node, generate_series(0, 49) partition
on conflict (partition) do update set gap = p.gap + 1
"""


@pytest.fixture
async def runtimes(database: str, clock: VirtualClock) -> AsyncIterator[list[Runtime]]:
    """A process with the lane, one without, and another one."""
    async with with_and_without("commit.lane", SETTINGS, database, clock, COUNTS) as found:
        yield found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_commits_are_answered_and_stored_the_same_whatever_way_they_take(
    runtimes: list[Runtime], database: str, clock: VirtualClock, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = Ids()
    monkeypatch.setattr(configs, "fresh_member_id", ids.fresh)
    lane, normal, other = runtimes
    before = ways()
    for seed in range(HISTORIES):
        names = [f"{protocol}-{seed}-{uuid.uuid4()}" for _ in range(2)]
        twins = [
            Twin(name, here, other, Random(seed), ids, protocol == "consumer")
            for name, here in zip(names, (lane, normal), strict=True)
        ]
        await history(Random(seed + 1_000), twins, database, clock)
    found = Counter(ways())
    found.subtract(before)
    print(dict(found))
    assert found["lane"] > 100, "the histories are too wild"
    assert min(found["unknown"], found["group"], found["fence"], found["kind"]) > 10, "the histories are too tame"
    assert_journal_agrees(database)


async def history(random: Random, twins: list[Twin], database: str, clock: VirtualClock) -> None:
    """Step by step for both; after each commit everything is compared."""
    for step in range(STEPS):
        match random.choices(("change", "commit", "time", "topic", "gap"), (35, 55, 8, 1, 1))[0]:
            case "change":
                for twin in twins:
                    await twin.change()
            case "time":
                clock.advance(random.choice(PAUSES_MS))
            case "topic":
                await replace_topic(twins)
            case "gap":
                raise_gap(database)
            case _:
                answers = [await twin.commit() for twin in twins]
                assert answers[0] == answers[1], step
                stored = [await twin.rows() for twin in twins]
                assert stored[0] == stored[1], (step, accepted(answers[0]))
                await twins[0].check_wake_up()


async def replace_topic(twins: list[Twin]) -> None:
    """Another process deletes a topic and creates it again, and both learn of it."""
    topics = twins[0].other.get(TopicService)
    await topics.delete("a")
    await topics.create("a", COUNTS["a"])
    latest = (await topics.current()).version

    async def known() -> bool:
        views = await asyncio.gather(*(twin.here.get(TopicService).view() for twin in twins))
        return all(view.version == latest for view in views)

    await eventually(known, "both processes know the new topic")


def raise_gap(database: str) -> None:
    """Sessions could not be counted for a while."""
    with psycopg.connect(database) as connection:
        connection.execute(GAP)
