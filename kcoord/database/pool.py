"""Access to Postgres: the pools, transactions with bounded retries, rows as objects, and the mapping of its failures.

The pools serve the data plane and, over the bridge, all other callers; Django's own connections serve pages and admin.
One is for transactions, one for reads and single statements, so that neither takes the other's connections
and each has sessions with its own limits.

A transaction that hits a lock returns its connection and tries again, a few at a time, however many there are: all
other groups have the rest of the pool. While few wait, each try is long enough to keep its place in Postgres' own lock
queue, so that a group with constant traffic at several servers does not starve others.

Sessions of frozen processes that hold locks are ended: a backend that waits for its client to read a large result
ignores all timeouts. A process whose lock waits time out ends such sessions, and so does each tick of the timers.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import psycopg
import structlog
from psycopg import errors as pg
from psycopg.rows import AsyncRowFactory, RowMaker, TupleRow, kwargs_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout, TooManyRequests

from kcoord.config import Config
from kcoord.database import sessions
from kcoord.database.clock import Clock, DatabaseClock
from kcoord.database.liveness import LivenessWatch, Origins, WatchedConnection
from kcoord.database.sql import queries
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests import current
from kcoord.requests.current import Receipt, RequestAge
from kcoord.requests.turnstile import Places

log = structlog.get_logger(__name__)

LOOK_PAUSE_SECONDS = 0.5
"""Minimum interval between two checks of one process."""


class Blockers:
    """Ends stuck sessions, for one process.

    Parameters: `find` ends them all and returns pid and wait event of each.
    """

    def __init__(self, find: Callable[[], Awaitable[list[Any]]]) -> None:
        self._find = find
        self._looked = float("-inf")

    async def end(self) -> int:
        """Check, unless this process has just done so; returns how many sessions were ended."""
        if time.monotonic() - self._looked < LOOK_PAUSE_SECONDS:
            return 0
        self._looked = time.monotonic()
        ended = await self._find()
        for pid, wait_event, *_ in ended:
            log.warning("stuck_session_ended", pid=pid, wait_event=wait_event)
        return len(ended)


@dataclass(frozen=True, slots=True)
class PoolUsage:
    """Connections of a pool: lent out, idle, how many there may be; and the callers that wait for one."""

    used: int
    idle: int
    most: int
    waiting: int


def usage_of(pool: AsyncConnectionPool[Any]) -> PoolUsage:
    """The usage of a pool right now."""
    stats = pool.get_stats()
    idle = stats["pool_available"]
    return PoolUsage(stats["pool_size"] - idle, idle, pool.max_size, stats["requests_waiting"])


FIRST_TRY_MS = 250
"""How long a transaction waits for a lock that no other transaction of this process is known to wait for."""
TRY_MS = 500
"""How long a later try waits for a lock while no other transaction needs its place."""
CROWDED_TRY_MS = 50
"""How long any try waits for a lock while more transactions are waiting than may try at once."""
PAUSE_SECONDS = 0.05
"""The longest pause between two tries of a transaction."""


class LockWaits:
    """Transactions of one process that hit a lock.

    They may use at most a quarter of the pool's connections. `wait_ms`: how long each of them keeps trying.
    """

    def __init__(self, config: Config) -> None:
        self.wait_ms = config.int("database.lock.timeout.ms")
        self.width = max(config.int("database.pool.size") // 4, 1)
        self._retry_after_ms = config.int("http.retry.after.ms")
        self._places = asyncio.Semaphore(self.width)
        self._waiting = 0
        self._locked: dict[str, float] = {}

    @property
    def crowded(self) -> bool:
        """More transactions are waiting for locks than may try at once."""
        return self._waiting > self.width

    def is_locked(self, key: str) -> bool:
        """The lock with this key was unavailable a moment ago: the next transaction queues immediately."""
        at = self._locked.get(key)
        return at is not None and time.monotonic() - at < self.wait_ms / 1000

    def note(self, key: str, *, locked: bool) -> None:
        """A transaction that locks `key` hit a lock, or got it."""
        if not locked:
            self._locked.pop(key, None)
            return
        now = time.monotonic()
        if len(self._locked) > 1_000:
            self._locked = {k: at for k, at in self._locked.items() if now - at < self.wait_ms / 1000}
        self._locked[key] = now

    def enter(self) -> float:
        """A transaction that hit a lock queues; returns until when it may try (monotonic seconds)."""
        self._waiting += 1
        return time.monotonic() + self.wait_ms / 1000

    def leave(self) -> None:
        """It finished, or gave up."""
        self._waiting -= 1

    @asynccontextmanager
    async def place(self, until: float) -> AsyncIterator[int]:
        """Wraps one try; yields how long it waits for a lock (ms). Raises as `pause` does."""
        try:
            async with asyncio.timeout(until - time.monotonic()):
                await self._places.acquire()
        except TimeoutError:
            raise self.refused() from None
        try:
            yield CROWDED_TRY_MS if self.crowded else TRY_MS
        finally:
            self._places.release()

    async def pause(self, until: float) -> None:
        """Between two tries. Raises ProtocolError COORDINATOR_NOT_AVAILABLE at `until` (monotonic seconds)."""
        if time.monotonic() >= until:
            raise self.refused()
        await asyncio.sleep(random.uniform(0, PAUSE_SECONDS))  # noqa: S311 - jitter, not a secret

    def refused(self) -> ProtocolError:
        """The answer when a lock was not available in time."""
        return ProtocolError(
            Error.COORDINATOR_NOT_AVAILABLE,
            f"another transaction has held the same rows for {self.wait_ms} ms (database.lock.timeout.ms); the same "
            "request may succeed later",
            retry_after_ms=self._retry_after_ms,
        )


def by_name(kind: Callable[..., T]) -> AsyncRowFactory[T]:
    """A row factory for a class or a function that takes the columns by name.

    Each field of a class needs a column: a default would hide one that the statement forgot. Raises TypeError, when
    rows are made, if names differ.
    """
    if not isinstance(kind, type):
        return kwargs_row(kind)

    def factory(cursor: psycopg.AsyncCursor[Any]) -> RowMaker[T]:
        # Not cursor.description: it makes an object of each column, a tenth of the CPU time of a heartbeat.
        result = cursor.pgresult
        return _maker(kind, tuple(result.fname(number) or b"" for number in range(result.nfields)) if result else ())

    return factory


@lru_cache(maxsize=1_000)
def _maker(kind: type[T], names: tuple[bytes, ...]) -> RowMaker[T]:
    fields: Sequence[str] = kind.__match_args__  # type: ignore[attr-defined]
    columns = [name.decode() for name in names]
    if columns and sorted(columns) != sorted(fields):
        raise TypeError(f"{kind} has the fields {fields}, the rows have {columns}")
    if columns == list(fields):
        return lambda values: kind(*values)
    return lambda values: kind(**dict(zip(columns, values, strict=True)))


T = TypeVar("T")
Connection = psycopg.AsyncConnection[TupleRow]
Work = Callable[[Connection], Awaitable[T]]

Q = queries("kcoord")

MAX_ATTEMPTS = 3
"""A deadlock or serialization failure is retried, with at most this many attempts in total."""

UNAVAILABLE = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    pg.TransactionTimeout,
    pg.IdleInTransactionSessionTimeout,
    PoolTimeout,
    TooManyRequests,
)
"""What psycopg raises when Postgres cannot be reached, is starting or stopping, ended the session, or has no connection
to give."""

COMMIT_SECONDS = 1.0
"""How long a commit of nothing may take where another was given up."""

KEPT_PART = 4
"""One in this many connections for transactions is kept from those of single groups."""

LONG_QUEUE_SECONDS = 2.0
"""While a transaction of a group that is not known has waited this long for a connection, no more of those may wait."""

RETRIED = (pg.DeadlockDetected, pg.SerializationFailure)


_SNAPSHOT = "set transaction isolation level repeatable read, read only"
_MAY_PAUSE = "set local idle_in_transaction_session_timeout = {}"
_PLAN_EACH_TIME = "set local plan_cache_mode = force_custom_plan"


class NoStandby(psycopg.OperationalError):
    """A commit is durable on this server, and was given up while it waited for a synchronous standby."""


class Overtime(Exception):
    """The transaction timeout ended a transaction that was still working; nothing of it was committed."""


class Database:
    """Pools of connections and the clock that their statements use."""

    def __init__(self, conninfo: str, config: Config, clock: Clock | None = None) -> None:
        self.conninfo = conninfo
        self.clock: Clock = clock or DatabaseClock()
        self.origins = Origins(conninfo)
        self.request_age = RequestAge(config)
        self.blockers = Blockers(self._end_stuck_sessions)
        self._config = config
        self._limit_ms = config.int("database.transaction.timeout.ms")
        self._statement_ms = config.int("database.statement.timeout.ms")
        self._lane = LockWaits(config)
        self._acquire_seconds = config.int("database.acquire.timeout.ms") / 1000
        self._most_waiting = config.int("http.max.queue")
        self._retry_after_ms = config.int("http.retry.after.ms")
        size = config.int("database.pool.size")
        self._for_keys = Places(size - max(size // KEPT_PART, 1), "group_transactions")
        self._patience = LivenessWatch(self._waits_for_standby)
        self._droppers: list[Callable[[], None]] = []
        self.disk_was_full = False
        """A statement of this process failed for want of space, and nobody has looked since."""
        self._lent_at = -math.inf
        self._no_standby = False
        """A commit was given up that waited for a synchronous standby, and nobody has seen another one succeed."""
        self.pipelines = True
        """Transactions are sent in pipelines: the server limits whole transactions, as those from version 17 do."""
        self._no_writer = False
        """A transaction has waited in vain for a connection, and nobody has had one meanwhile or since."""
        self._readers = self._make_pool(self._configure)
        self._writers = self._make_pool(self._configure_writer)

    def _make_pool(
        self, configure: Callable[[WatchedConnection], Awaitable[None]]
    ) -> AsyncConnectionPool[WatchedConnection]:
        return AsyncConnectionPool(
            self.conninfo,
            min_size=1,
            max_size=self._config.int("database.pool.size"),
            timeout=self._acquire_seconds,
            reconnect_timeout=5,
            open=False,
            check=None,
            connection_class=WatchedConnection,
            configure=configure,
            kwargs=sessions.arguments(self.conninfo, "kcoord"),
        )

    async def _configure(self, connection: WatchedConnection) -> None:
        connection.patience = self._patience
        await sessions.limit(connection, statement_ms=self._statement_ms, idle_transaction_ms=self._limit_ms)
        connection.timeline = await self.origins.check(connection)

    async def _configure_writer(self, connection: WatchedConnection) -> None:
        connection.patience = self._patience
        await sessions.limit(
            connection,
            statement_ms=self._statement_ms,
            idle_transaction_ms=self._limit_ms,
            lock_ms=FIRST_TRY_MS,
            transaction_ms=self._limit_ms,
        )
        self.pipelines = connection.info.server_version >= sessions.PIPELINED_FROM
        connection.timeline = await self.origins.check(connection)

    async def open(self) -> None:
        """Start the pools; they connect in the background, so an unreachable Postgres is reported by the first use."""
        await self.origins.start()
        await self._readers.open(wait=False)
        await self._writers.open(wait=False)

    def on_connection_lost(self, dropper: Callable[[], None]) -> None:
        """Call `dropper` whenever a connection in use turns out to be lost, before its user learns of it."""
        self._droppers.append(dropper)

    def hurry(self) -> None:
        """The process is stopping: no caller waits long for an unresponsive Postgres from now on."""
        self._patience.hurry()

    async def close(self) -> None:
        """Close every connection."""
        await self.origins.stop()
        await self._writers.close(timeout=2)
        await self._readers.close(timeout=2)

    async def drop_lost(self) -> None:
        """Try every idle connection, and replace those whose server has gone: each would fail a request."""
        await self._writers.check()
        await self._readers.check()

    def usage(self) -> dict[str, PoolUsage]:
        """How busy the pools are, by name: `read` and `write`."""
        return {"read": usage_of(self._readers), "write": usage_of(self._writers)}

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection in autocommit, for statements that stand alone.

        Raises ProtocolError COORDINATOR_NOT_AVAILABLE when no connection is available.
        """
        try:
            async with self._borrowed(self._readers) as connection:
                yield connection
        except RETRIED:
            raise  # they are OperationalErrors too, but Postgres is available
        except UNAVAILABLE as error:
            raise self.unavailable(error) from error

    @asynccontextmanager
    async def _borrowed(self, pool: AsyncConnectionPool[WatchedConnection]) -> AsyncIterator[WatchedConnection]:
        async with pool.connection() as connection:
            try:
                if self.origins.is_past(connection.timeline):
                    await connection.close()
                    raise psycopg.OperationalError(self.origins.problem)
                yield connection
            except psycopg.OperationalError as error:
                if connection.awaits_standby is None:
                    raise
                await self._release(connection.awaits_standby)
                raise NoStandby(str(error)) from error
            finally:
                if connection.broken:
                    for dropper in self._droppers:
                        dropper()

    @asynccontextmanager
    async def _borrowed_writer(self) -> AsyncIterator[WatchedConnection]:
        asked = time.monotonic()
        is_lent = False
        try:
            async with self._borrowed(self._writers) as connection:
                is_lent, self._no_writer, self._lent_at = True, False, time.monotonic()
                yield connection
        except PoolTimeout:
            if not is_lent:
                self._no_writer = self._lent_at < asked
            raise

    async def _waits_for_standby(self, process_id: int) -> bool:
        try:
            async with self.connection() as connection:
                return bool(await self.value(connection, Q.waits_for_standby, {"pid": process_id}))
        except ProtocolError:
            return False  # the next look asks again

    async def _release(self, process_id: int) -> None:
        """End a wait whose client has gone: Postgres would not notice, and lose a session for each."""
        self._no_standby = True
        with contextlib.suppress(ProtocolError):
            async with self.connection() as connection:
                await self.value(connection, Q.cancel_session, {"pid": process_id})

    async def can_commit(self) -> bool:
        """Whether commits return. False while they wait for a synchronous standby that is missing."""
        if self._no_standby:
            try:
                async with asyncio.timeout(COMMIT_SECONDS):
                    await self.transaction(self._write_nothing)
            except (TimeoutError, ProtocolError):
                return False
            self._no_standby = False
        return True

    async def _write_nothing(self, connection: Connection) -> None:
        await connection.execute(Q.write_nothing.encode())

    async def can_write(self) -> bool:
        """Whether transactions get connections. False also if all are in use, and have been for the whole wait."""
        if self._no_writer:
            try:
                async with self._borrowed_writer():
                    pass
            except UNAVAILABLE:
                return False
        return True

    @asynccontextmanager
    async def snapshot(self, *, keep_plans: bool = False) -> AsyncIterator[Connection]:
        """A read-only transaction in which all statements see the same state, each planned for its parameters.

        psycopg prepares what it has sent some times, and Postgres then keeps a plan for any group, which joins a few
        rows one by one: seconds for a group of 10,000 partitions. `keep_plans`: it may, for statements that are the
        same for a group of any size, in requests so frequent that planning counts.
        Nobody waits for what it locks, so that it may pause as long as a statement may take: a process that gets no
        turn on a busy machine is not a frozen one.
        Raises ProtocolError COORDINATOR_NOT_AVAILABLE when no connection is available.
        """
        async with self.connection() as connection, connection.transaction():
            begin = f"{_SNAPSHOT}; {_MAY_PAUSE.format(self._statement_ms)}"
            await connection.execute(begin if keep_plans else f"{begin}; {_PLAN_EACH_TIME}", prepare=False)
            yield connection

    async def transaction(
        self,
        work: Work[T],
        *,
        key: str = "",
        known: bool = True,
        long: bool = False,
        receipt: Callable[[], Receipt | None] = current.receipt,
    ) -> T:
        """Run `work` in one transaction and commit; what it returns was committed.

        Deadlocks and serialization failures rerun `work` from the start, at most MAX_ATTEMPTS times in total. A lock
        held by others is waited for up to `database.lock.timeout.ms` (3 s) in total, mostly without a connection.
        `key`: what the transaction locks, so that later ones queue immediately. Those with a key may be as many as
        groups, and leave some connections to others, which store sessions and steady commits of many groups at once.
        `known`: members of the group have been served; they take turns with groups that are not.
        `long`: it may take longer than `database.transaction.timeout.ms`; the process must not freeze for that long in
        it. `receipt`: called after `work`, returns the request that must not be too old.
        Raises ProtocolError COORDINATOR_NOT_AVAILABLE: Postgres is not available, and the outcome is then unknown; or
        the lock was not available, or the request is too old, and then nothing was committed.
        """
        failures = 0
        until = self._lane.enter() if self._lane.is_locked(key) else None
        try:
            while True:
                try:
                    result = await self._try(work, receipt, until, key, known, long=long)
                except pg.LockNotAvailable:
                    if key:
                        self._lane.note(key, locked=True)
                    until = until or self._lane.enter()
                    await self.blockers.end()
                    await self._lane.pause(until)
                except RETRIED as error:
                    failures += 1
                    if failures == MAX_ATTEMPTS:
                        raise self.unavailable(error) from error
                    await asyncio.sleep(random.uniform(0, 0.02 * failures))  # noqa: S311 - jitter, not a secret
                except Overtime:
                    long = True
                except UNAVAILABLE as error:
                    raise self.unavailable(error) from error
                else:
                    self._lane.note(key, locked=False)
                    return result
        finally:
            if until is not None:
                self._lane.leave()

    @asynccontextmanager
    async def _place(self, key: str, known: bool) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if key:
                try:
                    async with asyncio.timeout(self._acquire_seconds):
                        await stack.enter_async_context(self._for_keys.place(line=known))
                except TimeoutError:
                    raise PoolTimeout("too many transactions of single groups wait for a connection") from None
            yield

    def check_queue(self) -> None:
        """Raises ProtocolError COORDINATOR_NOT_AVAILABLE if a group that is not known would wait for long."""
        most = self._most_waiting
        if time.monotonic() - self._for_keys.since(line=False) > LONG_QUEUE_SECONDS or self._for_keys.waiting >= most:
            raise ProtocolError(
                Error.COORDINATOR_NOT_AVAILABLE,
                f"groups that this server has not served lately wait for {LONG_QUEUE_SECONDS:.0f} s, or {most} groups "
                "wait (http.max.queue); send it again",
                retry_after_ms=self._retry_after_ms,
            )

    async def _try(
        self,
        work: Work[T],
        receipt: Callable[[], Receipt | None],
        until: float | None,
        key: str,
        known: bool,
        *,
        long: bool,
    ) -> T:
        if until is None:
            async with self._place(key, known):
                return await self._once(work, receipt, CROWDED_TRY_MS if self._lane.crowded else None, long=long)
        async with self._lane.place(until) as lock_ms, self._place(key, known):
            return await self._once(work, receipt, lock_ms, long=long)

    async def _once(
        self, work: Work[T], receipt: Callable[[], Receipt | None], lock_ms: int | None, *, long: bool
    ) -> T:
        """One try. Raises Overtime if it is to be repeated as a long one."""
        async with self._borrowed_writer() as connection:
            stepwise = long or connection.info.server_version < sessions.PIPELINED_FROM
            # In a pipeline statements are sent together until a row is requested; the commit goes with the last.
            transaction = connection.transaction() if stepwise else connection.transaction_in_pipeline()
            began, worked = time.monotonic(), False
            connection.database_ms = None
            try:
                async with transaction:
                    if long:
                        await sessions.lift_transaction_limit(connection)
                    if lock_ms is not None:
                        await connection.execute(Q.limit_lock_wait.encode(), {"timeout": f"{lock_ms}ms"})
                    result = await work(connection)
                    worked = True
                    await self._check_age(connection, receipt(), reread=stepwise)
                    return result
            except UNAVAILABLE as error:
                ended = not stepwise and not worked and (time.monotonic() - began) * 1000 >= self._limit_ms * 0.95
                if ended and not self.request_age.pulse.was_frozen_since(began):
                    raise Overtime from error
                raise

    async def _check_age(self, connection: WatchedConnection, receipt: Receipt | None, *, reread: bool) -> None:
        """Refuse a request that is too old, under the locks of its transaction.

        The clock reading made in the transaction suffices if the transaction as a whole has a time limit; otherwise
        the commit must follow a new reading (`reread`).
        """
        if receipt is None:
            return
        if reread or connection.database_ms is None:
            await self.now_ms(connection)
        refusal = self.refusal(connection, receipt)
        if refusal is not None:
            raise refusal

    def refusal(self, connection: Connection, receipt: Receipt | None) -> ProtocolError | None:
        """Why a request may not write: it is too old according to the clock last read in this transaction."""
        read = _last_reading(connection)
        return None if receipt is None or read is None else self.request_age.refusal(receipt, read)

    def age_ms(self, connection: Connection, receipt: Receipt | None) -> int:
        """How long ago a request was received, by the clock last read in this transaction; 0 for own work."""
        read = _last_reading(connection)
        return 0 if receipt is None or read is None else round(self.request_age.age_ms(receipt, read))

    async def _end_stuck_sessions(self) -> list[TupleRow]:
        async with self.connection() as connection:
            return await self.rows(connection, Q.end_stuck_sessions, {"limit_ms": self._limit_ms})

    async def now_ms(self, connection: Connection) -> int:
        """The time, from the injected clock or the database's."""
        now, database_ms = await self.one(connection, Q.read_clocks, {"override": self.clock.override_ms})
        self.note_clock(connection, database_ms)
        return int(now)

    def note_clock(self, connection: Connection, database_ms: int) -> None:
        """The database's own clock was read on this connection; request age is measured by it."""
        self.request_age.measure(database_ms)
        if isinstance(connection, WatchedConnection):
            connection.database_ms = database_ms

    async def one(self, connection: Connection, statement: str, parameters: dict[str, Any]) -> TupleRow:
        """The only row of a statement that always has one."""
        row = await self.row(connection, statement, parameters)
        assert row is not None, "the statement has no row"
        return row

    async def value(self, connection: Connection, statement: str, parameters: dict[str, Any] | None = None) -> Any:
        """The first column of the first row; None if there are no rows."""
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

    async def column(
        self, connection: Connection, statement: str, parameters: dict[str, Any] | None = None
    ) -> list[Any]:
        """The first column of all rows."""
        return [row[0] for row in await self.rows(connection, statement, parameters)]

    async def records(
        self, connection: Connection, kind: Callable[..., T], statement: str, parameters: dict[str, Any] | None = None
    ) -> list[T]:
        """All rows as `kind`: a class whose fields are the columns, or a function that takes them by name."""
        cursor = connection.cursor(row_factory=by_name(kind))
        await cursor.execute(statement.encode(), parameters)
        return await cursor.fetchall()

    async def record(
        self, connection: Connection, kind: Callable[..., T], statement: str, parameters: dict[str, Any] | None = None
    ) -> T | None:
        """The first row as `kind`, or None."""
        cursor = connection.cursor(row_factory=by_name(kind))
        await cursor.execute(statement.encode(), parameters)
        return await cursor.fetchone()

    async def has_space(self) -> bool:
        """Whether Postgres can write something new to its disk; true as well if it cannot be found out.

        Raises ProtocolError COORDINATOR_NOT_AVAILABLE when no connection is available.
        """
        async with self.connection() as connection:
            try:
                async with connection.transaction():
                    await connection.execute(Q.little_memory.encode())
                    await connection.execute(Q.take_space.encode())
            except psycopg.Error as error:
                self.disk_was_full = isinstance(error, pg.DiskFull)
            else:
                self.disk_was_full = False
        return not self.disk_was_full

    def unavailable(self, error: Exception) -> ProtocolError:
        """The answer while Postgres is unavailable."""
        log.warning("database_unavailable", reason=str(error).strip() or type(error).__name__)
        detail = self.origins.problem or "the database is not available; the same request may succeed later"
        if isinstance(error, NoStandby):
            detail = (
                "no synchronous standby confirms commits: this one is stored unless Postgres fails over; "
                "send the same request again"
            )
        if isinstance(error, pg.DiskFull):
            self.disk_was_full = True
            detail = "the disk of the database is full; the same request may succeed when it has space again"
        return ProtocolError(
            Error.COORDINATOR_NOT_AVAILABLE,
            detail,
            retry_after_ms=self._retry_after_ms,
        )


def _last_reading(connection: Connection) -> int | None:
    """The database's clock as last read in this transaction; None: not read, or on a connection of another kind."""
    return connection.database_ms if isinstance(connection, WatchedConnection) else None
