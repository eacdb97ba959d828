"""Lag of a group, ready for its template. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from frontend.history.chart import COUNT, LENGTH, LONGEST_GAP, Chart, Line, Point, Series, chart, spark
from frontend.offsets.queries import RANGES, Range
from frontend.offsets.rows import Bucket, LagPart, LatestSample, Millis, TopicLag
from frontend.zones import current
from groups.core.subscription import SubscribedTopics


@dataclass(frozen=True, slots=True)
class TopicLine:
    """A topic in the lag table. `note`: what is unusual about it, "" if nothing. `stale`: a watermark is too old."""

    lag: TopicLag
    latest: LatestSample | None
    plot: Line
    note: str
    meaning: str
    stale: bool


@dataclass(frozen=True, slots=True)
class RangeChoice:
    """A time range that can be drawn."""

    range: Range
    chosen: bool
    url: str


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
    late = [line.latest.time_lag_ms for line in lines if line.latest and line.latest.time_lag_ms is not None]
    return {
        "lag_lines": lines,
        "lag_chart": _chart(part, "Lag", COUNT, sample_ms),
        "time_lag_chart": _chart(part, "Behind", LENGTH, sample_ms),
        "stale_ms": stale_ms,
        "lag_more": part.more_topics,
        "time_lag_ms": max(late, default=None),
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


def choices(chosen: Range, urls: dict[str, str]) -> list[RangeChoice]:
    """The time ranges to choose from."""
    return [RangeChoice(drawn, drawn is chosen, urls[drawn.name]) for drawn in RANGES]


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
