"""Statements about some rows of a large group or catalogue read those rows, whatever statistics say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from kcoord.database.sql import queries
from tests.support.row_counts import rows_read

Q = queries("groups")

MEMBERS, TOPICS, SOME = 3_000, 30_000, 100

INSERT = """
insert into groups_member (group_id, member_id, client_id, client_host, session_timeout_ms, rebalance_timeout_ms,
    protocol_type, protocol_names, protocol_metadata, assignment, is_new, pending_sync, session_deadline,
    last_heartbeat_at)
select g.id, 'm' || n, '', '', 1000, 1000, 'consumer', '{}', '{}', '', false, false, 0, 0
from groups_group g, generate_series(%s::int, %s::int) n where g.group_id like %s
"""
INSERT_ASSIGNMENTS = """
insert into groups_assignment (group_id, topic_id, topic, partition, member_id, generation_id)
select g.id, 't', 't', n, 'm' || n, 1
from groups_group g, generate_series(%s::int, %s::int) n where g.group_id like %s
"""
BEGINS_ANOTHER = """
select a.indexrelid::regclass::text
from pg_index a
join pg_index b on b.indrelid = a.indrelid and b.indexrelid <> a.indexrelid and b.indnatts > a.indnatts
where not a.indisunique and a.indpred is null and a.indexprs is null and b.indpred is null and b.indexprs is null
    and b.indkey::text || ' ' like a.indkey::text || ' %'
    and a.indrelid::regclass::text similar to '(groups|offsets)_%'
"""


@pytest.fixture
def grown(database: str) -> Iterator[psycopg.Connection[Any]]:
    """Groups of one member, and one that has grown since the statistics; plans are those for any parameters."""
    with psycopg.connect(database, prepare_threshold=0) as connection:
        # Pages that other tests have left empty would make reading all of a table look cheap.
        connection.execute("truncate groups_group, groups_topic cascade")
        connection.execute(
            "insert into groups_group (group_id, type, state, previous_state, state_since, generation_id,"
            " new_member_added, version, created_at, updated_at)"
            " select 'plan-' || n, 'classic', 'Empty', 'Empty', 0, 0, false, 1, 0, 0 from generate_series(1, 100) n"
        )
        for insert in (INSERT, INSERT_ASSIGNMENTS):
            connection.execute(insert, [1, 1, "plan-%"])
        connection.execute("analyze groups_member, groups_assignment")
        connection.execute("set local plan_cache_mode = force_generic_plan")
        for insert in (INSERT, INSERT_ASSIGNMENTS):
            connection.execute(insert, [2, MEMBERS, "plan-7"])
        yield connection
        connection.rollback()


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("update_member_progress", "groups_member"),
        ("flush_members", "groups_member"),
        ("delete_members", "groups_member"),
        ("delete_assignments", "groups_assignment"),
    ],
)
def test_other_members_of_the_group_are_not_read(grown: psycopg.Connection[Any], name: str, table: str) -> None:
    group = grown.execute("select id from groups_group where group_id = 'plan-7'").fetchone()
    assert group is not None
    ids = [group[0]] * SOME
    members = [f"m{number}" for number in range(2, SOME + 2)]
    parameters: dict[str, Any] = {"id": ids, "group_id": ids, "member_id": members}
    parameters |= dict.fromkeys(("is_new", "pending_sync", "is_renewed"), [False] * SOME)
    parameters |= dict.fromkeys(("join_parked_until", "sync_parked_until", "assignment"), [None] * SOME)
    parameters |= dict.fromkeys(("session_deadline", "last_heartbeat_at", "at"), [1] * SOME)
    before = rows_read(grown, table)
    grown.execute(getattr(Q, name), parameters)
    assert SOME <= rows_read(grown, table) - before <= 3 * SOME


def test_names_of_topics_are_found_by_their_ids(grown: psycopg.Connection[Any]) -> None:
    grown.execute(
        "insert into groups_topic (name, topic_id, partitions, labels, created_at)"
        " select 'plan-' || n, gen_random_uuid(), 1, '{}', 0 from generate_series(1, %s) n",
        [TOPICS],
    )
    found = grown.execute("select topic_id::text from groups_topic order by id desc limit %s", [SOME]).fetchall()
    group = grown.execute("select id from groups_group where group_id = 'plan-7'").fetchone()
    assert group is not None
    parameters: dict[str, Any] = {"id": [group[0]] * SOME, "topic_id": [topic_id for (topic_id,) in found]}
    parameters |= {"name": [None] * SOME, "partition": [0] * SOME, "member_id": ["m"] * SOME, "epoch": [1] * SOME}
    before = rows_read(grown, "groups_topic")
    grown.execute(Q.take_ownership, parameters | {"pending": [False] * SOME})
    assert rows_read(grown, "groups_topic") - before == SOME, "each by the index, and not the whole catalogue"
    named = grown.execute("select count(*) from groups_assignment where topic like 'plan-%%'").fetchone()
    assert named == (SOME,)


def test_no_index_is_the_beginning_of_another(database: str) -> None:
    """Each write would pay for it, and Postgres may take the shorter one where the longer finds a single row."""
    with psycopg.connect(database) as connection:
        assert connection.execute(BEGINS_ANOTHER).fetchall() == []
