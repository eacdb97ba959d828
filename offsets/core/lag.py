"""How far a group is behind: on a partition, on a topic, in total.

Lag counts records of the log that the group has not read, as of the last report of the partition's watermark. It is
clamped to the log: a committed offset below the start of the log counts from the start, since deleted records cannot be
read any more; one above the end counts 0, since then the report is older than the commit.
Differs from Kafka: Kafka's tool shows a negative lag there, and counts deleted records.

A partition without a commit has no lag: where its reader will begin is the reader's own setting. A partition without a
watermark has no lag either. Both are counted as unknown, next to the totals.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from offsets.core.samples import NOT_KNOWN, Sample, TimeLag, time_lag
from offsets.core.types import INT64_MAX, Millis


@dataclass(frozen=True, slots=True)
class Watermark:
    """Where a log begins and ends (the offset after its last), as reported at `sampled_at` (ms)."""

    log_start_offset: int
    log_end_offset: int
    sampled_at: Millis

    def stale(self, now: Millis, stale_ms: Millis) -> bool:
        """Was it reported more than `stale_ms` ago?"""
        return now - self.sampled_at > stale_ms


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far a group is behind on a partition. `lag` None: not known. `stale`: from an old report."""

    lag: int | None = None
    time_lag: TimeLag = NOT_KNOWN
    sampled_at: Millis | None = None
    stale: bool = False


def position(committed_offset: int, log_start_offset: int) -> int:
    """The next record to read."""
    return max(committed_offset, log_start_offset)


def partition_lag(
    committed_offset: int | None, watermark: Watermark | None, samples: Sequence[Sample], now: Millis, stale_ms: Millis
) -> PartitionLag:
    """The lag of one partition. `samples` by time, the watermark the last of them (`offsets.core.samples`)."""
    if watermark is None:
        return PartitionLag()
    stale = watermark.stale(now, stale_ms)
    if committed_offset is None:
        return PartitionLag(sampled_at=watermark.sampled_at, stale=stale)
    unread = position(committed_offset, watermark.log_start_offset)
    return PartitionLag(
        max(watermark.log_end_offset - unread, 0),
        time_lag(samples, unread, now),
        watermark.sampled_at,
        stale,
    )


@dataclass(frozen=True, slots=True)
class TotalLag:
    """How far a group is behind on several partitions.

    `lag`: over all partitions with a known lag; None if no lag is known. `unknown_partitions`: those with an unknown
    lag, because nothing was committed or no watermark was reported. `time_lag`: the largest. `sampled_at`: the oldest
    report included; `stale`: one of them is.
    """

    partitions: int = 0
    unknown_partitions: int = 0
    lag: int | None = None
    time_lag: TimeLag = NOT_KNOWN
    sampled_at: Millis | None = None
    stale: bool = False


def total_of_partitions(partitions: Iterable[PartitionLag]) -> TotalLag:
    """The total of several partitions."""
    return total(_alone(partition) for partition in partitions)


def _alone(partition: PartitionLag) -> TotalLag:
    if partition.lag is None:
        return TotalLag(1, 1)
    return TotalLag(1, 0, partition.lag, partition.time_lag, partition.sampled_at, partition.stale)


def total(parts: Iterable[TotalLag]) -> TotalLag:
    """The total of several totals."""
    found = list(parts)
    lags = [part.lag for part in found if part.lag is not None]
    reports = [part.sampled_at for part in found if part.sampled_at is not None]
    return TotalLag(
        sum(part.partitions for part in found),
        sum(part.unknown_partitions for part in found),
        min(sum(lags), INT64_MAX) if lags else None,
        longest([part.time_lag for part in found]),
        min(reports, default=None),
        any(part.stale for part in found),
    )


def longest(time_lags: Iterable[TimeLag]) -> TimeLag:
    """The largest. If one of them is only known as a lower bound, so is the largest."""
    found = list(time_lags)
    exact = [one.ms for one in found if one.ms is not None]
    least = [one.at_least_ms for one in found if one.at_least_ms is not None]
    if least:
        return TimeLag(at_least_ms=max(exact + least))
    return TimeLag(max(exact, default=None))
