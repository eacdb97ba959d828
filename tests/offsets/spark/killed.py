"""A driver that kills itself: `python -m tests.offsets.spark.killed CONNINFO ARCHIVE DIRECTORY POINT`.

The points lie between the steps of a run: `writing` while tasks write, `staged` before the first file is moved, `moved`
after it, `announced` between manifest and log entry, `published` between log entry and record, `compacted` before the
log entry of the compaction.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from offsets.spark.archive import publishing
from offsets.spark.archive.archiving import ArchiveOptions, archive
from offsets.spark.archive.storage import Storage
from offsets.spark.archive.table import ArchiveTable
from offsets.spark.runs import RunRequest, running
from offsets.spark.session import SparkSettings, start_spark

POINTS = ("writing", "staged", "moved", "announced", "published", "compacted")


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


def main(conninfo: str, path: str, directory: str, point: str) -> None:
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
        archive(run, lambda: start_spark(SparkSettings("local[2]", Path(directory))), conninfo, Storage(path), options)


if __name__ == "__main__":
    main(*sys.argv[1:])
