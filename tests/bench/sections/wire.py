"""The port for Kafka clients beside the same over HTTP: heartbeats, commits, idle connections, and a storm of joins.

Requests are those that are sent to a Kafka broker (`tests.bench.kafka`), after a login; both doors are those of one
server, and are measured in turns.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tests.bench import requests
from tests.bench.bench import SESSION_MS, Bench, Database, details
from tests.bench.figures import Figure
from tests.bench.generator import Found, http_is_well, http_is_whole, measure, once
from tests.bench.idle import Idle, most_connections
from tests.bench.kafka import answers, frames
from tests.bench.kafka.answers import PARTITIONS
from tests.bench.populate import Population
from tests.bench.prober import HTTP, Beats, Door, Prober
from tests.bench.sections.heartbeats import SETTLE_SECONDS, middle
from tests.bench.sections.joins import joined
from tests.bench.sections.kafka import found_of_broker
from tests.bench.sections.offsets import WARM
from tests.bench.storm import Joining, Run, Storm, Stormed
from tests.bench.usage import Watched
from tests.bench.wire_storm import WireRun
from tests.support.processes import Running, free_port

NOTED = "the same over HTTP"
QUIET_GROUPS = 4
PAUSE_SECONDS = 0.01
COMPLETING_SECONDS = 1.0
STORM_LIMIT = 150.0
REST_SECONDS = 1.0
"""How long a server with idle connections is watched."""
WARM_CONNECTIONS = 100
ROOM = 1_000
"""Connections that a server takes besides the idle ones."""


@dataclass(frozen=True, slots=True)
class Place:
    """A server with both doors. `wire`: how answers over the wire are read, after a login."""

    server: Running
    database: Database
    kafka_port: int

    @property
    def http_port(self) -> int:
        """The port of its HTTP API."""
        return self.server.port or 0

    @property
    def wire(self) -> Door:
        """How a client of the wire logs in and reads answers."""
        return Door(answers.is_whole, answers.is_well, partial(_log_in, self.database.token))

    @property
    def watched(self) -> Watched:
        """What the server and Postgres use."""
        return Watched([self.server.pid], self.database.conninfo, [self.http_port])


def _log_in(token: str, connection: socket.socket) -> None:
    answers.log_in(connection, token)


@contextlib.contextmanager
def listening(bench: Bench, database: Database, env: Mapping[str, object] | None = None) -> Iterator[Place]:
    """A server that listens for Kafka clients."""
    port = free_port()
    own = {"KCOORD_KAFKA_PORT": port, "KCOORD_KAFKA_MAX_CONNECTIONS": bench.scale.idle + ROOM, **(env or {})}
    with bench.servers(database, env=own) as (server,):
        yield Place(server, database, port)


def run(bench: Bench) -> None:
    """The broker comes last: where it cannot be had, the others have their figures."""
    found = _rates(bench)
    _waiting(bench)
    if bench.kafka:
        _beside_kafka(bench, found)


# Heartbeats and commits


def _rates(bench: Bench) -> dict[str, Found]:
    found = {}
    with bench.database() as database:
        people = bench.populate(database, "wire", bench.scale.groups)
        with listening(bench, database) as place:
            for kind, over_http, over_wire in (
                ("heartbeats", requests.heartbeats(people, database.token), heartbeats(people)),
                ("commits", requests.commits(people, database.token, PARTITIONS), commits(people)),
            ):
                base, found[kind] = _in_turns(bench, place, over_http[:WARM], over_wire[:WARM])
                _rate_figures(bench, kind, found[kind], base, place)
    return found


def heartbeats(people: Population) -> list[bytes]:
    """A heartbeat of each member, in the order of those over HTTP."""
    return [frames.heartbeat(group, member, people.generation) for group, _, member in requests.each(people)]


def commits(people: Population) -> list[bytes]:
    """A commit by each member, to the same partitions as over HTTP."""
    return [
        frames.offset_commit(
            group, member, people.generation, requests.TOPIC, range(number * PARTITIONS, (number + 1) * PARTITIONS)
        )
        for group, number, member in requests.each(people)
    ]


def _in_turns(bench: Bench, place: Place, over_http: list[bytes], over_wire: list[bytes]) -> tuple[Found, Found]:
    """What HTTP and the wire did; the medians."""
    options: dict[str, Any] = {
        "is_whole": place.wire.is_whole,
        "is_well": place.wire.is_well,
        "greet": place.wire.greet,
    }
    doors: tuple[tuple[Mapping[int, list[bytes]], dict[str, Any]], ...] = (
        ({place.http_port: over_http}, {"is_whole": http_is_whole, "is_well": http_is_well}),
        ({place.kafka_port: over_wire}, options),
    )
    found: tuple[list[Found], list[Found]] = [], []
    for load, how in doors:
        once(load, **how)
    for _ in range(bench.scale.rounds):
        for (load, how), into in zip(doors, found, strict=True):
            into.append(measure(load, bench.scale.seconds, place.watched, settle=SETTLE_SECONDS, **how))
    return middle(found[0]), middle(found[1])


def _rate_figures(bench: Bench, kind: str, found: Found, base: Found, place: Place) -> None:
    name = {"heartbeats": "heartbeats", "commits": f"commits of {PARTITIONS} offsets"}[kind]
    said = details(found, place.watched)
    bench.add(Figure(f"wire.{kind}", f"{name} over the wire", found.rate, "/s", NOTED, base.rate, said))
    cpu, base_cpu = found.per_cpu_second, base.per_cpu_second
    bench.add(Figure(f"wire.{kind}.cpu", f"{name} over the wire, per CPU second", cpu, "/s", NOTED, base_cpu, said))


def _beside_kafka(bench: Bench, found: Mapping[str, Found]) -> None:
    theirs = found_of_broker(bench)
    yardstick = f"Kafka {bench.results.machine['kafka']}"
    for kind, one in found.items():
        name = f"{kind} over the wire, per CPU second: beside Kafka"
        base = theirs[kind].per_cpu_second
        bench.add(Figure(f"wire.{kind}.kafka", name, one.per_cpu_second, "/s", yardstick, base, details(one)))


# Idle connections


def _idle_count(bench: Bench) -> int:
    """How many idle connections are measured: fewer where the limits of this machine forbid more, which is said."""
    count = min(bench.scale.idle, most_connections())
    if count < bench.scale.idle:
        why = f"{count:,} of {bench.scale.idle:,}: the limit on open files (ulimit -Hn) forbids more"
        bench.results.missing["wire: idle connections"] = why
    return count


def _idle_figure(bench: Bench, count: int, found: dict[str, float], base: dict[str, float]) -> None:
    name = f"memory of each of {count:,} idle connections over the wire"
    bench.add(Figure("wire.idle", name, found["kb"], "kB", f"{NOTED}, after a request", base["kb"], found))


def _ask(request: bytes, connection: socket.socket) -> None:
    """One request over HTTP, and its answer."""
    connection.sendall(request)
    read = b""
    while not http_is_whole(read):
        more = connection.recv(65_536)
        assert more, "the server closed a connection"
        read += more
    assert http_is_well(read), read


def _held(place: Place, port: int, count: int, greet: Callable[[socket.socket], None]) -> dict[str, float]:
    """What connections cost: memory in kB each, seconds until all are open, CPU at rest. Fails if one is closed."""
    assert Idle(port, min(WARM_CONNECTIONS, count), greet).close() == 0
    watched = place.watched
    before, opening = watched.rss, watched.spent()
    idle = Idle(port, count, greet)
    try:
        rss, resting = watched.rss, watched.spent()
        time.sleep(REST_SECONDS)
        rest = watched.spent().since(resting).server
        closed = idle.close()
    finally:
        idle.kill()
    assert not closed, f"the server closed {closed} of {count} connections"
    return {
        "kb": (rss - before) / count / 1e3,
        "open_s": idle.seconds,
        "server_us": 1e6 * resting.since(opening).server / count,
        "rest_cores": rest / REST_SECONDS,
        "rss_mb": rss / 1e6,
    }


# Joins


@dataclass(frozen=True, slots=True)
class Joins:
    """A storm with a prober beside it. Seconds: after the delay until synced, and until all had joined.

    `idle`: what idle connections cost on the same server, before the storm.
    """

    after: float
    joined: float
    found: Stormed
    beats: Beats
    alone: tuple[tuple[float, float], ...]
    during: tuple[tuple[float, float], ...]
    idle: dict[str, float]

    def p99_ms(self) -> tuple[float, float]:
        """Of a quiet group's heartbeat, during the storm and without it."""
        return 1_000 * self.beats.quantile(0.99, *self.during), 1_000 * self.beats.quantile(0.99, *self.alone)


