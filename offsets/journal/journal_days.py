"""Day partitions of the journal: created ahead, dropped when they are old. Celery beat calls this through the bridge.

Commits continue meanwhile. Steps that need a lock that commits would wait for get it within LOCK_TIMEOUT_MS or give up:
after a few attempts the day is postponed to the next run. A line that found no partition for its day is in the default
partition; it is moved in the transaction that creates the day, so that every reader sees it once.

PostgreSQL locks the default partition while it attaches another, and reads all of it to verify that nothing in it
belongs there, unless a check constraint proves it. So there are two ways. A small default partition, the normal case
unless maintenance did not run for days, is simply locked. A large one gets the constraint, which closes it to lines of
that day (`shut_…`): only for days that get none now, in the future or long past. Today's lines then stay there until
the day is over.

While an archive is configured, a day is dropped only once published runs cover it (`offsets.journal.archived_days`).

Source: architecture.md 6 and 7; PostgreSQL's documentation of table partitioning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import structlog
from psycopg import errors as pg
from psycopg import sql

from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from offsets.core.days import Calendar, Day, bounds, day_named, partition_name
from offsets.core.types import Millis
from offsets.journal.archived_days import ArchivedDays

log = structlog.get_logger(__name__)

Q = queries("offsets")

LOCK_TIMEOUT_MS: Millis = 200
"""The longest that a commit can wait because of a lock that maintenance requests."""

LOCK_ATTEMPTS = 10
PAUSE_SECONDS = 0.1
"""Between two attempts: commits that waited behind the first one get their turn."""

MOVE_TIMEOUT_MS: Millis = 600_000
"""The longest statement of a move out of a large default partition; it blocks no commits."""

SMALL_DEFAULT_BYTES = 2 * 1024 * 1024
TRIM_BATCH = 5_000

_IN_THE_WAY = (pg.LockNotAvailable, pg.QueryCanceled, pg.CheckViolation, pg.DeadlockDetected)
"""Why a day is postponed. A check violation: a line came late, after the lines of its day were moved."""

# Utility statements take no parameters, and a partition's name is part of the statement.
_CREATE = sql.SQL(
    "create table {day} (like offset_commit_log including all,"
    " constraint bounds check (at >= {first} and at < {after}))"
)
_LOCK_WRITERS = sql.SQL("lock table only offset_commit_log in share row exclusive mode")
_LOCK_DEFAULT = sql.SQL("lock table offset_commit_log_default in access exclusive mode")
_MOVE = sql.SQL(
    "with moved as (delete from offset_commit_log_default where at >= {first} and at < {after} returning *)"
    " insert into {day} select * from moved"
)
_ATTACH = sql.SQL("alter table offset_commit_log attach partition {day} for values from ({first}) to ({after})")
_UNBOUND = sql.SQL("alter table {day} drop constraint bounds")
_SHUT = sql.SQL(
    "alter table offset_commit_log_default add constraint {shut} check (at < {first} or at >= {after}) not valid"
)
_VALIDATE = sql.SQL("alter table offset_commit_log_default validate constraint {shut}")
_REOPEN = sql.SQL("alter table offset_commit_log_default drop constraint if exists {shut}")
_DROP = sql.SQL("drop table {day}")
_ONE_STATE = sql.SQL("set transaction isolation level repeatable read")
_PATIENCE = sql.SQL("set local lock_timeout = {ms}")
_NO_LIMIT = sql.SQL("set local statement_timeout = {ms}")
_LOCK_ROWS = sql.SQL("lock table {day} in share mode")
_LOCK_DAY = sql.SQL("lock table only {day} in access exclusive mode")


class _NotCovered(Exception):
    """The archive does not match the journal. The text says why."""


@dataclass(slots=True)
class UpkeepReport:
    """What a run did. `moved` lines left the default partition for their days; `put_off` is tried again.

    `trimmed` lines of the default partition were too old to keep. `kept` days are too old, but not in the archive.
    `busy`: another run was under way, and this one did nothing.
    """

    made: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    put_off: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    moved: int = 0
    trimmed: int = 0
    busy: bool = False


class JournalDays:
    """Maintains the journal's partitions. Idempotent: late, double and concurrent runs are harmless."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._archived = runtime.get(ArchivedDays)
        self._retention_days = runtime.config.int("offsets.journal.retention.days")

    async def keep(self) -> UpkeepReport:
        """Drop the days that are too old, then create the missing ones.

        A day that would block others is postponed and logged; the rest is still done. Raises ProtocolError
        COORDINATOR_NOT_AVAILABLE while the database is unavailable.
        """
        report = UpkeepReport()
        async with self._db.connection() as connection:
            if not await self._db.value(connection, Q.lock_journal_days):
                report.busy = True
                return report
            try:
                await self._keep(connection, report)
            finally:
                await connection.execute(Q.unlock_journal_days.encode())
        log.info("journal_days_kept", made=report.made, dropped=report.dropped, moved=report.moved)
        return report

    async def _keep(self, connection: Connection, report: UpkeepReport) -> None:
        calendar = Calendar(await self._db.now_ms(connection), self._retention_days)
        for name in await self._db.column(connection, Q.shut_days):
            await self._try(name, report, partial(self._reopen, connection, name))
        tables: dict[str, bool] = dict(await self._db.rows(connection, Q.journal_tables))
        days = {day: attached for name, attached in tables.items() if (day := day_named(name)) is not None}
        there = [day for day, attached in days.items() if attached]
        if self._archived.is_configured:
            await self._drop_archived(connection, calendar, there, report)
        else:
            for day in calendar.to_drop(there):
                if await self._try(partition_name(day), report, partial(self._drop, connection, day)):
                    report.dropped.append(partition_name(day))
            report.trimmed = await self._trim_default(connection, bounds(calendar.oldest)[0])
        in_default = await self._db.column(connection, Q.days_in_default)
        for day in calendar.to_make(there, in_default):
            await self._make(connection, calendar, day, report, taken=day in days)

    async def _make(
        self, connection: Connection, calendar: Calendar, day: Day, report: UpkeepReport, *, taken: bool
    ) -> None:
        name = partition_name(day)
        if taken:
            log.error("journal_day_taken", table=name, remedy="attach the table to offset_commit_log or rename it")
            report.put_off.append(name)
            return
        small = await self._db.value(connection, Q.default_bytes) <= SMALL_DEFAULT_BYTES
        written = not calendar.is_quiet(day)
        if written and not small:
            log.warning("journal_day_put_off", day=name, reason="its lines are moved when it is over")
            report.put_off.append(name)
            return
        make = partial(self._make_locked, written=written) if small else self._make_shut
        if await self._try(name, report, partial(make, connection, day, report)):
            report.made.append(name)

    async def _try(self, name: str, report: UpkeepReport, work: Callable[[], Awaitable[None]]) -> bool:
        """Do the work unless something keeps blocking it; returns whether it was done."""
        for attempt in range(1, LOCK_ATTEMPTS + 1):
            try:
                await work()
            except _IN_THE_WAY as error:
                if attempt == LOCK_ATTEMPTS or not isinstance(error, pg.LockNotAvailable):
                    log.warning("journal_day_put_off", day=name, reason=str(error).strip())
                    report.put_off.append(name)
                    return False
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                return True
        raise AssertionError("unreachable")

    async def _make_locked(self, connection: Connection, day: Day, report: UpkeepReport, *, written: bool) -> None:
        """Under a lock of the default partition: few lines are moved, and few have to be read to attach the day.

        `written`: the day may get lines now. Then writers wait before they look for their partition: one that found the
        default and waited for its lock would fail when the day takes over the line's range.
        """
        async with connection.transaction():
            await self._set_timeouts(connection, LOCK_TIMEOUT_MS * 10)
            await connection.execute(_about(_CREATE, day))
            if written:
                await connection.execute(_LOCK_WRITERS)
            await connection.execute(_LOCK_DEFAULT)
            moved = await connection.execute(_about(_MOVE, day))
            await connection.execute(_about(_ATTACH, day))
            await connection.execute(_about(_UNBOUND, day))
        report.moved += moved.rowcount

    async def _make_shut(self, connection: Connection, day: Day, report: UpkeepReport) -> None:
        """Concurrently with commits into the default partition: it is closed to lines of the day, and none come now."""
        async with connection.transaction():
            await self._set_timeouts(connection, MOVE_TIMEOUT_MS)
            await connection.execute(_about(_REOPEN, day))  # an earlier run may have been interrupted
            await connection.execute(_about(_SHUT, day))
        done = False
        try:
            async with connection.transaction():
                await self._set_timeouts(connection, MOVE_TIMEOUT_MS)
                await connection.execute(_about(_CREATE, day))
                moved = await connection.execute(_about(_MOVE, day))
                await connection.execute(_about(_VALIDATE, day))
                await self._attach_patiently(connection, day)
                await connection.execute(_about(_REOPEN, day))
                await connection.execute(_about(_UNBOUND, day))
            done = True
        finally:
            if not done:
                await self._reopen(connection, _shut(day))
        report.moved += moved.rowcount

    async def _attach_patiently(self, connection: Connection, day: Day) -> None:
        """Attach the day without undoing the move each time that the lock is not available."""
        for attempt in range(1, LOCK_ATTEMPTS + 1):
            try:
                async with connection.transaction():
                    await connection.execute(_about(_ATTACH, day))
            except pg.LockNotAvailable:
                if attempt == LOCK_ATTEMPTS:
                    raise
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                return

    async def _reopen(self, connection: Connection, shut: str) -> None:
        async with connection.transaction():
            await self._set_timeouts(connection, MOVE_TIMEOUT_MS)
            await connection.execute(_REOPEN.format(shut=sql.Identifier(shut)))

    async def _drop(self, connection: Connection, day: Day) -> None:
        """Locks the whole journal for the moment that the catalogue needs; files are removed after the commit."""
        async with connection.transaction():
            await self._set_timeouts(connection, MOVE_TIMEOUT_MS)
            await self._drop_locked(connection, day)

    async def _drop_locked(self, connection: Connection, day: Day) -> None:
        """The day is locked before the journal, so that commits do not wait behind us while a job reads the day."""
        await connection.execute(_about(_LOCK_DAY, day))
        await connection.execute(_about(_DROP, day))

    async def _drop_archived(
        self, connection: Connection, calendar: Calendar, there: list[Day], report: UpkeepReport
    ) -> None:
        """Drop the old days that the archive covers, with their lines in the default partition; keep the rest."""
        in_default = await self._db.column(connection, Q.days_in_default)
        for day in calendar.to_drop({*there, *in_default}):
            name = partition_name(day)
            problem = await self._archived.problem_of_files(connection, day)
            if problem is None:
                drop = partial(self._drop_covered, connection, day, day in there, report)
                try:
                    if await self._try(name, report, drop) and day in there:
                        report.dropped.append(name)
                    continue
                except _NotCovered as error:
                    problem = str(error)
            log.warning("journal_day_kept", day=name, reason=problem, remedy="run `manage.py archive`")
            report.kept.append(name)

    async def _drop_covered(self, connection: Connection, day: Day, has_table: bool, report: UpkeepReport) -> None:
        """Compare and drop in one transaction; nothing can be written to the day meanwhile. Raises _NotCovered."""
        async with connection.transaction():
            # No statement before the lock takes a snapshot, so that the later count is complete.
            await connection.execute(_ONE_STATE)
            await connection.execute(_PATIENCE.format(ms=sql.Literal(LOCK_TIMEOUT_MS)))
            await connection.execute(_NO_LIMIT.format(ms=sql.Literal(MOVE_TIMEOUT_MS)))
            if has_table:
                await connection.execute(_about(_LOCK_ROWS, day))
            problem = await self._archived.problem_of_rows(connection, day)
            if problem is not None:
                raise _NotCovered(problem)
            trimmed = await self._archived.trim(connection, day)
            if has_table:
                await self._drop_locked(connection, day)
        report.trimmed += trimmed

    async def _trim_default(self, connection: Connection, before: Millis) -> int:
        """Delete lines of the default partition that are too old for a day of their own, in batches."""
        trimmed = 0
        while True:
            parameters = {"before": before, "limit": TRIM_BATCH}
            batch = (await connection.execute(Q.trim_default.encode(), parameters)).rowcount
            trimmed += batch
            if batch < TRIM_BATCH:
                return trimmed

    async def _set_timeouts(self, connection: Connection, statement_ms: Millis) -> None:
        await connection.execute(
            Q.set_timeouts.encode(), {"lock": f"{LOCK_TIMEOUT_MS}ms", "statement": f"{statement_ms}ms"}
        )


def _shut(day: Day) -> str:
    return f"shut_{partition_name(day)}"


def _about(statement: sql.SQL, day: Day) -> sql.Composed:
    """A utility statement about a day: its partition, its first instant and the first after it."""
    first, after = bounds(day)
    return statement.format(
        day=sql.Identifier(partition_name(day)),
        shut=sql.Identifier(_shut(day)),
        first=sql.Literal(first),
        after=sql.Literal(after),
    )
