"""Transactions in a pipeline: how often they go to Postgres, and that nothing is lost on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg import _pipeline_base, generators
from psycopg import errors as pg

from kcoord.config import Config
from kcoord.database import liveness
from kcoord.database.pool import Connection, Database
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from tests.support.members import join

TABLE = "create table thing (id int primary key, text text, other int references thing deferrable initially deferred)"
INSERT = b"insert into thing (id, text, other) values (%(id)s, %(text)s, %(other)s)"


@pytest.fixture
async def db(database: str) -> AsyncIterator[Database]:
    """Pools of connections to a database with a table of things."""
    with psycopg.connect(database) as connection:
        connection.execute("drop table if exists thing")
        connection.execute(TABLE)
    found = Database(database, Config({}))
    await found.open()
    yield found
    await found.close()
    with psycopg.connect(database) as connection:
        connection.execute("drop table thing")


class Sends:
    """How often something was sent: statements are gathered until then."""

    count = 0


@pytest.fixture
def sends(monkeypatch: pytest.MonkeyPatch) -> Sends:
    """Counted from now on."""
    counted = Sends()

    def send(pgconn: psycopg.pq.abc.PGconn) -> object:
        counted.count += 1
        return generators.send(pgconn)

    monkeypatch.setattr(_pipeline_base, "send", send)
    monkeypatch.setattr(liveness, "send", send)
    return counted


async def insert(connection: Connection, number: int, text: str = "", other: int | None = None) -> None:
    await connection.execute(INSERT, {"id": number, "text": text, "other": other})


async def there(db: Database) -> list[int]:
    """The things that were committed."""
    async with db.connection() as connection:
        return await db.column(connection, "select id from thing order by id")


async def test_a_transaction_is_sent_when_rows_are_asked_for_and_at_its_end(db: Database, sends: Sends) -> None:
    async def work(connection: Connection) -> int:
        for number in range(3):
            await insert(connection, number)
        assert sends.count == 0
        counted = await db.value(connection, "select count(*) from thing")
        assert sends.count == 1
        for number in range(3, 6):
            await insert(connection, number)
        return int(counted)

    assert await db.transaction(work) == 3
    assert sends.count == 2
    assert await there(db) == [0, 1, 2, 3, 4, 5]


async def test_a_heartbeat_off_the_lane_goes_to_postgres_twice(database: str, sends: Sends) -> None:
    from groups.engine.service import GroupService
    from tests.support.members import heartbeat, sync

    runtime = Runtime(Config({"heartbeat.lane": False, "group.initial.rebalance.delay.ms": 0}), database)
    await runtime.start()
    service = runtime.get(GroupService)
    asked = await service.join(join("g"))
    joined = await service.join(join("g", asked.member_id))
    await service.sync(sync(joined, {joined.member_id: b""}, "g"))
    before = sends.count
    await settled(service.heartbeat(heartbeat(joined, "g")))
    assert sends.count - before == 2, "the lock with what is read under it, and the writes with the commit"
    await runtime.stop()


async def test_a_statement_that_fails_unseen_undoes_all(db: Database) -> None:
    async def work(connection: Connection) -> None:
        await insert(connection, 1)
        await insert(connection, 1)
        await insert(connection, 2)

    with pytest.raises(pg.UniqueViolation):
        await db.transaction(work)
    assert await there(db) == []
    await db.transaction(lambda connection: insert(connection, 3))
    assert await there(db) == [3], "its connection is fit for the next one"


async def test_what_fails_at_the_commit_is_told(db: Database) -> None:
    with pytest.raises(pg.ForeignKeyViolation):
        await db.transaction(lambda connection: insert(connection, 1, other=99))
    assert await there(db) == []


async def test_work_that_fails_writes_nothing(db: Database) -> None:
    class Oops(Exception): ...

    async def work(connection: Connection) -> None:
        await insert(connection, 1)
        raise Oops

    async def later(connection: Connection) -> None:
        assert await db.value(connection, "select 1") == 1
        await insert(connection, 2)
        raise Oops

    for fails in (work, later):
        with pytest.raises(Oops):
            await db.transaction(fails)
    assert await there(db) == []
    assert await db.transaction(lambda connection: db.value(connection, "select 7")) == 7


async def test_work_that_is_cancelled_writes_nothing(db: Database) -> None:
    began = asyncio.Event()

    async def work(connection: Connection) -> None:
        await insert(connection, 1)
        began.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(db.transaction(work))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await there(db) == []


async def test_a_part_that_is_undone_by_itself(db: Database) -> None:
    async def work(connection: Connection) -> None:
        await insert(connection, 1)

        async def fails() -> None:
            async with connection.transaction():
                await insert(connection, 2)
                await insert(connection, 1)

        with pytest.raises(pg.UniqueViolation):
            await fails()
        async with connection.transaction():
            await insert(connection, 3)

    await db.transaction(work)
    assert await there(db) == [1, 3]


async def test_much_is_sent_in_parts(db: Database) -> None:
    """More than the buffers of both sides hold, in statements of which nobody awaits rows."""

    async def work(connection: Connection) -> None:
        for number in range(40):
            await insert(connection, number, "x" * 1_000_000)
            await connection.execute("select text from thing where id = %(id)s", {"id": number})

    async with asyncio.timeout(60):
        await db.transaction(work)
    assert len(await there(db)) == 40


async def test_statements_that_repeat_are_prepared(db: Database) -> None:
    async def work(connection: Connection) -> list[str]:
        await db.value(connection, "select %(number)s::int * 2", {"number": 1})
        return await db.column(connection, "select statement from pg_prepared_statements")

    prepared = [await db.transaction(work) for _ in range(30)]  # the pool has a few connections
    assert not any("* 2" in statement for statement in prepared[0])
    assert any("* 2" in statement for statement in prepared[-1])
