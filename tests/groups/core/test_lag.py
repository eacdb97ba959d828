"""How far a group is behind: on one partition, in total, and in time (`offsets.core.lag`)."""

from __future__ import annotations

import pytest

from offsets.core.lag import (
    PartitionLag,
    TotalLag,
    Watermark,
    longest,
    partition_lag,
    position,
    total,
    total_of_partitions,
)
from offsets.core.samples import NOT_KNOWN, Sample, TimeLag

NOW = 10_000
STALE_MS = 500
REPORT = Watermark(log_start_offset=100, log_end_offset=300, sampled_at=9_900)
SAMPLES = [Sample(1_000, 1_000, 100, 100), Sample(9_900, 9_900, 100, 300)]


def lag_of(committed: int | None, watermark: Watermark | None = REPORT) -> PartitionLag:
    return partition_lag(committed, watermark, SAMPLES, NOW, STALE_MS)


@pytest.mark.parametrize(
    ("committed", "unread"),
    [
        (250, 50),
        (299, 1),
        (300, 0),
        (301, 0),  # the report is older than the commit
        (100, 200),
        (99, 200),  # deleted records cannot be read any more
    ],
)
def test_differs_from_kafka_lag_is_clamped_to_the_log(committed: int, unread: int) -> None:
    assert lag_of(committed).lag == unread


@pytest.mark.parametrize(("committed", "next_record"), [(99, 100), (100, 100), (101, 101)])
def test_the_next_record_is_in_the_log(committed: int, next_record: int) -> None:
    assert position(committed, 100) == next_record


def test_time_lag_counts_from_the_next_record_that_exists() -> None:
    assert lag_of(300).time_lag == TimeLag(0)
    assert lag_of(200).time_lag == TimeLag(NOW - 5_450)
    assert lag_of(5).time_lag == lag_of(100).time_lag == TimeLag(NOW - 1_000)


def test_what_is_unknown_without_a_commit_or_a_report() -> None:
    assert lag_of(None) == PartitionLag(None, NOT_KNOWN, 9_900, stale=False)
    assert lag_of(7, watermark=None) == PartitionLag()
    assert lag_of(None, watermark=None) == PartitionLag()
    assert PartitionLag() == PartitionLag(None, NOT_KNOWN, None, stale=False)


@pytest.mark.parametrize(("age_ms", "stale"), [(STALE_MS, False), (STALE_MS + 1, True)])
def test_a_report_is_stale_once_it_is_older_than_allowed(age_ms: int, stale: bool) -> None:
    watermark = Watermark(0, 10, NOW - age_ms)
    assert watermark.stale(NOW, STALE_MS) is stale
    assert lag_of(10, watermark).stale is stale
    assert lag_of(None, watermark).stale is stale


def test_a_total_sums_what_is_known_and_counts_what_is_not() -> None:
    known = PartitionLag(5, TimeLag(700), 9_000)
    more = PartitionLag(2, TimeLag(900), 8_000, stale=True)
    unknown = PartitionLag(sampled_at=7_000, stale=True)
    assert total_of_partitions([known, more, unknown]) == TotalLag(3, 1, 7, TimeLag(900), 8_000, stale=True)
    assert total_of_partitions([known]) == TotalLag(1, 0, 5, TimeLag(700), 9_000, stale=False)


def test_nothing_known_is_no_lag_rather_than_zero() -> None:
    assert total_of_partitions([PartitionLag()]) == TotalLag(1, 1)
    assert total_of_partitions([]) == TotalLag() == TotalLag(0, 0, None, NOT_KNOWN, None, stale=False)
    assert total_of_partitions([PartitionLag(0, TimeLag(0), 1)]).lag == 0


def test_a_total_of_totals_is_the_total_of_all_partitions() -> None:
    parts = [PartitionLag(5, TimeLag(700), 9_000), PartitionLag(), PartitionLag(1, TimeLag(1), 3, stale=True)]
    split = [total_of_partitions(parts[:1]), total_of_partitions(parts[1:])]
    assert total(split) == total_of_partitions(parts)


@pytest.mark.parametrize(
    ("time_lags", "largest"),
    [
        ([], NOT_KNOWN),
        ([NOT_KNOWN, TimeLag(3), TimeLag(8)], TimeLag(8)),
        ([TimeLag(3), TimeLag(at_least_ms=5)], TimeLag(at_least_ms=5)),
        ([TimeLag(9), TimeLag(at_least_ms=5), TimeLag(at_least_ms=6)], TimeLag(at_least_ms=9)),
    ],
)
def test_the_longest_time_lag_is_a_lower_bound_if_one_of_them_is(time_lags: list[TimeLag], largest: TimeLag) -> None:
    assert longest(time_lags) == largest
