"""What the capacity model needs besides: ticks of groups, a mixed load, and a load far from saturation."""

from __future__ import annotations

import random
import time

import psycopg

from tests.bench import requests
from tests.bench.bench import Bench, Database, details
from tests.bench.figures import Point
from tests.bench.generator import measure, once
from tests.bench.prober import Prober
from tests.bench.sections.heartbeats import SETTLE_SECONDS, middle
from tests.bench.sections.offsets import FETCHED, WARM
from tests.bench.usage import Watched

MIXED = (("heartbeat", 14), ("commit", 4), ("fetch", 2))
"""Requests of each kind in twenty; commits and fetches of FETCHED offsets."""
EACH = 100
FEW = 4
"""Connections of the loads from which the model learns what a statement costs that several commits or fetches share."""
PACED_PER_SECOND = 100
DUE = "update groups_group set wake_at = (extract(epoch from clock_timestamp()) * 1000)::bigint where group_id like %s"
LEFT = "select count(*) from groups_group where group_id like %s and wake_at <= %s"
NOW = "select (extract(epoch from clock_timestamp()) * 1000)::bigint"
PATIENCE_SECONDS = 60.0


def run(bench: Bench) -> None:
    """One database for all."""
    with bench.database() as database:
        people = bench.populate(database, "capacity", bench.scale.groups)
        token = database.token
        with bench.servers(database) as (server,):
            port, watched = server.port or 0, Watched([server.pid], database.conninfo, [server.port or 0])
            kinds = {
                "heartbeat": requests.heartbeats(people, token),
                "commit": requests.commits(people, token, FETCHED)[:WARM],
                "fetch": requests.fetches(people, token, FETCHED)[:WARM],
            }
            mixed = [one for kind, share in MIXED for one in kinds[kind][: share * EACH]]
            random.Random(1).shuffle(mixed)
            for sent in (mixed, kinds["commit"], kinds["fetch"]):
                once({port: sent})
            rounds = range(bench.scale.rounds)
            found = middle(
                [measure({port: mixed}, bench.scale.seconds, watched, settle=SETTLE_SECONDS) for _ in rounds]
            )
            said = {**details(found), "members": min(len(kinds["heartbeat"]), MIXED[0][1] * EACH)}
            bench.point(Point("mixed", found.rate, found.server_us, found.postgres_us, said))
            for kind in ("commit", "fetch"):
                few = [measure({port: kinds[kind]}, bench.scale.seconds, watched, connections=FEW) for _ in rounds]
                one = middle(few)
                bench.point(Point(f"few {kind}", FEW, one.server_us, one.postgres_us, details(one)))
            _paced(bench, watched, port, kinds["heartbeat"][:8])
            _ticks(bench, database, watched, people.groups)


def _paced(bench: Bench, watched: Watched, port: int, sent: list[bytes]) -> None:
    """A few heartbeats a second: what each costs when nothing is shared with others, the idle server included."""
    prober = Prober(port, sent, 1 / PACED_PER_SECOND)
    time.sleep(0.2)
    before, began = watched.spent(), time.perf_counter()
    time.sleep(2 * bench.scale.seconds)
    spent, passed = watched.spent().since(before), time.perf_counter() - began
    prober.stop()
    each = 1e6 / (PACED_PER_SECOND * passed)
    more = {"wal_bytes": each * (spent.wal or 0) / 1e6}
    bench.point(Point("paced", PACED_PER_SECOND, each * spent.server, each * spent.in_postgres, more))


def _ticks(bench: Bench, database: Database, watched: Watched, groups: int) -> None:
    """All groups are due at once, and nothing in them is: CPU until none is due any more."""
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        connection.execute(DUE, ["capacity-%"])
        row = connection.execute(NOW).fetchone()
        assert row is not None
        before, deadline = watched.spent(), time.monotonic() + PATIENCE_SECONDS
        while True:
            left = connection.execute(LEFT, ["capacity-%", row[0]]).fetchone()
            if left is not None and not left[0]:
                break
            if time.monotonic() > deadline:
                bench.results.missing["ticks"] = f"{left} groups were still due after {PATIENCE_SECONDS:g} s"
                return
            time.sleep(0.05)
    spent = watched.spent().since(before)
    each = 1e6 / groups
    bench.point(Point("tick", groups, each * spent.server, each * spent.in_postgres))
