"""A session that one server renewed in memory and has not stored: no other server ends it, and neither does a death."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import datetime

import httpx
import psycopg
import pytest

from tests.support.http_members import HttpMember
from tests.support.processes import Running, start_server

pytestmark = [pytest.mark.processes, pytest.mark.whole("waits for sessions to end")]

SETTINGS = {"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 0}
SESSION_MS = 6_000


@pytest.fixture
def servers(database: str) -> Iterator[list[Running]]:
    """One that does not store sessions, and one that runs timers like any other."""
    nodes = [SETTINGS | {"KCOORD_NODE_ID": name} for name in ("slow", "other")]
    with (
        start_server(database, env=nodes[0], module="tests.support.slow_flush") as slow,
        start_server(database, env=nodes[1]) as other,
    ):
        for server in (slow, other):
            server.wait_ready()
        yield [slow, other]


@pytest.fixture
async def member(servers: list[Running], token: str) -> AsyncIterator[HttpMember]:
    """A member that knows the slow server only."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=70) as client:
        found = HttpMember(client, [servers[0].url], session_timeout_ms=SESSION_MS)
        await asyncio.wait_for(found.become_stable(), 30)
        yield found


def stored(database: str) -> tuple[int, int] | None:
    """The database's clock, and the stored end of the only session; None: it has no member."""
    with psycopg.connect(database) as connection:
        row = connection.execute(
            "select (extract(epoch from clock_timestamp()) * 1000)::bigint, session_deadline from groups_member"
        ).fetchone()
    return None if row is None else (row[0], row[1])


async def beat(member: HttpMember) -> int:
    """A heartbeat; returns until when it promises the session, in ms."""
    status, answer = await member.heartbeat()
    assert status == 200, answer
    return round(datetime.fromisoformat(answer["session_expires_at"]).timestamp() * 1000)


async def outlive(member: HttpMember, database: str, ms: int) -> int:
    """Send heartbeats until the stored session has been over for `ms`; returns until when the last one promised it."""
    async with asyncio.timeout(60):
        while True:
            promised = await beat(member)
            found = stored(database)
            assert found is not None, "it was removed while it sent heartbeats"
            now, deadline = found
            if now >= deadline + ms:
                return promised
            await asyncio.sleep(0.2)


async def test_other_server_waits_for_what_is_not_stored(member: HttpMember, database: str) -> None:
    await outlive(member, database, 2_500)


async def test_killed_server_takes_nobody_with_it(member: HttpMember, servers: list[Running], database: str) -> None:
    promised = await outlive(member, database, 0)
    servers[0].kill()
    while True:
        found = stored(database)
        assert found is not None, "it was removed before the end of the session that it was promised"
        now, deadline = found
        if now > promised:
            break
        await asyncio.sleep(0.05)
    assert deadline > promised, "the death of a node starts all sessions over"
    async with asyncio.timeout(30):
        while stored(database) is not None:  # noqa: ASYNC110 - Postgres does not signal it
            await asyncio.sleep(0.1)
