"""Heartbeats beside a run of the archive, against heartbeats without one: `python -m tests.bench.beside [PER SECOND]`.

A server as `make up` starts it, members that heartbeat at a steady rate over HTTP, and the process of a run as the
service starts it, with its niceness. A heartbeat's time counts from when it was due, so that a server that stalls is
not asked less. Server, Postgres, run and this program share the cores. It ends after five minutes at the latest.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg

from offsets.core.days import day_of
from offsets.runs import run_process
from tests.bench.archive import DAYS, START_MS
from tests.offsets.spark.support import fill, make_day
from tests.support.database import ROOT, ephemeral_database
from tests.support.http_members import HttpMember, make_token
from tests.support.processes import database_url, start_server

MEMBERS = 20
PER_SECOND = 200
PHASE_SECONDS = 20.0
ROWS = 500_000
START_SECONDS = 90.0
LIMIT_SECONDS = 300.0


@dataclass
class Load:
    """Members that heartbeat in turns, `per_second` times a second all together."""

    members: list[HttpMember]
    per_second: int

    async def measured(self, seconds: float, what: str) -> None:
        """Send heartbeats for `seconds`, and print how long they took, each from when it was due to its answer."""
        found: list[float] = []
        lost, began = 0, time.perf_counter()
        rounds, pause = int(seconds * self.per_second / len(self.members)), len(self.members) / self.per_second

        async def beat(number: int, member: HttpMember) -> None:
            """One at a time, as members do; httpx's pool takes ever longer with many requests waiting for it."""
            nonlocal lost
            for turn in range(rounds):
                due = began + (turn + number / len(self.members)) * pause
                await asyncio.sleep(due - time.perf_counter())
                status, answer = await member.heartbeat()
                assert status in (0, 200), answer
                lost += status == 0
                found.extend([1_000 * (time.perf_counter() - due)] if status else [])

        await asyncio.gather(*(beat(number, member) for number, member in enumerate(self.members)))
        say(what, found, lost)


def say(what: str, found: list[float], lost: int) -> None:
    """One line. `lost`: the connection ended before the answer."""
    print(
        f"{len(found):6} heartbeats, {lost} lost, {what:28} p50 {statistics.median(found):7.1f} ms   "
        f"p99 {statistics.quantiles(found, n=100)[98]:7.1f} ms   longest {max(found):7.1f} ms",
        flush=True,
    )


def started(database: str, directory: Path) -> subprocess.Popen[bytes]:
    """A run as the service starts it."""
    environment = {
        **os.environ,
        "KCOORD_DATABASE_URL": database_url(database),
        "KCOORD_DATA_DIR": str(directory),
        "KCOORD_ARCHIVE_PATH": str(directory / "archive"),
        "PYTHONPATH": str(ROOT),
    }
    arguments = [sys.executable, "-m", "offsets.spark", "archive", "--nice", str(run_process.NICE)]
    return subprocess.Popen(arguments, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)


def stage(database: str) -> str:
    """What the run is doing; empty before it is recorded."""
    with psycopg.connect(database) as connection:
        row = connection.execute("select stage from offsets_sparkrun where state = 'running'").fetchone()
    return "" if row is None else str(row[0])


async def compare(load: Load, database: str, directory: Path) -> None:
    """Without a run, while Spark starts, while it reads and writes, and without a run again."""
    await load.measured(2, "to warm up")
    await load.measured(PHASE_SECONDS, "without a run")
    process = started(database, directory)
    try:
        await load.measured(PHASE_SECONDS / 2, "while Spark starts")
        until = time.monotonic() + START_SECONDS
        while stage(database) in ("", "starting", "check", "start Spark"):
            assert process.poll() is None, f"the run ended with {process.returncode}"
            assert time.monotonic() < until, f"Spark did not start within {START_SECONDS:g} s"
            await asyncio.sleep(0.2)
        await load.measured(PHASE_SECONDS, f"during a run, from {stage(database)!r}")
        print(f"       the run is at {stage(database)!r} now, its process has ended: {process.poll() is not None}")
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, 60)
    await load.measured(PHASE_SECONDS, "without a run again")


async def measure(database: str, directory: Path, per_second: int) -> None:
    """One server and its members."""
    headers = {"Authorization": f"Bearer {make_token(database)}"}
    with start_server(database, env={"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 50}) as server:
        await asyncio.to_thread(server.wait_ready)
        async with asyncio.timeout(LIMIT_SECONDS), httpx.AsyncClient(headers=headers, timeout=30) as client:
            made = await client.post(f"{server.url}/v1/topics", json={"name": "t", "partitions": 1})
            made.raise_for_status()
            members = [HttpMember(client, [server.url], f"beside-{number}", 60_000) for number in range(MEMBERS)]
            for member in members:
                await member.become_stable()
            await compare(Load(members, per_second), database, directory)


def main() -> int:
    """Measure on a Postgres of its own."""
    with ephemeral_database() as database, tempfile.TemporaryDirectory(prefix="kcoord-bench-") as directory:
        for day in range(day_of(START_MS), day_of(START_MS) + DAYS + 1):
            make_day(database, day)
        fill(database, ROWS, first=START_MS, step=DAYS * 86_400_000 // ROWS)
        asyncio.run(measure(database, Path(directory), int(sys.argv[1]) if len(sys.argv) > 1 else PER_SECOND))
    return 0


if __name__ == "__main__":
    sys.exit(main())
