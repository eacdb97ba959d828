"""Setting the clock ahead moves every stored moment that something is decided by, and nothing else."""

from __future__ import annotations

import psycopg

from tests.chaos.clock import COLUMNS, MOMENTS, TABLES, set_ahead

MOVED = {
    "groups_group": {"join_deadline", "sync_deadline", "wake_at", "held_until"},
    "groups_member": {"join_parked_until", "sync_parked_until", "session_deadline"},
    "groups_pendingmember": {"deadline"},
    "groups_consumermember": {
        f"{timer}_{what}" for timer in ("session", "rebalance", "join", "sync") for what in ("deadline", "armed_at")
    },
    "groups_coordinatornode": {"expires_at", "renewed_at"},
}

LIKE_MOMENTS = """
select table_name, column_name from information_schema.columns
where table_schema = current_schema() and table_name like 'groups\\_%%' and data_type = 'bigint'
  and column_name like any(%(moments)s)
"""


def test_these_columns_are_moved(database: str) -> None:
    with psycopg.connect(database) as connection:
        found = connection.execute(COLUMNS, {"tables": list(TABLES), "moments": list(MOMENTS)}).fetchall()
        everywhere = connection.execute(LIKE_MOMENTS, {"moments": list(MOMENTS)}).fetchall()
    assert set(found) == {(table, column) for table, columns in MOVED.items() for column in columns}
    assert set(everywhere) == set(found), "no other table of groups has such moments"


def test_leases_and_deadlines_come_nearer_and_copies_are_forgotten(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute(
            "insert into groups_coordinatornode (node_id, url, version, started_at, renewed_at, expires_at) "
            "values ('n', '', '0', 1000, 9000, 12000)"
        )
        connection.execute(
            "insert into groups_group (group_id, type, state, previous_state, state_since, generation_id, "
            "new_member_added, wake_at, version, created_at, updated_at) "
            "values ('g', 'classic', 'Empty', '', 5000, 1, false, 20000, 7, 5000, 5000)"
        )
        before = connection.execute("select version_tag from groups_group").fetchone()
    assert set_ahead(database, 2_500) == sum(map(len, MOVED.values()))
    with psycopg.connect(database) as connection:
        lease = connection.execute("select started_at, renewed_at, expires_at from groups_coordinatornode").fetchone()
        row = connection.execute("select state_since, wake_at, join_deadline, version from groups_group").fetchone()
        after = connection.execute("select version_tag from groups_group").fetchone()
    assert lease == (1_000, 6_500, 9_500)
    assert row == (5_000, 17_500, None, 8)
    assert after != before
