"""A run of the archive: what was committed since the last run, and no open transaction can still add to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from offsets.spark.archive.compaction import MOST_FILES, Compacted, compact
from offsets.spark.archive.history import archived_below
from offsets.spark.archive.jobs import also_in, buckets_for, dated, day_totals, laid_out, manifest_days, not_in
from offsets.spark.archive.manifest import ArchivedFile, Manifest, ManifestDay, path_of
from offsets.spark.archive.publishing import make_up, publish, staged_files, sweep, without_expired
from offsets.spark.archive.schema import VERSION
from offsets.spark.archive.storage import STAGING, Storage
from offsets.spark.archive.table import ArchiveTable, open_or_create, read_archive, read_files
from offsets.spark.errors import ArchiveDamaged, JobError
from offsets.spark.postgres import DEADLINE_MS, Snapshot, exported_snapshot
from offsets.spark.runs import Outcome, Run
from offsets.spark.session import guarded
from offsets.spark.source import SLICE_BLOCKS, read_table


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """The options of a run.

    `deadline_ms` of its snapshot; `adopt`: this database takes over another's archive; `check_contents`: read every
    published file and compare its SHA-256, else compare only sizes; a day with more small files than `most_files` gets
    compacted.
    """

    deadline_ms: int = DEADLINE_MS
    adopt: bool = False
    check_contents: bool = True
    most_files: int = MOST_FILES
    slice_blocks: int = SLICE_BLOCKS


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """What a run published. `bound` as in `Snapshot`; `made_up`: manifests of killed runs that were recorded."""

    archive_id: str
    manifest: int
    bound: int
    rows: int
    files: tuple[ArchivedFile, ...]
    days: tuple[ManifestDay, ...]
    rebased: bool
    swept: int
    made_up: tuple[int, ...]
    compacted: Compacted

    def outcome(self) -> Outcome:
        """For the run's row and for `--format json`."""
        size = sum(file.size for file in self.files)
        result: dict[str, Any] = {
            "archive_id": self.archive_id,
            "manifest": self.manifest,
            "bound": self.bound,
            "rows": self.rows,
            "files": len(self.files),
            "bytes": size,
            "days": [{"date": day.date, "rows": day.rows, "checksum": str(day.checksum)} for day in self.days],
            "rebased": self.rebased,
            "swept": self.swept,
            "made_up": list(self.made_up),
            "compacted": {"replaced": self.compacted.replaced, "by": self.compacted.by},
        }
        return Outcome(rows=self.rows, files=len(self.files), bytes=size, result=result)


def archive(
    run: Run,
    start: Callable[[], SparkSession],
    conninfo: str,
    storage: Storage,
    options: ArchiveOptions,
) -> ArchiveReport:
    """Publish the rows that are not in the archive yet. Spark is started after the archive has been checked.

    Raises JobError, ArchiveDamaged, RunCancelled; in these cases nothing is published.
    """
    run.enter("check")
    table = open_or_create(storage)
    _check_manifest(run, table)
    table.check(contents=options.check_contents)
    swept = sweep(table)
    made_up = make_up(run, table)
    run.enter("start Spark")
    spark = start()
    with guarded(run, spark):
        run.enter("read")
        snapshot, compares, files_read = _stage(run, spark, table, conninfo, options)
        run.enter("publish")
        staged, days = (_rebased if compares else _added)(run, spark, table, files_read)
        if staged or compares:
            planned = _planned(run, table, snapshot, [file for _, file in staged], days, rebased=compares)
            table = publish(run, table, staged, planned, adds_rows=True)
        run.enter("compact")
        table, compacted = compact(run, spark, table, now=snapshot.taken_at, most=options.most_files)
    for folder in (f"{run.id}", f"{run.id}-missing", f"{run.id}-compaction"):
        storage.remove_folder(f"{STAGING}/{folder}")
    files = tuple(file for _, file in staged)
    return ArchiveReport(
        table.archive_id,
        table.number,
        snapshot.bound,
        sum(file.rows for file in files),
        files,
        days,
        compares,
        swept,
        tuple(made_up),
        compacted,
    )


