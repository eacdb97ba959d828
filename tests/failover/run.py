"""One fail-over under members that commit as fast as they are answered, and what became of what they were told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar

import httpx
import psycopg

from tests.chaos.checks.commits import check_latest
from tests.chaos.checks.report import Report
from tests.chaos.history import Line
from tests.failover.pair import Pair
from tests.support.http_members import HttpMember, make_token
from tests.support.processes import Running, start_server

MEMBERS = 12
"""Each in a group of its own. Every other one only sends heartbeats from the fault on: nothing later hides a loss."""
BEFORE_S, LAG_S, AFTER_S = 3.0, 2.0, 10.0
LONGEST_S = 60.0
SESSION_MS = 30_000
SETTINGS = {"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 50}
REMOVED = "select count(*) from groups_event where kind in ('member_expired', 'member_removed', 'member_left')"
COMMITTED = """
select g.group_id, o.topic, o.partition, o.committed_offset
from offsets_committedoffset o join groups_group g on g.id = o.group_id
"""
JOURNAL = "select group_name, committed_offset from offset_commit_log where kind = 'commit'"


@dataclass
class Figures:
    """Of one fail-over. Offsets: `acknowledged`, of them `missing` in the journal, and `lost`: last ones of members.

    `unserved_s`: the longest time without an acknowledged commit; `told_s`: from the end of the primary until /readyz
    told of what was missing, None: it did not; `longest_s`: without an answer, by kind of request.
    """

    acknowledged: int = 0
    missing: int = 0
    lost: int = 0
    removed: int = 0
    unserved_s: float = 0.0
    told_s: float | None = None
    longest_s: dict[str, float] = field(default_factory=dict)


class Crew:
    """The members, what they were told, and how long that took."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self.lines: list[Line] = []
        self.longest_s: dict[str, float] = {}
        self.fault_at: float | None = None
        self.url = url
        self._client = client
        self._ended = False

    async def run(self, number: int) -> None:
        """One member, until `end`."""
        member = HttpMember(self._client, [self.url], f"g{number:02d}", SESSION_MS)
        await member.become_stable()
        offset, beaten = 0, 0.0
        while not self._ended:
            member.urls = [self.url]
            now = time.monotonic()
            if now - beaten >= 1:
                beaten = now
                await self._timed("heartbeat", member.heartbeat)
            if self.fault_at is not None and number % 2:
                await asyncio.sleep(0.1)
                continue
            sent = time.monotonic()
            status, said = await self._timed("commit", partial(member.commit, 0, offset + 1))
            if status == 200 and said["topics"][0]["partitions"][0]["error_code"] == 0:
                offset += 1
                self._tell(member, offset, sent)
            elif status in (404, 409):
                await member.become_stable()
            else:
                await asyncio.sleep(0.05)

    def end(self) -> None:
        self._ended = True

    async def _timed(self, kind: str, request: Callable[[], Any]) -> Any:
        sent = time.monotonic()
        try:
            return await request()
        finally:
            self.longest_s[kind] = max(self.longest_s.get(kind, 0.0), time.monotonic() - sent)

    def _tell(self, member: HttpMember, offset: int, sent: float) -> None:
        fields = {"g": member.group_id, "m": member.group_id, "api": "offsets/commit", "error": "NONE", "sent": sent}
        who = {"gen": member.generation_id, "member_id": member.member_id, "offsets": [["t", 0, offset]]}
        self.lines.append({"k": "answer", "t": time.monotonic(), **fields, **who})


class Servers(Protocol):
    """A primary and a standby, whoever runs them; `Pair` has them, and a cluster of Patroni."""

    @property
    def conninfo(self) -> str:
        """Of the database of the one that is the primary at first."""

    @property
    def standby_conninfo(self) -> str:
        """Of the other's."""

    @property
    def both(self) -> str:
        """Of whichever accepts writes."""


S = TypeVar("S", bound=Servers)
Fault = Callable[["Scene[S]"], Any]


@dataclass
class Scene(Generic[S]):
    """What a fault may touch. `replace`: ends the server as kill -9 does, and starts another one."""

    pair: S
    crew: Crew
    replace: Callable[[], Any]

    def begins(self) -> None:
        """The primary is gone from now on."""
        self.crew.fault_at = time.monotonic()


async def fails_over(scene: Scene[Pair]) -> None:
    """The primary dies, the standby takes over with what it has received."""
    await asyncio.to_thread(scene.pair.kill_primary)
    scene.begins()
    await asyncio.to_thread(scene.pair.promote)


