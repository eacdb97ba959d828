"""How far behind a group is on some partitions, now: for the API and the pages of groups and members.

Source: http-api.md 4; the rules are `offsets.core.lag` and `offsets.core.samples`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from offsets.core.lag import PartitionLag, Watermark, partition_lag, position
from offsets.core.samples import Sample
from offsets.core.types import Millis
from offsets.lag.samples import in_order

Q = queries("offsets")


async def lags(
    db: Database, connection: Connection, rows: Sequence[Any], now: Millis, stale_ms: Millis
) -> list[PartitionLag]:
    """The lag of each partition, in the order of `rows`.

    A row has `topic` and `partition`, what is committed there (`committed_offset`) and the partition's watermark
    (`log_start_offset`, `log_end_offset`, `sampled_at`), None where it is unknown. `stale_ms`: from when a watermark is
    stale. Raises ProtocolError COORDINATOR_NOT_AVAILABLE.
    """
    around: dict[tuple[str, int], list[Sample]] = {}
    if wanted := _positions(rows):
        for key, sample in await db.records(connection, _sample, Q.samples_of_positions, wanted):
            around.setdefault(key, []).append(sample)
    return [_lag(row, around.get((row.topic, row.partition), []), now, stale_ms) for row in rows]


def _positions(rows: Iterable[Any]) -> dict[str, Any]:
    """Parameters of those with something to read, whose time lag depends on samples; may be empty."""
    behind = {}
    for row in rows:
        if row.committed_offset is not None and row.sampled_at is not None:
            unread = position(row.committed_offset, row.log_start_offset)
            if unread < row.log_end_offset:
                behind[row.topic, row.partition] = unread
    if not behind:
        return {}
    topics, partitions = zip(*behind, strict=True)
    return {"topics": list(topics), "partitions": list(partitions), "positions": list(behind.values())}


def _sample(*, topic: str, partition: int, **sample: int) -> tuple[tuple[str, int], Sample]:
    return (topic, partition), Sample(**sample)


def _lag(row: Any, around: Sequence[Sample], now: Millis, stale_ms: Millis) -> PartitionLag:
    if row.sampled_at is None:
        return PartitionLag()
    last = Sample(row.sampled_at, row.sampled_at, row.log_start_offset, row.log_end_offset)
    watermark = Watermark(row.log_start_offset, row.log_end_offset, row.sampled_at)
    return partition_lag(row.committed_offset, watermark, in_order([*around, last]), now, stale_ms)