def _check_manifest(run: Run, table: ArchiveTable) -> None:
    """Compare the newest manifest with what the database knows about it. Raises ArchiveDamaged."""
    if table.manifest is None:
        return
    recorded = run.recorded_sha256(table.manifest.run_id, table.archive_id, table.number)
    if recorded is not None and recorded != table.sha256:
        raise ArchiveDamaged([f"{path_of(table.number)} was changed: its SHA-256 differs"])


Files = list[tuple[str, ArchivedFile]]
"""Staged files: where they are, and what they will be."""


def _stage(
    run: Run, spark: SparkSession, table: ArchiveTable, conninfo: str, options: ArchiveOptions
) -> tuple[Snapshot, bool, Files]:
    """Write what is to be archived to the run's staging folder; the snapshot, whether to compare rows, and the files.

    Raises JobError if not all of it got there.
    """
    folder, written = f"{STAGING}/{run.id}", Observation("staged")
    with exported_snapshot(conninfo, options.deadline_ms) as snapshot:
        since = archived_below(run, table, snapshot, adopt=options.adopt)
        read = partial(read_table, since=since, below=snapshot.bound, slice_blocks=options.slice_blocks)
        rows = laid_out(dated(read(spark, "journal", conninfo, snapshot.id)), buckets_for(snapshot.journal_bytes))
        counted = rows.observe(written, F.count(F.lit(1)).alias("rows"))
        counted.write.partitionBy("date").parquet(table.storage.spark_path(folder))
    files = staged_files(table.storage, folder, str(run.id))
    check_complete(table.storage, written.get["rows"], sum(file.rows for _, file in files))
    return snapshot, since is None and table.manifest is not None, files


def check_complete(storage: Storage, written: int, found: int) -> None:
    """Raise JobError if files lack rows that Spark wrote.

    Executors that do not share the path write to disks of their own. Such a run must not pass for a complete one.
    """
    if found != written:
        raise JobError(
            f"Spark wrote {written} rows, {found} of them are at {storage.address}, and nothing was published: all "
            "machines of KCOORD_SPARK_MASTER must reach KCOORD_ARCHIVE_PATH, as a shared mount, s3a:// or hdfs://"
        )


Staged = tuple[Files, tuple[ManifestDay, ...]]


def _added(run: Run, spark: SparkSession, table: ArchiveTable, files: Files) -> Staged:
    """The staged files, and what they add to each day, read back from them."""
    if not files:
        return files, ()
    rows = read_files(spark, table.storage, f"{STAGING}/{run.id}", [path for path, _ in files])
    return files, manifest_days(day_totals(rows))


def _rebased(run: Run, spark: SparkSession, table: ArchiveTable, files: Files) -> Staged:
    """From the whole journal, which was staged: what the archive lacks, and all that it then has for each day."""
    storage, missing = table.storage, f"{STAGING}/{run.id}-missing"
    journal = read_files(spark, storage, f"{STAGING}/{run.id}", [path for path, _ in files])
    archived = read_archive(spark, table)
    laid_out(not_in(journal, archived), 1).write.partitionBy("date").parquet(storage.spark_path(missing))
    staged = staged_files(storage, missing, str(run.id))
    added = read_files(spark, storage, missing, [path for path, _ in staged])
    days = manifest_days(day_totals(also_in(archived.unionByName(added), journal)))
    check_complete(storage, sum(file.rows for _, file in files), sum(day.rows for day in days))
    return staged, days


def _planned(
    run: Run,
    table: ArchiveTable,
    snapshot: Snapshot,
    files: list[ArchivedFile],
    days: tuple[ManifestDay, ...],
    *,
    rebased: bool,
) -> Manifest:
    return without_expired(
        Manifest(
            number=table.number + 1,
            run_id=run.id,
            archive_id=table.archive_id,
            schema_version=VERSION,
            system_identifier=snapshot.system_identifier,
            timeline=snapshot.timeline,
            bound=snapshot.bound,
            published_at=snapshot.taken_at,
            rebased=rebased,
            files=(*table.files, *files),
            retired=table.manifest.retired if table.manifest is not None else (),
            days=days,
        )
    )
