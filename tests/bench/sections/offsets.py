"""Commits of 5 and 50 offsets with their journal, and fetches: 1,000 groups of 10 members, everything warm."""

from __future__ import annotations

from tests.bench import requests
from tests.bench.bench import Bench, details
from tests.bench.figures import Figure, Point
from tests.bench.generator import Requests, measure, once
from tests.bench.sections.heartbeats import SETTLE_SECONDS, middle
from tests.bench.usage import Watched

PARTITIONS = (1, 5, 20, 50)
NAMED = (5, 50)
FETCHED = 5
WARM = 2_000
"""Members that commit: all of them have committed before the measurement begins."""


def run(bench: Bench) -> None:
    """All of them on one database, the small ones first."""
    with bench.database() as database:
        people = bench.populate(database, "offsets", bench.scale.groups)
        with bench.servers(database) as (server,):
            watched, port = Watched([server.pid], database.conninfo, [server.port or 0]), server.port or 0
            for partitions in PARTITIONS:
                sent = {port: requests.commits(people, database.token, partitions)[:WARM]}
                _commits(bench, watched, sent, partitions)
            _fetches(bench, watched, {port: requests.fetches(people, database.token, FETCHED)})


def _commits(bench: Bench, watched: Watched, sent: Requests, partitions: int) -> None:
    scale = bench.scale
    once(sent)
    found = middle([measure(sent, scale.seconds, watched, settle=SETTLE_SECONDS) for _ in range(scale.rounds)])
    said = details(found, watched)
    bench.point(Point("partitions", partitions, found.server_us, found.postgres_us, said))
    if partitions not in NAMED:
        return
    base, each = bench.upserts_found(), found.per_cpu_second * partitions
    name = f"offsets committed, {partitions} a request"
    rate = Figure(f"commits.{partitions}", name, found.rate * partitions, "/s", "pgbench upserts", base.rate, said)
    bench.add(rate)
    cost = Figure(
        f"commits.{partitions}.cpu",
        f"{name}, per CPU second",
        each,
        "/s",
        "pgbench upserts",
        base.per_cpu_second,
        said,
    )
    bench.add(cost)


def _fetches(bench: Bench, watched: Watched, sent: Requests) -> None:
    sent = {port: ones[:WARM] for port, ones in sent.items()}
    once(sent)
    found = middle([measure(sent, bench.scale.seconds, watched) for _ in range(bench.scale.rounds)])
    base = bench.echo_found()
    name = f"fetches of {FETCHED} offsets"
    said = details(found, watched)
    bench.add(Figure("fetches", name, found.rate, "/s", "Starlette echo", base.rate, said))
    cost = Figure(
        "fetches.cpu",
        f"{name}, per CPU second",
        found.per_cpu_second,
        "/s",
        "Starlette echo",
        base.per_cpu_second,
        said,
    )
    bench.add(cost)
