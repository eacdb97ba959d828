"""The latest sample of each group and of each of its topics: what /metrics exposes."""

from __future__ import annotations

from typing import Any

import psycopg

from groups.core.model.types import ClassicGroup
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from offsets.lag.samples import SampleService
from tests.conftest import START_MS
from tests.frontend.seed import Seed
from tests.support.api import Members
from tests.support.api_consumers import Consumers
from tests.support.offsets import commit, report

TOPICS = """
select g.group_id, l.topic, l.at, l.lag, l.max_lag, l.time_lag_ms, l.committed_offsets, l.log_end_offsets,
       l.partitions, l.unknown_partitions
from offsets_topiclag l join groups_group g on g.id = l.group_id order by 1, 2
"""
GROUPS = """
select g.group_id, l.at, l.state, l.generation_id, l.members
from offsets_grouplag l join groups_group g on g.id = l.group_id order by 1
"""


async def test_sums_of_a_topic_and_what_is_not_known_of_it(
    runtime: Runtime,
    samples: SampleService,
    topics: TopicService,
    clock: VirtualClock,
    sql: psycopg.Connection[Any],
) -> None:
    await topics.create("orders", 4)
    await topics.create("silent", 1)
    await report(topics, 100, 100, start=10)
    await samples.sample()
    clock.advance(60_000)
    await report(topics, 200, 130, start=10)
    await commit(runtime, "g", "orders", 0, offset=150)
    await commit(runtime, "g", "orders", 1, offset=3)
    await commit(runtime, "g", "orders", 3, offset=7)
    await commit(runtime, "g", "silent", 0, offset=9)
    clock.advance(60_000)
    await samples.sample()
    now = clock.now_ms()
    assert sql.execute(TOPICS).fetchall() == [
        ("g", "orders", now, 170, 120, None, 160, 330, 3, 1),
        ("g", "silent", now, None, None, None, 9, None, 1, 1),
    ], "records deleted from the log do not count, and partition 1 is older than its samples"
    await commit(runtime, "g", "orders", 1, offset=130)
    clock.advance(60_000)
    await samples.sample()
    assert sql.execute(TOPICS).fetchone() == ("g", "orders", clock.now_ms(), 50, 50, 150_000, 287, 330, 3, 1)


async def test_a_topic_that_a_group_no_longer_has_is_gone(
    runtime: Runtime,
    samples: SampleService,
    topics: TopicService,
    clock: VirtualClock,
    sql: psycopg.Connection[Any],
) -> None:
    for topic in ("orders", "other"):
        await topics.create(topic, 1)
    for group_id in ("a", "b", "c"):
        await commit(runtime, group_id, "orders", 0)
    await commit(runtime, "b", "other", 0)
    await samples.sample()
    assert [row[:2] for row in sql.execute(TOPICS)] == [
        ("a", "orders"), ("b", "orders"), ("b", "other"), ("c", "orders"),
    ]  # fmt: skip
    sql.execute("delete from offsets_committedoffset where topic = 'other'")
    await runtime.get(GroupService).delete("a")
    await runtime.get(GroupService).delete("c")
    clock.advance(60_000)
    await samples.sample()
    assert [row[:3] for row in sql.execute(TOPICS)] == [("b", "orders", START_MS + 60_000)]
    assert sql.execute("select count(*) from offsets_topiclag").fetchone() == (2,), "c had the last id of all"
    await samples.thin()
    assert sql.execute("select count(*) from offsets_topiclag").fetchone() == (1,)
    assert sql.execute("select count(*) from offsets_grouplag").fetchone() == (1,)


async def test_state_generation_and_members_of_both_protocols(
    runtime: Runtime,
    samples: SampleService,
    members: Members,
    api: Any,
    clock: VirtualClock,
    sql: psycopg.Connection[Any],
) -> None:
    await runtime.get(GroupService).put(ClassicGroup("idle", state_since=START_MS))
    await runtime.get(TopicService).create("orders", 2)
    await members.stable("classic")
    await members.joined(2, "waiting")
    await Consumers(api, runtime).join()
    await samples.sample()
    now = clock.now_ms()
    rows = {row[0]: row[1:] for row in sql.execute(GROUPS).fetchall()}
    assert rows["classic"] == (now, "Stable", 1, 1)
    assert rows["waiting"] == (now, "CompletingRebalance", 1, 2)
    assert rows["idle"] == (now, "Empty", 0, 0)
    state, epoch, count = rows["g"][1:]
    assert (state, count) == ("Stable", 1)
    assert epoch == sql.execute("select generation_id from groups_group where group_id = 'g'").fetchone()[0] > 0  # type: ignore[index]


async def test_partitions_are_those_owned_and_those_committed(
    runtime: Runtime, samples: SampleService, topics: TopicService, sql: psycopg.Connection[Any]
) -> None:
    await topics.create("orders", 7)
    await commit(runtime, "both", "orders", 0, 1, 2)
    seed = Seed(sql)
    (both,) = sql.execute("select id from groups_group").fetchone() or (0,)
    seed.assign(both, {("orders", 2): "m", ("orders", 3): "m", ("other", 0): "m"})
    seed.assign(seed.group("owns"), {("orders", partition): "m" for partition in range(7)})
    seed.group("idle")
    await samples.sample()
    counted = "select g.group_id, l.partitions from offsets_grouplag l join groups_group g on g.id = l.group_id"
    assert dict(sql.execute(counted).fetchall()) == {"both": 5, "owns": 7, "idle": 0}


async def test_topics_over_all_groups(
    runtime: Runtime,
    samples: SampleService,
    topics: TopicService,
    clock: VirtualClock,
    sql: psycopg.Connection[Any],
) -> None:
    for topic in ("orders", "silent", "unread"):
        await topics.create(topic, 2)
    await report(topics, 100, 50)
    for group_id, offset in (("a", 90), ("b", 20), ("c", 20)):
        await commit(runtime, group_id, "orders", 0, offset=offset)
    await commit(runtime, "a", "silent", 0)
    await samples.sample()
    totals = """
        select t.topic, t.at, t.groups, t.lag, g.group_id, t.worst_lag
        from offsets_topictotal t left join groups_group g on g.id = t.worst_group_id order by 1
    """
    assert sql.execute(totals).fetchall() == [
        ("orders", START_MS, 3, 170, "b", 80),
        ("silent", START_MS, 1, None, None, None),
    ]
    await runtime.get(GroupService).delete("a")
    await runtime.get(GroupService).delete("b")
    clock.advance(60_000)
    await samples.sample()
    assert sql.execute(totals).fetchall() == [("orders", clock.now_ms(), 1, 80, "c", 80)]
    await runtime.get(GroupService).delete("c")
    clock.advance(60_000)
    await samples.sample()
    assert sql.execute(totals).fetchall() == []
