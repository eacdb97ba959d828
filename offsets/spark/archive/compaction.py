"""Compacts the small files of a day: the same rows in fewer files, published by one log entry."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from offsets.spark.archive.jobs import day_totals, laid_out, manifest_days
from offsets.spark.archive.manifest import ArchivedFile, RetiredFile
from offsets.spark.archive.publishing import publish, staged_files, without_expired
from offsets.spark.archive.storage import JOURNAL, STAGING
from offsets.spark.archive.table import ArchiveTable, read_files
from offsets.spark.errors import JobError
from offsets.spark.runs import Run

MOST_FILES = 8
"""A day with more files than this, none of which is large, is compacted."""

SMALL_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Compacted:
    """How many files were replaced, and by how many new ones."""

    replaced: int = 0
    by: int = 0


def crowded(files: Sequence[ArchivedFile], most: int = MOST_FILES) -> list[ArchivedFile]:
    """The small files of days that have more than `most` of them."""
    by_date: dict[str, list[ArchivedFile]] = defaultdict(list)
    for file in files:
        if file.size < SMALL_BYTES:
            by_date[file.date].append(file)
    return [file for date in sorted(by_date) if len(by_date[date]) > most for file in by_date[date]]


def compact(
    run: Run, spark: SparkSession, table: ArchiveTable, *, now: int, most: int = MOST_FILES
) -> tuple[ArchiveTable, Compacted]:
    """Rewrite the files of crowded days. `now` in ms. Raises JobError if the rows are not the same afterwards."""
    old = crowded(table.files, most)
    if not old or table.manifest is None:
        return table, Compacted()
    storage, folder = table.storage, f"{STAGING}/{run.id}-compaction"
    rows = read_files(spark, storage, JOURNAL, [f"{JOURNAL}/{file.path}" for file in old])
    buckets = max(1, sum(file.size for file in old) // SMALL_BYTES)
    laid_out(rows, buckets).write.partitionBy("date").parquet(storage.spark_path(folder))
    staged = staged_files(storage, folder, f"{run.id}-compacted")
    written = read_files(spark, storage, folder, [path for path, _ in staged])
    if manifest_days(day_totals(rows)) != manifest_days(day_totals(written)):
        raise JobError("the rows written by compaction differ from those read; nothing was published")
    gone = {file.path for file in old}
    planned = replace(
        table.manifest.renumbered(table.number + 1, run.id),
        published_at=now,
        files=(*(file for file in table.files if file.path not in gone), *(file for _, file in staged)),
        retired=(*table.manifest.retired, *(RetiredFile(file.path, now) for file in old)),
    )
    published = publish(run, table, staged, without_expired(planned), adds_rows=False)
    return published, Compacted(len(old), len(staged))
