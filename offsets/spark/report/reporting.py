"""A run of reports: read the archive once, compute, keep the tables as Parquet beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from offsets.core.days import DAY_MS
from offsets.spark.archive.storage import Storage
from offsets.spark.archive.table import has_table, open_table, read_archive
from offsets.spark.errors import JobError
from offsets.spark.report import jobs
from offsets.spark.runs import Outcome, Run
from offsets.spark.session import guarded

FOLDER = "reports"
UNFINISHED = f"{FOLDER}/_unfinished"
"""Readers of Parquet leave out names that begin with `_`."""
MOST_DAYS = 366
"""Days of the totals that the run's result holds; the files have all of them."""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """`idle_days`: a group that committed nothing for so long is idle. `most_partitions`: busiest ones to keep."""

    idle_days: int = 7
    most_partitions: int = 1_000


@dataclass(frozen=True, slots=True)
class Report:
    """What a run wrote: rows by table, the totals of each day, and the files."""

    rows: int
    tables: Mapping[str, int]
    days: tuple[Mapping[str, Any], ...]
    files: tuple[str, ...]

    def outcome(self) -> Outcome:
        """For the run's row, and for `--format json`."""
        days = [dict(day) for day in self.days]
        result = {"rows": self.rows, "tables": dict(self.tables), "days": days, "written": list(self.files)}
        return Outcome(rows=self.rows, files=len(self.files), result=result)


def report(run: Run, start: Callable[[], SparkSession], storage: Storage, options: ReportOptions) -> Report:
    """Compute the reports of the whole archive. Raises JobError where there is none, ArchiveDamaged, RunCancelled."""
    if not has_table(storage):
        raise JobError(f"there is no archive at {storage.address} yet: run `manage.py archive` first")
    table = open_table(storage)
    table.check(contents=False)
    run.enter("start Spark")
    spark = start()
    with guarded(run, spark):
        run.enter("read")
        moved = jobs.moves(read_archive(spark, table)).persist()
        rows = moved.count()
        storage.remove_folder(UNFINISHED)
        written, counts = [], {}
        for name, frame in tables(moved, options, int(time.time() * 1000)).items():
            run.enter(f"write {name}")
            kept = frame.persist()
            counts[name] = kept.count()
            written += _keep(kept, storage, f"{FOLDER}/run={run.id}/{name}")
            kept.unpersist()
        newest = jobs.totals(jobs.consumption(moved)).orderBy("date", ascending=False).limit(MOST_DAYS).collect()
        moved.unpersist()
    days = tuple({**row.asDict(), "date": row["date"].isoformat()} for row in reversed(newest))
    return Report(rows, counts, days, tuple(written))


def tables(moved: DataFrame, options: ReportOptions, now_ms: int) -> dict[str, DataFrame]:
    """Each report by its name. `moved`: of `jobs.moves`."""
    seen = jobs.members(moved)
    return {
        "consumption": jobs.consumption(moved),
        "busiest_partitions": jobs.busiest_partitions(moved, options.most_partitions),
        "idle_groups": jobs.idle_groups(moved, now_ms, options.idle_days * DAY_MS),
        "generations": jobs.generations(moved),
        "members": seen,
        "turnover": jobs.turnover(seen),
    }


def _keep(frame: DataFrame, storage: Storage, folder: str) -> list[str]:
    """Write a table to a folder, which has either all of it or none; paths of the files."""
    frame.coalesce(1).write.parquet(storage.spark_path(UNFINISHED))
    kept = []
    for number, file in enumerate(sorted(file.path for file in storage.files(UNFINISHED))):
        if file.endswith(".parquet"):
            path = f"{folder}/{number:05}.parquet"
            storage.move(file, path)
            kept.append(path)
    storage.remove_folder(UNFINISHED)
    return kept
