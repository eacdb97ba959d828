"""The store of groups: the only writer of their tables, of their events, and of the copies in the memory of a process.

A group is decided under the lock of its row, several in a transaction. The lock is a separate statement; the clock and
what is not cached are read in the statements after it. A folded group stays in memory: a copy is current as long as the
row has its key, its version and its version tag, and then nothing is loaded. The version alone is not enough: after a
failover to a standby that lags behind, or a restore, Postgres counts from an older number again and reaches the same
one with other content. The tag is random, drawn with each version. Copies that are dropped are remembered by key,
version and generation, so that a row that went back in time is detected.

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
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import structlog

from groups.core.model.consumer_group import EpochGroup
from groups.core.model.events import GroupEvent
from groups.core.model.group import Group, Session, partition_of, wake_at, wake_at_to_store, with_sessions
from groups.core.model.types import Millis
from groups.store.bulk import BulkLoad
from groups.store.classic import ClassicRows
from groups.store.consumer import KINDS, ConsumerRows
from groups.store.rows import (
    MISSING,
    Change,
    GroupRow,
    Ownership,
    Stored,
    Writing,
    Written,
    as_json,
    number_array,
    text_array,
)
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


Happened = tuple[str, Millis, GroupEvent]
"""An event with the id of its group and the instant (ms)."""


class EventStore:
    """Appends events and deletes old ones."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db
        self._keep = runtime.config.int("events.max.per.group")
        self._trim_every = max(self._keep // 10, 1)
        self._written: OrderedDict[str, int] = OrderedDict()

    async def append(self, connection: Connection, happened: Sequence[Happened]) -> None:
        """Write what happened, for people, in the transaction that decided it."""
        if not happened:
            return
        parameters = {
            "group_id": text_array(group_id for group_id, _, _ in happened),
            "at": number_array(at for _, at, _ in happened),
            "kind": text_array(event.kind.value for _, _, event in happened),
            "generation_id": number_array(event.generation_id for _, _, event in happened),
            "member_id": text_array(event.member_id for _, _, event in happened),
            "detail": text_array(json.dumps(dict(event.detail)) for _, _, event in happened),
        }
        await connection.execute(Q.insert_events.encode(), parameters)
        for group_id, events in Counter(group_id for group_id, _, _ in happened).items():
            if self._count(group_id, events) >= self._trim_every:
                del self._written[group_id]
                # Twice the number written: an excess from before shrinks without holding the group's lock for long.
                limit = 2 * max(self._trim_every, events)
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
        self, connection: Connection, group_ids: Sequence[str], *, skip_locked: bool = False
    ) -> dict[str, tuple[Stored, Ownership]]:
        """Lock the rows of groups until the transaction ends, and load what the cache does not hold.

        Returns each group, with the time and who runs its timers, both read once the locks are held. `skip_locked`:
        do not wait for the locks of other transactions; such a group is MISSING although its `Ownership.exists`.
        """
        statement = Q.lock_groups_or_skip if skip_locked else Q.lock_groups
        locking = connection.cursor(row_factory=by_name(GroupRow))
        await locking.execute(statement.encode(), {"group_id": text_array(group_ids)})
        owners = await self.ownership(connection, group_ids)  # sent together with the lock in a pipeline
        found = {row.group_id: row for row in await locking.fetchall()}
        for group_id, row in found.items():
            ahead = self._copies.ahead_of(group_id, row)
            if ahead is not None:
                found[group_id] = await self._outrun(connection, group_id, row, ahead)
        return {
            group_id: (await self._from_row(connection, group_id, found.get(group_id)), owners[group_id])
            for group_id in group_ids
        }

    async def ownership(
        self, connection: Connection, group_ids: Sequence[str], *, hold: bool = False
    ) -> dict[str, Ownership]:
        """The time, and who runs the timers of groups' partitions with enough of their leases left.

        Enough is the limit of a transaction: one that is still open when the lease ends has been ended by Postgres.
        `hold`: nobody else gets the partitions, and their gaps do not grow, until the transaction ends.
        """
        partitions = number_array(partition_of(group_id, self._partitions) for group_id in group_ids)
        if hold:
            await connection.execute(Q.hold_partitions.encode(), {"partition": partitions})
        parameters = {
            "group_id": text_array(group_ids),
            "partition": partitions,
            "margin_ms": self._margin_ms,
            "override": self._db.clock.override_ms,
        }
        found: dict[str, Ownership] = {}
        for row in await self._db.rows(connection, Q.read_ownership, parameters):
            group_id, exists, now, database_ms, owner, epoch, gap, active, known_until = row
            self._db.note_clock(connection, database_ms)
            found[group_id] = Ownership(now, exists, active, owner, epoch, gap, known_until)
        return found

    async def with_sessions(self, connection: Connection, groups: Sequence[Stored]) -> list[Stored]:
        """The groups with the sessions that their rows have now: those of a copy may be too early, never too late."""
        sessions: defaultdict[int | None, dict[str, Session]] = defaultdict(dict)
        for rows in (self._classic, self._consumer):
            ids = [one.pk for one in groups if one.pk and one.group is not None and self._rows(one.group) is rows]
            for pk, member_id, deadline, heard_at in await rows.load_sessions(connection, ids) if ids else ():
                sessions[pk][member_id] = Session(deadline, heard_at)
        return [await self._with_sessions(connection, one, sessions[one.pk]) for one in groups]

    @staticmethod
    async def _with_sessions(connection: Connection, stored: Stored, sessions: dict[str, Session]) -> Stored:
        if stored.group is None:
            return stored
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
        await self.notify(connection, changed=[group_id])
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
            return (await self.with_sessions(connection, [stored]))[0] if sessions else stored

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

    async def persist(self, connection: Connection, changed: Sequence[Change]) -> list[Stored | None]:
        """Make the rows match folded groups, set by set; returns each as it will be stored after the commit.

        None: the group was to be created, and another process created it first; nothing of it is written.
        """
        if gone := [one.before.pk for one in changed if one.after is None and one.before.pk is not None]:
            await connection.execute(Q.delete_groups.encode(), {"ids": gone})
        await self._delete_other_protocols(connection, changed)
        writings = [await self._writing(connection, one) async for one in off_loop.sliced(changed)]
        kept = await self._write_headers(connection, writings)
        for rows in (self._classic, self._consumer):
            written = [
                Written(one.pk, one.group, writing.changes)
                for one, writing in zip(kept, writings, strict=True)
                if one is not None
                and one.pk is not None
                and writing.changes is not None
                and self._rows(one.group) is rows
            ]
            if written:
                await rows.write(connection, written)
        return kept

    async def _delete_other_protocols(self, connection: Connection, changed: Sequence[Change]) -> None:
        """A group that changes its protocol keeps its row and its offsets; its member rows are deleted first."""
        for rows in (self._classic, self._consumer):
            ids = [
                before.pk
                for before, after, _ in changed
                if before.group is not None and _is_other(before, after) and self._rows(before.group) is rows
            ]
            if ids:
                await connection.execute(rows.delete_all.encode(), {"ids": ids})

    async def _writing(self, connection: Connection, change: Change) -> Writing:
        before, after, now = change
        if after is None:
            return Writing(MISSING)
        rows, due = self._rows(after), wake_at(after)
        changes = await rows.changes(connection, None if _is_other(before, after) else before.group, after)
        if changes.only_deadlines:
            due = wake_at_to_store(before.wake_at, due, now)
        kept, is_new = replace(before, wake_at=due, group=after), before.pk is None
        if not is_new and changes.nothing and due == before.wake_at:
            return Writing(kept)
        if not is_new and changes.only_renewed:  # other processes may keep their copies of the group
            return Writing(kept, changes, touched=due != before.wake_at)
        kept = replace(kept, version=before.version + 1, version_tag=uuid4())
        if not is_new and changes.only_deadlines:
            return Writing(kept, changes, touched=True)
        header = {**rows.header(after), **self._touched(kept), "updated_at": now}
        if changes.resolution_stays:
            header["resolution"] = None
        return Writing(kept, changes, header)

    def _touched(self, kept: Stored) -> dict[str, object]:
        assert kept.group is not None
        return {
            "id": kept.pk,
            "partition": partition_of(kept.group.group_id, self._partitions),
            "wake_at": kept.wake_at,
            "version": kept.version,
            "version_tag": kept.version_tag,
        }

    async def _write_headers(self, connection: Connection, writings: Sequence[Writing]) -> list[Stored | None]:
        """Write the rows of the groups themselves; returns the groups with their keys, None as `persist`."""
        headers = [one.header for one in writings if one.header is not None]
        keys: dict[str, int] = {}
        if new := [header for header in headers if header["id"] is None]:
            keys = dict(await self._db.rows(connection, Q.insert_groups, {"groups": as_json(new)}))
        if old := [header for header in headers if header["id"] is not None]:
            same = [one.kept.pk for one in writings if one.header is not None and one.changes.resolution_stays]
            parameters = {"groups": as_json(old), "same_resolution": same}
            await connection.execute(Q.update_groups.encode(), parameters)
        if touched := [self._touched(one.kept) for one in writings if one.touched]:
            columns = {name: [row[name] for row in touched] for name in touched[0]}
            await connection.execute(Q.touch_groups.encode(), columns)
        return [_with_key(one, keys) for one in writings]

    def _rows(self, group: Group | None) -> Any:
        """Those of the group's protocol, which take groups of its type."""
        return self._consumer if isinstance(group, EpochGroup) else self._classic

    async def append_events(self, connection: Connection, happened: Sequence[Happened]) -> None:
        """Write what happened, for people."""
        await self._events.append(connection, happened)

    async def notify(self, connection: Connection, *, wake: Sequence[str] = (), changed: Sequence[str] = ()) -> None:
        """Notify other processes at commit, by ids of groups: waiters must wake, pages must refresh."""
        if wake or changed:
            channels = [WAKE] * len(wake) + [CHANGED] * len(changed)
            parameters = {"channel": text_array(channels), "group_id": text_array([*wake, *changed])}
            await connection.execute(Q.notify.encode(), parameters)

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


def _is_other(before: Stored, after: Group | None) -> bool:
    """The group changes its protocol."""
    return after is not None and type(before.group) is not type(after)


def _with_key(writing: Writing, created: Mapping[str, int]) -> Stored | None:
    kept = writing.kept
    if kept.group is None or kept.pk is not None:
        return kept
    pk = created.get(kept.group.group_id)
    return None if pk is None else replace(kept, pk=pk)
