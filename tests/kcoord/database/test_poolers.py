"""Behind a pooler that refuses options of connections: every session has its limits all the same.

Behind a stand-in, and behind pgbouncer itself where it is installed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from groups.engine.agent import LOCK_MS, NodeConnection
from kcoord.config import Config
from kcoord.database.django_backend.base import _connect, limited_statements
from kcoord.database.pool import FIRST_TRY_MS, Connection, Database
from kcoord.stack import preflight
from kcoord.stack.preflight import StartProblem, check_database
from tests.support.http_members import HttpMember, make_token
from tests.support.pgbouncer import pgbouncer
from tests.support.processes import start_server

PASSED_ON = {"user", "database", "application_name", "client_encoding"}
READY = b"Z\0\0\0\x05I"
SSL_REQUEST = 80_877_103
LIMITS = ("statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout", "transaction_timeout")


class Pooler:
    """Connects each client with a session of its own, unless the client asks for more than PASSED_ON.

    `by_transaction`: a client gets another session as soon as there is another client.
    """

    def __init__(self, target: str, *, by_transaction: bool) -> None:
        self._target = target
        self._by_transaction = by_transaction
        self._clients = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client."""
        head, body = await self._start(reader, writer)
        names = set(body[4:].split(b"\0")[:-2:2])
        if refused := {name.decode() for name in names} - PASSED_ON:
            text = f"SFATAL\0C08P01\0Munsupported startup parameter: {', '.join(refused)}\0\0".encode()
            writer.write(b"E" + (len(text) + 4).to_bytes(4, "big") + text)
            writer.close()
            return
        sessions = [await asyncio.open_unix_connection(self._target) for _ in range(2)]
        for _, ours in sessions:
            ours.write(head + body)
        await sessions[1][0].readuntil(READY)
        self._clients += 1
        async with asyncio.TaskGroup() as group:
            group.create_task(self._forward(reader, [ours for _, ours in sessions]))
            for theirs, _ in sessions:
                group.create_task(_pass(theirs, writer))
        self._clients -= 1

    async def _forward(self, reader: asyncio.StreamReader, sessions: list[asyncio.StreamWriter]) -> None:
        while data := await reader.read(65_536):
            sessions[self._by_transaction and self._clients > 1].write(data)
        for session in sessions:
            session.close()

    async def _start(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[bytes, bytes]:
        while True:
            head = await reader.readexactly(4)
            body = await reader.readexactly(int.from_bytes(head, "big") - 4)
            if int.from_bytes(body[:4], "big") != SSL_REQUEST:
                return head, body
            writer.write(b"N")


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)


@asynccontextmanager
async def pooled(database: str, folder: Path, *, by_transaction: bool = False) -> AsyncIterator[str]:
    """The conninfo of the database behind a pooler that listens in a folder."""
    parts = conninfo_to_dict(database)
    pooler = Pooler(f"{parts['host']}/.s.PGSQL.{parts.get('port', 5432)}", by_transaction=by_transaction)
    with contextlib.closing(await asyncio.start_unix_server(pooler.serve, folder / ".s.PGSQL.5432")):
        yield make_conninfo(database, host=str(folder), port=5432)


@pytest.fixture(params=["stand-in", "pgbouncer"])
async def behind(request: pytest.FixtureRequest, database: str, tmp_path: Path) -> AsyncIterator[str]:
    """The conninfo of the database behind a pooler that keeps sessions."""
    if request.param == "pgbouncer":
        with pgbouncer(database, "session") as conninfo:
            yield conninfo
        return
    async with pooled(database, tmp_path) as conninfo:
        yield conninfo


async def limits(connection: Connection) -> dict[str, int]:
    """What limits this session, in ms; of settings that this version of Postgres has."""
    query = "select name, setting::int from pg_settings where name = any(%s)"
    return dict(await (await connection.execute(query, [list(LIMITS)])).fetchall())


async def test_it_refuses_options(behind: str) -> None:
    with pytest.raises(psycopg.OperationalError, match="unsupported startup parameter: options"):
        await psycopg.AsyncConnection.connect(behind, options="-c statement_timeout=1")


