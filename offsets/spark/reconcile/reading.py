"""The input of reconcile, all as of one snapshot: archive and journal, view, logs, groups and their events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg.rows import scalar_row
from pyspark.sql import DataFrame, SparkSession

from offsets.core.days import DAY_MS, day_of
from offsets.spark.archive.history import read_history
from offsets.spark.archive.storage import Storage
from offsets.spark.archive.table import ArchiveTable, has_table, open_table
from offsets.spark.errors import JobError
from offsets.spark.postgres import Q, Snapshot, connect, exported_snapshot, use_snapshot
from offsets.spark.reconcile.findings import KEY
from offsets.spark.reconcile.order import COLUMNS
from offsets.spark.reconcile.state import VIEW
from offsets.spark.runs import Run
from offsets.spark.source import read_table

COLUMNS_OF = {
    "topics": ("topic", "created_at"),
    "deleted_topics": ("topic",),
    "events": ("group_name", "at", "kind", "member_id"),
}
"""Columns that are read of tables that have more."""

ATTEMPTS = 5
"""The number of attempts to take a snapshot during which no archive was published."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Tables with the columns that the jobs name. `table`: one that only some findings need, by its name."""

    history: DataFrame
    view: DataFrame
    groups: DataFrame
    table: Callable[[str], DataFrame]


@dataclass(frozen=True, slots=True)
class Horizon:
    """`sure_since` (ms): no journal line since then can have been dropped. `events_from`: no event."""

    sure_since: int
    events_from: int


def find_archive(conninfo: str, storage: Storage | None) -> ArchiveTable | None:
    """The archive, with its files checked; None: only the journal exists.

    Raises JobError if one was published to but is gone, ArchiveDamaged.
    """
    if storage is None:
        return None
    if not has_table(storage):
        with connect(conninfo) as connection:
            cursor = connection.cursor(row_factory=scalar_row)
            published = cursor.execute(Q.has_published.encode(), {"path": storage.address}).fetchone()
        if published:
            raise JobError(f"the archive at {storage.address} is gone: restore it from a copy, or mount it")
        return None
    table = open_table(storage)
    table.check(contents=False)
    return table


@contextmanager
def settled(conninfo: str, storage: Storage | None, deadline_ms: int) -> Iterator[tuple[ArchiveTable | None, Snapshot]]:
    """The archive and a snapshot that match: what one lacks, the other still has.

    Days of the journal are dropped once they are published. If nothing was published while the snapshot was taken, no
    day that this version of the archive lacks can have been dropped. Raises JobError.
    """
    for _ in range(ATTEMPTS):
        table = find_archive(conninfo, storage)
        with exported_snapshot(conninfo, deadline_ms) as snapshot:
            if storage is None or _number(storage) == (table.number if table is not None else 0):
                yield table, snapshot
                return
    raise JobError("another run published to the archive each time a snapshot was taken; run it again")


def _number(storage: Storage) -> int:
    return open_table(storage).number if has_table(storage) else 0


def read_inputs(run: Run, spark: SparkSession, conninfo: str, table: ArchiveTable | None, snapshot: Snapshot) -> Inputs:
    """The tables, lazily. Raises JobError for another installation's archive."""

    def read(name: str, *columns: str) -> DataFrame:
        return read_table(spark, name, conninfo, snapshot.id, columns=columns or COLUMNS_OF.get(name))

    if table is None or table.manifest is None:
        history = read("journal", *COLUMNS)
    else:
        history = read_history(run, spark, table, conninfo, snapshot, columns=COLUMNS)
    return Inputs(
        history=history,
        view=read("offsets", *KEY, *VIEW),
        groups=read("groups"),
        table=read,
    )


def find_horizon(conninfo: str, snapshot: Snapshot, events_retention_ms: int) -> Horizon:
    """How far back the stored data is complete."""
    with connect(conninfo) as connection:
        use_snapshot(connection, snapshot.id)
        row = connection.execute(Q.events_there.encode()).fetchone()
    assert row is not None
    first_id, first_at, last_id = row
    # Days are dropped when they are at least a day old.
    sure_since = (day_of(snapshot.taken_at) - 1) * DAY_MS
    if first_id == 1 or last_id is None:
        return Horizon(sure_since, 0)
    kept_since = snapshot.taken_at - events_retention_ms
    return Horizon(sure_since, kept_since if first_at is None else max(kept_since, first_at))
