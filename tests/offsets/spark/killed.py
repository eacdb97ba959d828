"""A driver that kills itself: `python -m tests.offsets.spark.killed DIRECTORY`, told where by a line of its input.

The line is JSON: conninfo, archive, and point. At `writing` this process dies, and with it Java, whose tasks write. At
the other points Java has nothing to do; so a process that was forked with this one's Java dies, its exit status is
written, and the next line is read.

The points lie between the steps of a run: `writing` while tasks write, `staged` before the first file is moved, `moved`
after it, `announced` between manifest and log entry, `published` between log entry and record, `compacted` before the
log entry of the compaction.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from offsets.spark.archive import publishing
from offsets.spark.archive.archiving import ArchiveOptions, archive
from offsets.spark.archive.storage import Storage
from offsets.spark.archive.table import ArchiveTable
from offsets.spark.runs import RunRequest, running
from offsets.spark.session import SparkSettings, start_spark
from tests.offsets.spark.support import for_few_rows

POINTS = ("staged", "moved", "announced", "published", "compacted", "writing")
"""The one at which Java dies comes last."""


def die() -> None:
    """As the kernel's out-of-memory killer would have it."""
    os.kill(os.getpid(), signal.SIGKILL)


def at_call(number: int, work: Callable[..., Any]) -> Callable[..., Any]:
    """`work` until its call of that number, which is the end."""
    calls = 0

    def counted(*args: Any, **given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            die()
        return work(*args, **given)

    return counted


def die_while_writing(folder: Path) -> None:
    """Once a task has begun a file."""
    while not any(folder.glob("staging/*/**/*.parquet")):
        time.sleep(0.001)
    die()


def run_until(point: str, conninfo: str, path: str, spark: SparkSession) -> None:
    """Run, and die at the point."""
    if point == "writing":
        threading.Thread(target=die_while_writing, args=(Path(path),), daemon=True).start()
    elif point in ("staged", "moved"):
        Storage.move = at_call({"staged": 1, "moved": 2}[point], Storage.move)  # type: ignore[method-assign]
    elif point in ("announced", "compacted"):
        number = {"announced": 1, "compacted": 2}[point]
        ArchiveTable.commit = at_call(number, ArchiveTable.commit)  # type: ignore[method-assign]
    else:
        publishing.record = at_call(1, publishing.record)
    options = ArchiveOptions(slice_blocks=5, most_files=1)
    with running(conninfo, "archive", RunRequest("killed")) as run:
        archive(run, lambda: spark, conninfo, Storage(path), options)


def main(directory: str) -> None:
    """Die as often as asked."""
    spark = for_few_rows(start_spark(SparkSettings("local[2]", Path(directory))))
    for line in sys.stdin:
        conninfo, path, point = json.loads(line)
        pid = 0 if point == "writing" else os.fork()
        if not pid:
            run_until(point, conninfo, path, spark)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
