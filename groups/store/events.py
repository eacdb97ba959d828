"""The rows of events: written with the decision they describe, and bounded by age and number.

A group that changes in a loop would fill the disk long before its events are old, and between two runs of maintenance.
So writers also trim: each time a process has written a tenth of `events.max.per.group` for a group, the oldest events
beyond that number are deleted in the same transaction. A group has at most that number plus a tenth of it per process;
the excess left by a process that stopped is deleted by maintenance.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence

from groups.core.model.events import GroupEvent
from groups.core.model.types import Millis
from groups.store.arrays import number_array, text_array
from kcoord.database.pool import Connection, Database
from kcoord.process.runtime import Runtime
from kcoord.sql import queries

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
