"""A run of reconcile: read once, as of one snapshot; compute the findings; store them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from offsets.core.days import DAY_MS
from offsets.spark.archive.storage import Storage
from offsets.spark.postgres import DEADLINE_MS
from offsets.spark.reconcile.fencing import (
    fenced_generations,
    fenced_in_classic_groups,
    judged,
    overtaken,
    two_members,
)
from offsets.spark.reconcile.findings import KEY, as_json
from offsets.spark.reconcile.items import BEGIN, HELD, misplaced, of_items, told
from offsets.spark.reconcile.keeping import export, store
from offsets.spark.reconcile.order import OVERTAKEN, last_lines, notable, rewinds, signs_in, times_backwards
from offsets.spark.reconcile.reading import Horizon, Inputs, find_archive, find_horizon, read_inputs, settled
from offsets.spark.reconcile.state import Known, compared, side_by_side
from offsets.spark.runs import Outcome, Run
from offsets.spark.session import guarded

MOST_LISTED = 10_000
"""The most findings of one run that are stored and printed; the others are counted and exported."""


@dataclass(frozen=True, slots=True)
class ReconcileOptions:
    """`deadline_ms` of the snapshot; how long group events are kept (`events_retention_ms`); `margin_ms`: see
    `state.Known`; `most_listed`: findings that are stored and printed.
    """

    deadline_ms: int = DEADLINE_MS
    events_retention_ms: int = 30 * DAY_MS
    margin_ms: int = 0
    most_listed: int = MOST_LISTED


@dataclass(frozen=True, slots=True)
class ReconcileReport:
    """The result of a run. `listed`: the findings that are stored; `by_kind` counts all of them."""

    rows: int
    partitions: int
    by_kind: Mapping[str, int]
    listed: Sequence[Mapping[str, Any]]
    exported: Sequence[str]
    with_archive: bool
    taken_at: int

    @property
    def total(self) -> int:
        """The number of findings."""
        return sum(self.by_kind.values())

    def outcome(self) -> Outcome:
        """For the run's row, and for `--format json`, which lists the findings as well."""
        result: dict[str, Any] = {
            "rows": self.rows,
            "partitions": self.partitions,
            "with_archive": self.with_archive,
            "snapshot_at": self.taken_at,
            "findings_total": self.total,
            "by_kind": dict(self.by_kind),
            "listed": len(self.listed),
            "not_listed": self.total - len(self.listed),
            "exported": list(self.exported),
        }
        return Outcome(
            rows=self.rows, findings=self.total, result=result, printed={"findings": [dict(one) for one in self.listed]}
        )


def reconcile(
    run: Run, start: Callable[[], SparkSession], conninfo: str, storage: Storage | None, options: ReconcileOptions
) -> ReconcileReport:
    """Compare what was committed with what is stored, and store the findings. `storage` None: from the journal alone.

    Raises JobError, ArchiveDamaged, RunCancelled; in these cases nothing is stored.
    """
    run.enter("check")
    if storage is not None:
        storage.check_writable()
    find_archive(conninfo, storage)
    run.enter("start Spark")
    spark = start()
    with guarded(run, spark):
        run.enter("read")
        with settled(conninfo, storage, options.deadline_ms) as (table, snapshot):
            inputs = read_inputs(run, spark, conninfo, table, snapshot)
            horizon = find_horizon(conninfo, snapshot, options.events_retention_ms)
            seen = Observation("history")
            begun = F.count_if(F.col("kind") == BEGIN).alias("begun")
            rows = F.count(F.lit(1)).alias("rows")
            counted = inputs.history.observe(seen, rows, F.min("id").alias("first_id"), begun)
            history = judged(counted.where(~of_items()), inputs.groups, horizon.events_from)
            lines = notable(history).persist(StorageLevel.DISK_ONLY)
            signs = signs_in(lines, overtaken)
            run.enter("compare")
            known = Known(seen.get["first_id"], horizon.sure_since, options.margin_ms)
            found = find(inputs, lines, signs, known, horizon)
            if seen.get["begun"]:
                found = found.unionByName(_of_items(inputs))
            found = found.persist(StorageLevel.DISK_ONLY)
            listed, by_kind = _listed(found, options.most_listed)
            run.enter("keep")
            exported = export(found, storage, str(run.id)) if by_kind and storage is not None else []
            spark.catalog.clearCache()
    run.confirm()
    store(conninfo, run.id, listed, sum(by_kind.values()))
    return ReconcileReport(
        seen.get["rows"], signs["is_last"], by_kind, listed, exported, table is not None, snapshot.taken_at
    )


def find(inputs: Inputs, lines: DataFrame, signs: Mapping[str, int], known: Known, horizon: Horizon) -> DataFrame:
    """All findings about committed offsets. `lines`: of `order.notable`, which are used several times; `signs`: of
    `order.signs_in`.
    """
    found = [compared(side_by_side(last_lines(lines), inputs.view), known)]
    if signs[OVERTAKEN]:
        history = judged(inputs.history, inputs.groups, horizon.events_from)
        found.append(fenced_in_classic_groups(history, overtaken(lines)))
    if signs["goes_back"]:
        found.append(rewinds(lines, inputs.table("topics"), inputs.table("deleted_topics")))
    if signs["is_earlier"]:
        found.append(times_backwards(lines))
    if signs["changes_hands"]:
        found.append(two_members(lines, inputs.table("events"), horizon.events_from))
    if signs["is_older"]:
        found.append(fenced_generations(lines, inputs.table("events"), horizon.events_from))
    together = reduce(DataFrame.unionByName, found)
    if not signs["is_older"]:
        return together
    # A fenced commit may be found by partition and by group, and the line that it came after may differ.
    return together.withColumn("line_id", _last_id()).dropDuplicates([*KEY, "kind", "line_id"]).drop("line_id")


def _of_items(inputs: Inputs) -> DataFrame:
    held = reduce(DataFrame.unionByName, map(inputs.table, HELD))
    return misplaced(told(inputs.history).persist(StorageLevel.DISK_ONLY), inputs.table("share_partitions"), held)


def _listed(found: DataFrame, most: int) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The first findings, and how many there are of each kind."""
    seen = Observation("found")
    counted = found.observe(seen, F.count(F.lit(1)).alias("findings"))
    listed = [as_json(row) for row in counted.orderBy(*KEY, "kind", _last_id()).limit(most).collect()]
    if seen.get["findings"] == len(listed):
        by_kind: Mapping[str, int] = Counter(one["kind"] for one in listed)
    else:
        by_kind = {row["kind"]: row["count"] for row in found.groupBy("kind").count().collect()}
    return listed, dict(sorted(by_kind.items()))


def _last_id() -> Column:
    return F.try_element_at("evidence.journal_ids", F.lit(-1))
