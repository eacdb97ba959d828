"""Retention: offsets that are not committed again expire after a while, and Empty groups without offsets with them.

Celery beat calls it at `offsets.retention.check.interval.ms`. A run is not atomic: it goes from group to group and
removes each batch of offsets under the group's lock, deciding again there. Running it twice or late is harmless.
A batch is of such a size that no request waits long for the lock, however slow the machine is.

Source: offsets.md 7.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import structlog

from groups.core.model.commands import Tick
from groups.core.model.events import EventKind
from groups.core.model.replies import Done, Reply
from groups.engine.service import GroupService
from groups.store.locked import LockedGroup
from kcoord.database.counters import Counted, count
from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.commits.retention.pins import pins_of
from offsets.commits.store import OffsetStore
from offsets.core.retention import Pins, RetentionRule, StoredOffset, may_go, rule_of
from offsets.core.types import ChangeKind, Millis, Provenance, TopicPartition
from offsets.journal.events import offsets_event

LOCK_SECONDS = 0.03
"""A batch that held its group's lock for longer is followed by a smaller one."""

FIRST_BATCH, SMALLEST_BATCH = 250, 50


@dataclass(slots=True)
class BatchSize:
    """How many offsets the next batch removes: as many as fit into LOCK_SECONDS, `limit` at most."""

    limit: int
    size: int = FIRST_BATCH

    def __post_init__(self) -> None:
        self.size = min(self.size, self.limit)

    def learn(self, held_seconds: float) -> None:
        """Adapt to how long the lock was held for the last batch."""
        if held_seconds > LOCK_SECONDS:
            self.size = max(self.size // 2, min(SMALLEST_BATCH, self.limit))
        elif held_seconds < LOCK_SECONDS / 4:
            self.size = min(self.size * 2, self.limit)


log = structlog.get_logger(__name__)

Q = queries("offsets")

MINUTE_MS = 60_000

PAGE = 200
"""Groups looked at by one statement, which reads every offset of groups that have none due."""

AT_ONCE = 2
"""Groups processed concurrently: while one waits for Postgres another is decided, and members have the rest."""

_START: TopicPartition = ("", -1)


class RetentionFailed(Exception):
    """Some groups could not be cleaned up; the others were."""


@dataclass(slots=True)
class Report:
    """The result of a run. `put_off`: groups that were locked, retried once at its end; `failed`: those that threw."""

    offsets: int = 0
    groups: int = 0
    put_off: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A group as `retention_page` sees it. `due`: an offset may have expired. `bare`: Empty, with nothing in it."""

    pk: int
    group_id: str
    due: bool
    bare: bool


@dataclass(frozen=True, slots=True)
class Removed:
    """The result of one batch: offsets removed, whether the group may go too. `since`: when it acquired the lock."""

    offsets: int
    bare: bool
    since: float = 0.0


class RetentionService:
    """The run, and the rule that it shares with pages that show when offsets expire."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._groups = runtime.get(GroupService)
        self._store = runtime.get(OffsetStore)
        self._batch = runtime.config.int("offsets.retention.batch")
        self.retention_ms: Millis = runtime.config.int("offsets.retention.minutes") * MINUTE_MS
        self._running = asyncio.Lock()

    async def run(self, wait_ms: Millis = 0) -> Report:
        """Remove what has expired by now, in every group. While one runs in this process, a second run does nothing.

        Groups whose coordinator partition has not been active for `wait_ms` are left to a later run: after an outage
        their members need time to commit (offsets.md 7.1).

        A failing group does not hold up the others. Raises RetentionFailed naming the failed groups, after all others;
        ProtocolError COORDINATOR_NOT_AVAILABLE when the database is unavailable.
        """
        if self._running.locked():
            log.warning("retention_still_runs")
            return Report()
        async with self._running:
            report = Report()
            await self._visit_all(report, wait_ms)
            for group_id in report.put_off:
                await self._visit(Candidate(0, group_id, due=True, bare=False), report, skip_locked=False)
        log.info("retention_ran", offsets=report.offsets, groups=report.groups, failed=len(report.failed))
        if report.failed:
            named = ", ".join(report.failed[:10])
            raise RetentionFailed(f"retention failed for {len(report.failed)} groups: {named}")
        return report

    async def _visit_all(self, report: Report, wait_ms: Millis) -> None:
        gate = asyncio.Semaphore(AT_ONCE)

        async def visit(candidate: Candidate) -> None:
            async with gate:
                await self._visit(candidate, report, skip_locked=True)

        after = 0
        while True:
            page = await self._page(after, wait_ms)
            try:
                async with asyncio.TaskGroup() as visits:
                    for candidate in page:
                        if candidate.due or candidate.bare:
                            visits.create_task(visit(candidate))
            except ExceptionGroup as group:
                raise group.exceptions[0] from None  # visits handle errors of their group: the database is unavailable
            if len(page) < PAGE:
                return
            after = page[-1].pk

    async def _page(self, after: int, wait_ms: Millis) -> list[Candidate]:
        async with self._db.connection() as connection:
            now = await self._db.now_ms(connection)
            parameters = {"after": after, "limit": PAGE, "retention_ms": self.retention_ms, "now": now}
            parameters["wait_ms"] = wait_ms
            return await self._db.records(connection, Candidate, Q.retention_page, parameters)

    async def _visit(self, candidate: Candidate, report: Report, *, skip_locked: bool) -> None:
        group_id = candidate.group_id
        try:
            bare = candidate.bare
            if candidate.due:
                bare = await self._expire(group_id, report, skip_locked=skip_locked)
            if bare and await self._remove_group(group_id):
                report.groups += 1
        except ProtocolError as error:
            log.warning("retention_put_off", group_id=group_id, reason=error.detail)
            report.failed.append(group_id)
            await self._check_database()
        except Exception:
            log.exception("retention_failed", group_id=group_id)
            report.failed.append(group_id)

    async def _check_database(self) -> None:
        """This group may be locked for long. If the database is unavailable for all, the run ends here."""
        async with self._db.connection() as connection:
            await self._db.now_ms(connection)

    async def _expire(self, group_id: str, report: Report, *, skip_locked: bool) -> bool:
        """Remove what has expired in a group, batch by batch; returns whether the group may be deleted."""
        found = await self._look(group_id)
        if found is None or found[1].keeps_all:
            return False
        pk, rule = found
        after, removed, batch = _START, Removed(0, bare=False), BatchSize(self._batch)
        while due := await self._due(pk, rule, after, size := batch.size):
            within = partial(self._remove, due)
            outcome = await self._groups.execute(Tick(group_id), within, skip_locked=skip_locked)
            if not isinstance(outcome, Removed):
                report.put_off += [group_id] if skip_locked else []
                return False
            removed, after = outcome, due[-1]
            batch.learn(time.monotonic() - removed.since)
            report.offsets += removed.offsets
            # None of them: a join, commit or pin came since the rule was read. The next run reads it again.
            if len(due) < size or not removed.offsets:
                break
        return removed.bare

    async def rule(self, group_id: str) -> RetentionRule | None:
        """The rule for a group as last committed; None: no such group.

        Raises ProtocolError COORDINATOR_NOT_AVAILABLE.
        """
        found = await self._look(group_id)
        return None if found is None else found[1]

    async def _look(self, group_id: str) -> tuple[int, RetentionRule] | None:
        """Key and rule of a group; None: no such group."""
        stored = await self._groups.describe(group_id, partitions=False)
        if stored.pk is None or stored.group is None:
            return None
        async with self._db.connection() as connection:
            pins = await pins_of(self._db, connection, group_id)
        return stored.pk, rule_of(stored.group, pins, self.retention_ms)

    async def _due(self, pk: int, rule: RetentionRule, after: TopicPartition, limit: int) -> list[TopicPartition]:
        """The next batch of what the rule lets expire, without a lock: however many are examined, no request waits."""
        async with self._db.connection() as connection:
            parameters = {
                "group": pk,
                "after_topic": after[0],
                "after_partition": after[1],
                "kept_topics": sorted(rule.kept_topics),
                "since": rule.since,
                "retention_ms": rule.retention_ms,
                "now": await self._db.now_ms(connection),
                "limit": limit,
            }
            rows = await self._db.rows(connection, Q.due_offsets, parameters)
        return [(topic, partition) for topic, partition in rows]

    async def _remove(self, due: Sequence[TopicPartition], locked: LockedGroup) -> Removed:
        """Decide again what of `due` has expired, now that commits, joins and pins are locked out, and remove it."""
        since = time.monotonic()
        pins = await pins_of(self._db, locked.connection, locked.group_id)
        rule = rule_of(locked.group, pins, self.retention_ms)
        parameters = {
            "group": locked.pk,
            "topic": [topic for topic, _ in due],
            "partition": [partition for _, partition in due],
        }
        stored = await self._db.records(locked.connection, StoredOffset, Q.stored_offsets, parameters)
        expired = [(offset.topic, offset.partition) for offset in stored if rule.expired(offset, locked.now)]
        removed = await self._store.remove(locked, sorted(expired), Provenance(ChangeKind.EXPIRE))
        if removed:
            locked.events.append(offsets_event(EventKind.OFFSETS_EXPIRED, locked.group, removed))
        bare = await self._is_bare(locked, pins)
        await count(locked.connection, Counted.OFFSETS_EXPIRED, len(removed))
        return Removed(len(removed), bare, since)

    async def _is_bare(self, locked: LockedGroup, pins: Pins) -> bool:
        if not may_go(locked.group, pins, offsets_left=False):
            return False
        return not await self._db.value(locked.connection, Q.offsets_left, {"group": locked.pk})

    async def _remove_group(self, group_id: str) -> bool:
        """Delete a group that is Empty and has nothing left, if it still is so under its lock."""

        async def guard(connection: Connection, pk: int, now: Millis) -> Reply | None:
            if await pins_of(self._db, connection, group_id):
                return Done(Error.NON_EMPTY_GROUP, "it is pinned")
            if await self._db.value(connection, Q.offsets_left, {"group": pk}):
                return Done(Error.NON_EMPTY_GROUP, "it has offsets again")
            if await self._db.value(connection, Q.group_is_held, {"group": pk, "now": now}):
                return Done(Error.NON_EMPTY_GROUP, "an operator holds it")
            return None

        return (await self._groups.delete(group_id, guard=guard)).error is Error.NONE