def _waiting(bench: Bench) -> None:
    """Idle connections and a storm, on a server for each of the doors."""
    count = _idle_count(bench)
    base, found = (_storm_with_room(bench, count, over_wire=over_wire) for over_wire in (False, True))
    _idle_figure(bench, count, found.idle, base.idle)
    name = f"{bench.scale.wire_storm:,} members join one group over the wire"
    said: dict[str, float] = {"requests": found.found.requests, "again": found.found.again}
    after = Figure("wire.joins", f"{name}: synced after the delay", found.after, "s", NOTED, base.after, said)
    bench.add(after)
    bench.add(Figure("wire.joins.joined", f"{name}: all have joined", found.joined, "s", NOTED, base.joined, said))
    late, quiet = found.p99_ms()
    said = {"p50_ms": 1_000 * found.beats.quantile(0.5, *found.during), "p99_ms": late, "http_p99_ms": base.p99_ms()[0]}
    what = "p99 of a quiet group's heartbeat over the wire, beside these joins"
    bench.add(Figure("wire.joins.beside", what, late, "ms", "without them", quiet, said))


def _storm_with_room(bench: Bench, count: int, *, over_wire: bool) -> Joins:
    """A storm whose delay is long enough that everybody joins before it ends."""
    for times in (1, 3, 9):
        delay = times * bench.scale.wire_delay
        found = _storm(bench, count, delay, over_wire=over_wire)
        if found.joined < delay:
            return found
    raise AssertionError(f"{bench.scale.wire_storm} members did not join within {delay:g} s")


