"""Rows of lag as the statements in `frontend/sql/lag.sql` return them. Instants are milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frontend.rows import PartitionTotals

Millis = int


@dataclass(frozen=True, slots=True)
class TopicLag:
    """How far a group is behind on a topic, over the partitions that are owned or have a committed offset.

    `lag` None: no watermark of a committed partition is known; else it covers `measured` of `committed` partitions.
    `exists`: the topic is in the catalogue. `sampled_at`: the oldest watermark used.
    """

    topic: str
    partitions: int
    committed: int
    measured: int
    lag: int | None
    sampled_at: Millis | None
    exists: bool


@dataclass(frozen=True, slots=True)
class LatestSample:
    """The last sample of a topic; the lag in time is known from samples only."""

    topic: str
    at: Millis
    lag: int
    time_lag_ms: Millis | None


@dataclass(frozen=True, slots=True)
class Bucket:
    """The largest lag of a topic within a slice of the drawn time range; slices count from 0, the oldest."""

    topic: str
    slice: int
    lag: int
    time_lag_ms: Millis | None


@dataclass(frozen=True, slots=True)
class LagPart:
    """Lag of a group as its page shows it. `first` and `last` bound the drawn time range, cut into `slices`.

    `totals`: now, over all topics. `total`: the largest sum over all topics within each slice.
    """

    totals: PartitionTotals
    topics: Sequence[TopicLag]
    more_topics: bool
    latest: Mapping[str, LatestSample]
    history: Sequence[Bucket]
    total: Sequence[Bucket]
    first: Millis
    last: Millis
    slices: int


NO_LAG = LagPart(
    totals=PartitionTotals(0, 0, 0, None),
    topics=(),
    more_topics=False,
    latest={},
    history=(),
    total=(),
    first=0,
    last=1,
    slices=1,
)
"""For a group that neither owns nor has committed anything."""
