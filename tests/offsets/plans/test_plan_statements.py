"""Statements of offset plans look each partition up in one index, also where statistics know nothing of the group.

Statistics lag behind: a group that has just committed on thousands of partitions looks to the planner as if it had one
row. What is planned by them then reads all rows of the group for each of its partitions.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from kcoord.database.sql import queries

Q = queries("offsets")
PLAN = UUID(int=7)
DAY_MS = 86_400_000
NOW = 20_000 * DAY_MS + 1_000
JOURNAL = ("group_name_topic_partition_at_id",)
COMMITTED = ("offsets_committedoffset_pkey", "offsets_committed_of_topic")
NAMED = {"group_id": "new", "topic": ["t"] * 50, "partition": list(range(50))}


@pytest.fixture
def stale(database: str) -> Any:
    """Tables that were analyzed when they held another group only."""
    with psycopg.connect(database, autocommit=True) as connection:
        # Days that other tests of this process created are empty, and are scanned whatever the statement says.
        days = connection.execute("select tablename from pg_tables where tablename ~ '^offset_commit_log_\\d+$'")
        for (day,) in days.fetchall():
            connection.execute(sql.SQL("drop table {}").format(sql.Identifier(day)))
        for pk, group, partitions in ((1, "old", 300), (2, "new", 3_000)):
            connection.execute(
                "insert into groups_group (id, group_id, type, state, previous_state, state_since, generation_id,"
                " new_member_added, version, created_at, updated_at)"
                " values (%s, %s, 'classic', 'Empty', 'Empty', 0, 0, false, 0, 0, 0)",
                (pk, group),
            )
            connection.execute(
                "insert into offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch,"
                " metadata, commit_timestamp, member_id, generation_id)"
                " select %s, 't', p, 1, -1, '', 0, '', -1 from generate_series(1, %s) p",
                (pk, partitions),
            )
            connection.execute(
                "insert into offset_commit_log (at, kind, group_name, topic, partition)"
                " select %s - step, 'commit', %s, 't', p from generate_series(1, %s) p, generate_series(1, 5) step",
                (NOW, group, partitions),
            )
            plan_id = PLAN if group == "new" else UUID(int=1)
            connection.execute(
                "insert into offsets_offsetplan (id, group_name, strategy, parameters, totals, state, reason,"
                " created_at, created_by) values (%s, %s, '', '{}', '{}', 'planned', '', 0, '')",
                (plan_id, group),
            )
            connection.execute(
                "insert into offsets_plannedoffset (plan_id, topic, partition, old_leader_epoch, old_metadata, note)"
                " select %s, 't', p, -1, '', '' from generate_series(1, %s) p",
                (plan_id, partitions),
            )
            if group == "old":
                for table in ("offsets_committedoffset", "offset_commit_log", "offsets_plannedoffset"):
                    connection.execute(f"analyze {table}".encode())
        yield connection


@pytest.mark.parametrize(
    ("name", "parameters", "indexes"),
    [
        ("journal_at", {**NAMED, "since": 20_000 * DAY_MS, "until": NOW}, JOURNAL),
        ("journal_since", {**NAMED, "day": 20_000 * DAY_MS, "after": NOW - 3}, JOURNAL),
        ("journal_topics", {"group_id": "new"}, JOURNAL),
        ("journal_partitions", {"group_id": "new", "topics": ["t"]}, JOURNAL),
        ("plan_named", NAMED, COMMITTED),
        ("moved_since_planned", {"id": PLAN, "group": 2, "limit": 100}, COMMITTED),
        ("moved_since_applied", {"id": PLAN, "group": 2, "limit": 100}, COMMITTED),
        ("note_applied_offsets", {"id": PLAN, "group": 2}, COMMITTED),
    ],
)
def test_it_reads_as_many_rows_as_it_returns(
    stale: Any, name: str, parameters: dict[str, Any], indexes: tuple[str, ...]
) -> None:
    text = f"explain (analyze, timing off, format text) {getattr(Q, name)}"
    plan = "\n".join(row[0] for row in stale.execute(text.encode(), parameters))
    assert any(index in plan for index in indexes), plan
    assert "group_name_at_id" not in plan, plan
    assert "Seq Scan on offsets_committedoffset" not in plan, plan
    assert "Seq Scan on offset_commit_log" not in plan, plan
    removed = [int(line.split(":")[1]) for line in plan.splitlines() if "Rows Removed by Filter" in line]
    assert all(rows <= 50 for rows in removed), plan
