"""A run of reports: read the archive and the events of groups once, compute, store the tables as Parquet next to it.

The archive has only commits, so rebalances are counted by the events in Postgres, as far as they reach back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from kcoord.resets.instants import clock
from offsets.core.days import DAY_MS
from offsets.spark.archive.storage import Storage
from offsets.spark.archive.table import has_table, open_table, read_archive
from offsets.spark.errors import JobError
from offsets.spark.postgres import DEADLINE_MS, exported_snapshot
from offsets.spark.report import jobs
from offsets.spark.runs import Outcome, Run
from offsets.spark.session import guarded
from offsets.spark.source import read_table

FOLDER = "reports"
UNFINISHED = f"{FOLDER}/_unfinished"
"""Readers of Parquet ignore names that begin with `_`."""
MOST_DAYS = 366
"""The number of days whose totals the run's result holds; the files have all of them."""


ROW_GROUP_BYTES = 1 << 20
"""Size of the files' row groups before compression. Files are sorted by group, so readers of one skip most of them."""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """`idle_days`: a group that committed nothing for that long is idle. `most_partitions`: busiest ones to keep.

    `deadline_ms` of the snapshot in which events are read; `events_kept` of each group (`events.max.per.group`).
    """

    idle_days: int = 7
    most_partitions: int = 1_000
    deadline_ms: int = DEADLINE_MS
    events_kept: int = 5_000


@dataclass(frozen=True, slots=True)
class Rebalances:
    """The table `jobs.rebalances`, and since when (ms) the underlying events are complete."""

    table: DataFrame
    since: int


@dataclass(frozen=True, slots=True)
class Report:
    """The output of a run: rows by table, the totals of each day, and the files. `rebalances_since` in ms."""

    rows: int
    tables: Mapping[str, int]
    days: tuple[Mapping[str, Any], ...]
    files: tuple[str, ...]
    rebalances_since: int

    def outcome(self) -> Outcome:
        """For the run's row, and for `--format json`."""
        result = {
            "rows": self.rows,
            "tables": dict(self.tables),
            "days": [dict(day) for day in self.days],
            "rebalances_since": self.rebalances_since,
            "written": list(self.files),
        }
        return Outcome(rows=self.rows, files=len(self.files), result=result)


def report(
    run: Run, start: Callable[[], SparkSession], conninfo: str, storage: Storage, options: ReportOptions
) -> Report:
    """Compute the reports of the whole archive. Raises JobError without an archive, ArchiveDamaged, RunCancelled."""
    if not has_table(storage):
        raise JobError(f"there is no archive at {storage.address} yet: run `manage.py archive` first")
    table = open_table(storage)
    table.check(contents=False)
    run.enter("start Spark")
    spark = start()
    with guarded(run, spark):
        run.enter("read events")
        rebalanced = read_rebalances(spark, conninfo, options)
        run.enter("read")
        commits, moved = _counted(jobs.moves(read_archive(spark, table)))
        moved = moved.persist()
        storage.remove_folder(UNFINISHED)
        written, counts = [], {}
        for name, frame in tables(moved, rebalanced, options, int(time.time() * 1000)).items():
            run.enter(f"write {name}")
            counted, kept = _counted(frame)
            written += _keep(_sorted(name, kept), storage, f"{FOLDER}/run={run.id}/{name}")
            counts[name] = counted.get["rows"]
        days = totals_by_day(moved, rebalanced)
        moved.unpersist()
    return Report(commits.get["rows"], counts, days, tuple(written), rebalanced.since)


def _counted(frame: DataFrame) -> tuple[Observation, DataFrame]:
    """The rows, which the first action counts."""
    counted = Observation()
    return counted, frame.observe(counted, F.count(F.lit(1)).alias("rows"))


def read_rebalances(spark: SparkSession, conninfo: str, options: ReportOptions) -> Rebalances:
    """What the events in Postgres say about rebalances; they are read here, not later. Raises JobError.

    Age-based deletion drops the oldest events first, whatever their group: nothing newer than the oldest remaining
    event was dropped. Without any, nothing is known about the time before now.
    """
    with exported_snapshot(conninfo, options.deadline_ms) as snapshot:
        events = read_table(spark, "events", conninfo, snapshot.id, columns=jobs.EVENT_COLUMNS).persist()
        first = events.agg(F.min("at").alias("at")).collect()[0]["at"]
        since = snapshot.taken_at if first is None else int(first)
        counted = jobs.rebalances(events, since, options.events_kept).localCheckpoint()
        events.unpersist()
    return Rebalances(counted, since)


def tables(moved: DataFrame, rebalanced: Rebalances, options: ReportOptions, now_ms: int) -> dict[str, DataFrame]:
    """Each report by its name. `moved`: of `jobs.moves`."""
    seen = jobs.members(moved)
    return {
        "groups": jobs.groups(moved, rebalanced.table, rebalanced.since),
        "consumption": jobs.consumption(moved),
        "busiest_partitions": jobs.busiest_partitions(moved, options.most_partitions),
        "idle_groups": jobs.idle_groups(moved, now_ms, options.idle_days * DAY_MS),
        "rebalances": rebalanced.table,
        "generations": jobs.generations(moved),
        "members": seen,
        "turnover": jobs.turnover(seen),
    }


def totals_by_day(moved: DataFrame, rebalanced: Rebalances) -> tuple[Mapping[str, Any], ...]:
    """The totals of the newest days, oldest first; `rebalances` is None for days without complete events."""
    by_day = rebalanced.table.groupBy("date").agg(F.sum("rebalances").alias("rebalances"))
    totals = jobs.totals(jobs.consumption(moved)).join(by_day, "date", "full_outer")
    totals = totals.fillna(0, subset=["groups", "commits", "consumed", "rewinds"])
    found = [row.asDict() for row in totals.orderBy("date", ascending=False).limit(MOST_DAYS).collect()]
    begins = clock(rebalanced.since).date()
    for day in found:
        if day["date"] >= begins:
            day["rebalances"] = day["rebalances"] or 0
        day["date"] = day["date"].isoformat()
    return tuple(reversed(found))


def _sorted(name: str, frame: DataFrame) -> DataFrame:
    """As one file, in an order that suits its readers."""
    if name == "busiest_partitions":
        order: Sequence[str | Column] = (F.desc("consumed"), F.desc("commits"), "topic", "partition")
    elif name == "idle_groups":
        order = ("last_commit_at", "group_name")
    else:
        order = [column for column in ("group_name", "date", "first_commit_at") if column in frame.columns]
    return frame.coalesce(1).sortWithinPartitions(*order)


def _keep(frame: DataFrame, storage: Storage, folder: str) -> list[str]:
    """Write a table to a folder, which has either all of it or none; returns the paths of the files."""
    frame.write.option("parquet.block.size", ROW_GROUP_BYTES).parquet(storage.spark_path(UNFINISHED))
    kept = []
    for number, file in enumerate(sorted(file.path for file in storage.files(UNFINISHED))):
        if file.endswith(".parquet"):
            path = f"{folder}/{number:05}.parquet"
            storage.move(file, path)
            kept.append(path)
    storage.remove_folder(UNFINISHED)
    return kept
