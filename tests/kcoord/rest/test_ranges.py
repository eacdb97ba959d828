"""The ranges of an index hold exactly what a caller may see, apart from single names that are denied."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kcoord.access.rights import Operation, Resource, Rules
from kcoord.control.rest.ranges import BEYOND, ranges
from kcoord.database.paging import EVERYTHING, Visible
from kcoord.database.sql import queries

LETTERS = "\x01a\ud7ff\ue000b\U0010ffff"
texts = st.text(LETTERS, max_size=3)
rules = st.tuples(
    st.sampled_from(["read", "describe", "admin"]),
    st.just("group"),
    st.sampled_from(["literal", "prefix"]),
    texts,
    st.sampled_from(["allow", "allow", "deny"]),
)
SORTED = "select name from unnest(%s::text[]) name order by name"


@given(st.lists(rules, max_size=6), st.lists(st.text(LETTERS, max_size=5), max_size=8))
@example([("read", "group", "prefix", "", "allow"), ("admin", "group", "prefix", "\U0010ffff", "deny")], ["\U0010ffff"])
@example([("read", "group", "literal", "a", "allow")], ["a", "a\x01", "aa"])
@settings(max_examples=300)
def test_ranges_hold_what_is_visible(given_rules: list[tuple[str, ...]], names: list[str]) -> None:
    visible = Rules(given_rules).visible(Operation.DESCRIBE, Resource.GROUP)  # type: ignore[arg-type]
    found = ranges(visible)
    flat = [edge for one in found for edge in one]
    assert flat == sorted(flat)
    for name in [*names, *(rule[3] for rule in given_rules)]:
        within = any(low <= name < high for low, high in found)
        assert within == (name in visible or (name in visible.denied_names))


def test_the_ends() -> None:
    assert ranges(EVERYTHING) == [("", BEYOND)]
    assert ranges(Visible()) == []
    assert ranges(Visible(("billing",), ("orders-",))) == [("billing", "billing\x01"), ("orders-", "orders.")]
    assert ranges(Visible(prefixes=("",), denied_prefixes=("b",))) == [("", "b"), ("c", BEYOND)]
    assert ranges(Visible(prefixes=("\ud7ff", "\U0010ffff"))) == [("\ud7ff", "\ue000"), ("\U0010ffff", BEYOND)]


@given(st.lists(st.text(LETTERS, max_size=4), max_size=8))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_database_compares_names_as_ranges_do(connection: psycopg.Connection[tuple[str]], names: list[str]) -> None:
    assert [name for (name,) in connection.execute(SORTED, [names]).fetchall()] == sorted(names)


def test_the_embedded_database_says_so(connection: psycopg.Connection[tuple[bool]]) -> None:
    row = connection.execute(queries("offsets").compares_code_points.encode()).fetchone()
    assert row == (True,)


@pytest.fixture(scope="module")
def connection(worker_database: str) -> psycopg.Connection[tuple[str]]:
    return psycopg.connect(worker_database, autocommit=True)
