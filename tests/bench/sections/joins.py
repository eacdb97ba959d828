"""Members that join all at once: one large group, and many small ones.

The initial delay is chosen so long that everybody has joined before it ends, and members allow no prolongation, so that
two times are told apart: until all have joined, and from the end of the delay until all are synced.
"""

from __future__ import annotations

import time

import psycopg

from tests.bench.bench import SESSION_MS, Bench, Database
from tests.bench.figures import Figure
from tests.bench.storm import Joining, Storm, Stormed
from tests.bench.usage import Spent, Watched

LIMIT_SECONDS = 240.0
FIRST_DELAY, LONGEST_DELAY = 4.0, 120.0
JOINED = """
select count(*) from groups_member m join groups_group g on g.id = m.group_id where g.group_id like 'storm-%'
"""


def run(bench: Bench) -> None:
    """The larger ones get as much more time as the smaller ones needed."""
    delay, took, before = FIRST_DELAY, 0.0, 0
    for members in bench.scale.joins:
        if before:
            delay = min(LONGEST_DELAY, max(FIRST_DELAY, 2.2 * took * members / before))
        key, name = f"joins.{members}", f"{members:,} members join one group"
        took, before = _add(bench, (1, members), delay, key, f"{name}: synced after the delay"), members
    groups = bench.scale.join_groups
    _add(bench, (groups, 3), FIRST_DELAY, "joins.groups", f"{groups} groups of 3 join: all Stable after the delay")


def _add(bench: Bench, size: tuple[int, int], delay: float, key: str, name: str) -> float:
    """Both times for a shape (groups, members of each); returns the seconds until all had joined."""
    for given in (delay, 3 * delay, LONGEST_DELAY):
        with bench.database() as database:
            found, took, spent = _measured(bench, database, size, given, is_last=given == LONGEST_DELAY)
        if found is not None:
            break
    assert found is not None
    assert found.synced is not None, f"{name}: not within {LIMIT_SECONDS:g} s"
    echo = found.requests / bench.echo_found().rate
    after, cost = found.synced - found.began - given, _cost(found, spent)
    yardstick = "echo of as many requests"
    bench.add(Figure(key, name, after, "s", yardstick, echo, cost))
    name = f"{name.partition(':')[0]}: all have joined"
    bench.add(Figure(f"{key}.joined", name, took, "s", yardstick, echo, cost))
    return took


def _cost(found: Stormed, spent: Spent) -> dict[str, float]:
    return {
        "requests": found.requests,
        "again": found.again,
        "server_us": 1e6 * spent.server / found.requests,
        "postgres_us": 1e6 * spent.in_postgres / found.requests,
        "per_cpu_s": found.requests / spent.total,
        "generator_us": 1e6 * found.generator / found.requests,
    }


def _measured(
    bench: Bench, database: Database, size: tuple[int, int], delay: float, *, is_last: bool
) -> tuple[Stormed | None, float, Spent]:
    """The storm, seconds until everybody had joined, and what it cost. None: they had not within the delay."""
    env = {"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": int(1_000 * delay)}
    with bench.servers(database, env=env) as (server,):
        watched = Watched([server.pid], database.conninfo, [server.port or 0])
        storm = Storm(
            server.port or 0,
            database.token,
            *size,
            rebalance_timeout_ms=int(1_000 * delay),
            session_timeout_ms=SESSION_MS,
            limit=LIMIT_SECONDS,
        )
        joining = Joining(storm)
        try:
            before, began = watched.spent(), time.perf_counter()
            joining.start()
            joined_at = joined(database, size[0] * size[1], joining, delay)
            found = joining.result() if joined_at - began < delay or is_last else None
        finally:
            joining.stop()
        return found, joined_at - began, watched.spent().since(before)


def joined(database: Database, members: int, joining: Joining, patience: float) -> float:
    """Return when all are members, or when the time is up."""
    until = time.perf_counter() + patience
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        while not joining.is_over() and time.perf_counter() < until:
            row = connection.execute(JOINED.encode()).fetchone()
            if row is not None and row[0] >= members:
                break
            time.sleep(0.02)
    return time.perf_counter()
