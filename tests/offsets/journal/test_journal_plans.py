"""The journal is read by index, of the days asked for alone; lists by topic read no table as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from groups.readmodel import GroupFilter
from kcoord.database.paging import EVERYTHING, INT64_MAX
from kcoord.database.sql import queries
from offsets.core.days import DAY_MS, partition_name
from offsets.journal.reading import Span
from tests.kcoord.sql.test_statements import fill
from tests.support.database import cloned_database
from tests.support.plans import generic_plan

pytestmark = pytest.mark.whole("plans beside many rows of others; test_statements has those of hot statements")

Q = queries("offsets")
DAYS = 4
FIRST_DAY = 20_000
SECOND_DAY_MS = (FIRST_DAY + 1) * DAY_MS
GROUPS = 10
LINES_A_DAY = 20_000

EVERY_PARAMETER: dict[str, Any] = {
    "group_id": "g7",
    "topic": None,
    "partition": None,
    "kinds": None,
    **Span(0, INT64_MAX, INT64_MAX).parameters(),
    "limit": 11,
    **EVERYTHING.parameters(),
}


@pytest.fixture(scope="module")
def journal(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    """Groups, and four days of twenty thousand lines of ten of them, in a database of their own."""
    with cloned_database(postgres) as conninfo, psycopg.connect(conninfo) as connection:
        fill(connection)
        for day in range(FIRST_DAY, FIRST_DAY + DAYS):
            connection.execute(
                f"create table {partition_name(day)} partition of offset_commit_log"
                f" for values from ({day * DAY_MS}) to ({(day + 1) * DAY_MS})"
            )
            connection.execute(
                "insert into offset_commit_log (at, kind, group_name, topic, partition, committed_offset)"
                " select %(at)s + n, case when n %% 5000 = 0 then 'reset' else 'commit' end, 'g' || n %% %(groups)s,"
                " 't' || n %% 3, n %% 7, n from generate_series(0, %(lines)s - 1) n",
                {"at": day * DAY_MS, "groups": GROUPS, "lines": LINES_A_DAY},
            )
        connection.execute("analyze offset_commit_log")
        connection.commit()
        yield connection
        connection.rollback()


def plan(connection: psycopg.Connection[Any], statement: str, parameters: dict[str, Any]) -> str:
    """How a statement is carried out with these values."""
    return "\n".join(row[0] for row in connection.execute(f"explain {statement}".encode(), parameters))


STATEMENTS = [
    ("journal_page", {}),
    ("journal_page", {"kinds": ["commit", "reset"]}),
    ("journal_page", {"topic": "t1"}),
    ("journal_page_of_partition", {"topic": "t1", "partition": 3}),
    ("journal_page_of_changes", {"kinds": ["reset", "delete"]}),
    (
        "changes_by_step",
        {"first": SECOND_DAY_MS, "last": SECOND_DAY_MS + DAY_MS, "steps": 4, "step_ms": DAY_MS // 4, "most": 9},
    ),
]
OF_ALL_PARTITIONS = {"journal_page", "changes_by_step"}
"""What these read of each partition is sorted or added up."""


@pytest.mark.parametrize(("name", "wanted"), STATEMENTS)
def test_a_page_reads_its_days_by_index(journal: psycopg.Connection[Any], name: str, wanted: dict[str, Any]) -> None:
    day = FIRST_DAY + 1
    span = Span(day * DAY_MS, (day + 1) * DAY_MS - 1, INT64_MAX)
    parameters = {**EVERY_PARAMETER, **wanted, **span.parameters()}
    for found in (plan(journal, getattr(Q, name), parameters), generic_plan(journal, getattr(Q, name), parameters)):
        assert partition_name(day) in found, found
        for other in range(FIRST_DAY, FIRST_DAY + DAYS):
            assert other == day or partition_name(other) not in found, found
        assert f"Seq Scan on {partition_name(day)}" not in found, found
        assert name in OF_ALL_PARTITIONS or "->  Sort" not in found, found


@pytest.mark.parametrize(("name", "wanted"), STATEMENTS)
def test_the_first_page_reads_no_more_than_it_shows(
    journal: psycopg.Connection[Any], name: str, wanted: dict[str, Any]
) -> None:
    found = plan(journal, getattr(Q, name), {**EVERY_PARAMETER, **wanted})
    assert "Seq Scan on offset_commit_log_2" not in found, found
    assert "Index" in found, found


def test_what_was_not_committed_has_its_index(journal: psycopg.Connection[Any]) -> None:
    parameters = {**EVERY_PARAMETER, "group_id": "g0", "kinds": ["reset"], "limit": 101}
    found = plan(journal, Q.journal_page_of_changes, parameters)
    index = journal.execute(
        "select indexrelid::regclass::text from pg_index where indpred is not null and indrelid = %s::regclass",
        (partition_name(FIRST_DAY),),
    ).fetchone()
    assert index is not None
    assert index[0] in found, found
    rows = journal.execute(Q.journal_page_of_changes.encode(), parameters).fetchall()
    assert len(rows) == DAYS * LINES_A_DAY // 5_000


@pytest.mark.parametrize("name", ["journal_knows_group", "has_history"])
def test_whether_a_group_is_known_is_one_look_for_each_day(journal: psycopg.Connection[Any], name: str) -> None:
    parameters = {"group_id": "nobody", "group": 0}
    for found in (plan(journal, getattr(Q, name), parameters), generic_plan(journal, getattr(Q, name), parameters)):
        assert "Seq Scan on offset_commit_log_2" not in found, found
        assert "Seq Scan on groups_group" not in found, found


def test_lost_lines_are_looked_up_one_by_one_in_a_group_that_has_grown(journal: psycopg.Connection[Any]) -> None:
    lines = list(range(10, 210))
    parameters: dict[str, Any] = {"group_name": "g7", "topic": ["t"] * len(lines), "partition": lines}
    parameters |= {"committed_offset": [1] * len(lines), "at": [INT64_MAX] * len(lines)}
    with journal.transaction(force_rollback=True):
        group = journal.execute(
            "insert into offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch, metadata,"
            " commit_timestamp, member_id, generation_id)"
            " select id, 't', n, 0, -1, '', 0, '', -1 from groups_group, generate_series(10, 2009) n"
            " where group_id = 'g7' returning group_id"
        ).fetchone()
        assert group is not None
        found = generic_plan(journal, Q.lines_to_store_again, {**parameters, "group": group[0]})
    assert "Rows Removed by Join Filter" not in found, found


@pytest.mark.parametrize("condition", [{"topic": "t"}, {"labelled": ["t", "u"], "label_names": ["owner"]}])
@pytest.mark.parametrize(
    "name",
    ["by_id", "by_id_before", "by_change", "by_change_before", "by_state", "by_members", "by_lag", "by_lag_before"],
)
def test_groups_are_found_by_topic_through_indexes(
    journal: psycopg.Connection[Any], name: str, condition: dict[str, Any]
) -> None:
    parameters: dict[str, Any] = {
        **GroupFilter().parameters(),
        **EVERYTHING.parameters(),
        "after": "",
        "after_key": {"by_state": "", "by_change_before": 0}.get(name),
        "sign": 1,
        "labelled": None,
        "label_pairs": [],
        "label_names": [],
        "among": None,
        "assigned": None,
        "coordinated": None,
        "lagging": None,
        "held_at": None,
        "lag_of": None,
        "lags": None,
        **EVERYTHING.parameters("topic"),
        "limit": 101,
        **condition,
    }
    journal.execute("set local enable_seqscan = off")  # tables that are empty here would be read whole
    found = plan(journal, getattr(Q, f"list_groups_{name}"), parameters)
    journal.rollback()
    assert "offsets_committedoffset" in found, found
    for table in ("offsets_committedoffset", "groups_assignment", "groups_consumermember", "groups_grouplabels"):
        assert f"Seq Scan on {table}" not in found, found
