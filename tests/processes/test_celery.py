"""The timers' guarantee, with a real beat and a real worker: groups that nobody talks to are expired."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import httpx
import psycopg
import pytest

from tests.support.http_members import HttpMember
from tests.support.processes import start_beat, start_server, start_worker

pytestmark = pytest.mark.processes

SETTINGS = {"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 0}
PATIENCE_SECONDS = 45
LATER_TICK = """
select 1 from kcoord_timerheartbeat t, groups_group g, groups_coordinatornode n
where t.ticked_at > g.wake_at + 2000 and t.ticked_at > n.expires_at
"""


@pytest.fixture
async def client(token: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client with a token."""
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        yield client


async def test_beat_and_worker_expire_a_group_that_nobody_talks_to(database: str, client: httpx.AsyncClient) -> None:
    with start_server(database, env=SETTINGS) as server:
        server.wait_ready()
        member = HttpMember(client, [server.url], session_timeout_ms=6_000)
        await member.become_stable()
        late = await client.get(f"{server.url}/readyz")
        assert late.status_code == 503
        assert "timers" in late.text
        server.kill()
    with start_worker(database, env=SETTINGS) as worker, start_beat(database, env=SETTINGS) as beat:
        await wait_for_row(database, LATER_TICK)
        assert rows(database, "select state from groups_group") == [("Stable",)], "nobody owns its partition"
        # Its owner lives, but not its process, which would run the timers of the group itself.
        rows(database, "update groups_coordinatornode set expires_at = expires_at + 3600000 returning 1")
        await wait_for_row(database, "select 1 from groups_group where state = 'Empty' and generation_id = 2")
        kinds = rows(database, "select kind from groups_event where member_id is not null order by id")
        assert any("expired" in kind for (kind,) in kinds), kinds
        with start_server(database, env=SETTINGS) as server:
            server.wait_ready(timers=True)
        beat.terminate()
        worker.terminate()


@pytest.mark.whole("more of beat; the default has one worker and beat at work")
async def test_stopped_worker_leaves_no_backlog(database: str) -> None:
    with start_beat(database, env=SETTINGS):
        await wait_for_row(database, "select 1 from pgmq.q_kcoord having count(*) >= 5")
    expiry = rows(database, "select max(enqueued_at) + interval '3 seconds' from pgmq.q_kcoord")[0][0]
    await wait_for_row(database, f"select 1 where clock_timestamp() > '{expiry}'")
    with start_worker(database, env=SETTINGS):
        await wait_for_row(database, "select 1 from pgmq.q_kcoord having count(*) = 0")
    assert rows(database, "select * from kcoord_timerheartbeat") == [], "what had expired was thrown away, not run late"


FULL = """
create sequence attempts;
create function no_space() returns trigger language plpgsql as $$
begin
    perform nextval('attempts');
    raise exception 'could not extend file' using errcode = 'disk_full';
end $$;
create trigger no_space before insert on pgmq.q_kcoord for each row execute function no_space();
"""
SPACE = "drop function if exists no_space() cascade; drop sequence if exists attempts"


@pytest.mark.whole("more of beat; the default has one worker and beat at work")
async def test_a_full_disk_is_no_traceback_a_second(database: str) -> None:
    with start_beat(database, env=SETTINGS) as beat, psycopg.connect(database, autocommit=True) as connection:
        await wait_for_row(database, "select 1 from pgmq.q_kcoord having count(*) >= 1")
        connection.execute(FULL)
        try:
            await wait_for_row(database, "select 1 from attempts where last_value >= 6")
        finally:
            connection.execute(SPACE)
        assert beat.output.count("could not extend file") == 1, beat.output
        assert "Traceback" not in beat.output
        before = rows(database, "select max(msg_id) from pgmq.q_kcoord")[0][0]
        await wait_for_row(database, f"select 1 from pgmq.q_kcoord having max(msg_id) > {before}")
        beat.terminate()


def rows(conninfo: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        return connection.execute(statement.encode()).fetchall()


async def wait_for_row(conninfo: str, statement: str) -> None:
    """Wait until a statement has a row."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            if rows(conninfo, statement):
                return
        except psycopg.errors.UndefinedTable:
            pass  # the queue is made by its first message
        assert time.monotonic() < deadline, f"no row in {PATIENCE_SECONDS} s: {statement}"
        await asyncio.sleep(0.1)
