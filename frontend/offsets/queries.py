"""Read model of a group's lag; part of the snapshot that `frontend.queries.group_page` takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from frontend.offsets.rows import Bucket, LagPart, LatestSample, Millis, TopicLag
from frontend.rows import PartitionTotals
from frontend.viewer import Viewer
from kcoord.database.pool import Connection, Database
from kcoord.sql import queries

Q = queries("frontend")

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
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
    found = await db.records(connection, _line, Q.topic_lags, asked)
    lags = [line.lag for line in found[:topics] if line.lag is not None]
    first, last = now - drawn.length_ms, now + 1
    names = {"group_id": group_id, "topics": [lag.topic for lag in lags]}
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


def _line(
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
