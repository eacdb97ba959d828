"""Reads and writes the rows of consumer groups, inside a transaction of `GroupStore`."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID, uuid4

from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.deadlines import wake_at, wake_at_to_store
from groups.core.model.types import Millis
from groups.engine import off_loop
from groups.store import classic_rows as rows
from groups.store import consumer_rows
from groups.store.consumer_rows import ConsumerChanges, Owned
from groups.store.stored import GroupAppeared, Stored
from kcoord.database.pool import Connection, Database
from kcoord.sql import queries

Q = queries("groups")

RESOLVED = 20
"""The column of a header row that says whether there is a resolution to load."""


class ConsumerWriter:
    """Consumer groups: header, members, timers, and partition ownership."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def load(
        self, connection: Connection, group_id: str, row: rows.Row, pk: int, *, partitions: bool = True
    ) -> ConsumerGroup:
        """The group of a header row; without `partitions` its members own nothing and have an empty target."""
        members = await self._db.rows(connection, Q.load_consumer_members, {"id": pk, "targets": partitions})
        owned = await off_loop.fetch(connection, Q.load_ownership, {"id": pk}) if partitions else []
        resolution = await self._db.value(connection, Q.load_resolution, {"id": pk}) if row[RESOLVED] else None
        return await off_loop.run(len(owned), consumer_rows.group_from_rows, group_id, row, members, owned, resolution)

    async def persist(self, connection: Connection, before: Stored, after: ConsumerGroup, now: Millis) -> Stored:
        """Write what changed. Raises GroupAppeared."""
        assert before.group is None or isinstance(before.group, ConsumerGroup)
        due = wake_at(after)
        size = off_loop.size_of(before.group) + off_loop.size_of(after)
        changes = await off_loop.run(size, consumer_rows.changes, before.group, after)
        if changes.only_timers:
            due = wake_at_to_store(before.wake_at, due, now)
        tag = uuid4()
        if before.pk is None:
            parameters = {**consumer_rows.group_columns(after), "wake_at": due, "now": now, "version_tag": tag}
            pk = await self._db.value(connection, Q.insert_consumer_group, parameters)
            if pk is None:
                raise GroupAppeared
            version = 1
        elif changes.nothing and due == before.wake_at:
            return Stored(before.pk, before.version, before.version_tag, due, after)
        else:
            pk, version = before.pk, before.version + 1
            await self._update_header(connection, pk, after, changes, due, now, tag)
        await self._write_members(connection, pk, after, changes)
        await self._write_ownership(connection, pk, changes)
        return Stored(pk, version, tag, due, after)

    async def _update_header(
        self,
        connection: Connection,
        pk: int,
        after: ConsumerGroup,
        changes: ConsumerChanges,
        due: Millis | None,
        now: Millis,
        tag: UUID,
    ) -> None:
        if changes.only_timers:
            await connection.execute(Q.touch_group.encode(), {"id": pk, "wake_at": due, "version_tag": tag})
        else:
            parameters = {
                **consumer_rows.group_columns(after),
                "id": pk,
                "wake_at": due,
                "now": now,
                "version_tag": tag,
                "resolution_stays": changes.resolution_stays,
            }
            if changes.resolution_stays:
                parameters["resolution"] = None  # it may be large, so it is not sent again
            await connection.execute(Q.update_consumer_group.encode(), parameters)

    async def _write_members(
        self, connection: Connection, pk: int, after: ConsumerGroup, changes: ConsumerChanges
    ) -> None:
        if changes.removed:
            await connection.execute(Q.delete_consumer_members.encode(), {"id": pk, "member_id": list(changes.removed)})
        if changes.upserted:
            parameters = [consumer_rows.member_columns(pk, member) for member in changes.upserted]
            async for part in off_loop.in_parts(parameters):
                await connection.cursor().executemany(Q.upsert_consumer_member.encode(), part)
        if changes.stepped:
            columns = consumer_rows.step_columns(changes.stepped)
            await connection.execute(Q.update_consumer_steps.encode(), {"id": pk, **columns})
        if changes.timers:
            columns = consumer_rows.timer_columns(after.timers, changes.timers)
            await connection.execute(Q.update_consumer_timers.encode(), {"id": pk, **columns})

    async def _write_ownership(self, connection: Connection, pk: int, changes: ConsumerChanges) -> None:
        """What is released is deleted first: the primary key refuses a second owner."""
        names: dict[object, str] = {}
        async for part in off_loop.in_parts(changes.released):
            names.update(await self._db.rows(connection, Q.release_ownership, {"id": pk, **_columns(part)}))
        async for part in off_loop.in_parts(changes.taken):
            columns = _columns(part)
            columns["name"] = [names.get(topic_id) for topic_id in columns["topic_id"]]
            await connection.execute(Q.take_ownership.encode(), {"id": pk, **columns})


def _columns(owned: Iterable[Owned]) -> dict[str, list[object]]:
    names = ("topic_id", "partition", "member_id", "epoch", "pending")
    return {name: list(column) for name, column in zip(names, zip(*owned, strict=True), strict=True)}
