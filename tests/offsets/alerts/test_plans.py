"""The check of all rules beside a hundred thousand groups: rules for one group look it up."""

from __future__ import annotations

import psycopg
import pytest

from groups.core.model.verdicts import VerdictKind
from kcoord.sql import queries
from tests.support.database import cloned_database
from tests.support.plans import executed_plan

GROUPS, LITERAL = 100_000, 400
WORST_FIRST = [kind.value for kind in VerdictKind]


@pytest.mark.parametrize("generic", [False, True], ids=["these values", "any values"])
def test_rules_for_one_group_read_only_that_group(postgres: str, generic: bool) -> None:
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
            "insert into offsets_alertrule (name, enabled, pattern, group_name, verdicts, min_lag, for_ms, remind_ms,"
            " send_resolved, receivers, updated_at, updated_by)"
            " select 'r' || n, true, 'literal', 'g' || n * 100, '{stuck}', 1, 0, 0, true, '{ops}', 0, ''"
            f" from generate_series(1, {LITERAL}) n"
        )
        for table in ("groups_group", "offsets_grouplag", "offsets_groupverdict", "offsets_alertrule"):
            connection.execute(f"vacuum analyze {table}".encode())
        statement, parameters = queries("offsets").groups_of_alert_rules, {"worst_first": WORST_FIRST, "limit": 50_000}
        found = connection.execute(statement.encode(), parameters).fetchall()
        assert len(found) >= LITERAL
        plan = executed_plan(connection, statement, parameters, generic=generic)
    scanned = [line for line in plan.splitlines() if "Seq Scan" in line and "never executed" not in line]
    assert not [line for line in scanned if "groups_group" in line or "offsets_grouplag" in line], plan
