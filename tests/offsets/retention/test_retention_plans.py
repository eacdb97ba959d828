"""Statements of retention read offsets by their group, however many there are of others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from kcoord.database.sql import queries
from tests.kcoord.sql.test_statements import fill
from tests.support.database import cloned_database

pytestmark = pytest.mark.whole("plans beside many rows of others; test_statements has those of hot statements")

DUE = {
    "group": 1,
    "after_topic": "",
    "after_partition": -1,
    "kept_topics": ["u"],
    "since": None,
    "retention_ms": 1,
    "now": 5,
    "limit": 10,
}


@pytest.fixture(scope="module")
def filled(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    """A database with many groups and offsets."""
    with cloned_database(postgres) as conninfo, psycopg.connect(conninfo) as connection:
        fill(connection)
        connection.commit()
        yield connection


PAGE = {"after": 0, "limit": 10, "retention_ms": 1, "now": 5, "wait_ms": 1}


@pytest.mark.parametrize(
    ("name", "parameters", "index"),
    [
        ("stored_offsets", {"group": 1, "topic": ["t"], "partition": [1]}, "Index Scan using offsets_committed"),
        (
            "retention_page",
            PAGE,
            "offsets_committedoffset_",
        ),
        ("retention_page", PAGE, "groups_group_pkey"),
        ("offsets_left", {"group": 1}, "offsets_committedoffset_"),
        ("partitions_with_offsets", {"group": 1, "topic": "t", "up_to": 5, "limit": 5}, "offsets_committedoffset_"),
        ("groups_with_topic", {"topic": "u", "up_to": 5, "after": 0, "limit": 5}, "offsets_committed_of_topic"),
    ],
)
def test_statement_of_retention_uses_its_index(
    filled: psycopg.Connection[Any], name: str, parameters: dict[str, object], index: str
) -> None:
    text = f"explain {getattr(queries('offsets'), name)}"
    plan = "\n".join(row[0] for row in filled.execute(text.encode(), parameters))
    assert index in plan, plan
    assert "Seq Scan on offsets_committedoffset" not in plan, plan
    assert "Seq Scan on groups_group" not in plan, plan
    assert "Filter: (group_id" not in plan, plan


def test_the_next_batch_of_a_group_with_many_offsets_is_read_in_order(filled: psycopg.Connection[Any]) -> None:
    """Not sorted anew for each batch: a million offsets would be read a thousand times."""
    filled.execute(
        "insert into offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch, metadata,"
        " commit_timestamp, member_id, generation_id)"
        " select (select min(id) from groups_group), 'many', n, 0, -1, '', 0, '', -1 from generate_series(1, 50000) n"
        " order by md5(n::text)"
    )
    filled.execute("analyze offsets_committedoffset")
    (pk,) = filled.execute("select min(id) from groups_group").fetchone() or (None,)
    text = f"explain {queries('offsets').due_offsets}"
    parameters = {**DUE, "group": pk, "after_topic": "many", "after_partition": 25_000}
    plan = "\n".join(row[0] for row in filled.execute(text.encode(), parameters))
    filled.rollback()
    assert "Index Scan using offsets_committedoffset_pkey" in plan, plan
    assert "ROW(" in plan.split("Index Cond:")[1].splitlines()[0], "it starts where the last batch ended"
    assert "Sort Key: o." not in plan, plan
