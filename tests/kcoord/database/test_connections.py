"""What the connections of the pool are opened with."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from kcoord.config import Config
from kcoord.database import pool
from kcoord.database.liveness import WatchedConnection, answers, hang_up
from kcoord.database.pool import Database
from kcoord.protocol.errors import Error, ProtocolError


async def test_options_of_the_address_are_kept_beside_ours(database: str, config: Config) -> None:
    db = Database(make_conninfo(database, options="-c search_path=here,public -c statement_timeout=1"), config)
    await db.open()
    try:
        async with db.connection() as connection:
            assert await db.value(connection, "show search_path") == "here,public"
            assert await db.value(connection, "show statement_timeout") == "15s"
    finally:
        await db.close()


async def test_statement_that_takes_long_is_left_alone_by_who_listens_for_silence(
    database: str, config: Config
) -> None:
    db = Database(database, config)
    await db.open()
    db.hurry()
    try:
        async with db.connection() as connection:
            assert isinstance(connection, WatchedConnection)
            assert await db.value(connection, "select 1 from pg_sleep(1.2)") == 1
    finally:
        await db.close()


async def test_who_waits_is_told_that_the_database_is_not_available_when_it_says_nothing(
    database: str, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(connection: object, seconds: float) -> bool:
        return False

    monkeypatch.setattr("kcoord.database.liveness.answers", silent)
    db = Database(database, config)
    await db.open()
    try:
        async with asyncio.timeout(20):
            with pytest.raises(ProtocolError) as caught:
                await asyncio.gather(db.transaction(lambda connection: sleep(db, connection)), later(db))
            assert caught.value.error is Error.COORDINATOR_NOT_AVAILABLE
    finally:
        await db.close()


async def sleep(db: Database, connection: Any) -> None:
    await db.value(connection, "select 1 from pg_sleep(60)")


async def later(db: Database) -> None:
    await asyncio.sleep(0.1)
    db.hurry()  # also whoever waits already


async def test_what_answers(database: str) -> None:
    async with await psycopg.AsyncConnection.connect(database) as connection:
        assert await answers(connection)
        hang_up(connection)
        with pytest.raises(psycopg.OperationalError):
            await connection.execute("select 1")
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        info = SimpleNamespace(host="localhost", hostaddr="127.0.0.1", port=deaf.getsockname()[1])
        assert not await answers(SimpleNamespace(info=info), 0.2)  # type: ignore[arg-type]
    assert not await answers(SimpleNamespace(info=info), 0.2), "nobody listens"  # type: ignore[arg-type]


async def test_transactions_of_single_groups_leave_connections_to_others(database: str) -> None:
    """Those of sessions and steady commits, which would queue behind a flood of joins."""
    db = Database(database, Config({"database.pool.size": 4, "database.acquire.timeout.ms": 300}))
    free = asyncio.Event()
    began = 0

    async def hold(connection: Any) -> None:
        nonlocal began
        began += 1
        while not free.is_set():
            await db.value(connection, "select 1")
            await asyncio.sleep(0.01)

    await db.open()
    try:
        holding = [asyncio.ensure_future(db.transaction(hold, key=f"g{n}", long=True)) for n in range(4)]
        with pytest.raises(ProtocolError) as refusal:
            await holding[3]
        assert refusal.value.error is Error.COORDINATOR_NOT_AVAILABLE
        assert refusal.value.retry_after_ms
        assert await db.transaction(lambda connection: db.value(connection, "select 7")) == 7
        assert (began, await db.can_write()) == (3, True)
        free.set()
        await asyncio.gather(*holding[:3])
        await db.transaction(hold, key="g3")
    finally:
        await db.close()


async def test_groups_in_memory_take_turns_with_others_and_these_are_refused_when_one_waits_for_long(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = Database(database, Config({"database.pool.size": 2, "http.max.queue": 9, "http.retry.after.ms": 700}))
    free, done = asyncio.Event(), list[str]()

    async def hold(connection: Any) -> None:
        while not free.is_set():
            await db.value(connection, "select 1")
            await asyncio.sleep(0.01)

    async def write(key: str, *, known: bool) -> None:
        async def note(connection: Any) -> None:
            done.append(key)

        await db.transaction(note, key=key, known=known)

    await db.open()
    try:
        tasks = [asyncio.create_task(db.transaction(hold, key="first", long=True))]
        await asyncio.sleep(0)
        tasks += [asyncio.create_task(write(f"new {number}", known=False)) for number in range(4)]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(write("served", known=True)))
        await asyncio.sleep(0)
        db.check_queue()
        monkeypatch.setattr(pool, "LONG_QUEUE_SECONDS", 0)
        with pytest.raises(ProtocolError, match=r"http\.max\.queue") as refusal:
            db.check_queue()
        assert (refusal.value.error, refusal.value.retry_after_ms) == (Error.COORDINATOR_NOT_AVAILABLE, 700)
        free.set()
        await asyncio.gather(*tasks)
        assert done.index("served") <= 1, "those that are new do not all go first"
        db.check_queue()
    finally:
        await db.close()
