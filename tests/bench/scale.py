"""Does the archive grow with its rows? `python -m tests.bench.scale [ROWS…]`, by default a million and ten million.

One Spark for all sizes, after a small archive while Java compiles. Each size has a journal and an archive of its own.
CPU time is that of the driver, Java and the Python workers, without Postgres: it says more than the clock does on a
machine that is busy with other work.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
from pyspark.sql import SparkSession

from offsets.core.days import day_of
from offsets.spark.archive.archiving import ArchiveOptions
from offsets.spark.session import SparkSettings, spark_session
from tests.bench.archive import DAYS, START_MS, PeakMemory, reconciled
from tests.offsets.spark.support import Archive, fill, make_day
from tests.support.database import ephemeral_database

WARM_UP = 100_000


def cpu_seconds() -> float:
    """CPU time of this process and all that it started, except Postgres."""
    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            if process.name() != "postgres":
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        except psutil.NoSuchProcess:
            continue  # its time is in that of the process that waited for it
    return total


def say(what: str, rows: int, work: Callable[[], object]) -> None:
    """Run it, then print one line: seconds, rows per second, CPU time per million rows, peak memory."""
    memory = PeakMemory()
    memory.start()
    began, cpu = time.perf_counter(), cpu_seconds()
    work()
    taken, cpu = time.perf_counter() - began, cpu_seconds() - cpu
    print(
        f"{what:10} {rows:12,} rows {taken:8.1f} s {rows / taken:10,.0f} rows/s {cpu:8.1f} s of CPU "
        f"({1e6 * cpu / rows:6.1f} s a million) peak {memory.stop() / 2**20:6,.0f} MB",
        flush=True,
    )


def measure(spark: SparkSession, rows: int, path: str, *, quietly: bool = False) -> None:
    """Archive and reconcile of a journal of `rows` rows in three days."""
    with ephemeral_database() as conninfo:
        for day in range(day_of(START_MS), day_of(START_MS) + DAYS + 1):
            make_day(conninfo, day)
        fill(conninfo, rows, first=START_MS, step=max(1, DAYS * 86_400_000 // rows))
        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute("vacuum analyze offset_commit_log")
        archive = Archive(conninfo, path, lambda: spark, ArchiveOptions())
        if quietly:
            archive.run()
            return
        say("archive", rows, archive.run)
        files = archive.table().files
        print(f"           {len(files)} files, {sum(file.size for file in files) / rows:.1f} bytes a row", flush=True)
        say("nothing", rows, archive.run)
        say("reconcile", rows, lambda: reconciled(conninfo, spark, archive.path))


def main() -> int:
    """Measure each number of rows."""
    parser = argparse.ArgumentParser(prog="tests.bench.scale")
    parser.add_argument("rows", type=int, nargs="*", default=[1_000_000, 10_000_000])
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="kcoord-bench-") as directory,
        spark_session(SparkSettings("local[2]", Path(directory) / "spark")) as spark,
    ):
        measure(spark, WARM_UP, f"{directory}/warm-up", quietly=True)
        for rows in given.rows:
            measure(spark, rows, f"{directory}/{rows}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
