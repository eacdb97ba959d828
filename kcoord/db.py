"""Access to Postgres: the pool, transactions with bounded retries, and the mapping of its failures.

The pool serves the data plane and, over the bridge, everybody else; Django's own connections serve pages and admin.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
import structlog
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout, TooManyRequests

from kcoord.clock import Clock, DatabaseClock
from kcoord.config import Config
from kcoord.errors import Error, ProtocolError
from kcoord.silence import TCP_BOUNDS, Patience, WatchedConnection
from kcoord.sql import queries

log = structlog.get_logger(__name__)

T = TypeVar("T")
Connection = psycopg.AsyncConnection[TupleRow]

Q = queries("kcoord")

MAX_ATTEMPTS = 3
"""A deadlock or serialization failure is tried again, at most this often in all."""

UNAVAILABLE = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, TooManyRequests)
"""What psycopg raises when Postgres cannot be reached, is starting or stopping, or has no connection to give."""

RETRIED = (pg.DeadlockDetected, pg.SerializationFailure)


class Database:
    """A pool of connections and the clock that its statements use."""

    def __init__(self, conninfo: str, config: Config, clock: Clock | None = None) -> None:
        self.conninfo = conninfo
        self.clock: Clock = clock or DatabaseClock()
        self._config = config
        self._patience = Patience()
        self._droppers: list[Callable[[], None]] = []
        self._pool = self._make_pool()

    def _make_pool(self) -> AsyncConnectionPool[WatchedConnection]:
        address = conninfo_to_dict(self.conninfo)
        given = address.get("options") or ""
        timeout = self._config.int("database.statement.timeout.ms")
        return AsyncConnectionPool(
            self.conninfo,
            min_size=1,
            max_size=self._config.int("database.pool.size"),
            timeout=self._config.int("database.acquire.timeout.ms") / 1000,
            reconnect_timeout=5,
            open=False,
            check=None,
            connection_class=WatchedConnection,
            configure=self._configure,
            kwargs={
                **{name: value for name, value in TCP_BOUNDS.items() if name not in address},
                "autocommit": True,
                "options": f"{given} -c statement_timeout={timeout}".strip(),
                "application_name": "kcoord",
            },
        )

    async def _configure(self, connection: WatchedConnection) -> None:
        connection.patience = self._patience

    async def open(self) -> None:
        """Start the pool; it connects in the background, so an unreachable Postgres is reported by the first use."""
        await self._pool.open(wait=False)

    def on_connection_lost(self, dropper: Callable[[], None]) -> None:
        """Call `dropper` whenever a connection in use turns out to be lost, before its user learns of it."""
        self._droppers.append(dropper)

    def hurry(self) -> None:
        """The process stops: nobody waits long any more for a Postgres that does not answer."""
        self._patience.hurry()

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.close(timeout=2)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection in autocommit. Raises ProtocolError COORDINATOR_NOT_AVAILABLE when there is none to be had."""
        try:
            async with self._pool.connection() as connection:
                try:
                    yield connection
                finally:
                    if connection.broken:
                        self._lost()
        except RETRIED:
            raise  # they are OperationalErrors too, but Postgres is there
        except UNAVAILABLE as error:
            raise self.unavailable(error) from error

    def _lost(self) -> None:
        for dropper in self._droppers:
            dropper()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """A read-only transaction in which all statements see the same state.

        Raises ProtocolError COORDINATOR_NOT_AVAILABLE when there is no connection to be had.
        """
        async with self.connection() as connection, connection.transaction():
            await connection.execute("set transaction isolation level repeatable read, read only")
            yield connection

    async def transaction(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Run `work` in one transaction and commit; what it returns was committed.

        Deadlocks and serialization failures run `work` again from the start, at most MAX_ATTEMPTS times in all.
        Raises ProtocolError COORDINATOR_NOT_AVAILABLE when Postgres is not available; the outcome is then unknown.
        """
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                # In a pipeline statements travel together until somebody asks for a row; the commit goes with the last.
                async with self.connection() as connection, connection.pipeline(), connection.transaction():
                    return await work(connection)
            except RETRIED as error:
                if attempt == MAX_ATTEMPTS:
                    raise self.unavailable(error) from error
                await asyncio.sleep(random.uniform(0, 0.02 * attempt))  # noqa: S311 - jitter, not a secret
        raise AssertionError("unreachable")

    async def now_ms(self, connection: Connection) -> int:
        """The time, by the injected clock or the database's."""
        return int(await self.value(connection, Q.read_clock, {"override": self.clock.override_ms()}))

    async def row_and_now(
        self, connection: Connection, statement: str, parameters: dict[str, Any]
    ) -> tuple[TupleRow | None, int]:
        """The first row of a statement, and the time read by the next: both travel together in a pipeline."""
        cursor = await connection.execute(statement.encode(), parameters)
        clock = await connection.execute(Q.read_clock.encode(), {"override": self.clock.override_ms()})
        row, now = await cursor.fetchone(), await clock.fetchone()
        assert now is not None
        return row, int(now[0])

    async def value(self, connection: Connection, statement: str, parameters: dict[str, Any] | None = None) -> Any:
        """The first column of the first row; None where there is no row."""
        row = await self.row(connection, statement, parameters)
        return None if row is None else row[0]

    async def row(
        self, connection: Connection, statement: str, parameters: dict[str, Any] | None = None
    ) -> TupleRow | None:
        """The first row, or None."""
        cursor = await connection.execute(statement.encode(), parameters)
        return await cursor.fetchone()

    async def rows(
        self, connection: Connection, statement: str, parameters: dict[str, Any] | None = None
    ) -> list[TupleRow]:
        """All rows."""
        cursor = await connection.execute(statement.encode(), parameters)
        return await cursor.fetchall()

    def unavailable(self, error: Exception) -> ProtocolError:
        """The answer while Postgres cannot serve."""
        log.warning("database_unavailable", reason=str(error).strip() or type(error).__name__)
        return ProtocolError(
            Error.COORDINATOR_NOT_AVAILABLE,
            "the database is not available; the same request may succeed later",
            retry_after_ms=self._config.int("http.retry.after.ms"),
        )
