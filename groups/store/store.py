"""The store of groups: the only writer of their tables.

One group, one row lock, one transaction. The lock is a separate statement; the clock and what is not cached are read in
the statements after it. A folded group stays in memory (`groups.store.stored`): under the lock an equal version with an
equal tag means that nothing changed it since, so nothing is loaded.

Source: architecture.md 4.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import structlog

from groups.core.coordinator import partition_of
from groups.core.model.consumer_group import EpochGroup
from groups.core.model.deadlines import wake_at, wake_at_to_store
from groups.core.model.events import GroupEvent
from groups.core.model.group import Group
from groups.core.model.sessions import with_sessions
from groups.core.model.types import Millis
from groups.store.bulk import BulkLoad
from groups.store.classic import ClassicRows
from groups.store.consumer import KINDS, ConsumerRows
from groups.store.events import EventStore
from groups.store.stored import MISSING, Copies, Copy, GroupAppeared, GroupRow, Ownership, Stored
from kcoord.database.notifications import CHANGED, WAKE
from kcoord.database.pool import Connection, Database, by_name
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime
from kcoord.sql import queries

log = structlog.get_logger(__name__)

Q = queries("groups")


class GroupStore:
    """Loads and writes folded groups."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db
        self._partitions = runtime.config.int("offsets.topic.num.partitions")
        self._margin_ms = runtime.config.int("database.transaction.timeout.ms")
        self._classic = ClassicRows(self._db)
        self._consumer = ConsumerRows(self._db)
        self._copies = Copies(runtime.config.int("cache.max.groups"), runtime.config.int("cache.max.members"))
        self._bulk = BulkLoad(self._db, self._classic, self._consumer)
        runtime.on_connection_lost(self._copies.drop_all)
        for channel in (WAKE, CHANGED):
            runtime.notifications.on(channel, self._copies.hint)
        self._events = runtime.get(EventStore)

    async def lock(
        self, connection: Connection, group_id: str, *, skip_locked: bool = False
    ) -> tuple[Stored, Millis, Ownership]:
        """Lock the group's row until the transaction ends, and load what the cache does not hold.

        Returns the group, the time, and who runs its timers, both read once the lock is held. `skip_locked`: answer
        MISSING instead of waiting when another transaction holds the lock.
        """
        statement = Q.lock_group_or_skip if skip_locked else Q.lock_group
        locking = connection.cursor(row_factory=by_name(GroupRow))
        await locking.execute(statement.encode(), {"group_id": group_id})
        now, ownership = await self.ownership(connection, group_id)  # sent together with the lock in a pipeline
        row = await locking.fetchone()
        if row is not None:
            ahead = self._copies.ahead_of(group_id, row)
            if ahead is not None:
                row = await self._outrun(connection, group_id, row, ahead)
        return await self._from_row(connection, group_id, row), now, ownership

    async def ownership(self, connection: Connection, group_id: str, *, hold: bool = False) -> tuple[Millis, Ownership]:
        """The time, and who runs the timers of a group's partition with enough of its lease left.

        Enough is the limit of a transaction: one that is still open when the lease ends has been ended by Postgres.
        `hold`: nobody else gets the partition, and its gap does not grow, until the transaction ends.
        """
        partition = partition_of(group_id, self._partitions)
        if hold:
            await connection.execute(Q.hold_partition.encode(), {"partition": partition})
        parameters = {
            "partition": partition,
            "margin_ms": self._margin_ms,
            "override": self._db.clock.override_ms,
        }
        found = await self._db.one(connection, Q.read_ownership, parameters)
        now, database_ms, owner, epoch, gap, active, known_until = found
        self._db.note_clock(connection, database_ms)
        return now, Ownership(active, owner, epoch, gap, known_until)

    async def with_sessions(self, connection: Connection, stored: Stored) -> Stored:
        """The group with its sessions as the rows have them now: those of a copy may be too early, never too late."""
        if stored.pk is None or stored.group is None:
            return stored
        sessions = await self._rows(stored.group).load_sessions(connection, stored.pk)
        size = 0 if isinstance(stored.group, EpochGroup) else off_loop.PER_MEMBER * len(sessions)
        return replace(stored, group=await off_loop.run_within(connection, size, with_sessions, stored.group, sessions))

    async def _outrun(self, connection: Connection, group_id: str, row: GroupRow, ahead: Copy) -> GroupRow:
        """Postgres went back in time: members hold generations that this process issued and the row does not know.

        The generation is raised above them, so that none of them is issued again with other owners; a member that holds
        one is fenced and rejoins. Only groups that a process has seen can be protected in this way.
        """
        later = row._replace(
            version=max(row.version, ahead.stored.version) + 1,
            version_tag=uuid4(),
            generation_id=max(row.generation_id, ahead.generation) + 1,
        )
        log.warning(
            "group_went_back",
            group_id=group_id,
            version=row.version,
            known_version=ahead.stored.version,
            generation_id=row.generation_id,
            known_generation_id=ahead.generation,
            next_generation_id=later.generation_id,
        )
        parameters = {
            "id": row.id,
            "version": later.version,
            "version_tag": later.version_tag,
            "generation_id": later.generation_id,
        }
        await connection.execute(Q.outrun_group.encode(), parameters)
        await self.notify(connection, group_id, wake=False, changed=True)
        return later

    async def read(self, group_id: str, *, partitions: bool = True, sessions: bool = False) -> Stored:
        """The group as last committed, without a lock: one snapshot of header and members.

        Without `partitions` a consumer group may come without what its members own and should own, which may be a
        hundred thousand rows: for readers of its state and subscriptions. `sessions`: as the rows have them, else those
        of some members may be too early.
        """
        async with self._db.snapshot(keep_plans=True) as connection:
            row = await self._db.record(connection, GroupRow, Q.read_group, {"group_id": group_id})
            stored = await self._from_row(connection, group_id, row, partitions=partitions)
            return await self.with_sessions(connection, stored) if sessions else stored

    async def _from_row(
        self, connection: Connection, group_id: str, row: GroupRow | None, *, partitions: bool = True
    ) -> Stored:
        if row is None:
            return MISSING
        group = self._copies.find(group_id, row)
        if group is None and row.type in KINDS:
            group = await self._consumer.load(connection, group_id, row, partitions=partitions)
        elif group is None:
            group = await self._classic.load(connection, group_id, row)
        return Stored(row.id, row.version, row.version_tag, row.wake_at, group)

    async def load(self, group_ids: Sequence[str]) -> None:
        """Load groups that are not in memory, all together; those that cannot be loaded stay out of it.

        What another process changes meanwhile makes a copy doubtful, as a notification about it does at any time.
        Raises ProtocolError COORDINATOR_NOT_AVAILABLE when no connection is available.
        """
        read_at, era = time.monotonic(), self._copies.era
        async with self._db.snapshot(keep_plans=True) as connection:
            async for group_id, row, group in self._bulk.groups(connection, group_ids):
                stored = Stored(row.id, row.version, row.version_tag, row.wake_at, group)
                self._copies.put_snapshot(group_id, row, stored, read_at, era)

    def remember(self, group_id: str, stored: Stored, locked_at: float) -> None:
        """Keep what was committed. Call it only after the commit.

        `locked_at`: when the row was held, in seconds of the monotonic clock.
        """
        self._copies.put(group_id, stored, locked_at)

    def copy_of(self, group_id: str) -> Copy | None:
        """The group as this process last knew it, for what may be decided on a copy that is out of date."""
        return self._copies.current(group_id)

    def has_copy_of(self, group_id: str) -> bool:
        """Whether the group is in memory. To ask is no use of it."""
        return self._copies.has(group_id)

    def forget_all(self) -> None:
        """Make the next use of every group load it."""
        self._copies.drop_all()

    def forget(self, group_id: str) -> None:
        """Make the next use load the group, after a transaction with an unknown or failed outcome."""
        self._copies.drop(group_id)

    async def persist(self, connection: Connection, before: Stored, after: Group | None, now: Millis) -> Stored:
        """Make the rows match the folded group; returns the group as it will be stored after the commit.

        Raises GroupAppeared if the group was to be created and another process created it first.
        """
        if after is None:
            if before.pk is not None:
                await connection.execute(Q.delete_group.encode(), {"id": before.pk})
            return MISSING
        before = await self._without_the_other_protocol(connection, before, after)
        rows, due, tag = self._rows(after), wake_at(after), uuid4()
        changes = await rows.changes(connection, before.group, after)
        if changes.only_deadlines:
            due = wake_at_to_store(before.wake_at, due, now)
        touched: dict[str, object] = {"partition": partition_of(after.group_id, self._partitions), "wake_at": due}
        kept = Stored(before.pk, before.version, before.version_tag, due, after)
        if before.pk is None:
            parameters = {**rows.header(after), **touched, "now": now, "version_tag": tag}
            pk = await self._db.value(connection, rows.insert, parameters)
            if pk is None:
                raise GroupAppeared
            kept = Stored(pk, 1, tag, due, after)
        elif changes.nothing and due == before.wake_at:
            return kept
        elif changes.only_renewed:  # other processes may keep their copies of the group
            if due != before.wake_at:
                await connection.execute(Q.move_wake_up.encode(), {**touched, "id": before.pk})
        else:
            kept = Stored(before.pk, before.version + 1, tag, due, after)
            touched |= {"id": before.pk, "version_tag": tag}
            if changes.only_deadlines:
                await connection.execute(Q.touch_group.encode(), touched)
            else:
                await rows.update(connection, after, changes, {**touched, "now": now})
        await rows.write(connection, kept.pk, after, changes)
        return kept

    def _rows(self, group: Group) -> Any:
        """Those of the group's protocol, which take groups of its type."""
        return self._consumer if isinstance(group, EpochGroup) else self._classic

    async def _without_the_other_protocol(self, connection: Connection, before: Stored, after: Group) -> Stored:
        """A group that changes its protocol keeps its row and its offsets; its member rows are deleted first."""
        if before.pk is None or before.group is None or type(before.group) is type(after):
            return before
        statement = Q.delete_consumer_children if isinstance(before.group, EpochGroup) else Q.delete_classic_children
        await connection.execute(statement.encode(), {"id": before.pk})
        return Stored(before.pk, before.version, before.version_tag, before.wake_at, None)

    async def append_events(
        self, connection: Connection, group_id: str, events: Sequence[GroupEvent], now: Millis
    ) -> None:
        """Write what happened, for people."""
        await self._events.append(connection, group_id, events, now)

    async def notify(self, connection: Connection, group_id: str, *, wake: bool, changed: bool) -> None:
        """Notify other processes at commit: a waiter must wake, a page must refresh."""
        if wake:
            await connection.execute(Q.notify.encode(), {"channel": WAKE, "group_id": group_id})
        elif changed:
            await connection.execute(Q.notify.encode(), {"channel": CHANGED, "group_id": group_id})

    async def due_groups(self, limit: int, owner: int | None = None) -> list[str]:
        """Ids of groups whose `wake_at` has come and whose timers may run, the most overdue ones first.

        `owner`: only those of partitions that this incarnation of a node owns.
        """
        async with self._db.connection() as connection:
            parameters = {
                "now": await self._db.now_ms(connection),
                "limit": limit,
                "owner": owner,
                "margin_ms": self._margin_ms,
            }
            return await self._db.column(connection, Q.due_groups, parameters)

    async def postpone(self, group_id: str, delay_ms: Millis) -> None:
        """Push a group's wake-up ahead without touching anything else."""
        async with self._db.connection() as connection:
            await connection.execute(
                Q.postpone_group.encode(),
                {"override": self._db.clock.override_ms, "delay_ms": delay_ms, "group_id": group_id},
            )

    async def record_tick(self) -> None:
        """Record that the timers ran."""
        async with self._db.connection() as connection:
            await connection.execute(Q.record_tick.encode(), {"override": self._db.clock.override_ms})
