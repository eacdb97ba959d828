"""How many rows a page of items and a look for waiting requests read, beside 100,000 of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest

from kcoord.database.sql import queries
from offsets.share.operators import _after, _cursor, _within
from tests.support.database import cloned_database
from tests.support.plans import executed_plan

Q = queries("offsets")
NOW, ROWS, PARTITIONS = 1_000_000, 100_000, 10
TOPIC = UUID(int=7)
EVERYTHING = {
    "visible_names": [],
    "visible_prefixes": [""],
    "visible_denied": [],
    "visible_denied_prefixes": [],
    "topic": None,
    "member": None,
}
FILL = """
insert into groups_topic (topic_id, name, partitions, labels, created_at)
values (%(topic)s, 'job', %(partitions)s, '{}', 0);
insert into groups_group (group_id, type, state, previous_state, state_since, generation_id, new_member_added, version,
                          created_at, updated_at)
values ('mailing', 'share', 'Empty', 'Empty', 0, 0, false, 1, 0, 0);
insert into offsets_sharepartition (group_id, topic_id, partition, next_offset, end_offset)
select g.id, %(topic)s, n, 1000000, 1000000 from groups_group g, generate_series(0, %(partitions)s - 1) n;
insert into offsets_sharelock (share_partition_id, member_id, held, delivery_count, until, lock_ms, acquired_at)
select p.id, 'w', int8multirange(int8range(n, n + 1)), 1, %(now)s + n - 1000, 30000, %(now)s - 5
from offsets_sharepartition p, generate_series(1, 2000) n;
insert into offsets_shareretry (share_partition_id, held, delivery_count, not_before, last_member)
select p.id, int8multirange(int8range(n + 5000, n + 5001)), 1, %(now)s + n - 4000, 'w'
from offsets_sharepartition p, generate_series(1, 8000) n;
analyze;
"""


@pytest.fixture(scope="module")
def filled(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    """A group with 20,000 locks and 80,000 retries, half of them due, in 10 partitions."""
    with cloned_database(postgres) as conninfo, psycopg.connect(conninfo, autocommit=True) as connection:
        values = {"topic": TOPIC, "partitions": PARTITIONS, "now": NOW}
        for statement in FILL.strip().split(";\n"):
            psycopg.ClientCursor(connection).execute(statement.rstrip(";").encode(), values)
        yield connection


def rows_read(plan: str) -> int:
    """Rows that scans of locks and retries returned or threw away."""
    read, table = 0.0, False
    for line in plan.splitlines():
        if "->" in line or line.startswith(("Limit", "Nested")):
            table = bool(re.search(r" on offsets_share(lock|retry)\b", line)) and "Bitmap Index" not in line
            scanned = re.search(r"rows=([\d.]+) loops=(\d+)", line)
            if table and scanned:
                read += float(scanned[1]) * int(scanned[2])
        removed = re.search(r"Rows Removed by Filter: (\d+)", line)
        if table and removed:
            read += int(removed[1])
    return round(read)


@pytest.mark.parametrize("state", [None, "acquired", "retry", "delayed"])
def test_a_page_reads_little_more_than_it_shows(filled: psycopg.Connection[Any], state: str | None) -> None:
    cursor = None
    for _ in range(3):
        parameters = {**EVERYTHING, **_within(state, NOW), **_after(cursor), "group_id": "mailing", "limit": 51}
        plan = executed_plan(filled, Q.list_items, parameters, generic=False)
        assert rows_read(plan) <= 2 * 51 * PARTITIONS + 51, plan
        cursor = _cursor(*filled.execute(Q.list_items.encode(), parameters).fetchall()[49][:5])


def test_all_pages_together_have_each_row_once(filled: psycopg.Connection[Any]) -> None:
    found, cursor = [], None
    while True:
        parameters = {**EVERYTHING, **_within(None, NOW), **_after(cursor), "group_id": "mailing", "limit": 7_001}
        rows = filled.execute(Q.list_items.encode(), parameters).fetchall()
        found += [(row[0], row[4]) for row in rows[:7_000]]
        if len(rows) <= 7_000:
            break
        cursor = _cursor(*rows[6_999][:5])
    assert len(found) == len(set(found)) == ROWS


@pytest.mark.parametrize("most_locks", [2_000, 500])
def test_a_look_reads_what_is_asked_for_and_the_locks_there_may_be(
    filled: psycopg.Connection[Any], most_locks: int
) -> None:
    asked = {"group_id": "mailing", "topics": [TOPIC] * 2, "partitions": [3, 4], "most": 20, "now": NOW}
    plan = executed_plan(filled, Q.available_items, {**asked, "most_locks": most_locks}, generic=False)
    assert rows_read(plan) <= 2 * (20 + 20 * PARTITIONS + min(most_locks, 1_000) + 2), plan
    rows = filled.execute(Q.available_items.encode(), {**asked, "most_locks": most_locks}).fetchall()
    assert [(number, available, due) for _, number, available, due in rows] == [
        (number, min(40, max(most_locks - 1_000, 0)), 1) for number in (3, 4)
    ]


def test_a_look_at_what_only_time_gives_reads_one_row_each(filled: psycopg.Connection[Any]) -> None:
    asked = {"group_id": "mailing", "topics": [TOPIC], "partitions": [3], "most": 20, "now": -100_000}
    plan = executed_plan(filled, Q.available_items, {**asked, "most_locks": 2_000}, generic=False)
    assert rows_read(plan) <= 2, plan


SETTLED = """
insert into offsets_shareended (lock_id, share_partition_id, member_id, cause, accepted, released, rejected, at)
select n, 1, 'w', 'settled', '{}', '{}', '{}', n from generate_series(1, %s) n
"""


def test_old_settlements_are_found_by_their_ids_alone(filled: psycopg.Connection[Any]) -> None:
    with filled.transaction(force_rollback=True):
        filled.execute(SETTLED, [ROWS])
        filled.execute("analyze offsets_shareended")
        plan = executed_plan(filled, Q.forget_ended_locks, {"most": 100, "before": 50}, generic=True)
    assert "Seq Scan" not in plan, plan
    assert "Rows Removed by Filter: 51" in plan, plan


@pytest.mark.parametrize("of", [{"group": 0, "topics": None}, {"group": None, "topics": [UUID(int=8)]}])
def test_a_group_or_topic_without_items_goes_without_a_look_at_settlements(
    filled: psycopg.Connection[Any], of: dict[str, Any]
) -> None:
    read = "select seq_tup_read from pg_stat_xact_user_tables where relname = 'offsets_shareended'"
    with filled.transaction(force_rollback=True):
        filled.execute(SETTLED, [ROWS])
        assert filled.execute(Q.forget_share_partitions, of).fetchone() == (0,)
        assert filled.execute(read).fetchone() == (0,)
