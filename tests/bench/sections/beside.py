"""How long the heartbeats of quiet groups take beside other work, as a multiple of what they take alone.

Server, Postgres and the program that asks share the cores, so a heartbeat may also wait because the kernel runs
somebody else. Two yardsticks tell both apart: the Starlette echo, a process of its own that answers as many requests at
the same time and has nothing to do with the work; and heartbeats beside another program that uses as much CPU as all of
these did, and asks nothing of the server.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

import psycopg

from tests.bench import beside, requests, retention
from tests.bench.archive import DAYS, START_MS
from tests.bench.bench import SESSION_MS, Bench, Database
from tests.bench.figures import Figure
from tests.bench.forming import WIDE_TOPIC
from tests.bench.generator import Generator, Spent
from tests.bench.populate import Population
from tests.bench.prober import Beats, Prober
from tests.bench.sections.joins import joined
from tests.bench.storm import Joining, Storm
from tests.bench.usage import cpu_of, postgres_cpu, postmaster_of
from tests.support.database import ROOT
from tests.support.processes import Running

QUIET_GROUPS = 4
PAUSE_SECONDS = 0.01
DELAY_MS = 4_000
STORM_LIMIT = 150.0
SPARK_ROWS = 300_000
SPARK_STARTS_SECONDS = 90.0
STORMS = 3
"""A stall of 50 ms more or less decides the p99 of one storm of a few seconds: the median of these counts."""
COMPLETING_SECONDS = 1.0
"""How long before the first answer to a join its group is looked at as being at work."""
PER_GROUP = 100

ALONE = frozenset({"alone", "alone again"})
AS_MUCH_CPU = ".cpu"

Window = tuple[float, float]


@dataclass(slots=True)
class Others:
    """The work that goes on beside; each returns the windows (from, until) in which it was under way."""

    bench: Bench
    database: Database
    server: Running
    people: Population
    windows: dict[str, list[list[Window]]] = field(default_factory=dict)
    """Of each time that the work was done."""
    cores: dict[str, float] = field(default_factory=dict)
    """How many of them were in use during each."""
    storms: int = 0

    def work(self, name: str, job: Callable[[], list[Window]], times: int = 1) -> None:
        """Do one kind of work, and note when it was under way and what it used."""
        postmaster = postmaster_of(self.database.conninfo)
        before = _used(postmaster)
        self.windows[name] = [job() for _ in range(times)]
        self.cores[name] = (_used(postmaster) - before) / self.seconds(name)

    def seconds(self, name: str) -> float:
        """How long a kind of work was under way."""
        return sum(last - first for windows in self.windows[name] for first, last in windows)

    def quantile(self, beats: Beats, part: float, *names: str) -> float:
        """Milliseconds that this part of the heartbeats beside some work took at most: the median of its times."""
        return 1_000 * median(beats.quantile(part, *windows) for name in names for windows in self.windows[name])

    def burn(self, cores: float) -> list[Window]:
        """Another program that uses these many cores."""
        seconds = self.bench.scale.beside_seconds
        began = time.perf_counter()
        arguments = [sys.executable, "-m", "tests.bench.burner", f"{cores:.2f}", f"{seconds:g}"]
        subprocess.run(arguments, cwd=ROOT, check=True, timeout=STORM_LIMIT)
        return [(began, time.perf_counter())]

    def load(self, sent: list[bytes], connections: int) -> list[Window]:
        """Requests one after the other on some connections."""
        generator = Generator({self.server.port or 0: sent}, self.bench.scale.beside_seconds, connections)
        began = time.perf_counter()
        generator.start()
        found = generator.result(Spent(0.0), may_fail=True)
        assert found.refused < found.requests, "every request was refused"
        return [(began, time.perf_counter())]

    def alone(self) -> list[Window]:
        """Nothing."""
        began = time.perf_counter()
        time.sleep(self.bench.scale.beside_seconds)
        return [(began, time.perf_counter())]

    def commit(self) -> list[Window]:
        """Commits of as many partitions as the wide topic has."""
        return self.load(requests.commits(self.people, self.database.token, self.bench.scale.wide, WIDE_TOPIC)[:1], 1)

    def listing(self) -> list[Window]:
        """The list of all groups."""
        path = f"/v1/groups?limit={min(1_000, self.bench.scale.listed)}"
        return self.load([requests.request("GET", path, self.database.token)], 1)

    def storm(self) -> list[Window]:
        """Joins until all are parked, and from the end of the delay until all are synced."""
        members = self.bench.scale.storm
        storm = Storm(
            self.server.port or 0,
            self.database.token,
            groups=1,
            members=members,
            prefix=f"storm-{self.storms}",
            session_timeout_ms=SESSION_MS,
            limit=STORM_LIMIT,
        )
        self.storms += 1
        joining = Joining(storm)
        try:
            joining.start()
            joined_at = joined(self.database, members * self.storms, joining, STORM_LIMIT)
            found = joining.result()
        finally:
            joining.stop()
        if found.synced is None or found.first_joined is None:
            return [(found.began, time.perf_counter())]
        return [(found.began, joined_at), (max(joined_at, found.first_joined - COMPLETING_SECONDS), found.synced)]

    def retention(self) -> list[Window]:
        """A run that removes expired offsets, with their groups, by a process of its own."""
        arguments = [sys.executable, "-m", "tests.bench.sweep", self.database.conninfo]
        began = time.perf_counter()
        done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=STORM_LIMIT)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout.split()[-1]) >= self.bench.scale.expired, done.stdout
        return [(began, time.perf_counter())]

    def spark(self) -> list[Window]:
        """A run of the archive, from when Spark works."""
        with tempfile.TemporaryDirectory(prefix="kcoord-bench-") as directory:
            process = beside.started(self.database.conninfo, Path(directory))
            try:
                until = time.monotonic() + SPARK_STARTS_SECONDS
                while beside.stage(self.database.conninfo) in ("", "starting", "check", "start Spark"):
                    assert process.poll() is None, f"the run ended with {process.returncode}"
                    assert time.monotonic() < until, f"Spark did not start within {SPARK_STARTS_SECONDS:g} s"
                    time.sleep(0.2)
                began = time.perf_counter()
                until = time.monotonic() + 2 * self.bench.scale.beside_seconds
                while process.poll() is None and time.monotonic() < until:
                    time.sleep(0.1)
                return [(began, time.perf_counter())]
            finally:
                process.terminate()
                process.wait(60)


def run(bench: Bench) -> None:
    """Quiet groups send heartbeats all the time; the others work in turns."""
    with bench.database() as database:
        quiet = bench.populate(database, "quiet", QUIET_GROUPS, 1)
        people = bench.populate(database, "busy", bench.scale.listed, 3)
        _fill(bench, database)
        env = {"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": DELAY_MS}
        with bench.servers(database, env=env) as (server,), bench.echo() as (echo_port, _):
            others = Others(bench, database, server, people)
            jobs: dict[str, Callable[[], list[Window]]] = {
                "alone": others.alone,
                "storm": others.storm,
                "commit": others.commit,
                "list": others.listing,
                "retention": others.retention,
                **({"spark": others.spark} if bench.spark else {}),
                "alone again": others.alone,
            }
            sent = requests.heartbeats(quiet, database.token)
            prober, bystander = (Prober(port, sent, PAUSE_SECONDS) for port in (server.port or 0, echo_port))
            try:
                time.sleep(min(1.0, bench.scale.beside_seconds))
                for name, job in jobs.items():
                    others.work(name, job, STORMS if name == "storm" else 1)
                for name in [name for name in jobs if name not in ALONE]:
                    cores = min(float(os.cpu_count() or 1), others.cores[name])
                    others.work(f"{name}{AS_MUCH_CPU}", partial(others.burn, cores))
                beats, echoes = prober.stop(), bystander.stop()
            finally:
                prober.kill()
                bystander.kill()
    _figures(bench, others, beats, echoes)


def _figures(bench: Bench, others: Others, beats: Beats, echoes: Beats) -> None:
    quiet, half = (others.quantile(beats, part, *ALONE) for part in (0.99, 0.5))
    said = {"p50_ms": half, "p99_ms": quiet, "lost": float(beats.lost)}
    said["echo_p99_ms"] = others.quantile(echoes, 0.99, *ALONE)
    bench.add(Figure("beside.alone", "p99 of a quiet group's heartbeat, alone", quiet, "ms", "p50", half, said))
    scale = bench.scale
    names = {
        "storm": f"a storm of {scale.storm:,} joins",
        "commit": f"commits of {scale.wide:,} partitions",
        "list": f"a list of {scale.listed:,} groups in a loop",
        "retention": f"retention of {scale.expired:,} offsets",
        "spark": "a Spark run",
    }
    for name in [name for name in names if name in others.windows]:
        late = others.quantile(beats, 0.99, name)
        said = {"p50_ms": others.quantile(beats, 0.5, name), "p99_ms": late}
        said |= {"seconds": others.seconds(name), "longest_ms": others.quantile(beats, 1, name)}
        said["cores"] = others.cores[name]
        bench.add(Figure(f"beside.{name}", f"  beside {names[name]}", late, "ms", "quiet", quiet, said))
        echoed = others.quantile(echoes, 0.99, name)
        what = f"  beside {names[name]}: against an echo"
        bench.add(Figure(f"beside.{name}.echo", what, late, "ms", "an echo that does nothing else, beside it", echoed))
        burned = others.quantile(beats, 0.99, f"{name}{AS_MUCH_CPU}")
        what = f"  beside {names[name]}: against CPU use"
        yardstick = "beside another program that uses as much CPU"
        bench.add(Figure(f"beside.{name}{AS_MUCH_CPU}", what, late, "ms", yardstick, burned))


def _used(postmaster: int) -> float:
    """CPU seconds of this program, what it started, and Postgres, so far."""
    return cpu_of(os.getpid()) + sum(postgres_cpu(postmaster).values())


def _fill(bench: Bench, database: Database) -> None:
    """Offsets that have expired, and a journal for Spark."""
    expired = bench.scale.expired
    given = {"groups": max(1, expired // PER_GROUP), "topics": 1, "partitions": expired}
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        for statement in (retention.SMALL, retention.FILL_SMALL):
            connection.execute(statement.encode(), given)
        connection.execute("vacuum analyze")
    if bench.spark:
        from offsets.core.days import day_of
        from tests.offsets.spark.support import fill, make_day

        for day in range(day_of(START_MS), day_of(START_MS) + DAYS + 1):
            make_day(database.conninfo, day)
        fill(database.conninfo, SPARK_ROWS, first=START_MS, step=DAYS * 86_400_000 // SPARK_ROWS)
