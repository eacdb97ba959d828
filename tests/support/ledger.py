"""Committed offsets with their lines of the journal, written as the service writes them, at any instant."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import dict_row

MINUTE = 60_000

COMMIT = """
with line as (
    insert into offset_commit_log (at, kind, group_name, topic, partition, committed_offset, metadata, member_id,
                                   generation_id)
    values (%(at)s, %(kind)s, %(group)s, %(topic)s, %(partition)s, %(offset)s, 'note', %(member)s, %(generation)s)
    returning *
)
insert into offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch, metadata,
                                     commit_timestamp, member_id, generation_id, record_offset)
select g.id, l.topic, l.partition, l.committed_offset, -1, l.metadata, l.at, l.member_id, l.generation_id, l.id
from line l
join groups_group g on g.group_id = l.group_name
on conflict (group_id, topic, partition) do update
set committed_offset = excluded.committed_offset, commit_timestamp = excluded.commit_timestamp,
    record_offset = excluded.record_offset, member_id = excluded.member_id, generation_id = excluded.generation_id
"""


class Ledger:
    """Writes as the service does, at any instant."""

    def __init__(self, conninfo: str) -> None:
        self.connection = psycopg.connect(conninfo, autocommit=True, row_factory=dict_row)
        row = self.execute("select (extract(epoch from clock_timestamp()) * 1000)::bigint as now")[0]
        self.now = row["now"] - 60 * MINUTE

    def execute(self, statement: str, **parameters: Any) -> list[dict[str, Any]]:
        """Run a statement; its rows."""
        cursor = self.connection.execute(statement.encode(), parameters)
        return cursor.fetchall() if cursor.description else []

    def topic(self, name: str, partitions: int = 20) -> None:
        """A topic, an hour and a minute old."""
        self.execute(
            "insert into groups_topic (name, topic_id, partitions, labels, created_at)"
            " values (%(name)s, gen_random_uuid(), %(partitions)s, '{}', %(at)s)",
            name=name, partitions=partitions, at=self.now - MINUTE,
        )  # fmt: skip

    def group(self, name: str, kind: str = "classic") -> None:
        """An empty group, as old as the topics."""
        self.execute(
            "insert into groups_group (group_id, type, state, previous_state, state_since, generation_id,"
            " new_member_added, version, created_at, updated_at)"
            " values (%(name)s, %(kind)s, 'Empty', 'Empty', %(at)s, 0, false, 1, %(at)s, %(at)s)",
            name=name, kind=kind, at=self.now - MINUTE,
        )  # fmt: skip

    def commit(self, partition: int, offset: int, *, member: str = "", generation: int = -1, **given: Any) -> None:
        """A commit of the group `billing` on the topic `orders`, a second after the one before."""
        self.now += given.pop("after_ms", 1_000)
        values = {"kind": "commit", "group": "billing", "topic": "orders", "at": self.now, **given}
        self.execute(COMMIT, partition=partition, offset=offset, member=member, generation=generation, **values)

    def watermark(self, partition: int, start: int, end: int) -> None:
        """A report of now."""
        self.now += 1_000
        self.execute(
            "insert into groups_watermark (topic_id, partition, log_start_offset, log_end_offset, sampled_at)"
            " select id, %(partition)s, %(start)s, %(end)s, %(at)s from groups_topic where name = 'orders'",
            partition=partition, start=start, end=end, at=self.now,
        )  # fmt: skip
