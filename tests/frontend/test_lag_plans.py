"""What the statements of a group's lag read, beside a million samples of other groups at the same instants."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from kcoord.database.sql import queries
from tests.conftest import START_MS
from tests.frontend.viewers import ALL
from tests.support.database import cloned_database
from tests.support.plans import executed_plan

pytestmark = pytest.mark.whole("plans beside many rows of others; test_statements has those of hot statements")

MINUTE_MS = 60_000
LOOKS, TOPICS = 1_000, 3
OTHERS, THEIR_TOPICS = 50, 20
"""Other groups: few, so that a plan for any group takes one for a larger part of the table than a span of time."""
SAMPLES = """
insert into offsets_lagsample (group_name, topic, at, lag)
select 'g' || g, 't' || t, %(last)s - 60000 * k, 5
from generate_series(%(from)s::int, %(to)s::int) g, generate_series(1, %(topics)s::int) t,
     generate_series(1, %(looks)s::int) k
"""
SPAN = {"first": START_MS - LOOKS * MINUTE_MS, "last": START_MS, "slices": 96}

STEPS = {"numbers": [0] * 3, "groups": ["g0"] * 3, "topics": ["t1", "t2", "t3"], "first": SPAN["first"]}
SUMS = {"sum_numbers": [0], "sum_groups": ["g0"], "sum_topics": [""]}


@pytest.fixture(scope="module")
def crowded(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    """A group of three topics, and samples of others."""
    with cloned_database(postgres) as conninfo, psycopg.connect(conninfo, autocommit=True) as connection:
        of_one = {"last": START_MS, "from": 0, "to": 0, "topics": TOPICS, "looks": LOOKS}
        connection.execute(SAMPLES.encode(), of_one)
        connection.execute(SAMPLES.encode(), {**of_one, "from": 1, "to": OTHERS, "topics": THEIR_TOPICS})
        connection.execute(b"vacuum analyze offsets_lagsample")
        yield connection


@pytest.mark.parametrize(
    ("name", "parameters", "most"),
    [
        ("total_lag_history", {"group_id": "g0", **SPAN}, TOPICS * LOOKS + 2 * TOPICS),
        ("lag_history", {"group_id": "g0", "topics": ["t1", "t2", "t3"], **SPAN}, TOPICS * LOOKS),
        ("lag_by_step", {**STEPS, "step_ms": 10 * MINUTE_MS, "steps": 101}, TOPICS * 101),
        ("lag_peaks_by_step", {**STEPS, **SUMS, "step_ms": 10 * MINUTE_MS, "steps": 101}, TOPICS * LOOKS),
        ("lag_at_end", {**STEPS, "last": SPAN["last"]}, TOPICS),
        ("samples_in_span", {"group_id": "g0", "topic": "t1", **SPAN, "most": 100}, 100),
        ("sampled_topics", {"group_id": "g0", "limit": 2_001}, 2 * TOPICS),
        ("latest_lag_samples", {"pk": 0, "group_id": "g0", "topics": ["t1", "t2", "t3"], "since": 0}, TOPICS),
    ],
)
@pytest.mark.parametrize("generic", [False, True], ids=["these values", "any values"])
def test_only_samples_of_the_group_are_read(
    crowded: psycopg.Connection[Any], name: str, parameters: dict[str, Any], most: int, generic: bool
) -> None:
    plan = executed_plan(
        crowded, getattr(queries("frontend"), name), {**parameters, **ALL.with_groups()}, generic=generic
    )
    assert "offsets_lagsample_pkey" in plan, plan
    assert "offsets_lagsample_time" not in plan, plan
    removed = re.findall(r"Rows Removed by Filter: (\d+)", plan)
    assert sum(map(int, removed)) <= TOPICS, plan
    scans = re.findall(r" on offsets_lagsample\b.*\(actual rows=([\d.]+) loops=(\d+)\)", plan)
    assert scans
    assert sum(float(rows) * int(loops) for rows, loops in scans) <= most, plan
