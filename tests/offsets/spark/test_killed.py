"""SIGKILL of the driver between any two steps: readers see all of a run or nothing of it, and the next run makes up."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE

import psycopg
import pytest

from offsets.core.days import DAY_MS
from tests.conftest import START_MS
from tests.offsets.spark.killed import POINTS
from tests.offsets.spark.support import Archive, counted_days, fill, journal_rows, runs_of, wait_for_other_databases
from tests.support.database import ROOT

pytestmark = pytest.mark.whole("test_round_trip has Spark archive, restore and reconcile")

LOCKED = """
select exists (select from pg_locks where locktype = 'advisory' and pid in (
    select pid from pg_stat_activity where application_name = 'kcoord-spark' and datname = current_database()))
"""


@dataclass
class Driver:
    """`tests.offsets.spark.killed` with a Java of its own, which is started again once it was killed with Java."""

    directory: Path
    process: subprocess.Popen[str] | None = None

    def dies(self, *told: str) -> int:
        """The exit status of the process that died there."""
        if self.process is None:
            command = [sys.executable, "-m", "tests.offsets.spark.killed", str(self.directory)]
            self.process = subprocess.Popen(command, cwd=ROOT, text=True, stdin=PIPE, stdout=PIPE)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(told), file=self.process.stdin, flush=True)
        if said := self.process.stdout.readline():
            return int(said)
        return self.end()

    def end(self) -> int:
        """The exit status of the process itself."""
        if self.process is None:
            return 0
        self.process.communicate(timeout=60)
        status, self.process = self.process.returncode, None
        return status


@pytest.fixture(scope="module")
def driver(spark_directory: Path) -> Iterator[Driver]:
    """One for this module: most places are between two uses of Java."""
    made = Driver(spark_directory / "killed")
    yield made
    made.end()


def test_killed_runs_neither_lose_nor_double_a_row(archive: Archive, driver: Driver) -> None:
    """Each begins where the one before was made up for, and publishes a file more of a day that has one."""
    fill(archive.conninfo, 300, first=START_MS)
    archive.run()
    for number, point in enumerate(POINTS, start=1):
        before = archive.rows()
        fill(archive.conninfo, 300, first=START_MS + number * DAY_MS)
        wait_for_other_databases(archive.conninfo)
        assert driver.dies(archive.conninfo, archive.path, point) == -signal.SIGKILL, point
        everything, is_published = journal_rows(archive.conninfo), point in ("published", "compacted")
        assert archive.rows() == (everything if is_published else before), point
        wait_until_unlocked(archive.conninfo)
        report = archive.run()
        assert archive.rows() == everything, point
        assert report.rows == (0 if is_published else 300), point
        assert counted_days(archive.conninfo) == (len(everything), True), point
        assert [state for _, state, _ in runs_of(archive.conninfo)][-2:] == ["lost", "succeeded"], point
        assert left_over(archive) == set(), point
    assert archive.run().rows == 0


def wait_until_unlocked(conninfo: str) -> None:
    """Postgres ends the session of a process that is gone; it is told by the closed connection."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        while connection.execute(LOCKED).fetchone() != (False,):
            time.sleep(0.05)


def left_over(archive: Archive) -> set[str]:
    """Files in the folder of the archive that no reader needs."""
    table = archive.table()
    assert table.manifest is not None
    known = {f"journal/{file.path}" for file in (*table.files, *table.manifest.retired)}
    known |= {f"manifests/{number:012d}.json" for number in range(1, table.number + 1)}
    return {
        file.path
        for folder in ("journal", "manifests", "staging")
        for file in archive.storage().files(folder)
        if file.path not in known and "/_delta_log/" not in file.path
    }