def _storm(bench: Bench, count: int, delay: float, *, over_wire: bool) -> Joins:
    env = {"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": int(1_000 * delay)}
    with bench.database() as database:
        quiet = bench.populate(database, "quiet", QUIET_GROUPS, 1)
        with listening(bench, database, env) as place:
            if over_wire:
                port, door, asked = place.kafka_port, place.wire, heartbeats(quiet)
            else:
                port, door, asked = place.http_port, HTTP, requests.heartbeats(quiet, database.token)
            idle = _held(place, port, count, door.greet or partial(_ask, asked[0]))
            prober = Prober(port, asked, PAUSE_SECONDS, door)
            try:
                time.sleep(min(1.0, bench.scale.beside_seconds))
                alone = time.perf_counter()
                time.sleep(bench.scale.beside_seconds)
                found = _stormed(bench, place, delay, alone, over_wire=over_wire)
                return replace(found, beats=prober.stop(), idle=idle)
            finally:
                prober.kill()


def _stormed(bench: Bench, place: Place, delay: float, alone: float, *, over_wire: bool) -> Joins:
    port = place.kafka_port if over_wire else place.http_port
    storm = Storm(
        port,
        place.database.token,
        1,
        bench.scale.wire_storm,
        rebalance_timeout_ms=int(1_000 * delay),
        session_timeout_ms=SESSION_MS,
        limit=STORM_LIMIT,
    )
    until = time.perf_counter()
    joining = Joining(storm, WireRun if over_wire else Run)
    try:
        joining.start()
        joined_at = joined(place.database, storm.members, joining, STORM_LIMIT)
        found = joining.result()
    finally:
        joining.stop()
    assert found.synced is not None, f"not within {STORM_LIMIT:g} s"
    assert found.first_joined is not None
    during = (found.began, joined_at), (max(joined_at, found.first_joined - COMPLETING_SECONDS), found.synced)
    after = found.synced - found.began - delay
    return Joins(after, joined_at - found.began, found, Beats((), 0), ((alone, until),), during, {})
