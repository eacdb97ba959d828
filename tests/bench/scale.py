"""Does the archive grow with its rows? `python -m tests.bench.scale [ROWS…]`, by default a million and ten million.

One Spark for all sizes, after a small archive while Java compiles. Each size has a journal and an archive of its own:
10,000 partitions of 1,000 groups, committed in turns. With `--disorder` nearly every line is a finding of reconcile.
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

STEADY = """
insert into offset_commit_log (at, kind, group_name, topic, partition, committed_offset, leader_epoch, metadata,
                               member_id, generation_id, client_id, principal)
select %(first)s + i * %(step)s, 'commit', 'group-' || i %% 1000, 'topic-' || i %% 10, i %% 10000 / 1000, i, 0, '',
       'worker-' || i %% 10000, 1 + 20 * i / %(count)s, 'worker', 'token ' || i %% 1000
from generate_series(1, %(count)s::bigint) i
"""
"""What consumers without faults write: offsets and generations that grow, one member for each partition."""


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


def fill_steadily(conninfo: str, count: int, *, first: int, step: int) -> None:
    """Write `count` lines, one each `step` ms."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(STEADY, {"first": first, "step": step, "count": count})


def measure(spark: SparkSession, rows: int, path: str, write: Callable[..., None], *, quietly: bool = False) -> None:
    """Archive and reconcile of a journal of `rows` rows in three days."""
    with ephemeral_database() as conninfo:
        for day in range(day_of(START_MS), day_of(START_MS) + DAYS + 1):
            make_day(conninfo, day)
        write(conninfo, rows, first=START_MS, step=max(1, DAYS * 86_400_000 // rows))
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
    parser.add_argument("--disorder", action="store_true", help="lines in which reconcile finds something everywhere")
    parser.add_argument("--memory", type=int, default=SparkSettings("", Path()).memory_mb, help="Java's heap in MB")
    given = parser.parse_args()
    write = fill if given.disorder else fill_steadily
    with (
        tempfile.TemporaryDirectory(prefix="kcoord-bench-") as directory,
        spark_session(SparkSettings("local[2]", Path(directory) / "spark", given.memory)) as spark,
    ):
        measure(spark, WARM_UP, f"{directory}/warm-up", write, quietly=True)
        for rows in given.rows:
            measure(spark, rows, f"{directory}/{rows}", write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
