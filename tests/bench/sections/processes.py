"""Several server processes against one, on classic heartbeats that go to the owner of each group, as members send them.

All groups are in the memory of the processes before anything is measured; what loading them costs is a figure of
`sizes`. Load generator, servers and Postgres share the cores. The generator is set apart by counting CPU time: what all
servers together could answer in a second if they and Postgres had the cores to themselves is the cores divided by the
CPU seconds of a request, and a process that has one loop answers no more than its own CPU seconds of a request allow.
"""

from __future__ import annotations

import os
import time

import psycopg

from tests.bench import requests
from tests.bench.bench import TIMEOUT_MS, Bench, Database, details
from tests.bench.figures import Figure, Point
from tests.bench.generator import Found, Requests, measure, once
from tests.bench.populate import Population, begin_sessions
from tests.bench.sections.heartbeats import SETTLE_SECONDS, middle
from tests.bench.usage import Watched
from tests.support.processes import Running

OWNERS = """
select g.group_id, n.node_id from groups_group g
join groups_coordinatorpartition p on p.partition = g.partition
join groups_coordinatornode n on n.id = p.owner_id
where p.state = 'ACTIVE' and n.ended_at is null
"""
PATIENCE_SECONDS = 30.0


def capacity_of(server_us: float, postgres_us: float, processes: int, cores: int) -> float:
    """Requests a second if servers and Postgres had these cores to themselves."""
    return 1e6 * min(processes / server_us, cores / (server_us + postgres_us))


def run(bench: Bench) -> None:
    """One process first, then more, and all of them with requests that go anywhere."""
    with bench.database() as database:
        people = bench.populate(database, "processes", bench.scale.groups)
        alone: Found | None = None
        for count in bench.scale.processes:
            found = _measure(bench, database, people, count, to_owner=True)
            alone = alone or found
            said = {**details(found), "members": people.count}
            bench.point(Point("processes", count, found.server_us, found.postgres_us, said))
            if count > 1:
                _figures(bench, alone, found, count)
        if len(bench.scale.processes) > 1 and alone is not None:
            anywhere = _measure(bench, database, people, 2, to_owner=False)
            rates = anywhere.per_cpu_second, alone.per_cpu_second
            name = "2 processes, requests to any of them, per CPU second"
            bench.add(Figure("processes.2.any", name, rates[0], "/s", "1 process", rates[1], details(anywhere)))


def _figures(bench: Bench, alone: Found, found: Found, count: int) -> None:
    cores = min(2, os.cpu_count() or 1)
    apart = _capacity(found, count, cores), _capacity(alone, 1, cores)
    name, said = f"{count} processes, to the owner", details(found)
    bench.add(Figure(f"processes.{count}", name, found.rate, "/s", "1 process", alone.rate, said))
    name += f", generator apart, {cores} cores"
    bench.add(Figure(f"processes.{count}.apart", name, apart[0], "/s", "1 process", apart[1], said))


def _capacity(found: Found, processes: int, cores: int) -> float:
    return capacity_of(found.server_us, found.postgres_us, processes, cores)


def _measure(bench: Bench, database: Database, people: Population, count: int, *, to_owner: bool) -> Found:
    with bench.servers(database, count) as servers:
        load = _load(database, people, servers, to_owner=to_owner)
        watched = Watched([one.pid for one in servers], database.conninfo, [one.port or 0 for one in servers])
        begin_sessions(database.conninfo, TIMEOUT_MS)
        once(load)
        measure(load, min(1.0, bench.scale.seconds), watched)
        return middle(
            [measure(load, bench.scale.seconds, watched, settle=SETTLE_SECONDS) for _ in range(bench.scale.rounds)]
        )


def _load(database: Database, people: Population, servers: list[Running], *, to_owner: bool) -> Requests:
    """Port -> heartbeats."""
    ports = [server.port or 0 for server in servers]
    everything = requests.heartbeats(people, database.token)
    if not to_owner or len(ports) == 1:
        return {port: everything[number :: len(ports)] for number, port in enumerate(ports)}
    owners = _owners(database, len(ports))
    found: dict[int, list[bytes]] = {port: [] for port in ports}
    for one in everything:
        group = one.partition(b"/v1/groups/")[2].partition(b"/")[0].decode()
        found[ports[int(owners[group].rpartition("-")[2])]].append(one)
    return found


def _owners(database: Database, count: int) -> dict[str, str]:
    """Group -> name of the node, once every node has a fair share."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        total = connection.execute("select count(*) from groups_group").fetchone()
        assert total is not None
        while True:
            found = {str(row[0]): str(row[1]) for row in connection.execute(OWNERS)}
            shares = [list(found.values()).count(node) for node in set(found.values())]
            if len(found) == total[0] and len(shares) == count and min(shares) > len(found) / count / 3:
                return found
            assert time.monotonic() < deadline, f"groups of the nodes: {shares}"
            time.sleep(0.1)
