"""The format of a finding, for all jobs of reconcile.

`expected` and `found` are offsets, or generations or instants where the kind is about those. Evidence that does not
apply to a kind is null, and is left out of JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - the usual name

KEY = ("group_name", "topic", "partition")

EVIDENCE: Mapping[str, str] = {
    "journal_ids": "array<bigint>",
    "members": "array<string>",
    "generations": "array<int>",
    "instants": "array<bigint>",
    "record_offset": "bigint",
    "log_start_offset": "bigint",
    "log_end_offset": "bigint",
    "sampled_at": "bigint",
    "metadata": "array<string>",
    "line": "struct<id: bigint, at: bigint, committed_offset: bigint, leader_epoch: int, metadata: string,"
    " expire_timestamp: bigint>",
}
"""Lines of the journal that prove it, who wrote them, in which generations, when (ms), oldest first.

`record_offset`: the line that the committed offset names. `metadata`: that of the journal and that of the view.
`line`: what the last line of the partition says, which a repair would write.
"""

LISTED = ("journal_ids", "members", "generations", "instants")
"""Evidence that every finding has, if only as an empty list."""


def finding(
    kind: str | Column, *, expected: Column | None = None, found: Column | None = None, **evidence: Column
) -> Column:
    """A struct of the columns that a finding has besides its key."""
    parts = []
    for name, kind_of in EVIDENCE.items():
        missing = F.array() if name in LISTED else F.lit(None)
        parts.append(evidence.get(name, missing).cast(kind_of).alias(name))
    nothing = F.lit(None)
    return F.struct(
        (F.lit(kind) if isinstance(kind, str) else kind).alias("kind"),
        (nothing if expected is None else expected).cast("bigint").alias("expected"),
        (nothing if found is None else found).cast("bigint").alias("found"),
        F.struct(*parts).alias("evidence"),
    )


def spread(rows: DataFrame, *found: Column) -> DataFrame:
    """A row for each finding of each row: the key, then `kind`, `expected`, `found` and `evidence`. Skips nulls."""
    each = F.explode(F.filter(F.array(*found), lambda one: one.isNotNull())).alias("one")
    return rows.select(*KEY, each).select(*KEY, "one.*")


def as_json(row: Row) -> dict[str, Any]:
    """A finding in the form that is stored and printed."""
    told = row.asDict(recursive=True)
    evidence = told.pop("evidence")
    told["group"] = told.pop("group_name")
    shown = {name: value for name, value in evidence.items() if value is not None}
    order = ("kind", "group", "topic", "partition", "expected", "found")
    return {**{name: told[name] for name in order}, "evidence": shown}
