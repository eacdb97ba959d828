"""The database of every released version that is kept here is migrated, loses nothing, and is served."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg import sql

from tests.support.database import TEMPLATE, cloned_database, migrate
from tests.support.http_members import HttpMember
from tests.support.processes import start_server
from tests.upgrade.dump import FOLDER, PATIENT, SECRET, dump

pytestmark = pytest.mark.processes

RELEASES = sorted(FOLDER.glob("*.sql"))
MAY_GROW = {"public.django_migrations", "public.django_content_type", "public.auth_permission"}
"""Tables in which Django notes what exists; rows are added."""

TABLES = """
select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'r' and n.nspname in ('public', 'pgmq') order by 1, 2
"""
Rows = dict[str, list[str]]


def columns(conninfo: str) -> dict[str, set[str]]:
    """The names of the columns, by table."""
    found: dict[str, set[str]] = {}
    with psycopg.connect(conninfo) as connection:
        for schema, table in connection.execute(TABLES).fetchall():
            query = "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and not attisdropped"
            names = connection.execute(query, [f'{schema}."{table}"']).fetchall()
            found[f"{schema}.{table}"] = {name for (name,) in names}
    return found


def rows(conninfo: str, kept: Mapping[str, set[str]]) -> Rows:
    """Every row as JSON with the columns `kept`, by table."""
    now, found = columns(conninfo), {}
    with psycopg.connect(conninfo) as connection:
        for table, names in kept.items():
            new = sorted(now[table] - names)
            statement = sql.SQL("select (to_jsonb(t) - %s::text[])::text from {} t").format(
                sql.Identifier(*table.split("."))
            )
            found[table] = sorted(line for (line,) in connection.execute(statement, [new]).fetchall())
    return found


def schema(postgres: str, conninfo: str) -> list[str]:
    """The lines of the schema. It is loaded once more: Postgres writes an expression of a dump another way."""
    with cloned_database(postgres, "template0") as copy:
        with psycopg.connect(copy, autocommit=True) as connection:
            connection.execute(dump(conninfo, "--schema-only").encode())
        return dump(copy, "--schema-only").splitlines()


@pytest.fixture(scope="module", params=RELEASES, ids=lambda path: path.stem)
def upgraded(request: pytest.FixtureRequest, postgres: str) -> Iterator[tuple[str, Rows, Rows]]:
    """A database of a release, migrated; the rows that it had, and those that it has, in the columns of before."""
    path: Path = request.param
    with cloned_database(postgres, "template0") as conninfo:
        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute(path.read_bytes())
        kept = columns(conninfo)
        before = rows(conninfo, kept)
        migrate(conninfo)
        yield conninfo, before, rows(conninfo, kept)


def test_a_release_is_kept() -> None:
    assert (FOLDER / "0.2.0.sql") in RELEASES, "the first release"


def test_the_schema_is_that_of_a_new_database(upgraded: tuple[str, Rows, Rows], postgres: str) -> None:
    with cloned_database(postgres, TEMPLATE) as new:
        expected = schema(postgres, new)
    assert schema(postgres, upgraded[0]) == expected


def test_no_row_is_lost_or_changed(upgraded: tuple[str, Rows, Rows]) -> None:
    _, before, after = upgraded
    for table, lines in before.items():
        if table in MAY_GROW:
            assert set(lines) <= set(after[table]), table
        else:
            assert after[table] == lines, table
    empty = {table for table, lines in before.items() if not lines}
    for matters in ("groups_group", "groups_member", "groups_consumermember", "groups_topic", "offsets_committedoffset",
                    "offset_commit_log_default", "offsets_offsetplan", "kcoord_accessrule", "kcoord_auditrecord",
                    "groups_event", "frontend_savedview", "auth_user", "offsets_sparkrun"):  # fmt: skip
        assert f"public.{matters}" not in empty, f"{matters} has no row in the dump"


async def test_the_service_works_on_it(upgraded: tuple[str, Rows, Rows]) -> None:
    with start_server(upgraded[0], env=PATIENT) as server:
        await asyncio.to_thread(server.wait_ready)
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {SECRET}"}, timeout=60) as client:
            for group, partition, offset in (("idle", 1, 5), ("g", 0, 7)):
                answer = await client.get(f"{server.url}/v1/groups/{group}/offsets")
                found = {o["partition"]: o["committed_offset"] for o in answer.json()["offsets"]}
                assert found == {partition: offset}, answer.text
            described = await client.get(f"{server.url}/v1/groups/modern")
            assert described.json()["type"] == "consumer", described.text
            member = HttpMember(client, [server.url], group_id="idle")
            await member.become_stable()
            assert (await member.commit(0, 9))[0] == 200
            answer = await client.get(f"{server.url}/v1/groups/idle/offsets")
            assert {o["partition"]: o["committed_offset"] for o in answer.json()["offsets"]} == {0: 9, 1: 5}
