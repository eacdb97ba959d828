"""The lag of a group: now by topic, and in the past as plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from frontend.ui.chart import COUNT, LENGTH, LONGEST_GAP, Chart, Line, Point, Series, chart, spark
from frontend.ui.chart import DAY as DAY_MS
from frontend.ui.chart import HOUR as HOUR_MS
from frontend.ui.rows import Millis, PartitionTotals
from frontend.ui.shown import Shown, time_behind
from frontend.ui.viewer import Viewer
from frontend.ui.zones import current
from groups.core.subscription import SubscribedTopics
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from offsets.core.lag import longest
from offsets.core.samples import TimeLag


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
    time_lag_at_least_ms: Millis | None = None

    @property
    def time_lag(self) -> Shown[Millis]:
        """As the table shows it."""
        return time_behind(
            self.time_lag_ms, self.time_lag_at_least_ms, self.at, "Not known from the samples of the last hour"
        )


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


NO_LAG = LagPart(PartitionTotals(0, 0, 0, None), (), False, {}, (), (), first=0, last=1, slices=1)
"""For a group that neither owns nor has committed anything."""

Q = queries("frontend")

SAMPLE_AGE_MS = HOUR_MS
"""An older sample says nothing about the present."""


@dataclass(frozen=True, slots=True)
class Range:
    """How much of the past is drawn, and in how many slices."""

    name: str
    label: str
    length_ms: Millis
    slices: int


RANGES = (
    Range("hour", "1 h", HOUR_MS, 60),
    Range("quarter", "6 h", 6 * HOUR_MS, 72),
    Range("day", "24 h", DAY_MS, 96),
    Range("week", "7 d", 7 * DAY_MS, 168),
)
DEFAULT_RANGE = RANGES[2]
BY_NAME = {drawn.name: drawn for drawn in RANGES}


async def lag_part(
    db: Database,
    connection: Connection,
    viewer: Viewer,
    pk: int,
    group_id: str,
    now: Millis,
    drawn: Range,
    topics: int,
    q: str = "",
) -> LagPart:
    """Lag of the group with this key, with its history, for at most `topics` topics whose names contain `q`.

    The totals cover all topics that the viewer may describe.
    """
    asked = {"pk": pk, "limit": topics + 1, "q": q, **viewer.parameters()}
    found = await db.records(connection, _lag_line, Q.topic_lags, asked)
    lags = [line.lag for line in found[:topics] if line.lag is not None]
    first, last = now - drawn.length_ms, now + 1
    names = {"pk": pk, "group_id": group_id, "topics": [lag.topic for lag in lags]}
    past = {"group_id": group_id, "first": first, "last": last, "slices": drawn.slices}
    recent = {**names, "since": now - SAMPLE_AGE_MS}
    latest = await db.records(connection, LatestSample, Q.latest_lag_samples, recent)
    history = await db.records(connection, Bucket, Q.lag_history, {**names, **past})
    total = await db.records(connection, Bucket, Q.total_lag_history, {**past, **viewer.parameters()})
    return LagPart(
        totals=found[0].totals,
        topics=lags,
        more_topics=len(found) > topics,
        latest={sample.topic: sample for sample in latest},
        history=history,
        total=total,
        first=first,
        last=last,
        slices=drawn.slices,
    )


class _Line(NamedTuple):
    """A row of `topic_lags`: the sums, which are the same in every row, and a topic unless the group has none."""

    totals: PartitionTotals
    lag: TopicLag | None


def _lag_line(
    *,
    all_partitions: int,
    all_committed: int,
    all_measured: int,
    all_lag: int | None,
    topics: int,
    topic: str | None,
    **lag: Any,
) -> _Line:
    totals = PartitionTotals(all_partitions, all_committed, all_measured, all_lag, topics)
    return _Line(totals, None if topic is None else TopicLag(topic, **lag))


@dataclass(frozen=True, slots=True)
class TopicLine:
    """A topic in the lag table. `note`: what is unusual about it, "" if nothing. `stale`: a watermark is too old."""

    lag: TopicLag
    latest: LatestSample | None
    plot: Line
    note: str
    meaning: str
    stale: bool


def lag(
    part: LagPart, subscribed: SubscribedTopics, members: int, stale_ms: Millis, sample_ms: Millis
) -> dict[str, Any]:
    """The context of the lag panel.

    `subscribed`: the topics that the members read; `stale_ms`: the age from which a watermark says too little;
    `sample_ms`: how often lag is sampled.
    """
    stale_before = part.last - stale_ms
    by_topic: dict[str, list[Bucket]] = {}
    for bucket in part.history:
        by_topic.setdefault(bucket.topic, []).append(bucket)
    lines = [
        _line(topic, part, by_topic.get(topic.topic, ()), subscribed, members, stale_before) for topic in part.topics
    ]
    oldest = min((line.lag.sampled_at for line in lines if line.lag.sampled_at is not None), default=None)
    late = [TimeLag(one.time_lag_ms, one.time_lag_at_least_ms) for line in lines if (one := line.latest)]
    return {
        "lag_lines": lines,
        "lag_chart": _chart(part, "Lag", COUNT, sample_ms),
        "time_lag_chart": _chart(part, "Behind", LENGTH, sample_ms),
        "stale_ms": stale_ms,
        "lag_more": part.more_topics,
        "behind": longest(late),
        "stale_since": oldest if oldest is not None and oldest < stale_before else None,
    }


def points(part: LagPart, buckets: Sequence[Bucket], kind: str = COUNT) -> list[Point]:
    """Lag, or for LENGTH lag in time where it is known, in the middle of each slice."""
    step = _step(part)
    values = ((bucket.slice, bucket.lag if kind == COUNT else bucket.time_lag_ms) for bucket in buckets)
    return [Point(part.first + number * step + step // 2, value) for number, value in values if value is not None]


def _step(part: LagPart) -> Millis:
    return max((part.last - part.first) // part.slices, 1)


def _chart(part: LagPart, name: str, kind: str, sample_ms: Millis) -> Chart:
    last = [one.at for one in part.latest.values() if kind == COUNT or one.time_lag_ms is not None]
    series = Series(name, points(part, part.total, kind), max(last, default=None))
    gap, step = LONGEST_GAP * sample_ms, _step(part)
    return chart([series], first=part.first, last=part.last, step_ms=step, kind=kind, zone=current(), gap_ms=gap)


def _line(
    topic: TopicLag,
    part: LagPart,
    buckets: Sequence[Bucket],
    subscribed: SubscribedTopics,
    members: int,
    stale_before: Millis,
) -> TopicLine:
    note, meaning = "", ""
    if not topic.exists:
        note, meaning = "not in the catalogue", "Not in the catalogue; offsets of deleted topics are removed soon"
    elif members and topic.topic not in subscribed:
        note, meaning = "not read", "No member reads this topic any more; its offsets expire"
    return TopicLine(
        lag=topic,
        latest=part.latest.get(topic.topic),
        plot=spark(points(part, buckets), first=part.first, last=part.last, step_ms=_step(part)),
        note=note,
        meaning=meaning,
        stale=topic.sampled_at is not None and topic.sampled_at < stale_before,
    )
