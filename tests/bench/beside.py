"""Heartbeats while a run of the archive is going on, against heartbeats without one: `python -m tests.bench.beside`.

A server as `make up` starts it, members that heartbeat at a steady rate over HTTP, and the process of a run as the
service starts it, with its niceness. Both halves take turns, so that other work on the machine meets both.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from offsets.core.days import day_of
from offsets.runs import run_process
from tests.spark.support import fill, make_day
from tests.support.database import ROOT, ephemeral_database
from tests.support.freezing import Site, site
from tests.support.http_members import HttpMember
from tests.support.processes import database_url

MEMBERS = 20
PER_SECOND = 100
ROWS = 500_000
ROUNDS = 3
START_MS = 1_700_000_000_000
DAYS = 3


async def heartbeats(members: list[HttpMember], over: asyncio.Event) -> list[float]:
    """Milliseconds of each heartbeat, PER_SECOND of them a second until `over`."""
    found: list[float] = []

    async def one(member: HttpMember) -> None:
        began = time.perf_counter()
        status, answer = await member.heartbeat()
        found.append(1_000 * (time.perf_counter() - began))
        assert status == 200, answer

    pending: set[asyncio.Task[None]] = set()
    number = 0
    while not over.is_set():
        pending.add(asyncio.create_task(one(members[number % len(members)])))
        pending -= {task for task in pending if task.done() and not task.exception()}
        number += 1
        await asyncio.sleep(1 / PER_SECOND)
    await asyncio.gather(*pending)
    return found


def started(database: str, directory: Path, number: int) -> subprocess.Popen[bytes]:
    """A run as the service starts it, into an archive of its own."""
    environment = {
        **os.environ,
        "KCOORD_DATABASE_URL": database_url(database),
        "KCOORD_DATA_DIR": str(directory),
        "KCOORD_ARCHIVE_PATH": str(directory / f"archive-{number}"),
        "PYTHONPATH": str(ROOT),
    }
    arguments = [sys.executable, "-m", "offsets.spark", "archive", "--nice", str(run_process.NICE)]
    return subprocess.Popen(arguments, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)


async def beside(place: Site, database: str, directory: Path) -> None:
    """Take turns, then print both."""
    members = [await place.member(f"beside-{number}", 60_000) for number in range(MEMBERS)]
    alone: list[float] = []
    during: list[float] = []
    for number in range(ROUNDS):
        began = time.monotonic()
        process = started(database, directory, number)
        over = asyncio.Event()
        beating = asyncio.create_task(heartbeats(members, over))
        status = await asyncio.to_thread(process.wait)
        assert status == 0
        over.set()
        during += await beating
        over = asyncio.Event()
        asyncio.get_running_loop().call_later(time.monotonic() - began, over.set)
        alone += await heartbeats(members, over)
    for name, found in (("without a run", alone), ("during a run", during)):
        print(
            f"heartbeats {name:14} {len(found):6} p50 {statistics.median(found):7.1f} ms "
            f"p99 {statistics.quantiles(found, n=100)[98]:7.1f} ms  longest {max(found):7.1f} ms",
            flush=True,
        )


async def _measure(database: str, directory: Path) -> None:
    async with site(database, {}) as place:
        await beside(place, database, directory)


def main() -> int:
    """Measure on a Postgres of its own."""
    with ephemeral_database() as database, tempfile.TemporaryDirectory(prefix="kcoord-bench-") as directory:
        for day in range(day_of(START_MS), day_of(START_MS) + DAYS + 1):
            make_day(database, day)
        fill(database, ROWS, first=START_MS, step=DAYS * 86_400_000 // ROWS)
        asyncio.run(_measure(database, Path(directory)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