async def test_sessions_of_the_pools(behind: str) -> None:
    db = Database(behind, Config({"database.transaction.timeout.ms": 4_000, "database.statement.timeout.ms": 7_000}))
    await db.open()
    try:
        async with db.connection() as connection:
            assert await limits(connection) == dict(zip(LIMITS, (7_000, 4_000, 0, 0), strict=True))
        assert await db.transaction(limits) == dict(zip(LIMITS, (7_000, 4_000, FIRST_TRY_MS, 4_000), strict=True))
    finally:
        await db.close()


async def test_the_session_of_a_node(behind: str) -> None:
    config = Config({"database.transaction.timeout.ms": 4_000, "coordinator.lease.ms": 9_000})
    node = NodeConnection(behind, config)
    try:
        async with node.transaction() as connection:
            assert await limits(connection) == dict(zip(LIMITS, (9_000, 4_000, LOCK_MS, 4_000), strict=True))
    finally:
        await node.close()


async def test_sessions_of_django(behind: str) -> None:
    def shown() -> object:
        with limited_statements(3_000), _connect(conninfo=behind) as connection:
            return connection.execute("show statement_timeout").fetchone()

    assert await asyncio.to_thread(shown) == ("3s",)


async def test_the_start_is_refused_where_sessions_change(database: str, tmp_path: Path) -> None:
    async with pooled(database, tmp_path, by_transaction=True) as conninfo:
        with pytest.raises(StartProblem, match="set it to session mode"):
            await asyncio.to_thread(check_database, conninfo)


def test_the_start_is_refused_behind_pgbouncer_in_transaction_mode(database: str) -> None:
    with pgbouncer(database, "transaction") as conninfo, pytest.raises(StartProblem, match="set it to session mode"):
        check_database(conninfo)


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_the_start_is_refused_within_seconds_if_there_are_too_few_sessions(
    database: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default pgbouncer lets a query wait two minutes for a session."""
    monkeypatch.setattr(preflight, "CONNECT_SECONDS", 2)
    with (
        pgbouncer(database, mode, default_pool_size=1) as conninfo,
        pytest.raises(StartProblem, match=r"no session of Postgres for 3 connections .* default_pool_size"),
    ):
        check_database(conninfo)


def test_options_that_pgbouncer_ignores_are_not_what_limits_sessions(database: str) -> None:
    with (
        pgbouncer(database, "session", ignore_startup_parameters="options") as conninfo,
        limited_statements(3_000),
        _connect(conninfo=make_conninfo(conninfo, options="-c statement_timeout=1h")) as connection,
    ):
        assert connection.execute("show statement_timeout").fetchone() == ("3s",)


async def test_the_start_goes_on_where_sessions_stay(behind: str) -> None:
    await asyncio.to_thread(check_database, behind)


@pytest.mark.processes
@pytest.mark.whole("servers behind a pooler; the default has its sessions")
async def test_a_server_serves_behind_pgbouncer_and_wakes_those_who_wait_at_another(database: str) -> None:
    settings = {"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 0}
    with (
        pgbouncer(database, "session", default_pool_size=60) as conninfo,
        start_server(conninfo, env=settings) as first,
        start_server(conninfo, env=settings) as second,
    ):
        for server in (first, second):
            await asyncio.to_thread(server.wait_ready)
        headers = {"Authorization": f"Bearer {make_token(database)}"}
        async with httpx.AsyncClient(headers=headers, timeout=60) as client:
            (await client.post(f"{first.url}/v1/topics", json={"name": "t", "partitions": 2})).raise_for_status()
            one, two = (HttpMember(client, [server.url]) for server in (first, second))
            await one.become_stable()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(two.become_stable())
                while (await one.heartbeat())[0] == 200:  # noqa: ASYNC110 - only a heartbeat tells
                    await asyncio.sleep(0.05)
                tasks.create_task(one.become_stable())
            status, said = await one.commit(0, 5)
        assert (status, said["topics"][0]["partitions"][0]["error_code"]) == (200, 0)
