"""What a classic heartbeat costs over the number of members, and over the size of their groups.

A session is stored once in a tenth of its timeout, however many heartbeats renewed it. Under the same rate of
heartbeats few members store next to nothing and many store with each, so the two are measured apart: heartbeats whose
sessions last so long that none is stored meanwhile, and heartbeats with sessions of TIMEOUT_MS, of which some are.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from tests.bench import requests
from tests.bench.bench import SESSION_MS, TIMEOUT_MS, Bench, details
from tests.bench.figures import Figure, Point
from tests.bench.generator import Found, Requests, measure, once
from tests.bench.populate import begin_sessions
from tests.bench.sections.heartbeats import SETTLE_SECONDS, middle
from tests.bench.usage import Spent, Watched

CROWD = 3_000
"""Members altogether where the size of groups varies; one group where it is larger."""
IDLE_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Sized:
    """A load, what the server had in memory after it, and what it cost while nothing was sent.

    `cold_us`: CPU microseconds of the first heartbeat of each member, in server and Postgres, to groups that are not in
    memory.
    """

    found: Found
    cold_us: float
    rss: int
    members: int
    idle: Spent
    idle_seconds: float

    def point(self, curve: str, x: float) -> Point:
        """On its curve."""
        more = {
            "members": self.members,
            "rss_mb": self.rss / 1e6,
            "cold_us": self.cold_us,
            "idle_server_us_s": 1e6 * self.idle.server / self.idle_seconds,
            "idle_postgres_us_s": 1e6 * self.idle.in_postgres / self.idle_seconds,
        }
        return Point(curve, x, self.found.server_us, self.found.postgres_us, details(self.found) | more)


def run(bench: Bench) -> None:
    """Both curves; the figures compare their ends.

    Loads whose sessions are stored come last: on a machine that is too slow for this many members some of them expire,
    and the section ends there.
    """
    sizes = {size: _measure(bench, max(1, CROWD // size), size) for size in bench.scale.group_sizes}
    for size, sized in sizes.items():
        bench.point(sized.point("group size", size))
    _compare(bench, "sizes", "members in the group", sizes, 3)
    small = min(1_000, max(bench.scale.people))
    steady = {members: _people(bench, members, SESSION_MS) for members in bench.scale.people if members >= small}
    _compare(bench, "members", "members in groups of 10", steady, small)
    for members in bench.scale.people:
        storing = _people(bench, members, TIMEOUT_MS)
        bench.point(storing.point("members", members))
        if members > small or (members in steady and len(steady) == 1):
            _stored(bench, members, storing, steady[members])


def _people(bench: Bench, members: int, timeout_ms: int) -> Sized:
    return _measure(bench, max(1, members // 10), min(10, members), timeout_ms)


def _stored(bench: Bench, members: int, storing: Sized, steady: Sized) -> None:
    """What storing sessions, and groups that are not in memory, cost beside a heartbeat that needs neither."""
    base = 1e6 / steady.found.per_cpu_second
    said, share = details(storing.found), storing.found.spent.stored / storing.found.requests
    name = f"{members:,} members, {share:.2f} sessions stored a heartbeat: CPU of a heartbeat"
    cost = 1e6 / storing.found.per_cpu_second
    bench.add(Figure(f"members.{members}.stored", name, cost, "µs", "none stored", base, said))
    name = f"{members:,} members: CPU of a heartbeat to groups not in memory"
    bench.add(Figure(f"members.{members}.cold", name, steady.cold_us, "µs", "in memory", base))


def _compare(bench: Bench, key: str, what: str, found: dict[int, Sized], small: int) -> None:
    """How many times as dear a heartbeat is; more than 1 is worse."""
    base = found[small].found
    for size, sized in found.items():
        if size > small:
            cost = [1e6 / one.per_cpu_second for one in (sized.found, base)]
            name = f"{size:,} {what}: CPU of a heartbeat"
            said = details(sized.found) | {"rss_mb": sized.rss / 1e6}
            bench.add(
                Figure(f"{key}.{size}", name, cost[0], "µs", f"{small:,} {what.partition(' ')[0]}", cost[1], said)
            )


def _from(load: Requests, sent: int) -> Requests:
    """The same in turns, after that many have been sent: all members go on, however short a round is."""
    return {port: [*ones[sent % len(ones) :], *ones[: sent % len(ones)]] for port, ones in load.items()}


def _measure(bench: Bench, groups: int, members: int, timeout_ms: int = TIMEOUT_MS) -> Sized:
    """A database and a server of its own."""
    with bench.database() as database:
        people = bench.populate(database, "sizes", groups, members, timeout_ms=timeout_ms)
        with bench.servers(database) as (server,):
            load = {server.port or 0: requests.heartbeats(people, database.token)}
            watched = Watched([server.pid], database.conninfo, [server.port or 0])
            begin_sessions(database.conninfo, timeout_ms)
            cold = watched.spent()
            once(load)
            cold_us = 1e6 * watched.spent().since(cold).total / people.count
            once(load)
            ones: list[Found] = []
            for _ in range(bench.scale.rounds):
                sent = sum(one.requests for one in ones)
                ones.append(measure(_from(load, sent), bench.scale.seconds, watched, settle=SETTLE_SECONDS))
            before, seconds = watched.spent(), min(IDLE_SECONDS, bench.scale.seconds)
            began = time.perf_counter()
            time.sleep(seconds)
            idle, passed = watched.spent().since(before), time.perf_counter() - began
            return Sized(middle(ones), cold_us, watched.rss, people.count, idle, passed)
