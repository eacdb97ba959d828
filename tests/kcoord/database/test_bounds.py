"""What bounds a transaction: its own time, the wait for locks, the age of its request, and sessions that are stuck."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from typing import Any

import psycopg
import pytest

from kcoord.config import Config
from kcoord.database import sessions
from kcoord.database.pool import Connection, Database
from kcoord.process import off_loop
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests import current
from kcoord.requests.current import Receipt

ROWS = "create table if not exists bounds_row (id int primary key, value int not null)"


@pytest.fixture
def config() -> Config:
    """Short bounds, so that tests are."""
    return Config(
        {"database.transaction.timeout.ms": 800, "database.lock.timeout.ms": 700, "request.max.age.ms": 4_000}
    )


@pytest.fixture
async def db(database: str, config: Config) -> AsyncIterator[Database]:
    """Some rows to lock."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(ROWS)
        connection.execute("truncate bounds_row")
        connection.execute("insert into bounds_row select n, 0 from generate_series(1, 100) n")
    made = Database(database, config)
    await made.open()
    yield made
    await made.close()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("drop table bounds_row")


@pytest.fixture
async def holder(database: str, db: Database) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """Somebody else's session."""
    async with await psycopg.AsyncConnection.connect(database) as connection:
        yield connection


@pytest.fixture(params=["pipelined", "stepwise"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """As on PostgreSQL 17 and newer, and as on older servers, which have no bound for whole transactions."""
    if request.param == "stepwise":
        monkeypatch.setattr(sessions, "PIPELINED_FROM", 99_00_00)
    return str(request.param)


async def add(connection: Connection, row: int = 1) -> None:
    await (await connection.execute("select from bounds_row where id = %s for update", (row,))).fetchone()
    await connection.execute("update bounds_row set value = value + 1 where id = %s", (row,))


async def value(db: Database, row: int = 1) -> int:
    async with db.connection() as connection:
        return int(await db.value(connection, "select value from bounds_row where id = %(row)s", {"row": row}))


async def test_sessions_have_bounds(db: Database) -> None:
    async def work(connection: Connection) -> list[str]:
        names = ("transaction_timeout", "idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout")
        return [await db.value(connection, f"show {name}") for name in names]

    assert await db.transaction(work) == ["800ms", "800ms", "250ms", "15s"]
    assert await db.transaction(work, long=True) == ["0", "800ms", "250ms", "15s"]
    assert await db.transaction(work) == ["800ms", "800ms", "250ms", "15s"], "the bound is back"
    async with db.connection() as connection:
        assert await work(connection) == ["0", "800ms", "0", "15s"], "what reads may take long"
    for keep_plans in (False, True):
        async with db.snapshot(keep_plans=keep_plans) as connection:
            assert await work(connection) == ["0", "15s", "0", "15s"], "what reads may also pause"


async def test_a_process_that_gets_no_turn_while_it_reads_keeps_its_snapshot(db: Database) -> None:
    async with db.snapshot() as connection:
        before = await db.value(connection, "select value from bounds_row where id = 1")
        time.sleep(1)  # noqa: ASYNC251 - nothing of the process runs, for longer than a transaction may stall
        assert await db.value(connection, "select value from bounds_row where id = 1") == before


async def test_a_process_that_stands_still_in_a_transaction_loses_its_locks(
    db: Database, holder: psycopg.AsyncConnection[Any], mode: str
) -> None:
    locked, ended = asyncio.Event(), asyncio.Event()

    async def work(connection: Connection) -> None:
        await add(connection)
        locked.set()
        await ended.wait()

    task = asyncio.create_task(db.transaction(work, long=mode == "stepwise"))
    await locked.wait()
    async with asyncio.timeout(60):
        await holder.execute("update bounds_row set value = 5 where id = 1")
    await holder.commit()
    db.request_age.pulse.note_freeze()
    ended.set()
    with pytest.raises(ProtocolError) as caught:
        await task
    assert caught.value.error is Error.COORDINATOR_NOT_AVAILABLE
    assert await value(db) == 5


@pytest.mark.whole("waits for limits of seconds; the default freezes a server and looks at the settings")
async def test_a_process_that_works_longer_than_the_bound_tries_again_without_it(db: Database) -> None:
    tries = 0

    async def work(connection: Connection) -> None:
        nonlocal tries
        tries += 1
        await add(connection)
        for _ in range(12):
            await db.value(connection, "select 1 from pg_sleep(0.1)")

    await db.transaction(work)
    assert (tries, await value(db)) == (2, 1)


@pytest.mark.whole("waits for limits of seconds; the default freezes a server and looks at the settings")
async def test_a_process_that_computes_longer_than_the_bound_is_not_taken_for_a_frozen_one(
    db: Database, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What takes long with many partitions runs in a thread, while the transaction waits for it."""
    monkeypatch.setattr(off_loop, "ALIVE_SECONDS", 0.1)
    ended: list[bool] = []

    async def work(connection: Connection) -> None:
        await add(connection)
        ended.append(await off_loop.run_within(connection, off_loop.ABOVE + 1, compute))

    def compute() -> bool:
        time.sleep(2)
        return True

    await db.transaction(work)
    assert await value(db) == 1
    monkeypatch.setattr(off_loop, "LONGEST_SECONDS", 0.5)
    with pytest.raises(ProtocolError):
        await db.transaction(work, long=True)
    assert await value(db) == 1, "but not without a limit"
    assert set(ended) == {True}


@pytest.mark.parametrize("name", ["kcoord", "kcoord-node"])
async def test_a_session_that_postgres_cannot_end_is_ended_by_who_waits(
    database: str, db: Database, holder: psycopg.AsyncConnection[Any], name: str
) -> None:
    """The client sent a statement and does not read its large result: the backend heeds no timeout."""
    bounds = "-c transaction_timeout=100 -c idle_in_transaction_session_timeout=100 -c statement_timeout=100"
    with closing(psycopg.connect(database, application_name=name, options=bounds)) as stuck:
        stuck.execute("select from bounds_row where id = 1 for update")
        stuck.pgconn.send_query(b"select repeat('x', 1000) from generate_series(1, 100000)")
        pid = stuck.info.backend_pid

        async def waits() -> Any:
            query = "select wait_event from pg_stat_activity where pid = %s"
            return await (await holder.execute(query, (pid,))).fetchone()

        async with asyncio.timeout(30):
            while await waits() != ("ClientWrite",):
                await holder.rollback()  # or it sees the same activity again
        await asyncio.sleep(0.5)
        await holder.rollback()
        assert await waits() == ("ClientWrite",), "no bound of Postgres ended it"
        await holder.rollback()
        await db.transaction(add_first)
    assert await value(db) == 1


async def add_first(connection: Connection) -> None:
    await add(connection)


async def test_locked_rows_leave_the_pool_to_others(db: Database, holder: psycopg.AsyncConnection[Any]) -> None:
    await holder.execute("select from bounds_row where id <= 50 for update")
    patient = Database(db.conninfo, Config({"database.lock.timeout.ms": 60_000, "database.acquire.timeout.ms": 10_000}))
    await patient.open()
    try:
        waiting = [
            asyncio.create_task(patient.transaction(partial(add, row=row), key=str(row))) for row in range(1, 51)
        ]
        await asyncio.gather(*(patient.transaction(partial(add, row=row)) for row in range(51, 101)))
        assert not any(task.done() for task in waiting)
        await holder.rollback()
        await asyncio.gather(*waiting)
    finally:
        await patient.close()
    assert [await value(db, row) for row in (1, 50, 51, 100)] == [1, 1, 1, 1]


async def test_a_lock_is_waited_for_as_long_as_the_setting_says(
    db: Database, holder: psycopg.AsyncConnection[Any]
) -> None:
    await holder.execute("select from bounds_row where id = 1 for update")
    with pytest.raises(ProtocolError, match=r"database\.lock\.timeout\.ms") as caught:
        await db.transaction(add_first, key="1")
    assert caught.value.error is Error.COORDINATOR_NOT_AVAILABLE
    assert caught.value.retry_after_ms is not None
    with pytest.raises(ProtocolError, match=r"database\.lock\.timeout\.ms"):
        await db.transaction(add_first, key="1")
    await holder.rollback()
    await db.transaction(add_first, key="1")
    assert await value(db) == 1


@pytest.mark.whole("waits for limits of seconds; the default freezes a server and looks at the settings")
async def test_constant_traffic_at_two_servers_starves_neither(db: Database, config: Config) -> None:
    other = Database(db.conninfo, config)
    await other.open()
    done = {db: 0, other: 0}

    async def hold(connection: Connection) -> None:
        await add(connection)
        await asyncio.sleep(0.3)  # longer than a first try waits

    async def busy(side: Database) -> None:
        while min(done.values()) < 3:
            try:
                await side.transaction(hold, key="1")
            except ProtocolError:
                continue
            done[side] += 1

    try:
        async with asyncio.timeout(60):
            await asyncio.gather(busy(db), busy(other))
    finally:
        await other.close()
    assert await value(db) == sum(done.values())


@pytest.mark.parametrize("long", [False, True])
async def test_a_write_of_an_old_request_is_not_committed(db: Database, mode: str, long: bool) -> None:
    receipt = Receipt(time.monotonic() - 3.0)  # 4 s less the transaction's time are over
    token = current.enter_receipt(receipt)
    try:
        with pytest.raises(ProtocolError, match=r"request\.max\.age\.ms"):
            await db.transaction(add_first, long=long)
        current.allow(2_000)
        await db.transaction(add_first, long=long)
        current.enter_receipt(None)
        await db.transaction(add_first, long=long)
    finally:
        current.leave_receipt(token)
    assert await value(db) == 2


async def test_the_age_is_measured_by_the_clock_of_the_database_too(db: Database) -> None:
    """A paused virtual machine: the monotonic clock stood still."""
    async with db.connection() as connection:
        await db.now_ms(connection)
    receipt = db.request_age.receive()
    assert receipt.database_ms is not None
    paused = Receipt(receipt.at, receipt.database_ms - 3_000)
    with pytest.raises(ProtocolError, match=r"request\.max\.age\.ms"):
        await db.transaction(add_first, receipt=lambda: paused)
    await db.transaction(add_first, receipt=lambda: receipt)
    assert await value(db) == 1
