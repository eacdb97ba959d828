"""The journal and the view of committed offsets, compared: together they must say the same, whatever happened.

And the journal's days: they outlive a test that truncates tables, so whoever makes or counts them drops them.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

DISAGREEMENTS = """
with newest as (
    select distinct on (group_name, topic, partition) *
    from offset_commit_log
    order by group_name, topic, partition, id desc
), committed as (
    select g.group_id as group_name, o.*
    from offsets_committedoffset o
    join groups_group g on g.id = o.group_id
)
select coalesce(c.group_name, n.group_name) as group_name, coalesce(c.topic, n.topic) as topic,
       coalesce(c.partition, n.partition) as partition, n.kind, n.id, n.committed_offset as in_journal,
       c.record_offset, c.committed_offset as in_view
from newest n
full join committed c
     on c.group_name = n.group_name and c.topic = n.topic and c.partition = n.partition
where (c.committed_offset, c.leader_epoch, c.metadata, c.expire_timestamp, c.member_id, c.generation_id)
      is distinct from
      (n.committed_offset, n.leader_epoch, n.metadata, n.expire_timestamp, n.member_id, n.generation_id)
      and (c.group_id is not null or n.committed_offset is not null)
   or c.record_offset is distinct from n.id and c.group_id is not null and n.kind <> 'txn_commit'
"""
"""Partitions whose newest line is neither what is committed nor the removal of what is not."""

DISORDER = """
select * from (
    select id, at, group_name, topic, partition,
           lag(at) over (partition by group_name, topic, partition order by id) as at_before
    from offset_commit_log
) lines
where at < at_before
"""
"""Lines that are older than those before them: readers order by time."""

DAYS = "select relname from pg_class where relname ~ '^offset_commit_log_[0-9]{8}$' and relkind = 'r' order by 1"


def journal_lines(conninfo: str, columns: str = "*", where: str = "true") -> list[dict[str, Any]]:
    """Lines of the journal in the order of writing."""
    query = f"select {columns} from offset_commit_log where {where} order by id"
    with psycopg.connect(conninfo, row_factory=dict_row) as connection:
        return connection.execute(query.encode()).fetchall()


def assert_journal_agrees(conninfo: str) -> None:
    """The newest line of every partition is what is committed, or a removal; no line is older than one before it."""
    with psycopg.connect(conninfo, row_factory=dict_row) as connection:
        assert connection.execute(DISAGREEMENTS).fetchall() == []
        assert connection.execute(DISORDER).fetchall() == []


def drop_days(conninfo: str) -> None:
    """Drop every day; lines and the default partition stay."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for (name,) in connection.execute(DAYS).fetchall():
            connection.execute(sql.SQL("drop table {}").format(sql.Identifier(name)))
