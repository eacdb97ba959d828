"""Measurements of archive and reconcile, in one run: rows per second against COPY, bytes per row, peak memory.

`python -m tests.bench.archive [ROWS…]`, by default a million. Spark's JDBC source needs a jar and cannot reach the
embedded Postgres; docs/decisions/archive-format.md has what was measured of it.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
from pyspark.sql import SparkSession

from offsets.core.days import day_of
from offsets.spark.archive.archiving import ArchiveOptions
from offsets.spark.archive.storage import Storage
from offsets.spark.postgres import exported_snapshot
from offsets.spark.reconcile.reconciling import ReconcileOptions, reconcile
from offsets.spark.runs import RunRequest, running
from offsets.spark.session import SparkSettings, start_spark
from offsets.spark.source import read_table
from tests.spark.support import Archive, fill, make_day
from tests.support.database import ephemeral_database

START_MS = 1_700_000_000_000
DAYS = 3
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


def measure(conninfo: str, rows: int) -> None:
    """All of it for a journal of so many rows."""
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
        spark.stop()
    print(f"Spark's start: {start:.1f} s, {100 * start / (start + cold):.0f} % of start and first archive")
    print(
        f"bytes per row: Parquet {size / rows:.1f}, Postgres {sizes[0] / rows:.0f} and {sizes[1] / rows:.0f} of indexes"
    )
    print(f"peak memory of driver, Java and workers: {memory.stop() / 2**20:,.0f} MB", flush=True)


def main() -> int:
    """Measure each number of rows on a Postgres of its own."""
    for rows in [int(word.replace("_", "")) for word in sys.argv[1:]] or [1_000_000]:
        with ephemeral_database() as conninfo:
            measure(conninfo, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
