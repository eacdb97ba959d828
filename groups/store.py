"""The store of groups: the only writer of their tables.

One group, one row lock, one transaction. The lock is a statement of its own; the clock and what is not cached are
read in the statements after it. A folded group stays in memory with its version: under the lock an equal version
means that nobody changed it since, so nothing is loaded.

Source: design page "Architecture", section 4.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from psycopg.types.json import Jsonb

from groups import rows
from groups.core.deadlines import wake_at
from groups.core.events import GroupEvent
from groups.core.types import ClassicGroup, ClassicMember, Millis
from kcoord.consumer_protocol import decode_assignment
from kcoord.db import Connection, Database
from kcoord.hub import CHANGED, WAKE
from kcoord.runtime import Runtime
from kcoord.sql import queries

Q = queries("groups")

CONSUMER_PROTOCOL_TYPE = "consumer"
MAX_TOPIC_LENGTH = 249


class GroupAppeared(Exception):
    """Another process created the group between our look and our insert: start the transaction over."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A group as it stands in the database: `pk` and `version` of its row (None, 0: there is no row)."""

    pk: int | None
    version: int
    wake_at: Millis | None
    group: ClassicGroup | None


MISSING = Stored(pk=None, version=0, wake_at=None, group=None)


class GroupStore:
    """Loads and writes folded groups."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db
        self._capacity = runtime.config.int("cache.max.groups")
        self._cache: OrderedDict[str, Stored] = OrderedDict()

    async def lock(self, connection: Connection, group_id: str, *, skip_locked: bool = False) -> tuple[Stored, Millis]:
        """Lock the group's row until the transaction ends, and load what the cache does not hold.

        Returns the group and the time, which is read once the lock is held. `skip_locked`: answer MISSING instead of
        waiting when another transaction holds the lock.
        """
        statement = Q.lock_group_or_skip if skip_locked else Q.lock_group
        row, now = await self._db.row_and_now(connection, statement, {"group_id": group_id})
        return await self._from_row(connection, group_id, row), now

    async def read(self, group_id: str) -> Stored:
        """The group as last committed, without a lock: one snapshot of header and members."""
        async with self._db.snapshot() as connection:
            row = await self._db.row(connection, Q.read_group, {"group_id": group_id})
            return await self._from_row(connection, group_id, row)

    async def _from_row(self, connection: Connection, group_id: str, row: rows.Row | None) -> Stored:
        if row is None:
            return MISSING
        header = rows.header(row)
        cached = self._cache.get(group_id)
        if cached is not None and (cached.pk, cached.version) == (header.pk, header.version):
            self._cache.move_to_end(group_id)
            return Stored(header.pk, header.version, header.wake_at, cached.group)
        members = await self._db.rows(connection, Q.load_members, {"id": header.pk})
        pending = await self._db.rows(connection, Q.load_pending, {"id": header.pk})
        return Stored(header.pk, header.version, header.wake_at, rows.group_from_rows(group_id, row, members, pending))

    def remember(self, group_id: str, stored: Stored) -> None:
        """Keep what was committed. Call it only after the commit."""
        if stored.pk is None:
            self._cache.pop(group_id, None)
            return
        self._cache[group_id] = stored
        self._cache.move_to_end(group_id)
        while len(self._cache) > self._capacity:
            self._cache.popitem(last=False)

    def forget(self, group_id: str) -> None:
        """Drop a group from memory, after a transaction of unknown or failed outcome."""
        self._cache.pop(group_id, None)

    async def persist(self, connection: Connection, before: Stored, after: ClassicGroup | None, now: Millis) -> Stored:
        """Make the rows say what was folded; returns the group as it will stand after the commit.

        Raises GroupAppeared when the group was to be created and another process was faster.
        """
        if after is None:
            if before.pk is not None:
                await connection.execute(Q.delete_group.encode(), {"id": before.pk})
            return MISSING
        due = wake_at(after)
        changes = rows.changes(before.group, after)
        if before.pk is None:
            pk = await self._db.value(
                connection, Q.insert_group, {**rows.group_columns(after), "wake_at": due, "now": now}
            )
            if pk is None:
                raise GroupAppeared
            version = 1
        elif changes.nothing and due == before.wake_at:
            return Stored(before.pk, before.version, due, after)
        else:
            pk, version = before.pk, before.version + 1
            await self._update_header(connection, pk, after, changes, due, now)
        await self._write_members(connection, pk, changes)
        await self._write_assignments(connection, pk, after, changes)
        return Stored(pk, version, due, after)

    async def _update_header(
        self,
        connection: Connection,
        pk: int,
        after: ClassicGroup,
        changes: rows.Changes,
        due: Millis | None,
        now: Millis,
    ) -> None:
        only_deadlines = not (changes.header or changes.removed or changes.upserted)
        if only_deadlines:
            await connection.execute(Q.touch_group.encode(), {"id": pk, "wake_at": due})
        else:
            parameters = {**rows.group_columns(after), "id": pk, "wake_at": due, "now": now}
            await connection.execute(Q.update_group.encode(), parameters)

    async def _write_members(self, connection: Connection, pk: int, changes: rows.Changes) -> None:
        if changes.removed:
            await connection.execute(Q.delete_members.encode(), {"id": pk, "member_id": list(changes.removed)})
        if changes.pending_removed:
            await connection.execute(Q.delete_pending.encode(), {"id": pk, "member_id": list(changes.pending_removed)})
        if changes.upserted:
            parameters = [rows.member_columns(pk, member) for member in changes.upserted]
            await connection.cursor().executemany(Q.upsert_member.encode(), parameters)
        if changes.progressed:
            columns = [rows.progress_columns(member) for member in changes.progressed]
            arrays = {name: [column[name] for column in columns] for name in columns[0]}
            member_ids = [member.member_id for member in changes.progressed]
            await connection.execute(Q.update_member_progress.encode(), {"id": pk, "member_id": member_ids, **arrays})
        if changes.pending_set:
            ids, deadlines = list(changes.pending_set), list(changes.pending_set.values())
            await connection.execute(Q.upsert_pending.encode(), {"id": pk, "member_id": ids, "deadline": deadlines})

    async def _write_assignments(
        self, connection: Connection, pk: int, after: ClassicGroup, changes: rows.Changes
    ) -> None:
        emptied = [*changes.removed, *(member.member_id for member in changes.reassigned)]
        if emptied:
            await connection.execute(Q.delete_assignments.encode(), {"id": pk, "member_id": emptied})
        owned = owned_partitions(after, changes.reassigned)
        if owned:
            topics, partitions, members = zip(*owned, strict=True)
            await connection.execute(
                Q.insert_assignments.encode(),
                {
                    "id": pk,
                    "generation_id": after.generation_id,
                    "topic": list(topics),
                    "partition": list(partitions),
                    "member_id": list(members),
                },
            )

    async def append_events(
        self, connection: Connection, group_id: str, events: Sequence[GroupEvent], now: Millis
    ) -> None:
        """Write what happened, for people."""
        if not events:
            return
        await connection.execute(
            Q.insert_events.encode(),
            {
                "group_id": group_id,
                "now": now,
                "kind": [event.kind.value for event in events],
                "generation_id": [event.generation_id for event in events],
                "member_id": [event.member_id for event in events],
                "detail": [Jsonb(dict(event.detail)) for event in events],
            },
        )

    async def notify(self, connection: Connection, group_id: str, *, wake: bool, changed: bool) -> None:
        """Tell other processes at commit: somebody must wake, a page must look again."""
        if wake:
            await connection.execute(Q.notify.encode(), {"channel": WAKE, "group_id": group_id})
        elif changed:
            await connection.execute(Q.notify.encode(), {"channel": CHANGED, "group_id": group_id})

    async def due_groups(self, limit: int) -> list[str]:
        """Ids of groups whose `wake_at` has come, the latest first to come due first."""
        async with self._db.connection() as connection:
            parameters = {"override": self._db.clock.override_ms(), "limit": limit}
            return [row[0] for row in await self._db.rows(connection, Q.due_groups, parameters)]

    async def postpone(self, group_id: str, delay_ms: Millis) -> None:
        """Push a group's wake-up ahead without touching anything else."""
        async with self._db.connection() as connection:
            await connection.execute(
                Q.postpone_group.encode(),
                {"override": self._db.clock.override_ms(), "delay_ms": delay_ms, "group_id": group_id},
            )

    async def record_tick(self) -> None:
        """Note that the timers ran."""
        async with self._db.connection() as connection:
            await connection.execute(Q.record_tick.encode(), {"override": self._db.clock.override_ms()})

    async def trim_events(self, before: Millis, limit: int) -> int:
        """Delete up to `limit` events older than `before`; returns how many went."""
        async with self._db.connection() as connection:
            cursor = await connection.execute(Q.trim_events.encode(), {"before": before, "limit": limit})
            return cursor.rowcount


def owned_partitions(group: ClassicGroup, members: Sequence[ClassicMember]) -> list[tuple[str, int, str]]:
    """(topic, partition, member id) of assignments that are Kafka's ConsumerProtocol bytes; others own nothing here."""
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return []
    owned: dict[tuple[str, int], str] = {}
    for member in members:
        assignment = decode_assignment(member.assignment)
        if assignment is None:
            continue
        for topic, partitions in assignment.partitions.items():
            if not topic or len(topic) > MAX_TOPIC_LENGTH or "\0" in topic:
                continue  # opaque bytes may decode to names that no topic can have
            for partition in partitions:
                owned.setdefault((topic, partition), member.member_id)
    return [(topic, partition, member_id) for (topic, partition), member_id in owned.items()]
