"""Archive and journal together: every row that was ever committed, exactly once, as of one snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from offsets.spark.archive.jobs import dated
from offsets.spark.archive.table import ArchiveTable, read_archive
from offsets.spark.errors import JobError
from offsets.spark.postgres import Snapshot
from offsets.spark.runs import Run
from offsets.spark.source import SLICE_BLOCKS, read_table


def archived_below(run: Run, table: ArchiveTable, snapshot: Snapshot, *, adopt: bool = False) -> int | None:
    """The transaction id below which the archive has all rows of the journal; None: ids prove nothing, compare rows.

    Ids are those of one cluster and one timeline. A database that does not know the run of the newest manifest was
    restored to an older state, whose ids are issued again. Raises JobError for another installation's archive, unless
    this one is to `adopt` it.
    """
    last = table.manifest
    if last is None:
        return None
    if last.system_identifier != snapshot.system_identifier:
        if adopt:
            return None
        raise JobError(
            f"the archive at {table.storage.address} belongs to another installation (cluster "
            f"{last.system_identifier}; this one is {snapshot.system_identifier}); set another KCOORD_ARCHIVE_PATH, "
            "or take the archive over with `manage.py archive --adopt` if this database was restored from that one"
        )
    if last.timeline != snapshot.timeline or last.bound > snapshot.bound or not run.knows(last.run_id):
        return None
    return last.bound


def read_history(
    run: Run,
    spark: SparkSession,
    table: ArchiveTable,
    conninfo: str,
    snapshot: Snapshot,
    *,
    columns: Sequence[str] | None = None,
    slice_blocks: int = SLICE_BLOCKS,
) -> DataFrame:
    """All rows of the archive, and those of the journal that it lacks; columns as in `schema.SPARK_SCHEMA`, or these of
    the journal.

    Rows of the journal are those visible to the snapshot: read them while it is open. Raises JobError for another
    installation's archive, and for one whose rows have to be compared first, which the next run of `archive` does.
    """
    archived = read_archive(spark, table)
    below = archived_below(run, table, snapshot)
    if below is None and table.manifest is not None:
        raise JobError(
            "the database was restored, or a standby took over, since the last run of archive: run "
            "`manage.py archive` first"
        )
    journal = read_table(
        spark, "journal", conninfo, snapshot.id, columns=columns, since=below, slice_blocks=slice_blocks
    )
    if columns is not None:
        return archived.select(*columns).unionByName(journal)
    return archived.unionByName(dated(journal))
