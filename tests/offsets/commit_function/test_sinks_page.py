"""docs/sinks.md says what is so: its code is the example's, its errors are those that are raised, its SQL runs."""

from __future__ import annotations

import re

import psycopg

from kcoord.protocol.errors import Error
from tests.support.database import ROOT

DOCS = ROOT / "docs"
PAGE = (DOCS / "sinks.md").read_text()


def test_code_of_the_page_is_that_of_the_example() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert code in (DOCS / "examples" / "billing.py").read_text()


def test_errors_of_the_page_are_those_that_are_raised(database: str) -> None:
    told = dict(re.findall(r"^\| `(KC\d+)` \| (\w+) \|", PAGE, re.MULTILINE))
    told |= dict(re.findall(r"`(KC088|KC121)` (\w+)", PAGE))
    raised = {}
    with psycopg.connect(database, autocommit=True) as connection:
        for error in Error:
            try:
                connection.execute("select kcoord.refuse(%s, 'why')", (error.name,))
            except psycopg.Error as refusal:
                if refusal.sqlstate == f"KC{error.code:03}":
                    raised[refusal.sqlstate] = error.name
    assert told == raised


def test_the_example_goes_on_after_the_errors_that_the_page_says_so_of() -> None:
    example = (DOCS / "examples" / "billing.py").read_text()
    again = set(re.findall(r'^    "(\w{5})",', example, re.MULTILINE))
    section = PAGE.partition("### Errors")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| `(\w{5})` \| .*? \| (.*?) \|$", section, re.MULTILINE)
    ends = {"KC082", "KC003", "KC012", "KC024", "KC042"}
    assert again == {sqlstate for sqlstate, _ in rows} - ends


def test_sql_of_the_page_runs(database: str) -> None:
    statements = re.findall(r"^ *```sql\n(.*?)^ *```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(statements) == 7
    with psycopg.connect(database) as connection:
        connection.execute("create role billing_sink; create schema if not exists shop")
        for text in statements:
            if "…" not in text:
                connection.execute(text.replace("create schema shop", "create schema if not exists shop").encode())
        may = connection.execute(
            "select has_function_privilege('billing_sink', oid, 'execute')"
            " from pg_proc where proname = 'commit_offsets'"
        ).fetchall()
        connection.rollback()
    assert may == [(True,)]
