"""What statements say of lag is what the rules say: totals, pages and samples, over arbitrary histories of logs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from groups.topics import TopicService, Watermark
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from offsets.commits.service import OffsetService
from offsets.core import lag as rules
from offsets.core.lag import PartitionLag, TotalLag
from offsets.core.samples import Sample, time_lag
from offsets.lag.samples import SampleService, in_order
from offsets.lag.service import GroupLag, LagReads, PartitionPosition
from tests.conftest import START_MS
from tests.support.commits import OffsetCommit, PartitionCommit
from tests.support.offsets import reply_to

PARTITIONS = 12
SAMPLES = """
select s.at, s.until, s.log_start_offset, s.log_end_offset
from offsets_watermarksample s
join groups_topic t on t.id = s.topic_id
where t.name = %s and s.partition = %s
order by s.at
"""


@pytest.fixture
def sql(database: str) -> Iterator[psycopg.Connection[Any]]:
    """A look at the rows."""
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


async def live(runtime: Runtime, clock: VirtualClock, dice: random.Random, topic: str) -> None:
    """A history of a topic: logs grow, stand still, are truncated, lose their start, or are not reported."""
    topics, samples = runtime.get(TopicService), runtime.get(SampleService)
    await topics.create(topic, PARTITIONS)
    ends = [dice.randrange(200) for _ in range(PARTITIONS)]
    starts = [0] * PARTITIONS
    for _ in range(dice.randrange(1, 12)):
        clock.advance(dice.choice([10_000, 60_000, 61_111]))
        for partition in range(PARTITIONS):
            ends[partition] = max(0, ends[partition] + dice.choice([0, 0, 7, 100, -30]))
            starts[partition] = min(ends[partition], starts[partition] + dice.choice([0, 0, 0, 25]))
        reported = [p for p in range(PARTITIONS) if p and dice.random() < 0.8]
        if reported:
            await topics.set_watermarks(topic, [Watermark(p, starts[p], ends[p]) for p in reported], truncated=True)
        if dice.random() < 0.7:
            await samples.sample()
    clock.advance(1)
    committed = [PartitionCommit(topic, p, dice.randrange(400)) for p in range(PARTITIONS) if dice.random() < 0.8]
    clock.advance(dice.choice([1, 400_000]))
    commit = OffsetCommit("g", "", None, -1, tuple(committed))
    await reply_to(runtime.get(OffsetService), commit)


def everything(sql: psycopg.Connection[Any], topic: str, found: PartitionPosition) -> list[Sample]:
    """All samples of a partition, its watermark the last."""
    samples = [Sample(*row) for row in sql.execute(SAMPLES, [topic, found.partition]).fetchall()]
    mark = found.watermark
    if mark is not None:
        samples.append(Sample(mark.sampled_at, mark.sampled_at, mark.log_start_offset, mark.log_end_offset))
    return list(in_order(samples))


@pytest.mark.parametrize("seed", range(5))
async def test_statements_say_what_the_rules_say(
    runtime: Runtime, clock: VirtualClock, sql: psycopg.Connection[Any], seed: int
) -> None:
    dice = random.Random(seed)
    for topic in ("alpha", "beta"):
        await live(runtime, clock, dice, topic)
    clock.advance(100_000)
    now, stale_ms = clock.now_ms(), runtime.config.int("lag.stale.ms")
    found = await runtime.get(LagReads).lag("g")
    for topic in found.topics:
        for partition in topic.partitions:
            samples = everything(sql, topic.topic, partition)
            expected = rules.partition_lag(partition.committed_offset, partition.watermark, samples, now, stale_ms)
            assert partition.lag == expected
        assert topic.total == rules.total_of_partitions(partition.lag for partition in topic.partitions)
    assert found.total == rules.total(topic.total for topic in found.topics)
    assert await by_pages(runtime.get(LagReads), 5) == await by_pages(runtime.get(LagReads), 1_000)

    await runtime.get(SampleService).sample()
    sampled = sql.execute("select topic, lag, time_lag_ms from offsets_lagsample where at = %s", [now]).fetchall()
    expected_samples = {t.topic: (t.total.lag, t.total.time_lag.ms) for t in found.topics if t.total.lag is not None}
    assert {topic: (lag, lateness) for topic, lag, lateness in sampled} == expected_samples
    latest = sql.execute("select at, lag, time_lag_ms from offsets_grouplag").fetchall()
    assert latest == [(now, found.total.lag, found.total.time_lag.ms)]


async def by_pages(reads: LagReads, limit: int) -> list[PartitionPosition]:
    """All partitions, page by page."""
    partitions: list[PartitionPosition] = []
    cursor = None
    while True:
        page: GroupLag = await reads.lag("g", cursor=cursor, limit=limit)
        partitions += [partition for topic in page.topics for partition in topic.partitions]
        cursor = page.next_cursor
        if cursor is None:
            return partitions


async def test_histories_have_what_the_comparison_needs(
    runtime: Runtime, clock: VirtualClock, sql: psycopg.Connection[Any]
) -> None:
    """The twelve seeds would prove nothing if their partitions were all caught up, or all known exactly."""
    dice = random.Random(3)
    for topic in ("alpha", "beta"):
        await live(runtime, clock, dice, topic)
    found = [p.lag for p in await by_pages(runtime.get(LagReads), 1_000)]
    assert any(lag.lag is None for lag in found)
    assert any(lag.lag == 0 for lag in found)
    assert any(lag.lag and lag.time_lag.ms for lag in found)
    assert any(lag.time_lag.at_least_ms is not None for lag in found)


def test_a_total_is_as_late_as_its_latest_and_as_old_as_its_oldest() -> None:
    mark = rules.Watermark(0, 100, START_MS)
    samples = [Sample(START_MS - 1_000, START_MS - 1_000, 0, 50), Sample(START_MS, START_MS, 0, 100)]
    now = START_MS + 500
    exact = rules.partition_lag(60, mark, samples, now, 1_000)
    beyond = rules.partition_lag(40, mark, samples, now, 1_000)
    assert (exact.lag, exact.time_lag) == (40, time_lag(samples, 60, now))
    assert (beyond.lag, beyond.time_lag.at_least_ms) == (60, 1_500)
    assert rules.total_of_partitions([exact, exact]).time_lag == exact.time_lag
    both = rules.total_of_partitions([exact, beyond, PartitionLag()])
    assert both == TotalLag(3, 1, 100, beyond.time_lag, START_MS, False)
    assert rules.total([both, TotalLag()]) == both
    assert rules.total([]) == TotalLag()


def test_a_report_is_stale_after_its_time() -> None:
    mark = rules.Watermark(0, 100, START_MS)
    assert [mark.stale(START_MS + age, 1_000) for age in (0, 1_000, 1_001)] == [False, False, True]
