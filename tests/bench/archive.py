"""Measurements of archive and reconcile, in one run: rows per second against COPY, bytes per row, peak memory.

`python -m tests.bench.archive [--jdbc JAR] [ROWS…]`, by default a million. Spark's JDBC source is measured in the same
run where the jar of Postgres's driver is given. Postgres is reached over TCP then, by COPY and our source as well.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
from psycopg.conninfo import conninfo_to_dict
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from offsets.core.days import day_of
from offsets.spark.archive.archiving import ArchiveOptions
from offsets.spark.archive.storage import Storage
from offsets.spark.postgres import exported_snapshot
from offsets.spark.reconcile.reconciling import ReconcileOptions, reconcile
from offsets.spark.runs import RunRequest, running
from offsets.spark.session import SparkSettings, start_spark
from offsets.spark.source import read_table
from tests.offsets.spark.support import Archive, fill, make_day
from tests.support.database import ephemeral_database
from tests.support.freezing import tcp_postgres

START_MS = 1_700_000_000_000
DAYS = 3
JDBC_SLICES = 15
HEAP = "select sum(pg_relation_size(relid)), sum(pg_indexes_size(relid)) from pg_partition_tree('offset_commit_log')"


class PeakMemory(threading.Thread):
    """Samples the memory (unique set size, bytes) of this process with its Java and Python workers."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self._over = threading.Event()

    def run(self) -> None:
        """Until `stop`."""
        while not self._over.wait(0.2):
            self.peak = max(self.peak, sum(map(_memory, [psutil.Process(), *psutil.Process().children(True)])))

    def stop(self) -> int:
        """The largest sum."""
        self._over.set()
        self.join()
        return self.peak


def _memory(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().uss) if process.name() != "postgres" else 0
    except psutil.Error:
        return 0


def copied(conninfo: str) -> int:
    """COPY of the whole journal, thrown away."""
    statement = "copy (select * from offset_commit_log) to stdout"
    with psycopg.connect(conninfo) as connection, connection.cursor().copy(statement) as copy:
        return sum(len(chunk) for chunk in copy)


def jdbc(spark: SparkSession, conninfo: str, slices: int) -> DataFrame:
    """The journal as Spark's JDBC source reads it: ranges of `id`, each in a snapshot of its own."""
    parts = conninfo_to_dict(conninfo)
    with psycopg.connect(conninfo) as connection:
        bounds = connection.execute("select min(id), max(id) from offset_commit_log").fetchone()
    assert bounds is not None
    options = {
        "url": f"jdbc:postgresql://{parts['host']}:{parts['port']}/{parts['dbname']}",
        "user": parts["user"],
        "driver": "org.postgresql.Driver",
        "dbtable": "offset_commit_log",
        "partitionColumn": "id",
        "lowerBound": bounds[0],
        "upperBound": bounds[1],
        "numPartitions": slices,
        "fetchsize": 10_000,
    }
    return spark.read.format("jdbc").options(**options).load()


def to_parquet_by_day(frame: DataFrame, path: str) -> None:
    """Plain Parquet, unhashed and unsorted: the least that an archive would have to do."""
    day = expr("date_from_unix_date(cast(floor(at / 86400000) as int))")
    frame.withColumn("date", day).write.partitionBy("date").parquet(path)


def thrown_away(spark: SparkSession, conninfo: str) -> None:
    """The data source alone."""
    with exported_snapshot(conninfo) as snapshot:
        read_table(spark, "journal", conninfo, snapshot.id).write.format("noop").mode("overwrite").save()


def reconciled(conninfo: str, spark: SparkSession, path: str) -> None:
    """Reconcile of the whole history. Nothing is committed here, so each partition is a finding."""
    with running(conninfo, "reconcile", RunRequest("bench")) as run:
        reconcile(run, lambda: spark, conninfo, Storage(path) if path else None, ReconcileOptions())


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def say(what: str, rows: int, taken: float, base: float) -> None:
    """One line: seconds, rows per second, ratio to COPY."""
    print(f"{what:56} {taken:8.2f} s {rows / taken:12,.0f} rows/s {base / taken:6.2f} x", flush=True)


