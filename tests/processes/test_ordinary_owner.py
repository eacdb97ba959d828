"""A Postgres that somebody else runs: a role that owns the database, and has no right besides, is enough."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import httpx
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.database import migrate
from tests.support.http_members import HttpMember, make_token
from tests.support.members import eventually
from tests.support.processes import start_beat, start_server, start_worker

pytestmark = [pytest.mark.processes, pytest.mark.whole("a role and a database migrated for it alone")]

RIGHTS = """
select rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls
       or pg_has_role(oid, 'pg_read_all_stats', 'member')
  from pg_roles where rolname = current_user
"""
TICKED = "select count(*) from kcoord_timerheartbeat where ticked_at > 0"


@pytest.fixture
def owned(postgres: str) -> Iterator[str]:
    """An empty database of a role of its own, which has no other right."""
    name = f"plain_{secrets.token_hex(4)}"
    named = sql.Identifier(name)
    server = {key: value for key, value in conninfo_to_dict(postgres).items() if key not in ("user", "dbname")}
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(sql.SQL("create role {} login").format(named))
        admin.execute(sql.SQL("create database {} owner {}").format(named, named))
        try:
            yield make_conninfo(**server, user=name, dbname=name)
        finally:
            admin.execute(sql.SQL("drop database {} with (force)").format(named))
            admin.execute(sql.SQL("drop role {}").format(named))


async def test_a_server_and_a_worker_need_no_more_than_the_database(owned: str) -> None:
    """It is migrated, members join and commit, the worker ticks, and pages and metrics are answered."""
    with psycopg.connect(owned) as connection:
        assert connection.execute(RIGHTS).fetchone() == (False,)
    migrate(owned)
    token = make_token(owned)
    with start_server(owned) as server, start_worker(owned), start_beat(owned):
        server.wait_ready()
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
            member = HttpMember(client, [server.url])
            await member.become_stable()
            assert (await member.commit(0, 7))[0] == 200
            await eventually(lambda: ticked(owned), "the worker has run the timer")
            assert (await client.get(f"{server.url}/metrics")).status_code == 200
            assert (await client.delete(f"{server.url}/v1/groups/missing")).status_code == 404
    with psycopg.connect(owned) as connection:
        refused = connection.execute("select name from kcoord_auditrecord where result = 'refused'").fetchall()
    assert refused == [("missing",)]


async def ticked(owned: str) -> bool:
    """Whether the timer has run."""
    with psycopg.connect(owned) as connection:
        row = connection.execute(TICKED).fetchone()
        return row is not None and row[0] > 0
