"""Heartbeats of 1,000 groups of 10 members, everything warm, in turns with the echo."""

from __future__ import annotations

from collections.abc import Callable

import psycopg

from tests.bench import requests
from tests.bench.bench import TIMEOUT_MS, Bench, Database, details
from tests.bench.figures import Figure
from tests.bench.generator import Found, Requests, measure, once
from tests.bench.populate import Population, begin_sessions
from tests.bench.usage import Watched

SETTLE_SECONDS = 0.5
"""How long after a load its cost still counts: written-behind sessions are flushed several times a second."""

PROTOCOLS: dict[str, Callable[[Population, str], list[bytes]]] = {
    "classic": requests.heartbeats,
    "consumer": requests.consumer_heartbeats,
}


def run(bench: Bench) -> None:
    """Both protocols."""
    for protocol, sent in PROTOCOLS.items():
        with bench.database() as database:
            people = bench.populate(database, protocol, bench.scale.groups, protocol=protocol)
            with bench.servers(database) as (server,), bench.echo() as (echo_port, echo):
                load = {server.port or 0: sent(people, database.token)}
                watched = Watched([server.pid], database.conninfo, [server.port or 0])
                begin_sessions(database.conninfo, TIMEOUT_MS)
                once(load)
                _figures(bench, protocol, database, (load, watched), ({echo_port: load[server.port or 0]}, echo))


def _figures(
    bench: Bench,
    protocol: str,
    database: Database,
    job: tuple[Requests, Watched],
    yardstick: tuple[Requests, Watched],
) -> None:
    """In turns with the echo; the medians count. The last round begins with a checkpoint."""
    ours, echoes = [], []
    measure(yardstick[0], min(1.0, bench.scale.seconds), yardstick[1])
    for _ in range(bench.scale.rounds):
        echoes.append(measure(*_load(bench, yardstick)))
        ours.append(measure(*_load(bench, job), settle=SETTLE_SECONDS))
    base, found = middle(echoes), middle(ours)
    name = f"{protocol} heartbeats"
    said = {**details(found, job[1]), "members": sum(map(len, job[0].values()))}
    bench.add(Figure(f"heartbeats.{protocol}", name, found.rate, "/s", "Starlette echo", base.rate, said))
    cost = Figure(
        f"heartbeats.{protocol}.cpu",
        f"{name}, per CPU second",
        found.per_cpu_second,
        "/s",
        "Starlette echo",
        base.per_cpu_second,
        said,
    )
    bench.add(cost)
    checkpoint(database)
    fresh = measure(*_load(bench, job), settle=SETTLE_SECONDS)
    for key, what, one in (("wal", "WAL of", found), ("wal.fresh", "WAL after a checkpoint of", fresh)):
        wal = (one.spent.wal or 0) / one.requests
        what = f"{what} a {protocol} heartbeat"
        upsert = (bench.upserts_found().spent.wal or 0) / bench.upserts_found().requests
        bench.add(Figure(f"heartbeats.{protocol}.{key}", what, wal, "bytes", "pgbench upsert", upsert, details(one)))


def _load(bench: Bench, job: tuple[Requests, Watched]) -> tuple[Requests, float, Watched]:
    return job[0], bench.scale.seconds, job[1]


def middle(found: list[Found]) -> Found:
    """That with the median of requests per CPU second."""
    return sorted(found, key=lambda one: one.per_cpu_second)[len(found) // 2]


def checkpoint(database: Database) -> None:
    """After it the first change of each page is written to the WAL with the whole page."""
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        connection.execute("checkpoint")
