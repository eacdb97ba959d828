"""Postgres is stopped and comes back with an older copy of its files, under servers that go on running."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.support.http_members import HttpMember, make_token
from tests.support.postgres import OwnPostgres, own_postgres
from tests.support.processes import Running, start_server

pytestmark = [pytest.mark.processes, pytest.mark.whole("Postgres is stopped, copied and put back")]

POOL = 4
SETTINGS = {
    "KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 0,
    "KCOORD_DATABASE_ACQUIRE_TIMEOUT_MS": 1_000,
    "KCOORD_DATABASE_POOL_SIZE": POOL,
    "KCOORD_TOKEN_CACHE_MS": 0,
}


@pytest.fixture
def own() -> Iterator[OwnPostgres]:
    """A server whose files may be replaced."""
    with own_postgres() as postgres:
        yield postgres


JOIN = {
    "member_id": "",
    "session_timeout_ms": 600_000,
    "rebalance_timeout_ms": 10_000,
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "subscription": {"topics": ["t"]}}],
}


CHANGES = 4
"""Of the group before it goes back, so that it has fewer when its member has left."""


@pytest.mark.parametrize("frozen", [False, True], ids=["running", "frozen and thawed"])
async def test_no_fenced_commit_and_no_second_owner_after_a_restore(own: OwnPostgres, frozen: bool) -> None:
    headers = {"Authorization": f"Bearer {make_token(own.conninfo)}"}
    with start_server(own.conninfo, env=SETTINGS) as seen, start_server(own.conninfo, env=SETTINGS) as fresh:
        seen.wait_ready()
        fresh.wait_ready()
        async with httpx.AsyncClient(headers=headers, timeout=60) as client:
            created = await client.post(f"{seen.url}/v1/topics", json={"name": "t", "partitions": 1})
            assert created.status_code == 201, created.text
            old = HttpMember(client, [seen.url], session_timeout_ms=600_000)
            await old.become_stable()
            before = column(own, "generation_id")
            copy = await restart(own, None)
            await recovered(client, seen, fresh)
            assert (await old.heartbeat())[0] == 200
            for _ in range(CHANGES):
                await change(client, seen)
            version = column(own, "version")
            if frozen:
                seen.send(signal.SIGSTOP)
            await restart(own, copy)
            await recovered(client, *([fresh] if frozen else [seen, fresh]))
            assert column(own, "version") < version
            leaving = await client.post(
                f"{fresh.url}/v1/groups/g/leave", json={"members": [{"member_id": old.member_id}]}
            )
            assert leaving.status_code == 200, leaving.text
            while column(own, "version") < version:  # how many changes an outage makes depends on how long it takes
                await change(client, fresh)
            assert column(own, "version") == version, "it has come to the same version with other content"
            if frozen:
                seen.send(signal.SIGCONT)
                await recovered(client, seen)

            await refused(old)
            new = HttpMember(client, [fresh.url], session_timeout_ms=600_000)
            assert await new.become_stable() == {"t": [0]}
            assert (await new.commit(0, 50))[0] == 200
            await refused(old)
            assert (await new.heartbeat())[0] == 200
            assert new.generation_id > before
        assert committed(own) == [(50, new.member_id)]
        assert owners(own) == [(new.member_id,)]


async def test_generations_that_were_handed_out_before_the_restore_do_not_come_again(own: OwnPostgres) -> None:
    headers = {"Authorization": f"Bearer {make_token(own.conninfo)}"}
    with start_server(own.conninfo, env=SETTINGS) as server:
        server.wait_ready()
        async with httpx.AsyncClient(headers=headers, timeout=60) as client:
            await client.post(f"{server.url}/v1/topics", json={"name": "t", "partitions": 1})
            member = HttpMember(client, [server.url], session_timeout_ms=600_000)
            await member.become_stable()
            copy = await restart(own, None)
            await recovered(client, server)
            await member.join(protocols=[{"name": "range", "subscription": {"topics": ["t", "u"]}}])
            lost = member.generation_id
            assert (await member.sync({member.member_id: {"t": [0]}}))[0] == 200
            await restart(own, copy)
            await recovered(client, server)
            assert column(own, "generation_id") < lost
            status, answer = await member.commit(0, 100)
            assert (status, answer.get("error")) == (409, "ILLEGAL_GENERATION"), answer
            server.wait_for_output("group_went_back")
            member.generation_id = -1
            await member.become_stable()
            assert member.generation_id > lost
            assert (await member.commit(0, 101))[0] == 200
        assert committed(own) == [(101, member.member_id)]


async def restart(own: OwnPostgres, copy: Path | None) -> Path:
    """Stop Postgres, keep a copy of its files or replace them by an earlier one, and start it again."""
    await asyncio.to_thread(own.stop)
    if copy is None:
        copy = await asyncio.to_thread(own.copy_files)
    else:
        await asyncio.to_thread(own.put_back, copy)
    await asyncio.to_thread(own.start)
    return copy


async def recovered(client: httpx.AsyncClient, *servers: Running) -> None:
    """Wait until each server has connections that stand, without a request for the group of the test.

    A request for it that fails would drop its copy, and nothing would be shown.
    """
    for server in servers:
        await asyncio.to_thread(server.wait_ready)
        good, requests = 0, 0
        while good <= POOL:  # the pools for reading and for writing give each of their connections in turn
            read = await client.get(f"{server.url}/v1/groups/another/offsets")
            answer = await client.post(f"{server.url}/v1/groups/another/leave", json={"members": [{"member_id": "m"}]})
            good = good + 1 if 503 not in (read.status_code, answer.status_code) else 0
            requests += 1
            assert requests < 500, answer.text
            await asyncio.sleep(0 if good else 0.1)


async def change(client: httpx.AsyncClient, server: Running) -> None:
    """Change the group, in which a heartbeat changes nothing: a member id is handed out."""
    _, answer = await HttpMember(client, [server.url], session_timeout_ms=600_000).post("join", JOIN)
    assert answer.get("error") == "MEMBER_ID_REQUIRED", answer


async def refused(member: HttpMember) -> None:
    """What the member was before the restore it is no more."""
    status, answer = await member.commit(0, 1_000)
    assert (status, answer.get("error")) == (404, "UNKNOWN_MEMBER_ID"), answer
    status, answer = await member.heartbeat()
    assert (status, answer.get("error")) == (404, "UNKNOWN_MEMBER_ID"), answer


def rows(own: OwnPostgres, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(own.conninfo) as connection:
        return connection.execute(statement.encode()).fetchall()


def column(own: OwnPostgres, name: str) -> int:
    value = rows(own, f"select {name} from groups_group where group_id = 'g'")[0][0]
    assert isinstance(value, int)
    return value


def committed(own: OwnPostgres) -> list[tuple[object, ...]]:
    return rows(own, "select committed_offset, member_id from offsets_committedoffset")


def owners(own: OwnPostgres) -> list[tuple[object, ...]]:
    return rows(own, "select member_id from groups_assignment")
