"""Read model of a group's lag; part of the snapshot that `frontend.queries.group_page` takes."""

from __future__ import annotations

from dataclasses import dataclass

from frontend.offsets.rows import Bucket, LagPart, LatestSample, Millis, TopicLag
from frontend.rows import PartitionTotals
from kcoord.database.pool import Connection, Database
from kcoord.sql import queries

Q = queries("frontend")

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
TOTALS = 5
"""Columns of `topic_lags` that are the same in every row: the sums."""
SAMPLE_AGE_MS = HOUR_MS
"""An older sample says nothing about the present."""


@dataclass(frozen=True, slots=True)
class Range:
    """How much of the past is drawn, and in how many slices."""

    name: str
    label: str
    length_ms: Millis
    slices: int


RANGES = (Range("day", "24 hours", DAY_MS, 96), Range("week", "7 days", 7 * DAY_MS, 168))
BY_NAME = {drawn.name: drawn for drawn in RANGES}


async def lag_part(
    db: Database, connection: Connection, pk: int, group_id: str, now: Millis, drawn: Range, topics: int, q: str = ""
) -> LagPart:
    """Lag of the group with this key, with its history, for at most `topics` topics whose names contain `q`.

    The totals cover all topics.
    """
    found = await db.rows(connection, Q.topic_lags, {"pk": pk, "limit": topics + 1, "q": q})
    lags = [TopicLag(*row[TOTALS:]) for row in found[:topics] if row[TOTALS] is not None]
    first, last = now - drawn.length_ms, now + 1
    names = {"group_id": group_id, "topics": [lag.topic for lag in lags]}
    past = {"group_id": group_id, "first": first, "last": last, "slices": drawn.slices}
    latest = await db.rows(connection, Q.latest_lag_samples, {**names, "since": now - SAMPLE_AGE_MS})
    history = await db.rows(connection, Q.lag_history, {**names, **past})
    total = await db.rows(connection, Q.total_lag_history, past)
    return LagPart(
        totals=PartitionTotals(*found[0][:TOTALS]),
        topics=lags,
        more_topics=len(found) > topics,
        latest={row[0]: LatestSample(*row) for row in latest},
        history=[Bucket(*row) for row in history],
        total=[Bucket(*row) for row in total],
        first=first,
        last=last,
        slices=drawn.slices,
    )
