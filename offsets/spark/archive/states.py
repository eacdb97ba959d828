"""What was committed at an instant: functions from DataFrames to DataFrames, and the result for all groups.

Rows have the columns of `offsets.spark.archive.schema`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from offsets.spark.archive.lookup import Past, day_text
from offsets.spark.archive.schema import PARTITION

KEY = ("group_name", "topic", "partition")
KEPT = ("at", "id", "committed_offset", "leader_epoch", "metadata", "expire_timestamp")


def states_at(rows: DataFrame, at: int) -> DataFrame:
    """The last row of each partition of each group that was written up to `at` (ms): columns `KEY` and `KEPT`.

    `committed_offset` null: it was removed, by a deletion, by retention, or with its group.
    """
    past = rows.where((F.col(PARTITION) <= F.lit(day_text(at)).cast("date")) & (F.col("at") <= F.lit(at)))
    last = F.max_by(F.struct(*KEPT), F.struct("at", "id")).alias("last")
    return past.groupBy(*KEY).agg(last).select(*KEY, "last.*")


@dataclass(slots=True)
class GroupStates:
    """The state of every group, as Arrow: rows of a group are contiguous."""

    table: pa.Table
    _spans: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.table = self.table.combine_chunks()
        runs = pc.run_end_encode(self.table.column("group_name").combine_chunks()) if self.table.num_rows else None
        start = 0
        for name, end in zip(*(part.to_pylist() for part in (runs.values, runs.run_ends)), strict=True) if runs else ():
            self._spans[name] = (start, end)
            start = end

    @property
    def groups(self) -> Sequence[str]:
        """The names of the groups."""
        return list(self._spans)

    def of(self, group: str) -> Past:
        """The offset of each partition of a group; None: it was removed."""
        return {(row["topic"], row["partition"]): row["committed_offset"] for row in self.rows(group)}

    def rows(self, group: str) -> Iterator[dict[str, Any]]:
        """The rows of a group."""
        start, end = self._spans.get(group, (0, 0))
        yield from self.table.slice(start, end - start).to_pylist()


def collected(states: DataFrame) -> GroupStates:
    """What `states_at` found, brought to the driver: some 60 bytes for each partition that a group ever read.

    Sorted here: Spark would compute the states once more, to find ranges of equal size.
    """
    return GroupStates(states.toArrow().sort_by([(name, "ascending") for name in KEY]))


def newest(rows: DataFrame) -> tuple[int, int]:
    """The largest record offset, and the last instant (ms) at which a row was written; 0 without rows."""
    found = rows.agg(F.max("id").alias("id"), F.max("at").alias("at")).first()
    return (found["id"] or 0, found["at"] or 0) if found is not None else (0, 0)
