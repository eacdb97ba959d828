"""Journals of many rows, an archive of them, and what readers of the archive see."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pyarrow as pa
from deltalake import DeltaTable
from psycopg import sql
from pyspark.sql import SparkSession

from kcoord.database.sql import queries
from offsets.core.days import bounds, partition_name
from offsets.spark.archive.archiving import ArchiveOptions, ArchiveReport, archive
from offsets.spark.archive.schema import COLUMNS
from offsets.spark.archive.storage import Storage
from offsets.spark.archive.table import ArchiveTable, open_table
from offsets.spark.reconcile.reconciling import ReconcileOptions, ReconcileReport, reconcile
from offsets.spark.runs import RunRequest, running
from tests.conftest import START_MS

Row = tuple[Any, ...]

FILL = """
insert into offset_commit_log (at, kind, group_name, topic, partition, committed_offset, leader_epoch, metadata,
                               expire_timestamp, member_id, generation_id, client_id, principal, transactional_id,
                               plan_id)
select %(first)s + i * %(step)s, case when i %% 97 = 0 then 'delete' else 'commit' end, 'group-' || i %% 23,
       'topic-' || i %% 5, i %% 7, case when i %% 97 = 0 then null else i end, i %% 3 - 1,
       case i %% 4 when 0 then '' when 1 then E'line\\none "quoted", ünïcode \\\\ \\t' when 2 then 'NULL'
                   else '\\N' end,
       case when i %% 5 = 0 then i end, case when i %% 6 = 0 then '' else 'member-' || i %% 11 end, i %% 13, 'client',
       'principal', case when i %% 8 = 0 then 'tx-' || i %% 3 when i %% 8 = 1 then '' end,
       case when i %% 97 = 0 then '7b1c1bd0-0000-4000-8000-000000000001'::uuid end
from generate_series(1, %(count)s) i
"""

SEEN = "select id, at, xact_id, kind, group_name, topic, partition, committed_offset, leader_epoch, metadata,"
SEEN += " expire_timestamp, member_id, generation_id, client_id, principal, transactional_id, plan_id::text"
SEEN += " from offset_commit_log order by id"


def fill(conninfo: str, count: int, *, first: int = START_MS, step: int = 60_000) -> None:
    """Write `count` lines from `first` on, one each `step` ms: with NULLs, empty texts, quotes and line ends."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(FILL, {"first": first, "step": step, "count": count})


FEW_ROWS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Settings of a session. To plan again and to compile, Spark needs more time than a few rows."""


def for_few_rows(spark: SparkSession) -> SparkSession:
    """The session, which from now on runs our jobs in half the CPU time; `test_command` and `test_million` run them as
    the service does.
    """
    for name, value in FEW_ROWS.items():
        spark.conf.set(name, value)
    return spark


@contextmanager
def as_in_service(spark: SparkSession) -> Iterator[None]:
    """Without `for_few_rows`."""
    for name in FEW_ROWS:
        spark.conf.unset(name)
    spark.conf.set(
        "spark.sql.shuffle.partitions", str(spark.sparkContext.getConf().get("spark.sql.shuffle.partitions"))
    )
    try:
        yield
    finally:
        for_few_rows(spark)


def jobs_begun(spark: SparkSession) -> int:
    """How many jobs Spark has begun: every scan of an input and every broadcast needs one."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def make_day(conninfo: str, day: int) -> None:
    """Make the partition of a day."""
    first, after = bounds(day)
    statement = sql.SQL("create table {} partition of offset_commit_log for values from ({}) to ({})")
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(
            statement.format(sql.Identifier(partition_name(day)), sql.Literal(first), sql.Literal(after))
        )


def journal_rows(conninfo: str) -> list[Row]:
    """Every row of the journal."""
    with psycopg.connect(conninfo) as connection:
        return connection.execute(SEEN).fetchall()


def rows_of(table: pa.Table) -> list[Row]:
    """Rows of an Arrow table with the columns of the archive, by id."""
    found = zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True)
    return sorted(found, key=lambda row: row[0])


OTHERS = """
select count(*) from pg_stat_activity
where datname <> current_database() and backend_xid is not null and backend_xid::text::bigint < %(until)s
"""


def wait_for_other_databases(conninfo: str) -> None:
    """Return once no transaction of another database is older than what is committed in this one.

    The bound of an archive run is that of the whole cluster, and tests of other workers run on the same one.
    """
    deadline = time.monotonic() + 60
    with psycopg.connect(conninfo, autocommit=True) as connection:
        row = connection.execute("select pg_current_xact_id()::text::bigint").fetchone()
        assert row is not None
        while connection.execute(OTHERS, {"until": row[0]}).fetchone() != (0,):
            assert time.monotonic() < deadline, "a transaction of another database does not end"
            time.sleep(0.05)


@dataclass
class Archive:
    """An archive at `path`, and runs of it in this process."""

    conninfo: str
    path: str
    start: Callable[[], SparkSession]
    options: ArchiveOptions = field(default_factory=lambda: ArchiveOptions(slice_blocks=20))

    def run(self, options: ArchiveOptions | None = None) -> ArchiveReport:
        """A run that is recorded as the command's are."""
        wait_for_other_databases(self.conninfo)
        with running(self.conninfo, "archive", RunRequest("test")) as run:
            report = archive(run, self.start, self.conninfo, self.storage(), options or self.options)
            run.outcome = report.outcome()
        return report

    def storage(self) -> Storage:
        """Its folder."""
        return Storage(self.path)

    def table(self) -> ArchiveTable:
        """Its table as it is now."""
        return open_table(self.storage())

    def rows(self) -> list[Row]:
        """What a reader of Delta tables sees, without Spark."""
        storage = self.storage()
        table = DeltaTable(storage.delta_path(), storage_options=storage.delta_options())
        return rows_of(table.to_pyarrow_dataset().to_table())


@dataclass
class Reconciler:
    """Runs of reconcile in this process."""

    conninfo: str
    start: Callable[[], SparkSession]

    def __call__(self, path: str = "", **options: Any) -> ReconcileReport:
        """A run that is recorded as the command's are."""
        storage = Storage(path) if path else None
        with running(self.conninfo, "reconcile", RunRequest("test")) as run:
            report = reconcile(run, self.start, self.conninfo, storage, ReconcileOptions(**options))
            run.outcome = report.outcome()
        return report


def runs_of(conninfo: str) -> list[tuple[str, str, str]]:
    """Kind, state and error of every run, the oldest first."""
    with psycopg.connect(conninfo) as connection:
        return connection.execute("select kind, state, error from offsets_sparkrun order by requested_at").fetchall()


def counted_days(conninfo: str) -> tuple[int, bool]:
    """How many rows count as archived, and whether each day's count and checksum are those of the journal."""
    queries_of_offsets = queries("offsets")
    with psycopg.connect(conninfo) as connection:
        days = connection.execute(
            "select day, archive_id from offsets_archivedday where counts group by 1, 2"
        ).fetchall()
        total, agree = 0, True
        for day, archive_id in days:
            first, after = bounds(day)
            journal = connection.execute(queries_of_offsets.day_in_journal.encode(), {"first": first, "after": after})
            archived = connection.execute(
                queries_of_offsets.day_in_archive.encode(), {"day": day, "archive_id": archive_id}
            )
            row = archived.fetchone()
            assert row is not None
            total, agree = total + row[0], agree and journal.fetchone() == row
    return total, agree