async def fails_over_lagging(scene: Scene[Pair]) -> None:
    """The same, and the standby has received nothing for a while."""
    await asyncio.to_thread(scene.pair.cut)
    await asyncio.sleep(LAG_S)
    await fails_over(scene)


async def fails_over_with_the_server(scene: Scene[Pair]) -> None:
    """The same, and the server that acknowledged the commits dies with the primary."""
    await asyncio.to_thread(scene.pair.cut)
    await asyncio.sleep(LAG_S)
    await asyncio.to_thread(scene.pair.kill_primary)
    scene.begins()
    await asyncio.to_thread(scene.replace)
    await asyncio.to_thread(scene.pair.promote)


async def splits(scene: Scene[Pair]) -> None:
    """The standby takes over while the primary lives, which is fenced later."""
    await asyncio.to_thread(scene.pair.cut)
    await asyncio.to_thread(scene.pair.promote)
    await asyncio.sleep(2 * LAG_S)
    scene.begins()
    await asyncio.sleep(2 * LAG_S)
    await asyncio.to_thread(scene.pair.kill_primary)


async def fail_over(pair: S, fault: Fault[S]) -> Figures:
    """Carry it out, and read what the new primary has."""
    headers = {"Authorization": f"Bearer {make_token(pair.conninfo)}"}
    async with _server(pair) as server, httpx.AsyncClient(headers=headers, timeout=LONGEST_S) as client:
        (await client.post(f"{server.url}/v1/topics", json={"name": "t", "partitions": 1})).raise_for_status()
        crew = Crew(client, server.url)

        def replace() -> None:
            server.kill()
            servers.append(start_server(pair.both, env=SETTINGS))
            crew.url = servers[-1].url

        servers: list[Running] = []
        scene = Scene(pair, crew, replace)
        try:
            async with asyncio.TaskGroup() as tasks:
                for number in range(MEMBERS):
                    tasks.create_task(crew.run(number))
                async with asyncio.timeout(LONGEST_S):
                    while len({line["g"] for line in crew.lines}) < MEMBERS:  # noqa: ASYNC110 - each tells of itself
                        await asyncio.sleep(0.05)
                await asyncio.sleep(BEFORE_S)
                await fault(scene)
                told_s = await _watch(client, crew)
                crew.end()
        finally:
            for one in servers:
                one.close()
    return _figures(pair, crew, told_s)


@asynccontextmanager
async def _server(pair: Servers) -> AsyncIterator[Running]:
    with start_server(pair.both, env=SETTINGS) as server:
        await asyncio.to_thread(server.wait_ready)
        yield server


async def _watch(client: httpx.AsyncClient, crew: Crew) -> float | None:
    """For a while; returns how long after the fault /readyz told of missing commits.

    A listener that could not connect for a while waits up to 5 s until it tries again.
    """
    assert crew.fault_at is not None
    told: float | None = None
    until = time.monotonic() + AFTER_S
    while time.monotonic() < until:
        try:
            checks = (await client.get(f"{crew.url}/readyz")).json()["checks"]
        except httpx.TransportError:
            checks = {}
        if told is None and "commits" in checks:
            told = time.monotonic() - crew.fault_at
        await asyncio.sleep(0.05)
    return told


def _figures(pair: Servers, crew: Crew, told_s: float | None) -> Figures:
    lines = list(crew.lines)
    with psycopg.connect(pair.standby_conninfo) as connection:
        for group, topic, partition, offset in connection.execute(COMMITTED):
            lines.append({"k": "committed", "t": 0.0, "g": group, "topic": topic, "p": partition, "offset": offset})
        journal = set(connection.execute(JOURNAL).fetchall())
        removed = connection.execute(REMOVED).fetchone()
    report = Report()
    check_latest(lines, report)
    told = sorted(line["t"] for line in crew.lines)
    acknowledged = [(line["g"], line["offsets"][0][2]) for line in crew.lines]
    return Figures(
        acknowledged=len(acknowledged),
        missing=sum(one not in journal for one in acknowledged),
        lost=len(report.violations),
        removed=0 if removed is None else int(removed[0]),
        unserved_s=round(max(later - earlier for earlier, later in pairwise(told)), 1),
        told_s=None if told_s is None else round(told_s, 1),
        longest_s={kind: round(seconds, 1) for kind, seconds in crew.longest_s.items()},
    )
