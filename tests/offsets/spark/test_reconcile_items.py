"""Reconcile proves that each item of a share group is in one place: what workers did, and what was tampered with."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from tests.offsets.share.test_racing import EXPIRE, prepared
from tests.offsets.spark.support import Archive, Reconciler, journal_rows
from tests.support.placed import misplaced

pytestmark = pytest.mark.whole("test_round_trip has Spark archive, restore and reconcile")

Connection = psycopg.Connection[Any]
ONCE = "(30000,1,2000,0,0,1,earliest)"
"""Rules with which each item is delivered once, and is dead then."""
PLAN = """
with plan as (
    insert into offsets_offsetplan (id, group_name, strategy, parameters, totals, state, reason, created_at, created_by)
    values (gen_random_uuid(), 'mailing', 'to-offset', '{}', '{}', 'planned', '', 0, '') returning id
)
insert into offsets_plannedoffset (plan_id, topic, partition, old_leader_epoch, old_metadata, new_offset, note)
select id, 'job', 0, -1, '', 43, '' from plan
"""
APPLY = """
select kcoord.share_apply_plan(p.id, g.id, kcoord.share_rules_of(g.group_id), 0)
from offsets_offsetplan p, groups_group g
"""
UNDO = "select kcoord.share_undo_plan(p.id, g.id, 0) from offsets_offsetplan p, groups_group g"


def settle(connection: Connection, member_id: str, **parts: list[list[int]]) -> None:
    """Acquire ten more items of partition 0, and settle these of them."""
    rows = connection.execute(
        """select lock, "offset" from kcoord.acquire('mailing', %s, 'job', 10, '{"0": 100, "1": 0}')""", [member_id]
    ).fetchall()
    item = json.dumps([{"lock": rows[0][0], **parts}])
    connection.execute("select kcoord.settle('mailing', %s, %s::text::jsonb)", [member_id, item])


def lived(connection: Connection) -> None:
    """Items 0 to 48 of partition 0: finished in all ways, and in all places."""
    settle(connection, "a", accept=[[0, 3], [5, 9]], gap=[[4, 4]])
    settle(connection, "a", accept=[[10, 15]], reject=[[16, 19]])
    settle(connection, "b", accept=[[20, 20]])
    (until,) = connection.execute("select max(until) from offsets_sharelock").fetchone() or (0,)
    connection.execute(EXPIRE, [ONCE, until])  # 21 to 29 are dead
    settle(connection, "b", accept=[[30, 38]], release=[[39, 39]])  # due again
    settle(connection, "c", accept=[[39, 39]])  # and 40 to 48 stay locked
    connection.execute(
        'select kcoord.share_discard(p.group_id, array(select id from offsets_sharedead where "offset" < 18), 0)'
        " from offsets_sharepartition p where p.partition = 0"
    )
    connection.commit()


def found(reconciler: Reconciler, path: str = "") -> list[tuple[Any, ...]]:
    """In the order of offsets."""
    rows = [
        (one["kind"], one["partition"], one["expected"], one["found"], one["evidence"]["members"])
        for one in reconciler(path).listed
    ]
    return sorted(rows, key=lambda row: (row[1], row[2]))


def test_items_that_are_lost_or_twice_are_found_and_nothing_else(
    journal: str, spark: SparkSession, archive: Archive
) -> None:
    prepared(journal)
    reconciler = Reconciler(journal, lambda: spark)
    with psycopg.connect(journal) as connection:
        lived(connection)
        assert misplaced(connection) == {}
        archive.run()
        assert archive.rows() == journal_rows(journal), "items are archived as lines"
        connection.execute("delete from offset_commit_log")  # the days that the archive covers were dropped
        connection.commit()
        assert found(reconciler) == [], "without the line of its beginning a partition is not judged"
        connection.execute('delete from offsets_sharedead where "offset" in (18, 19, 25)')
        connection.execute("delete from offsets_sharelock")
        connection.execute(
            "insert into offsets_shareretry (share_partition_id, held, delivery_count, not_before, last_member)"
            " select id, '{[2,5),[30,31)}', 1, 0, '' from offsets_sharepartition where partition = 0"
        )
        connection.commit()
        assert found(reconciler, archive.path) == [
            ("item_twice", 0, 2, 4, ["a"]),
            ("item_lost", 0, 18, 19, []),
            ("item_lost", 0, 25, 25, []),
            ("item_twice", 0, 30, 30, ["b"]),
            ("item_lost", 0, 40, 48, []),
        ]
        connection.execute(
            "select kcoord.share_alter(p.group_id, p.topic_id, 0, 40) from offsets_sharepartition p where partition = 0"
        )
        settle(connection, "d", accept=[[42, 43]], reject=[[44, 45]])  # and 40, 41 and 46 to 49 stay locked
        for step in (PLAN, APPLY, UNDO):  # a reset to 43
            connection.execute(step)
        connection.execute("update offsets_sharepartition set next_offset = 52 where partition = 0")
        connection.commit()
        archive.run()
        assert found(reconciler, archive.path) == [("item_lost", 0, 50, 51, [])], "no more from before"
