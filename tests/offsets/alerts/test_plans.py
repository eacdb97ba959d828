"""The check of all rules beside a hundred thousand groups: what it reads does not grow with the number of rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from groups.core.model.types import VerdictKind
from kcoord.database.sql import queries
from tests.support.database import cloned_database
from tests.support.plans import executed_plan

pytestmark = pytest.mark.whole("plans beside many rows of others; test_statements has those of hot statements")

GROUPS, TEAMS, LIMIT = 100_000, 10_000, 50_000
PARAMETERS = {"worst_first": [kind.value for kind in VerdictKind], "limit": LIMIT, "rule": None}


@pytest.fixture(scope="module")
def crowded(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    """Groups of which every tenth is far behind and every hundredth is stuck; all are `prod`, ten of a team."""
    with cloned_database(postgres) as conninfo, psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(
            "insert into groups_group (group_id, type, state, previous_state, state_since, generation_id,"
            " new_member_added, wake_at, version, created_at, updated_at)"
            " select 'g' || n, 'classic', 'Stable', 'Empty', 0, 1, false, 1000000 + n, 1, 0, 0"
            f" from generate_series(1, {GROUPS}) n"
        )
        connection.execute(
            "insert into offsets_grouplag (group_id, at, lag, state, generation_id, members)"
            " select id, 0, id % 1000, 'Stable', 1, 1 from groups_group"
        )
        connection.execute(
            "insert into offsets_groupverdict (group_id, kind, topic, since, number, names)"
            " select id, 'stuck', '', 1, 1, '{}' from groups_group where id % 100 = 0"
        )
        connection.execute(
            "insert into groups_grouplabels (group_name, labels, updated_at, updated_by)"
            f" select group_id, jsonb_build_object('env', 'prod', 'owner', 'team-' || id % {TEAMS}), 0, ''"
            " from groups_group"
        )
        tables = "groups_group, offsets_grouplag, offsets_groupverdict, groups_grouplabels"
        connection.execute(f"vacuum analyze {tables}".encode())
        yield connection


def put_rules(connection: psycopg.Connection[Any], count: int, pattern: str, group_name: str, label: str) -> None:
    """Rules for the verdict stuck and for a lag of 900; `*` in a name or label: a hundred times the rule's number."""
    connection.execute("delete from offsets_alertrule")
    connection.execute(
        "insert into offsets_alertrule (name, enabled, pattern, group_name, verdicts, min_lag, for_ms, remind_ms,"
        " send_resolved, receivers, updated_at, updated_by, label)"
        " select 'r' || n, true, %s, replace(%s, '*', (n * 100)::text), '{stuck}', 900, 0, 0, true, '{ops}', 0, '',"
        " replace(%s, '*', (n * 100)::text) from generate_series(1, %s) n",
        [pattern, group_name, label, count],
    )
    connection.execute("vacuum analyze offsets_alertrule")


@pytest.mark.parametrize(
    ("count", "pattern", "group_name", "label", "found", "most_read"),
    [
        (400, "literal", "g*", "", 440, 2_000),
        (20, "prefix", "g", "", 20 * 11_000, GROUPS),
        (90, "prefix", "", "owner=team-*", 90 * 11, GROUPS),
        (90, "prefix", "g1", "owner=team-*", 111, GROUPS),
        (20, "prefix", "", "owner", 20 * 11_000, GROUPS),
        (20, "prefix", "", "env=prod", 20 * 11_000, GROUPS),
        (20, "prefix", "none", "env=prod", 0, GROUPS),
    ],
    ids=["one group", "a prefix", "a label", "a label and a prefix", "any value", "a label of all", "a label of none"],
)
def test_each_table_is_read_once_for_all_rules(
    crowded: psycopg.Connection[Any],
    count: int,
    pattern: str,
    group_name: str,
    label: str,
    found: int,
    most_read: int,
) -> None:
    put_rules(crowded, count, pattern, group_name, label)
    statement = queries("offsets").groups_of_alert_rules
    rows = crowded.execute(statement.encode(), PARAMETERS).fetchall()
    assert len(rows) == min(found, LIMIT)
    for generic in (False, True):
        plan = executed_plan(crowded, statement, PARAMETERS, generic=generic)
        for table in ("groups_group", "offsets_grouplag", "groups_grouplabels"):
            scans = re.findall(rf"on {table}\b.*\(actual rows=([\d.]+) loops=(\d+)\)", plan)
            assert sum(float(read) * int(loops) for read, loops in scans) <= 2 * most_read + count, plan
            whole = re.findall(rf"Seq Scan on {table}\b.*loops=(\d+)\)", plan)
            assert sum(map(int, whole)) <= (2 if most_read == GROUPS else 0), plan
