"""What the sections of a run share: its scale and time, a Postgres, servers, the yardsticks, and what was found."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from kcoord.config import Config
from kcoord.constants import FLUSH_INTERVAL, LANE
from tests.bench import forming
from tests.bench.figures import Figure, Point, Results
from tests.bench.generator import Found, measure
from tests.bench.pgbench import upserts
from tests.bench.populate import Population, Template, copies
from tests.bench.requests import request
from tests.bench.usage import Watched
from tests.support.database import ROOT, cloned_database, embedded_server, make_template
from tests.support.processes import Running, start_server

SESSION_MS = 21_600_000
"""Of groups that are formed, of what stands in rows that are copied, and of members that join."""
TIMEOUT_MS = 45_000
"""The default of Kafka's clients: what members at work renew their sessions for."""
SETTINGS: Mapping[str, object] = {
    "KCOORD_LOG_LEVEL": "warning",
    "KCOORD_GROUP_MAX_SESSION_TIMEOUT_MS": SESSION_MS,
    "KCOORD_GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS": SESSION_MS,
    "KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 200,
}
"""Of every server."""
FORMING = {"KCOORD_GROUP_CONSUMER_SESSION_TIMEOUT_MS": SESSION_MS}


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured. Seconds of one load, rounds of which the median counts, and sizes."""

    seconds: float = 4.5
    rounds: int = 3
    groups: int = 1_000
    members: int = 10
    joins: Sequence[int] = (1_000, 5_000)
    join_groups: int = 500
    processes: Sequence[int] = (1, 2, 3, 4)
    group_sizes: Sequence[int] = (3, 30, 300, 3_000, 5_000)
    people: Sequence[int] = (10, 100, 1_000, 10_000, 100_000)
    storm: int = 5_000
    beside_seconds: float = 8.0
    listed: int = 1_000
    wide: int = 10_000
    expired: int = 400_000
    idle: int = 10_000
    wire_storm: int = 1_000
    wire_delay: float = 4.0


QUICK = Scale(
    seconds=1.5,
    rounds=1,
    groups=100,
    joins=(1_000,),
    join_groups=100,
    processes=(1, 2),
    group_sizes=(3, 3_000),
    people=(10, 1_000, 100_000),
    storm=500,
    beside_seconds=2.5,
    listed=200,
    wide=1_000,
    expired=40_000,
    idle=1_000,
    wire_storm=200,
)
TINY = Scale(
    seconds=0.2,
    rounds=1,
    groups=5,
    members=2,
    joins=(5,),
    join_groups=2,
    processes=(1,),
    group_sizes=(3, 5),
    people=(10, 20),
    storm=5,
    beside_seconds=0.4,
    listed=5,
    wide=20,
    expired=100,
    idle=20,
    wire_storm=5,
    wire_delay=0.5,
)


@dataclass(frozen=True, slots=True)
class Database:
    """A database with the templates, and a token that may do everything."""

    conninfo: str
    token: str


@dataclass(slots=True)
class Bench:
    """A run. `deadline`: by `time.monotonic`; no section is begun after it. `settings`: of all servers, by variable."""

    scale: Scale
    results: Results
    deadline: float
    kafka: str = ""
    spark: bool = False
    json: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    admin: str = ""
    quiet: bool = False
    of_broker: dict[str, Found] = field(default_factory=dict)
    """What a Kafka broker did with the load, once it was measured."""
    _base: str = ""
    _token: str = ""
    _templates: dict[str, Template] = field(default_factory=dict)
    _yardsticks: dict[str, Found] = field(default_factory=dict)

    @contextlib.contextmanager
    def postgres(self) -> Iterator[None]:
        """The Postgres of the run, with a database from which those of the sections are copied."""
        with embedded_server() as self.admin:
            make_template(self.admin)
            with cloned_database(self.admin) as conninfo:
                with self._serving(conninfo, 1, FORMING) as (server,):
                    self._token, self._templates = forming.form(conninfo, server, self.scale.members, self.scale.wide)
                self._base = conninfo.rpartition("dbname=")[2].split()[0]
                yield

    @contextlib.contextmanager
    def database(self) -> Iterator[Database]:
        """A copy of that database."""
        with cloned_database(self.admin, self._base) as conninfo:
            yield Database(conninfo, self._token)

    def populate(
        self,
        database: Database,
        prefix: str,
        groups: int,
        members: int = 0,
        protocol: str = "classic",
        timeout_ms: int = TIMEOUT_MS,
    ) -> Population:
        """Groups at work, made by SQL; consumer groups have as many members as their template.

        Their sessions last for hours by their rows, and are renewed for `timeout_ms`: renewed sessions are stored as
        often as those of members at work. Nobody expires, however slow the service is, before `begin_sessions`.
        """
        many = 0 if protocol == "consumer" else members or self.scale.members
        return copies(database.conninfo, self._templates[protocol], prefix, groups, many, timeout_ms=timeout_ms)

    @contextlib.contextmanager
    def servers(
        self,
        database: Database,
        count: int = 1,
        env: Mapping[str, object] | None = None,
        *,
        module: str = "kcoord.stack.server",
    ) -> Iterator[list[Running]]:
        """Servers on a port each, ready. `module`: what runs, in place of the real one."""
        with self._serving(database.conninfo, count, env or {}, module) as found:
            yield found

    @contextlib.contextmanager
    def _serving(
        self, conninfo: str, count: int, env: Mapping[str, object], module: str = "kcoord.stack.server"
    ) -> Iterator[list[Running]]:
        with contextlib.ExitStack() as stack:
            found = []
            for number in range(count):
                own = {"KCOORD_NODE_ID": f"bench-{number}"}
                whole = {**SETTINGS, **own, **env, **self.settings}
                found.append(stack.enter_context(start_server(conninfo, env=whole, module=module)))
            for server in found:
                server.wait_ready()
            yield found
            for server in found:
                server.terminate()

    @contextlib.contextmanager
    def echo(self) -> Iterator[tuple[int, Watched]]:
        """The yardstick of requests over HTTP, on its port."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            arguments = [sys.executable, "-m", "tests.bench.echo", str(listener.fileno())]
            process = subprocess.Popen(arguments, cwd=ROOT, pass_fds=[listener.fileno()])
            try:
                port = listener.getsockname()[1]
                with httpx.Client(timeout=60) as client:
                    client.post(f"http://127.0.0.1:{port}/v1/groups/g/heartbeat").raise_for_status()
                yield port, Watched([process.pid])
            finally:
                process.terminate()
                process.wait(30)

    def echo_found(self) -> Found:
        """The echo's figures, measured once in a run."""
        if "echo" not in self._yardsticks:
            ones = [request("POST", "/v1/groups/g/heartbeat", self._token, {"member_id": "m", "generation_id": 1})]
            with self.echo() as (port, watched):
                measure({port: ones}, min(1.0, self.scale.seconds), watched)
                found = [measure({port: ones}, self.scale.seconds, watched) for _ in range(self.scale.rounds)]
            self._yardsticks["echo"] = sorted(found, key=lambda one: one.rate)[len(found) // 2]
        return self._yardsticks["echo"]

    def upserts_found(self) -> Found:
        """The figures of pgbench, measured once in a run."""
        if "pgbench" not in self._yardsticks:
            with self.database() as database:
                found = [upserts(database.conninfo, self.scale.seconds) for _ in range(self.scale.rounds)]
            self._yardsticks["pgbench"] = sorted(found, key=lambda one: one.rate)[len(found) // 2]
        return self._yardsticks["pgbench"]

    def add(self, figure: Figure) -> None:
        """A figure; it is printed at once."""
        self.results.figures.append(figure)
        if not self.quiet:
            ratio = "" if figure.ratio is None else f", {figure.ratio:,.3f} x {figure.yardstick}"
            print(f"  {figure.name}: {figure.value:,.2f} {figure.unit}{ratio}", flush=True)

    def point(self, point: Point) -> None:
        """A point of a curve."""
        self.results.points.append(point)
        if not self.quiet:
            what = f"{point.curve} {point.x:,.0f}"
            print(f"  {what}: {point.server_us:.1f} µs server, {point.postgres_us:.1f} µs Postgres", flush=True)

    @property
    def remaining(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.monotonic()


def flush_ms(settings: Mapping[str, str]) -> int:
    """How often servers store the sessions that they renewed in memory; 0: each heartbeat stores its own."""
    config = Config.from_env(settings)
    if config.problems:
        raise SystemExit("; ".join(config.problems))
    return config.int(FLUSH_INTERVAL) if config.bool(LANE) else 0


def details(found: Found, watched: Watched | None = None) -> dict[str, float]:
    """What the table shows of a load besides its figure."""
    each = 1e6 / found.requests
    more: dict[str, float] = {
        "p50_ms": 1_000 * found.quantile(0.5),
        "p99_ms": 1_000 * found.quantile(0.99),
        "per_cpu_s": found.per_cpu_second,
        "rate": found.rate,
        "requests": found.requests,
        "server_us": found.server_us,
        "postgres_us": found.postgres_us,
        "generator_us": each * found.generator,
        **{f"postgres_{kind}_us": each * seconds for kind, seconds in found.spent.postgres.items()},
    }
    if found.spent.wal is not None:
        more["wal_bytes"] = found.spent.wal / found.requests
    more["stored"] = found.spent.stored / found.requests
    more["commit_statements"] = found.spent.commit_statements / found.requests
    more["fetch_statements"] = found.spent.fetch_statements / found.requests
    if watched is not None:
        more["rss_mb"] = watched.rss / 1e6
    return more
