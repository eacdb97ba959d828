"""The store of groups: the only writer of their tables, of their events, and of the copies in the memory of a process.

One group, one row lock, one transaction. The lock is a separate statement; the clock and what is not cached are read in
the statements after it. A folded group stays in memory: a copy is current as long as the row has its key, its version
and its version tag, and then nothing is loaded. The version alone is not enough: after a failover to a standby that
lags behind, or a restore, Postgres counts from an older number again and reaches the same one with other content. The
tag is random, drawn with each version. Copies that are dropped are remembered by key, version and generation, so that a
row that went back in time is detected.

Events are written with the decision they describe, and bounded by age and number. A group that changes in a loop would
fill the disk long before its events are old, and between two runs of maintenance. So writers also trim: each time a
process has written a tenth of `events.max.per.group` for a group, the oldest events beyond that number are deleted in
the same transaction. A group has at most that number plus a tenth of it per process; the excess left by a process that
stopped is deleted by maintenance.

Source: architecture.md 4.
"""

from __future__ import annotations

import json
import math
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import structlog

from groups.core.model.consumer_group import EpochGroup
from groups.core.model.events import GroupEvent
from groups.core.model.group import Group, partition_of, wake_at, wake_at_to_store, with_sessions
from groups.core.model.types import Millis
from groups.store.bulk import BulkLoad
from groups.store.classic import ClassicRows
from groups.store.consumer import KINDS, ConsumerRows
from groups.store.rows import MISSING, GroupAppeared, GroupRow, Ownership, Stored, number_array, text_array
from kcoord.database.notifications import CHANGED, WAKE
from kcoord.database.pool import Connection, Database, by_name
from kcoord.database.sql import queries
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime


@dataclass(slots=True)
class Copy:
    """What was committed last. `era`: that of the connections that it was read and written with.

    `current_at`: when it was last known to be current; `hinted_at`: when this process was last told that the group had
    changed, perhaps by a change that the copy has. In seconds of the monotonic clock. `weight`: see `weight_of`.
    """

    stored: Stored
    generation: int
    era: int
    current_at: float
    hinted_at: float
    weight: int

    @property
    def is_doubtful(self) -> bool:
        """The group may have changed since the copy was known to be current."""
        return self.hinted_at >= self.current_at


HINTS_SECONDS = 60.0
"""How long a hint about a group without a copy is kept: longer than a transaction takes that leads to one."""


PARTITIONS_PER_MEMBER = 10
"""The owned partitions of a consumer group that take as much memory as a member."""


class Copies:
    """At most `capacity` groups with `members` members altogether; the least recently used one is dropped first.

    The one that was used last stays, however large it is.
    """

    def __init__(self, capacity: int, members: int) -> None:
        self._capacity = capacity
        self._members = members
        self._weight = 0
        self._copies: OrderedDict[str, Copy] = OrderedDict()
        self._era = 0
        self._hints: OrderedDict[str, float] = OrderedDict()
        self._all_hinted_at = -math.inf

    def find(self, group_id: str, row: GroupRow) -> Group | None:
        """The group that the row describes, None if it must be loaded."""
        copy = self._copies.get(group_id)
        if copy is None or copy.era != self._era:
            return None
        stored = copy.stored
        if (stored.pk, stored.version, stored.version_tag) != (row.id, row.version, row.version_tag):
            return None
        self._copies.move_to_end(group_id)
        return stored.group

    def current(self, group_id: str) -> Copy | None:
        """The copy of a group, which may be out of date; None if it is missing or predates a lost connection."""
        copy = self._copies.get(group_id)
        if copy is None or copy.era != self._era:
            return None
        self._copies.move_to_end(group_id)
        return copy

    def has(self, group_id: str) -> bool:
        """Whether there is a copy, of whatever age."""
        return group_id in self._copies

    def ahead_of(self, group_id: str, row: GroupRow) -> Copy | None:
        """What this process saw committed but the row, locked now, does not have: Postgres went back. Else None.

        Not detected if other processes have raised the row above the version that this process knows.
        """
        copy = self._copies.get(group_id)
        if copy is None or copy.stored.pk != row.id:
            return None
        # The generation is not enough: that of an empty group restarts when the group changes its protocol.
        stored = copy.stored
        other_content = stored.version == row.version and stored.version_tag != row.version_tag
        return copy if stored.version > row.version or other_content else None

    def hint(self, group_id: str | None) -> None:
        """A group has changed; None: any may have. The change may be one that the copy has."""
        now = time.monotonic()
        if group_id is None:
            for copy in self._copies.values():
                copy.hinted_at = now
            self._all_hinted_at = now
            return
        copy_of_it = self._copies.get(group_id)
        if copy_of_it is not None:
            copy_of_it.hinted_at = now
            return
        # Work may be under way after which there is a copy that is older than this change.
        self._keep_hint(group_id, now)

    def _keep_hint(self, group_id: str, now: float) -> None:
        self._hints[group_id] = now
        self._hints.move_to_end(group_id)
        while self._hints and next(iter(self._hints.values())) < now - HINTS_SECONDS:
            self._hints.popitem(last=False)

    def put(self, group_id: str, stored: Stored, current_at: float) -> None:
        """Keep what was committed; forget a deleted group. `current_at`: when its row was locked."""
        before = self._copies.pop(group_id, None)
        if before is not None:
            self._weight -= before.weight
        if stored.pk is None or stored.group is None:
            return
        hinted_at = before.hinted_at if before is not None else self._hints.pop(group_id, -math.inf)
        hinted_at = max(hinted_at, self._all_hinted_at)
        if time.monotonic() - current_at > HINTS_SECONDS:
            hinted_at = math.inf
        weight = weight_of(stored.group)
        self._copies[group_id] = Copy(stored, generation_of(stored.group), self._era, current_at, hinted_at, weight)
        self._weight += weight
        self._make_room()

    def _make_room(self) -> None:
        while len(self._copies) > self._capacity or (self._weight > self._members and len(self._copies) > 1):
            group_id, copy = self._copies.popitem(last=False)
            self._weight -= copy.weight
            # It may be loaded again by a snapshot that was taken before the change of the hint.
            now = time.monotonic()
            if copy.hinted_at > now - HINTS_SECONDS:
                self._keep_hint(group_id, now)

    def put_snapshot(self, group_id: str, row: GroupRow, stored: Stored, read_at: float, era: int) -> bool:
        """Keep a group that was read without a lock, unless more may be known of it. Whether it was kept.

        `read_at`: before the snapshot was taken, in seconds of the monotonic clock; `era`: that of then.
        """
        known = self._copies.get(group_id)
        if era != self._era or self.ahead_of(group_id, row) is not None:
            return False
        if known is not None and known.era == era and known.current_at >= read_at:
            return False
        self.put(group_id, stored, read_at)
        return group_id in self._copies

    @property
    def era(self) -> int:
        """Copies of an earlier one are older than the loss of a connection."""
        return self._era

    def drop(self, group_id: str) -> None:
        """Make the next use load the group; what is read of it meanwhile may be out of date."""
        copy = self._copies.get(group_id)
        if copy is not None:
            copy.era = -1
        self.hint(group_id)

    def drop_all(self) -> None:
        """Make the next use of every group load it."""
        self._era += 1


