"""Samples of watermarks and lag: what a run takes, what thinning leaves, what interpolation reads."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import psycopg
import pytest

from groups.core.model.types import ClassicGroup
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from offsets import tasks
from offsets.commits.service import OffsetService
from offsets.core.samples import DAY_MS, HOUR_MS, MINUTE_MS, Sample, offset_at, surplus
from offsets.lag import samples as sampling
from offsets.lag.samples import Sampled, SampleReads, SampleService
from tests.conftest import START_MS
from tests.support.commits import OffsetCommit, PartitionCommit
from tests.support.offsets import reply_to, report

SAMPLES = "select partition, at, until, log_start_offset, log_end_offset from offsets_watermarksample order by 1, 2"


@pytest.fixture
def reads(runtime: Runtime) -> SampleReads:
    """What reads samples."""
    return runtime.get(SampleReads)


async def commit(runtime: Runtime, group_id: str, *offsets: tuple[int, int], topic: str = "orders") -> None:
    """Commit (partition, offset)s as a simple consumer does."""
    partitions = tuple(PartitionCommit(topic, partition, offset) for partition, offset in offsets)
    reply = await reply_to(runtime.get(OffsetService), OffsetCommit(group_id, "", None, -1, partitions))
    assert {error.name for _, _, error in reply.results} == {"NONE"}


async def test_reports_sample_nothing_and_a_run_takes_them(
    samples: SampleService, topics: TopicService, clock: VirtualClock, sql: psycopg.Connection[Any]
) -> None:
    await topics.create("orders", 3)
    await report(topics, 100, 5, start=4)
    assert sql.execute(SAMPLES).fetchall() == []
    clock.advance(10_000)
    assert await samples.sample() == Sampled(partitions=2, lags=0)
    expected = [(0, START_MS, START_MS, 4, 100), (1, START_MS, START_MS, 4, 5)]
    assert sql.execute(SAMPLES).fetchall() == expected, "as of the report, not of the run"
    clock.advance(60_000)
    assert await samples.sample() == Sampled(partitions=0, lags=0), "nothing was reported since"
    assert sql.execute(SAMPLES).fetchall() == expected


async def test_a_log_that_stands_still_is_one_sample_that_lasts(
    samples: SampleService, topics: TopicService, clock: VirtualClock, sql: psycopg.Connection[Any]
) -> None:
    await topics.create("orders", 1)
    for end in (100, 100, 100, 130):
        await report(topics, end, start=end - 50)
        await samples.sample()
        clock.advance(60_000)
    assert sql.execute(SAMPLES).fetchall() == [
        (0, START_MS, START_MS + 120_000, 50, 100),
        (0, START_MS + 180_000, START_MS + 180_000, 80, 130),
    ]


async def test_a_truncation_cuts_the_samples_before_it(
    samples: SampleService,
    reads: SampleReads,
    topics: TopicService,
    clock: VirtualClock,
    sql: psycopg.Connection[Any],
) -> None:
    await topics.create("orders", 1)
    for end in (100, 200, 300, 150, 400):
        await report(topics, end)
        await samples.sample()
        clock.advance(60_000)
    ends = [(row[1] - START_MS, row[4]) for row in sql.execute(SAMPLES).fetchall()]
    assert ends == [(0, 100), (60_000, 150), (120_000, 150), (180_000, 150), (240_000, 400)]
    around = await reads.around("orders", None, START_MS + 90_000)
    assert offset_at(around[0], START_MS + 90_000) == 150


async def test_many_batches_and_two_runs_at_once(
    runtime: Runtime,
    samples: SampleService,
    topics: TopicService,
    clock: VirtualClock,
    sql: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("WATERMARK_BATCH", "GROUP_BATCH", "OFFSET_BATCH", "THIN_BATCH", "DROP_BATCH"):
        monkeypatch.setattr(sampling, name, 2)
    await topics.create("orders", 5)
    await report(topics, 10, 20, 30, 40, 50)
    for group_id in "abc":
        await commit(runtime, group_id, *((partition, 1) for partition in range(5)))
    clock.advance(1_000)
    done = await asyncio.gather(samples.sample(), samples.sample())
    assert sum(run.partitions for run in done) == 5
    assert len(sql.execute(SAMPLES).fetchall()) == 5
    rows = sql.execute("select group_name, topic, at, lag from offsets_lagsample order by 1").fetchall()
    assert rows == [(group_id, "orders", START_MS + 1_000, 145) for group_id in "abc"]
    await topics.delete("orders")
    assert await samples.thin() == 5
    assert sql.execute(SAMPLES).fetchall() == []


async def test_lag_of_a_group_is_sampled_by_topic_and_in_all(
    runtime: Runtime,
    samples: SampleService,
    topics: TopicService,
    clock: VirtualClock,
    sql: psycopg.Connection[Any],
) -> None:
    await topics.create("orders", 3)
    await topics.create("silent", 1)
    await report(topics, 100, 100, 100, start=10)
    await samples.sample()
    clock.advance(60_000)
    await report(topics, 200, 100, 100, start=10)
    await commit(runtime, "g", (0, 150), (1, 100), (2, 100))
    await commit(runtime, "g", (0, 5), topic="silent")
    await runtime.get(GroupService).put(ClassicGroup("idle", state_since=START_MS))
    clock.advance(60_000)
    assert (await samples.sample()).lags == 1
    now = clock.now_ms()
    rows = sql.execute("select group_name, topic, at, lag, time_lag_ms from offsets_lagsample").fetchall()
    assert rows == [("g", "orders", now, 50, 90_000)], "of a topic without watermarks nothing is known"
    latest = (
        "select g.group_id, l.at, l.lag, l.time_lag_ms from offsets_grouplag l join groups_group g on g.id = l.group_id"
        " order by 1"
    )
    assert sql.execute(latest).fetchall() == [("g", now, 50, 90_000), ("idle", now, None, None)]
    await runtime.get(GroupService).delete("idle")
    await samples.thin()
    assert [row[0] for row in sql.execute("select at from offsets_grouplag").fetchall()] == [now]


async def test_a_record_older_than_the_samples_has_waited_at_least_since_the_first(
    runtime: Runtime,
    samples: SampleService,
    topics: TopicService,
    clock: VirtualClock,
    sql: psycopg.Connection[Any],
) -> None:
    await topics.create("orders", 2)
    await report(topics, 100, 100)
    await samples.sample()
    clock.advance(60_000)
    await report(topics, 200, 100)
    await commit(runtime, "old", (0, 50), (1, 100))
    await commit(runtime, "known", (0, 150), (1, 100))
    clock.advance(60_000)
    await samples.sample()
    latest = (
        "select g.group_id, l.time_lag_ms, l.time_lag_at_least_ms from offsets_grouplag l"
        " join groups_group g on g.id = l.group_id order by 1"
    )
    assert sql.execute(latest).fetchall() == [("known", 90_000, None), ("old", None, 120_000)]
    of_topics = latest.replace("grouplag", "topiclag")
    assert sql.execute(of_topics).fetchall() == [("known", 90_000, None), ("old", None, 120_000)]
    total = "select time_lag_ms, time_lag_at_least_ms from offsets_topictotal"
    assert sql.execute(total).fetchall() == [(90_000, 120_000)]


async def test_a_run_right_after_another_samples_no_lag_anew(
    runtime: Runtime, samples: SampleService, topics: TopicService, clock: VirtualClock
) -> None:
    await topics.create("orders", 1)
    await report(topics, 10)
    await commit(runtime, "g", (0, 1))
    assert (await samples.sample()).lags == 1
    clock.advance(29_999)
    assert (await samples.sample()).lags == 0
    clock.advance(1)
    assert (await samples.sample()).lags == 1


async def test_lag_that_no_number_of_postgres_holds(
    runtime: Runtime, samples: SampleService, topics: TopicService, clock: VirtualClock, sql: psycopg.Connection[Any]
) -> None:
    largest = 2**63 - 1
    await topics.create("orders", 2)
    await report(topics, 0, 0)
    await samples.sample()
    clock.advance(10 * DAY_MS)
    await report(topics, largest, largest)
    await commit(runtime, "g", (0, 0), (1, largest // 2))
    clock.advance(HOUR_MS)
    await samples.sample()
    assert sql.execute("select lag, time_lag_ms from offsets_lagsample").fetchall() == [
        (largest, 10 * DAY_MS + HOUR_MS)
    ]
    await commit(runtime, "g", (1, 0))
    clock.advance(HOUR_MS)
    await samples.sample()
    assert sql.execute("select lag from offsets_lagsample order by at desc limit 1").fetchall() == [(largest,)]


async def test_no_number_of_a_group_keeps_topics_from_their_totals(
    runtime: Runtime, samples: SampleService, sql: psycopg.Connection[Any]
) -> None:
    """They are one statement for all topics, and no batches: whatever the columns can hold, it succeeds."""
    bounds = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 1, None]
    groups = sql.execute(
        "insert into groups_group (id, group_id, type, state, previous_state, state_since, generation_id,"
        " new_member_added, version, created_at, updated_at)"
        " select id, 'g' || id, 'classic', 'Empty', 'Empty', 1, 1, false, 1, 1, 1 from unnest(%s::bigint[]) id"
        " returning id",
        [[1, 2, 2**63 - 1]],
    ).fetchall()
    for number, numbers in enumerate(itertools.product(bounds, repeat=len(groups))):
        for (group,), value in zip(groups, numbers, strict=True):
            sql.execute(
                "insert into offsets_topiclag (group_id, topic, at, lag, max_lag, time_lag_ms, committed_offsets,"
                " log_end_offsets, partitions, unknown_partitions) values (%s, %s, 1, %s, %s, %s, %s, %s, 1, 0)",
                [group, f"t{number}", value, value, value, value or 0, value],
            )
    await samples._total(START_MS)
    totals = dict(sql.execute("select topic, array[lag, worst_lag, time_lag_ms] from offsets_topictotal").fetchall())
    for number, numbers in enumerate(itertools.product(bounds, repeat=len(groups))):
        known = [one for one in numbers if one is not None]
        lag = min(max(sum(known), -(2**63)), 2**63 - 1) if known else None
        assert totals[f"t{number}"] == [lag, max(known, default=None), max(known, default=None)], numbers


async def test_samples_of_an_earlier_topic_of_the_same_name_are_not_used(
    samples: SampleService,
    reads: SampleReads,
    topics: TopicService,
    clock: VirtualClock,
    sql: psycopg.Connection[Any],
) -> None:
    await topics.create("orders", 1)
    await report(topics, 1_000)
    await samples.sample()
    await topics.delete("orders")
    await topics.create("orders", 2)
    assert await reads.around("orders", None, START_MS) == {}
    clock.advance(60_000)
    await report(topics, 3)
    await samples.sample()
    now = clock.now_ms()
    assert await reads.around("orders", None, START_MS) == {0: (Sample(now, now, 0, 3),)}
    assert await samples.thin() == 1
    assert sql.execute(SAMPLES).fetchall() == [(0, now, now, 0, 3)]


async def test_what_is_read_around_an_instant(
    samples: SampleService, reads: SampleReads, topics: TopicService, clock: VirtualClock
) -> None:
    await topics.create("orders", 4)
    for end in (100, 200, 200, 300, 400):
        await report(topics, end, end // 2, start=10)
        await samples.sample()
        clock.advance(60_000)
    await report(topics, 500, 250)

    async def around(minutes: float, partitions: list[int] | None = None) -> dict[int, list[tuple[float, int]]]:
        found = await reads.around("orders", partitions, START_MS + int(minutes * 60_000))
        return {
            partition: [((sample.at - START_MS) / 60_000, sample.log_end_offset) for sample in kept]
            for partition, kept in found.items()
        }

    assert await around(1.5, [0, 2, 99]) == {0: [(1, 200), (3, 300), (5, 500)]}
    assert await around(3) == {0: [(3, 300), (4, 400), (5, 500)], 1: [(3, 150), (4, 200), (5, 250)]}
    assert await around(-1, [0]) == {0: [(0, 100), (5, 500)]}
    assert await around(9, [1]) == {1: [(4, 200), (5, 250)]}
    assert await around(1, []) == {}
    assert await reads.around("nope", None, START_MS) == {}


async def test_reading_around_an_instant_loses_nothing_that_interpolation_needs(
    samples: SampleService,
    reads: SampleReads,
    topics: TopicService,
    clock: VirtualClock,
    sql: psycopg.Connection[Any],
) -> None:
    await topics.create("orders", 1)
    for end in (10, 50, 50, 90, 40, 40, 70, 100, 100):
        await report(topics, end)
        await samples.sample()
        clock.advance(60_000)
    everything = [Sample(*row[1:]) for row in sql.execute(SAMPLES).fetchall()]
    for instant in range(START_MS, clock.now_ms(), 7_777):
        around = (await reads.around("orders", [0], instant))[0]
        assert offset_at(around, instant) == offset_at(everything, instant)


async def test_thinning_does_what_the_rule_says(
    samples: SampleService, topics: TopicService, clock: VirtualClock, sql: psycopg.Connection[Any]
) -> None:
    await topics.create("orders", 2)
    await report(topics, 1, 1)
    now = START_MS + 8 * DAY_MS
    clock.move_to(now)
    minutes = range(START_MS, now, 7 * MINUTE_MS)
    sql.execute(
        "insert into offsets_watermarksample (topic_id, partition, at, until, log_start_offset, log_end_offset)"
        " select t.id, p, at, at + 1000, 0, at / 1000"
        " from groups_topic t, generate_series(0, 1) p, unnest(%s::bigint[]) at",
        [list(minutes)],
    )
    sql.execute(
        "insert into offsets_lagsample (group_name, topic, at, lag) select g, 'orders', at, 1"
        " from unnest(array['a', 'b']) g, unnest(%s::bigint[]) at",
        [list(minutes)],
    )
    kept = set(minutes) - set(surplus([at for at in minutes if at >= now - 7 * DAY_MS], now))
    by_age = {at for at in kept if at >= now - 7 * DAY_MS}
    by_last_seen = {at for at in kept if at + 1_000 >= now - 7 * DAY_MS}
    assert await samples.thin() == 2 * (2 * len(minutes) - len(by_age) - len(by_last_seen))
    rows = sql.execute("select partition, array_agg(at order by at) from offsets_watermarksample group by 1").fetchall()
    assert dict(rows) == {0: sorted(by_last_seen), 1: sorted(by_last_seen)}
    rows = sql.execute("select group_name, array_agg(at order by at) from offsets_lagsample group by 1").fetchall()
    assert dict(rows) == {"a": sorted(by_age), "b": sorted(by_age)}
    assert await samples.thin() == 0


async def test_a_report_older_than_the_retention_is_not_sampled_again_and_again(
    samples: SampleService, topics: TopicService, clock: VirtualClock, sql: psycopg.Connection[Any]
) -> None:
    await topics.create("orders", 1)
    await report(topics, 5)
    await samples.sample()
    clock.advance(7 * DAY_MS + 1)
    assert await samples.thin() == 1
    assert (await samples.sample()).partitions == 0
    assert sql.execute(SAMPLES).fetchall() == []


async def test_celery_samples_and_thins(
    runtime: Runtime, topics: TopicService, clock: VirtualClock, sql: psycopg.Connection[Any]
) -> None:
    from django.conf import settings

    schedule = settings.CELERY_BEAT_SCHEDULE.values()
    assert {tasks.sample.name, tasks.thin_samples.name} <= {entry["task"] for entry in schedule}
    await topics.create("orders", 1)
    await report(topics, 10)
    await commit(runtime, "g", (0, 1))
    assert await asyncio.to_thread(tasks.sample) == 2
    clock.advance(8 * DAY_MS)
    assert await asyncio.to_thread(tasks.thin_samples) == 2
    assert sql.execute(SAMPLES).fetchall() == []


async def test_totals_of_many_topics_take_longer_than_a_transaction_may(
    database: str, clock: VirtualClock, sql: psycopg.Connection[Any]
) -> None:
    short = Config({"database.transaction.timeout.ms": 500, "database.lock.timeout.ms": 400})
    runtime = Runtime(short, database, clock)
    await runtime.start()
    sql.execute(
        "create function many_topics() returns trigger language plpgsql as"
        " 'begin perform pg_sleep(0.8); return null; end'"
    )
    sql.execute("create trigger many before insert on offsets_topictotal execute function many_topics()")
    try:
        assert await runtime.get(SampleService).sample() == Sampled(partitions=0, lags=0)
    finally:
        sql.execute("drop function many_topics cascade")
        await runtime.stop()
