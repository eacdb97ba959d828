"""The store of committed offsets: the only writer of their table and of the journal.

It writes inside the transaction that fenced the commit under the group's lock (invariant 2): a commit that is
answered with success is ordered before the generation that would fence it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groups.store.locked import Deletion, LockedGroup
from groups.store.rows import number_array, text_array
from kcoord.database.pool import Database
from kcoord.database.sql import queries
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime
from offsets.core.commit import Lines
from offsets.core.types import ChangeKind, FetchedOffset, Millis, OffsetRecord, Provenance, TopicPartition

Q = queries("offsets")


class OffsetStore:
    """Reads and writes committed offsets."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db

    async def write(self, locked: LockedGroup, records: Sequence[OffsetRecord], provenance: Provenance) -> None:
        """Write committed offsets, and a line of the journal for each. A partition is in `records` only once."""
        if not records:
            return
        size = off_loop.PER_OFFSET * len(records)
        columns = await off_loop.run_within(locked.connection, size, _columns, records, locked.now)
        if size > off_loop.ABOVE:  # psycopg would look at each element of the lists several times, on the event loop
            columns = await off_loop.run_within(locked.connection, size, _literals, columns)
        parameters = {**_context(locked, provenance), "transactional_id": provenance.transactional_id, **columns}
        await locked.connection.execute(Q.write_offsets.encode(), parameters)

    async def committed_since(self, locked: LockedGroup, lines: Lines, since: Millis) -> Millis | None:
        """When one of these partitions was last committed, if that was after `since`; else None."""
        parameters = {
            "group": locked.pk,
            "topic": [name for name, count in lines.topics for _ in range(count)],
            "partition": lines.partitions,
            "since": since,
            "now": locked.now,
        }
        found: Millis | None = await self._db.value(locked.connection, Q.overtaken_by, parameters)
        return found

    async def remove(
        self,
        locked: LockedGroup,
        partitions: Sequence[TopicPartition],
        provenance: Provenance,
        *,
        up_to: int | None = None,
    ) -> list[TopicPartition]:
        """Remove committed and pending offsets, with a line of the journal for each; returns the removed ones.

        `up_to`: offsets with a larger record offset, that is, written later, stay.
        """
        if not partitions:
            return []
        parameters = {
            **_context(locked, provenance),
            "topic": [topic for topic, _ in partitions],
            "partition": [partition for _, partition in partitions],
            "up_to": up_to,
        }
        rows = await self._db.rows(locked.connection, Q.remove_offsets, parameters)
        return [(topic, partition) for topic, partition in rows]

    async def offsets_of(self, locked: LockedGroup, limit: int) -> set[tuple[str, int, int, str, bool]]:
        """Topic, partition, offset, metadata and whether it is pending, of at most `limit` offsets of a group."""
        rows = await self._db.rows(locked.connection, Q.offsets_of_group, {"group": locked.pk, "limit": limit})
        return {(topic, partition, offset, metadata, pending) for topic, partition, offset, metadata, pending in rows}

    async def committed_within(self, locked: LockedGroup, partitions: Sequence[TopicPartition]) -> dict[str, int]:
        """The committed offsets of some partitions, by `topic-partition`, in the transaction that holds the group."""
        parameters = {
            "group_id": locked.group_id,
            "topic": [topic for topic, _ in partitions],
            "partition": [partition for _, partition in partitions],
        }
        found = await self._db.records(locked.connection, FetchedOffset.stored, Q.fetch_named, parameters)
        return {f"{one.topic}-{one.partition}": one.committed_offset for one in found}

    async def fetch(self, group_id: str, partitions: Sequence[TopicPartition] | None) -> list[FetchedOffset]:
        """Committed offsets of a group: of the named partitions, or all. Partitions without an offset are absent."""
        parameters: dict[str, object] = {"group_id": group_id}
        statement = Q.fetch_all
        if partitions is not None:
            statement = Q.fetch_named
            parameters |= {"topic": [topic for topic, _ in partitions], "partition": [p for _, p in partitions]}
        async with self._db.connection() as connection:
            return await self._db.records(connection, FetchedOffset.stored, statement, parameters)


async def journal_deletion(deletion: Deletion) -> None:
    """The hook of deleted groups: their offsets are removed with a line of the journal each."""
    await deletion.connection.execute(
        Q.remove_offsets_of_group.encode(),
        {
            "group": deletion.pk,
            "group_id": deletion.group_id,
            "now": deletion.now,
            "kind": ChangeKind.GROUP_DELETE.value,
            "principal": deletion.principal,
        },
    )


def _columns(records: Sequence[OffsetRecord], now: Millis) -> dict[str, Any]:
    """The parameters of `write_offsets` with an element for each record."""
    return {
        "topic": [record.topic for record in records],
        "partition": [record.partition for record in records],
        "committed_offset": [record.offset for record in records],
        "leader_epoch": [record.leader_epoch for record in records],
        "metadata": [record.metadata for record in records],
        "expire_timestamp": [record.expire_timestamp for record in records],
        "commit_timestamp": [now if record.commit_timestamp is None else record.commit_timestamp for record in records],
    }


def _literals(columns: dict[str, Any]) -> dict[str, Any]:
    """The same parameters as texts."""
    return {
        name: text_array(values) if name in ("topic", "metadata") else number_array(values)
        for name, values in columns.items()
    }


def _context(locked: LockedGroup, provenance: Provenance) -> dict[str, object]:
    return {
        "group": locked.pk,
        "group_id": locked.group_id,
        "now": locked.now,
        "kind": provenance.kind.value,
        "member_id": provenance.member_id,
        "generation_id": provenance.generation_id,
        "client_id": provenance.client_id,
        "principal": provenance.principal,
        "plan_id": provenance.plan_id,
    }