def measure(conninfo: str, rows: int, with_jdbc: bool) -> None:
    """All of it for a journal of `rows` rows."""
    for day in range(day_of(START_MS), day_of(START_MS) + DAYS + 1):
        make_day(conninfo, day)
    fill(conninfo, rows, step=max(1, DAYS * 86_400_000 // rows))
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("vacuum analyze offset_commit_log")
        sizes = connection.execute(HEAP).fetchone()
    assert sizes is not None
    base = min(seconds(lambda: copied(conninfo)) for _ in range(2))
    say(f"COPY of {rows:,} rows, one connection, no Spark", rows, base, base)
    memory = PeakMemory()
    memory.start()
    with tempfile.TemporaryDirectory(prefix="kcoord-bench-") as directory:
        begun = time.perf_counter()
        spark = start_spark(SparkSettings("local[2]", Path(directory) / "spark"))
        start = time.perf_counter() - begun
        archive = Archive(conninfo, f"{directory}/archive", lambda: spark, ArchiveOptions())
        cold = seconds(archive.run)
        say("archive, the first job of its Spark", rows, cold, base)
        size = sum(file.size for file in archive.table().files)
        say("  again, with nothing to do", rows, seconds(archive.run), base)
        say("data source, thrown away", rows, seconds(lambda: thrown_away(spark, conninfo)), base)
        say("reconcile, from the archive", rows, seconds(lambda: reconciled(conninfo, spark, archive.path)), base)
        say("  from Postgres alone", rows, seconds(lambda: reconciled(conninfo, spark, "")), base)
        archive.path = f"{directory}/again"
        say("archive, warm", rows, seconds(archive.run), base)
        measure_plain(spark, conninfo, rows, base, directory)
        if with_jdbc:
            measure_jdbc(spark, conninfo, rows, base, directory)
        spark.stop()
    print(f"Spark's start: {start:.1f} s, {100 * start / (start + cold):.0f} % of start and first archive")
    print(
        f"bytes per row: Parquet {size / rows:.1f}, Postgres {sizes[0] / rows:.0f} and {sizes[1] / rows:.0f} of indexes"
    )
    print(f"peak memory of driver, Java and workers: {memory.stop() / 2**20:,.0f} MB", flush=True)


def measure_plain(spark: SparkSession, conninfo: str, rows: int, base: float, directory: str) -> None:
    """Our source without the archive's work."""
    with exported_snapshot(conninfo) as snapshot:
        frame = read_table(spark, "journal", conninfo, snapshot.id)
        taken = seconds(lambda: to_parquet_by_day(frame, f"{directory}/plain"))
    say("data source, to plain Parquet by day", rows, taken, base)


def measure_jdbc(spark: SparkSession, conninfo: str, rows: int, base: float, directory: str) -> None:
    """Spark's own source, whose slices share no snapshot."""
    for number in range(2):
        frame = jdbc(spark, conninfo, JDBC_SLICES)
        taken = seconds(lambda frame=frame: frame.write.format("noop").mode("overwrite").save())  # type: ignore[misc]
        say(f"JDBC, {JDBC_SLICES} ranges of id, thrown away", rows, taken, base)
        taken = seconds(lambda frame=frame, n=number: to_parquet_by_day(frame, f"{directory}/jdbc-{n}"))  # type: ignore[misc]
        say(f"JDBC, {JDBC_SLICES} ranges of id, to plain Parquet by day", rows, taken, base)


def main() -> int:
    """Measure each number of rows on a Postgres of its own."""
    parser = argparse.ArgumentParser(prog="tests.bench.archive")
    parser.add_argument("--jdbc", default="", help="jar of Postgres's JDBC driver")
    parser.add_argument("rows", type=int, nargs="*", default=[1_000_000])
    given = parser.parse_args()
    if given.jdbc:
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {given.jdbc} pyspark-shell"
    for rows in given.rows:
        with tcp_postgres() if given.jdbc else ephemeral_database() as conninfo:
            measure(conninfo, rows, bool(given.jdbc))
    return 0


if __name__ == "__main__":
    sys.exit(main())
