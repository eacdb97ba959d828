"""The store of committed offsets: the only writer of their table.

It writes inside the transaction that fenced the commit under the group's lock (invariant 2): a commit that is
answered with success is ordered before the generation that would fence it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcoord.db import Connection, Database
from kcoord.runtime import Runtime
from kcoord.sql import queries
from offsets.core.types import FetchedOffset, Millis, OffsetCommit, OffsetRecord, TopicPartition

Q = queries("offsets")


class OffsetStore:
    """Reads and writes committed offsets."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db

    async def partition_counts(self, names: Sequence[str]) -> dict[str, int]:
        """Partition counts of the topics that exist among `names`."""
        async with self._db.connection() as connection:
            rows = await self._db.rows(connection, Q.topic_partitions, {"names": list(names)})
        return dict(rows)

    async def write(
        self, connection: Connection, group: int, commit: OffsetCommit, records: Sequence[OffsetRecord], now: Millis
    ) -> None:
        """Write the rows of one commit; `group` is the key of the locked group row."""
        if not records:
            return
        await connection.execute(
            Q.upsert_offsets.encode(),
            {
                "group": group,
                "now": now,
                "member_id": commit.member_id,
                "generation_id": commit.generation_id,
                "topic": [record.topic for record in records],
                "partition": [record.partition for record in records],
                "committed_offset": [record.offset for record in records],
                "leader_epoch": [record.leader_epoch for record in records],
                "metadata": [record.metadata for record in records],
                "expire_timestamp": [record.expire_timestamp for record in records],
            },
        )

    async def fetch(self, group_id: str, partitions: Sequence[TopicPartition] | None) -> list[FetchedOffset]:
        """Committed offsets of a group: of the named partitions, or all. What is not committed is absent."""
        parameters: dict[str, object] = {"group_id": group_id}
        statement = Q.fetch_all
        if partitions is not None:
            statement = Q.fetch_named
            parameters |= {"topic": [topic for topic, _ in partitions], "partition": [p for _, p in partitions]}
        async with self._db.connection() as connection:
            return [FetchedOffset(*row) for row in await self._db.rows(connection, statement, parameters)]
