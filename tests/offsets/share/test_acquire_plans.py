"""What acquire and settle read in a group of 100,000 partitions, each with a lock and a retry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.support.database import cloned_database

PARTITIONS = 100_000
TABLES = ("offsets_sharepartition", "offsets_sharelock", "offsets_shareretry", "groups_watermark")
MOST_COST = 100.0
"""Of one step. A look into an index by its whole key costs about 8, a scan of one of the tables 1,700 or more."""

FILL = """
insert into groups_topic (topic_id, name, partitions, labels, created_at)
values (gen_random_uuid(), 'job', %(partitions)s, '{}', 0);
insert into groups_watermark (topic_id, partition, log_start_offset, log_end_offset, sampled_at)
select t.id, n, 0, 100, 0 from groups_topic t, generate_series(0, t.partitions - 1) n;
insert into groups_group (group_id, type, state, previous_state, state_since, generation_id, new_member_added, version,
                          created_at, updated_at)
values ('mailing', 'share', 'Empty', 'Empty', 0, 0, false, 1, 0, 0);
insert into offsets_sharepartition (group_id, topic_id, partition, next_offset, end_offset)
select g.id, t.topic_id, n, 50, 0 from groups_group g, groups_topic t, generate_series(0, t.partitions - 1) n;
insert into offsets_sharelock (share_partition_id, member_id, held, delivery_count, until, lock_ms, acquired_at)
select p.id, 'v', '{[0,10)}', 1, %(later)s, 30000, 0 from offsets_sharepartition p;
insert into offsets_shareretry (share_partition_id, held, delivery_count, not_before, last_member)
select p.id, '{[10,15)}', 1, 0, 'v' from offsets_sharepartition p;
analyze;
"""
EXPLAINED = """
load 'auto_explain';
set auto_explain.log_min_duration = 0;
set auto_explain.log_nested_statements = on;
set auto_explain.log_level = notice;
"""


@pytest.fixture(scope="module")
def filled(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    """The group, and a session that says of every statement how it is carried out, also of those within functions."""
    with cloned_database(postgres) as conninfo, psycopg.connect(conninfo, autocommit=True) as connection:
        values = {"partitions": PARTITIONS, "later": 10**15}
        for statement in FILL.strip().split(";\n"):
            psycopg.ClientCursor(connection).execute(statement.rstrip(";").encode(), values)
        connection.execute(EXPLAINED)
        yield connection


@pytest.fixture
def plans(filled: psycopg.Connection[Any]) -> Iterator[list[str]]:
    """Of the statements of a test."""
    found: list[str] = []

    def note(diagnostic: psycopg.errors.Diagnostic) -> None:
        found.append(diagnostic.message_primary or "")

    filled.add_notice_handler(note)
    yield found
    filled.remove_notice_handler(note)


def expensive(plans: list[str]) -> list[str]:
    """Steps that read rows of a large table and cost more than a few looks into an index."""
    step = re.compile(r"Scan.* on (?:offsets_share|groups_watermark).*cost=[\d.]+\.\.([\d.]+) rows")
    costs = [(line, step.search(line)) for plan in plans for line in plan.splitlines()]
    return [line for line, found in costs if found and float(found[1]) > MOST_COST]


@pytest.mark.whole("half a million rows take 5 to 20 s")
def test_each_statement_looks_into_indexes(filled: psycopg.Connection[Any], plans: list[str]) -> None:
    rows = filled.execute("select * from kcoord.acquire('mailing', 'w', 'job', 8)").fetchall()
    counts = [count for *_, count in rows]
    assert counts == [2] * 5 + [1] * 3, "what is due again, and new items"
    again, new = rows[:5], rows[5:]
    items = [
        {"lock": again[0][0], "accept": [[again[0][2], again[-1][2]]]},
        {"lock": new[0][0], "release": [[new[0][2], new[-1][2]]]},
    ]
    filled.execute("select kcoord.settle('mailing', 'w', %s::text::jsonb)", [json.dumps(items)])
    read = "\n".join(plans)
    for table in TABLES:
        assert f" on {table} " in read, "its plan is among those that were noted"
    assert expensive(plans) == []
