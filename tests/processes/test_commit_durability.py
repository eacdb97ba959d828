"""kill -9 of the server and of Postgres under a commit load: what was acknowledged is in the view and the journal.

While Postgres is away requests are refused and may be repeated; when it is back, the service recovers by itself.
Half of the committers commit over HTTP, the others call `kcoord.commit_offsets` in a transaction of their own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

import httpx
import psycopg
import pytest

from tests.support.http_members import HttpMember, make_token
from tests.support.journal import assert_journal_agrees, journal_lines
from tests.support.postgres import OwnPostgres, own_postgres
from tests.support.processes import Running, start_server

pytestmark = pytest.mark.processes

SEED = 20_251_126
COMMITTERS = 8
SERVER_KILLS = 2
POSTGRES_KILLS = 2
BETWEEN = 25
"""So many commits of everybody are acknowledged between two kills."""

PATIENCE_S = 60.0
SETTINGS = {"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 300, "KCOORD_DATABASE_ACQUIRE_TIMEOUT_MS": 1_000}
SQL_COMMIT = "select kcoord.commit_offsets(%s, %s, %s, %s::text::jsonb)"


@dataclass
class Site:
    """Where the load goes: a server that may be killed, on a Postgres that may be killed."""

    postgres: OwnPostgres
    server: Running
    headers: dict[str, str]

    def kill_server(self) -> None:
        """kill -9, and another one at its address."""
        port = self.server.port
        self.server.kill()
        self.server.close()
        self.server = start_server(self.postgres.conninfo, port=port or 0, env=SETTINGS)

    def kill_postgres(self) -> None:
        """kill -9, what requests are told, then recovery."""
        self.postgres.kill()
        body = {"member_id": "m", "generation_id": 1}
        refused = httpx.post(
            f"{self.server.url}/v1/groups/group-0/heartbeat", json=body, headers=self.headers, timeout=30
        )
        assert (refused.status_code, refused.json()["error"]) == (503, "COORDINATOR_NOT_AVAILABLE")
        assert refused.json()["action"] == "retry"
        assert int(refused.headers["Retry-After"]) >= 1
        assert httpx.get(f"{self.server.url}/readyz", timeout=30).status_code == 503
        self.postgres.start()


@pytest.fixture
def site() -> Iterator[Site]:
    """Both, for this test alone."""
    with own_postgres() as postgres:
        headers = {"Authorization": f"Bearer {make_token(postgres.conninfo)}"}
        site = Site(postgres, start_server(postgres.conninfo, env=SETTINGS), headers)
        try:
            site.server.wait_ready()
            yield site
        finally:
            site.server.close()


@dataclass
class Committer:
    """Commits ever higher offsets on a partition of its own; remembers every one that was acknowledged."""

    site: Site
    member: HttpMember
    partition: int
    in_sql: bool
    acknowledged: list[int] = field(default_factory=list)
    unknown: set[int] = field(default_factory=set)
    """Offsets that may have been committed, and when: a transaction whose client is gone may still end later."""

    async def run(self, stop: asyncio.Event) -> None:
        """Commit until told to stop. An offset whose outcome is not known is not committed again, but passed over."""
        offset = 0
        while not stop.is_set():
            offset += 1
            if await (self._commit_in_sql(offset) if self.in_sql else self._commit_over_http(offset)):
                self.acknowledged.append(offset)
            else:
                self.unknown.add(offset)
                await asyncio.sleep(0.05)

    async def _commit_over_http(self, offset: int) -> bool:
        status, answer = await self.member.commit(self.partition, offset)
        if status in (0, 503):
            return False
        assert status == 200, answer
        assert answer["topics"][0]["partitions"][0]["error"] == "NONE"
        return True

    async def _commit_in_sql(self, offset: int) -> bool:
        entry = {"topic": "t", "partition": self.partition, "committed_offset": offset}
        caller = self.member.group_id, self.member.member_id, self.member.generation_id
        try:
            async with await psycopg.AsyncConnection.connect(self.site.postgres.conninfo) as connection:
                await connection.execute(SQL_COMMIT, (*caller, json.dumps([entry])))
        except psycopg.OperationalError:
            return False
        return True


@pytest.mark.whole("kills for half a minute; chaos in short kills servers with commits under way")
async def test_everything_acknowledged_is_there_after_every_kill(site: Site) -> None:
    print(f"seed {SEED}")
    random = Random(SEED)
    async with httpx.AsyncClient(headers=site.headers, timeout=60) as client:
        committers = await begin(site, client)
        stop = asyncio.Event()
        load = asyncio.gather(*(committer.run(stop) for committer in committers))
        kills = [site.kill_server] * SERVER_KILLS + [site.kill_postgres] * POSTGRES_KILLS
        for kill in random.sample(kills, len(kills)):
            await more_from_everybody(committers, load)
            await asyncio.sleep(random.uniform(0, 0.05))
            await asyncio.to_thread(kill)
            check_what_is_there(site, committers)
        await more_from_everybody(committers, load)
        stop.set()
        await load
        assert [(await committer.member.heartbeat())[0] for committer in committers] == [200] * COMMITTERS
    check_what_is_there(site, committers)
    assert_journal_agrees(site.postgres.conninfo)
    assert all(committer.unknown for committer in committers), "somebody noticed no kill"
    count = sum(len(committer.acknowledged) for committer in committers)
    print(f"{count} commits acknowledged, {sum(len(c.unknown) for c in committers)} not, {len(kills)} kills")


async def begin(site: Site, client: httpx.AsyncClient) -> list[Committer]:
    """A topic, and a group with one member for each partition."""
    created = await client.post(f"{site.server.url}/v1/topics", json={"name": "t", "partitions": COMMITTERS})
    assert created.status_code == 201, created.text
    members = [HttpMember(client, [site.server.url], f"group-{n}", 300_000) for n in range(COMMITTERS)]
    await asyncio.gather(*(member.become_stable() for member in members))
    return [Committer(site, member, n, in_sql=n % 2 == 1) for n, member in enumerate(members)]


async def more_from_everybody(committers: list[Committer], load: asyncio.Future[list[None]]) -> None:
    """Wait until everybody had some more commits acknowledged."""
    goals = [len(committer.acknowledged) + BETWEEN for committer in committers]
    await until(lambda: all(len(c.acknowledged) >= goal for c, goal in zip(committers, goals, strict=True)), load)


async def until(condition: Callable[[], bool], load: asyncio.Future[list[None]]) -> None:
    """Wait for a condition while the load runs; a load that ends early has failed."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    while not condition():
        if load.done():
            load.result()
            raise AssertionError("the load ended early")
        assert asyncio.get_running_loop().time() < deadline, f"waited in vain for {PATIENCE_S:g} s"
        await asyncio.sleep(0.02)


def check_what_is_there(site: Site, committers: list[Committer]) -> None:
    """Every acknowledged offset has one line, in order; what is committed is not behind the last of them."""
    acknowledged = {committer.partition: list(committer.acknowledged) for committer in committers}
    unknown = {committer.partition: set(committer.unknown) for committer in committers}
    journal: dict[int, list[int]] = {committer.partition: [] for committer in committers}
    for line in journal_lines(site.postgres.conninfo, "partition, committed_offset"):
        journal[line["partition"]].append(line["committed_offset"])
    with psycopg.connect(site.postgres.conninfo) as connection:
        view = dict(connection.execute("select partition, committed_offset from offsets_committedoffset").fetchall())
    for partition, offsets in acknowledged.items():
        there = [offset for offset in journal[partition] if offset <= offsets[-1] and offset not in unknown[partition]]
        assert there == offsets, f"partition {partition}: lines missing, twice or out of order"
        assert len(journal[partition]) == len(set(journal[partition])), f"partition {partition}: lines twice"
        assert view[partition] >= offsets[-1] or view[partition] in unknown[partition], f"partition {partition}"
