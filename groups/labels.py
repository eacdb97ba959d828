"""Labels of groups: names and values that people give them, such as `owner`, `team`, `contact` and `runbook`.

They have the rules of the labels of topics (`kcoord.control.rest.labels`). Like settings they exist whether or not the
group does, and survive its deletion. Nothing in the protocol depends on them, so no process keeps them in memory.

Source: http-api.md 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog
from psycopg.types.json import Jsonb

from groups.core.model.events import EventKind, GroupEvent
from groups.core.model.types import Millis
from groups.store.store import GroupStore
from kcoord.access.audit.recording import Act, record
from kcoord.control.rest.labels import merged
from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime

log = structlog.get_logger(__name__)

Q = queries("groups")

OWNER, TEAM, CONTACT, RUNBOOK = CONVENTIONAL = ("owner", "team", "contact", "runbook")
"""Names that pages show first. `contact` and `runbook` are links if they are URLs."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """The labels of a group, by name. `updated_at` (ms) and `updated_by`: the last change; None: it has no labels."""

    labels: Mapping[str, str] = field(default_factory=dict)
    updated_at: Millis | None = None
    updated_by: str | None = None


class GroupLabels:
    """Reads and changes the labels of groups. Methods may raise ProtocolError COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._store = runtime.get(GroupStore)

    async def describe(self, group_id: str) -> Labelled:
        """The labels of a group, which need not exist."""
        async with self._db.connection() as connection:
            return await self._read(connection, group_id)

    async def alter(self, group_id: str, changes: Mapping[str, str | None], updated_by: str) -> Labelled:
        """Set the given labels, all or none, and remove those given as None; returns all labels.

        Raises ProtocolError INVALID_REQUEST, naming the label, for one that breaks a rule, or if there would be too
        many.
        """
        merged({}, changes)  # refused before it waits for anybody
        if not changes:
            return await self.describe(group_id)
        found = await self._db.transaction(lambda connection: self._alter(connection, group_id, changes, updated_by))
        log.info("group_labels_changed", group_id=group_id, changes=dict(changes), updated_by=updated_by)
        return found

    async def _alter(
        self, connection: Connection, group_id: str, changes: Mapping[str, str | None], updated_by: str
    ) -> Labelled:
        now = await self._db.now_ms(connection)
        row = {"group_name": group_id, "now": now, "updated_by": updated_by}
        before: Mapping[str, str] = await self._db.value(connection, Q.lock_group_labels, row) or {}
        after = merged(before, changes)
        if not after:
            await connection.execute(Q.remove_group_labels.encode(), row)
        elif after != before:
            await connection.execute(Q.set_group_labels.encode(), {**row, "labels": Jsonb(after)})
        changed = {name: [before.get(name), after.get(name)] for name in changes if before.get(name) != after.get(name)}
        if changed:
            await self._tell(connection, group_id, {"labels": changed, "principal": updated_by}, now)
        was = {name: before.get(name) for name in changes}
        act = Act("group.labels", "group", group_id, was, dict(changes), principal=updated_by)
        await record(self._db, connection, act)
        return await self._read(connection, group_id)

    async def _read(self, connection: Connection, group_id: str) -> Labelled:
        rows = await self._db.rows(connection, Q.read_group_labels, {"group_name": group_id})
        for labels, updated_at, updated_by in rows:
            return Labelled(dict(sorted(labels.items())), updated_at, updated_by)
        return Labelled()

    async def _tell(self, connection: Connection, group_id: str, detail: Mapping[str, object], now: Millis) -> None:
        """Record the change in the events of the group, whether it exists or not, and refresh pages that show it."""
        generation_id = await self._db.value(connection, Q.generation_of_group, {"group_id": group_id}) or 0
        event = GroupEvent(EventKind.LABELS_CHANGED, generation_id, None, detail)
        await self._store.append_events(connection, [(group_id, now, event)])
        await self._store.notify(connection, changed=[group_id])
