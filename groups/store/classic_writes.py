"""Reads and writes the rows of classic groups, inside a transaction of `GroupStore`."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

from groups.core.model.deadlines import wake_at, wake_at_to_store
from groups.core.model.types import ClassicGroup, ClassicMember, Millis
from groups.store import classic_rows as rows
from groups.store.stored import GroupAppeared, Stored
from kcoord.database.pool import Connection, Database
from kcoord.protocol.consumer_protocol import decode_assignment
from kcoord.sql import queries

Q = queries("groups")

CONSUMER_PROTOCOL_TYPE = "consumer"
MAX_TOPIC_LENGTH = 249


class ClassicWriter:
    """Classic groups: header, members, pending ids, the topics of the generation, and in readable form the leader's
    assignment.
    """

    def __init__(self, db: Database) -> None:
        self._db = db

    async def load(self, connection: Connection, group_id: str, row: rows.Row, pk: int) -> ClassicGroup:
        """The group of a header row."""
        members = await self._db.rows(connection, Q.load_members, {"id": pk})
        pending = await self._db.rows(connection, Q.load_pending, {"id": pk})
        topics = await self._db.value(connection, Q.load_generation_topics, {"id": pk})
        return rows.group_from_rows(group_id, row, members, pending, topics)

    async def persist(self, connection: Connection, before: Stored, after: ClassicGroup, now: Millis) -> Stored:
        """Write what changed. Raises GroupAppeared."""
        assert before.group is None or isinstance(before.group, ClassicGroup)
        due = wake_at(after)
        changes = rows.changes(before.group, after)
        if changes.only_deadlines:
            due = wake_at_to_store(before.wake_at, due, now)
        tag = uuid4()
        if before.pk is None:
            parameters = {**rows.group_columns(after), "wake_at": due, "now": now, "version_tag": tag}
            pk = await self._db.value(connection, Q.insert_group, parameters)
            if pk is None:
                raise GroupAppeared
            version = 1
        elif changes.nothing and due == before.wake_at:
            return Stored(before.pk, before.version, before.version_tag, due, after)
        else:
            pk, version = before.pk, before.version + 1
            await self._update_header(connection, pk, after, changes, due, now, tag)
        await self._write_members(connection, pk, changes)
        await self._write_assignments(connection, pk, after, changes)
        if changes.topics:
            await self._write_topics(connection, pk, after)
        return Stored(pk, version, tag, due, after)

    async def _update_header(
        self,
        connection: Connection,
        pk: int,
        after: ClassicGroup,
        changes: rows.Changes,
        due: Millis | None,
        now: Millis,
        tag: UUID,
    ) -> None:
        if changes.only_deadlines:
            await connection.execute(Q.touch_group.encode(), {"id": pk, "wake_at": due, "version_tag": tag})
        else:
            parameters = {**rows.group_columns(after), "id": pk, "wake_at": due, "now": now, "version_tag": tag}
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
            # An unchanged assignment is not sent: each write would store it out of line once more.
            assigned = {member.member_id for member in changes.reassigned}
            columns = [
                rows.progress_columns(member) | ({} if member.member_id in assigned else {"assignment": None})
                for member in changes.progressed
            ]
            arrays = {name: [column[name] for column in columns] for name in columns[0]}
            member_ids = [member.member_id for member in changes.progressed]
            await connection.execute(Q.update_member_progress.encode(), {"id": pk, "member_id": member_ids, **arrays})
        if changes.pending_set:
            ids, deadlines = list(changes.pending_set), list(changes.pending_set.values())
            await connection.execute(Q.upsert_pending.encode(), {"id": pk, "member_id": ids, "deadline": deadlines})

    async def _write_topics(self, connection: Connection, pk: int, after: ClassicGroup) -> None:
        topics = after.generation_topics
        if topics is None:
            await connection.execute(Q.delete_generation_topics.encode(), {"id": pk})
        else:
            await connection.execute(Q.upsert_generation_topics.encode(), {"id": pk, "topics": sorted(topics)})

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
                continue  # opaque bytes may decode to invalid topic names
            for partition in partitions:
                owned.setdefault((topic, partition), member.member_id)
    return [(topic, partition, member_id) for (topic, partition), member_id in owned.items()]
