"""Statements that trim events read as many index entries as they have to, whatever statistics say of a group."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from kcoord.database.paging import EVERYTHING
from kcoord.database.sql import queries

Q = queries("groups")


@pytest.fixture
def timelines(database: str) -> Any:
    """Many groups with few events, and one with many, which came after the statistics."""
    insert = (
        "insert into groups_event (group_name, at, kind, generation_id, detail)"
        " select 'g' || (n %% %s), n, 'member_joined', 1, '{}' from generate_series(1, %s) n"
    )
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(insert, [500, 5_000])
        connection.execute("analyze groups_event")
        connection.execute(insert, [1, 5_000])
        yield connection


@pytest.mark.parametrize(
    ("name", "parameters", "index"),
    [
        ("trim_events", {"before": 100, "limit": 50}, "groups_event_pkey"),
        ("trim_group_events", {"group_id": "g0", "keep": 100, "limit": 50}, "groups_event_of_group"),
        ("crowded_timelines", {"after": "", "keep": 100, "limit": 50}, "groups_event_of_group"),
        (
            "list_events",
            {
                "group_id": "g0",
                "before": None,
                "kinds": None,
                "since": None,
                "limit": 50,
                "unlimited": True,
                **EVERYTHING.parameters(),
            },
            "groups_event_of_group",
        ),
    ],
)
def test_it_reads_from_the_index_and_stops(timelines: Any, name: str, parameters: dict[str, Any], index: str) -> None:
    text = f"explain (analyze, timing off, format text) {getattr(Q, name)}"
    plan = "\n".join(row[0] for row in timelines.execute(text.encode(), parameters))
    assert index in plan, plan
    assert "Seq Scan on groups_event" not in plan, plan
    removed = [int(line.split(":")[1]) for line in plan.splitlines() if "Rows Removed by Filter" in line]
    assert all(rows <= 50 for rows in removed), plan