def weight_of(group: Group) -> int:
    """How many members take as much memory as the group."""
    if isinstance(group, EpochGroup):
        return 1 + len(group.members) + len(group.members.owners) // PARTITIONS_PER_MEMBER
    return 1 + len(group.members)


def generation_of(group: Group) -> int:
    """The generation of a classic group, else the group epoch."""
    return group.group_epoch if isinstance(group, EpochGroup) else group.generation_id


Q = queries("groups")

COUNTED_GROUPS = 10_000
"""The number of groups whose events a process counts; beyond it, those written least recently are forgotten."""
TRIM_BATCH = 5_000
GROUPS_PER_LOOK = 200


class EventStore:
    """Appends events and deletes old ones."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db
        self._keep = runtime.config.int("events.max.per.group")
        self._trim_every = max(self._keep // 10, 1)
        self._written: OrderedDict[str, int] = OrderedDict()

    async def append(self, connection: Connection, group_id: str, events: Sequence[GroupEvent], now: Millis) -> None:
        """Write what happened, for people, in the transaction that decided it."""
        if not events:
            return
        parameters = {
            "group_id": group_id,
            "now": now,
            "kind": text_array(event.kind.value for event in events),
            "generation_id": number_array(event.generation_id for event in events),
            "member_id": text_array(event.member_id for event in events),
            "detail": text_array(json.dumps(dict(event.detail)) for event in events),
        }
        await connection.execute(Q.insert_events.encode(), parameters)
        if self._count(group_id, len(events)) >= self._trim_every:
            del self._written[group_id]
            # Twice the number written: an excess from before shrinks without holding the group's lock for long.
            limit = 2 * max(self._trim_every, len(events))
            await connection.execute(Q.trim_group_events.encode(), self._crowd(group_id, limit))

    def _count(self, group_id: str, events: int) -> int:
        """The number that this process wrote for a group since it trimmed them; including failed transactions."""
        self._written[group_id] = written = self._written.pop(group_id, 0) + events
        while len(self._written) > COUNTED_GROUPS:
            self._written.popitem(last=False)
        return written

    def _crowd(self, group_id: str, limit: int) -> dict[str, object]:
        return {"group_id": group_id, "keep": self._keep, "limit": limit}

    async def trim_old(self, before: Millis) -> int:
        """Delete events from before an instant (ms), in batches; returns the number deleted."""
        deleted = 0
        while True:
            async with self._db.connection() as connection:
                cursor = await connection.execute(Q.trim_events.encode(), {"before": before, "limit": TRIM_BATCH})
            deleted += cursor.rowcount
            if cursor.rowcount < TRIM_BATCH:
                return deleted

    async def trim_crowded(self) -> int:
        """Delete events of groups beyond `events.max.per.group`, in batches; returns the number deleted."""
        deleted, after = 0, ""
        while True:
            async with self._db.connection() as connection:
                parameters = {"after": after, "keep": self._keep, "limit": GROUPS_PER_LOOK}
                groups = await self._db.rows(connection, Q.crowded_timelines, parameters)
            for group_id, crowded in groups:
                deleted += await self._trim_crowd(group_id) if crowded else 0
            if len(groups) < GROUPS_PER_LOOK:
                return deleted
            after = groups[-1][0]

    async def _trim_crowd(self, group_id: str) -> int:
        deleted = 0
        while True:
            async with self._db.connection() as connection:
                cursor = await connection.execute(Q.trim_group_events.encode(), self._crowd(group_id, TRIM_BATCH))
            deleted += cursor.rowcount
            if cursor.rowcount < TRIM_BATCH:
                return deleted


log = structlog.get_logger(__name__)


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
