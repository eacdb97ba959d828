"""The SQL of a package names its own tables and those of packages below it: frontend -> offsets -> groups -> kcoord."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps

from kcoord.database.sql import queries

ROOT = Path(__file__).parents[3]
BELOW = {
    "kcoord": (),
    "groups": ("kcoord",),
    "offsets": ("kcoord", "groups"),
    "frontend": ("kcoord", "groups", "offsets"),
}
"""Package -> packages whose tables its SQL may name besides its own."""

ALLOWED = {
    ("groups", "offsets_are_stored", "offsets_committedoffset"): "whether the tables of offsets exist; reads no row",
    ("groups", "offsets_are_stored", "offset_commit_log"): "whether the tables of offsets exist; reads no row",
    ("kcoord", "samples_age", "offsets_grouplag"): "readiness: when lag was last sampled",
    ("kcoord", "samples_age", "offsets_verdictrun"): "readiness: when offsets were last judged",
    ("kcoord", "journal_day_is_there", "offset_commit_log"): "readiness: whether today's day table exists",
}
"""(package, statement or file, table) -> why it is named there nevertheless."""

JOURNAL = "offset_commit_log"
WORD = re.compile(r"[a-z_][a-z0-9_]*")


def owners() -> dict[str, str]:
    """The package of each table, as the models declare them."""
    return {
        model._meta.db_table: config.label
        for config in apps.get_app_configs()
        if config.label in BELOW
        for model in config.get_models()
    }


def statements(package: str) -> Iterator[tuple[str, str]]:
    """Name and text of the SQL of a package: its named statements, and the texts in its code."""
    yield from queries(package).items()
    for path in sorted((ROOT / package).rglob("*.py")):
        if "migrations" in path.parts:
            continue  # they make the tables
        for literal in literals(path.read_text(encoding="utf-8")):
            yield str(path.relative_to(ROOT)), literal


def literals(source: str) -> Iterator[str]:
    """The texts in a module that are not docstrings."""
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    told = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, documented)
        for statement in node.body
        if isinstance(statement, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


def named(text: str, tables: dict[str, str]) -> set[str]:
    """The tables in a text; a partition of the journal is the journal."""
    words = {JOURNAL if word.startswith(f"{JOURNAL}_") else word for word in WORD.findall(text.lower())}
    return words & tables.keys()


def strangers(package: str, found: Iterator[tuple[str, str]]) -> set[tuple[str, str, str]]:
    """What the SQL of a package names and may not."""
    tables = owners()
    allowed = {package, *BELOW[package]}
    return {
        (package, name, table) for name, text in found for table in named(text, tables) if tables[table] not in allowed
    }


@pytest.mark.parametrize("package", BELOW)
def test_sql_names_no_table_of_a_package_above(package: str) -> None:
    expected = {key for key in ALLOWED if key[0] == package}
    assert strangers(package, statements(package)) == expected


def test_every_package_above_kcoord_has_tables() -> None:
    assert set(owners().values()) == set(BELOW)


def test_a_table_of_a_package_above_is_found_in_statements_and_in_code() -> None:
    code = 'def f(x):\n    """What offsets_grouplag says."""\n    return g(f"select 1 from {x}, offsets_producer")\n'
    found = [("one", "select 1 from groups_group g join offsets_grouplag l on true"), ("two", "select 1")]
    found += [("a.py", text) for text in literals(code)]
    assert strangers("groups", iter(found)) == {
        ("groups", "one", "offsets_grouplag"),
        ("groups", "a.py", "offsets_producer"),
    }
    assert strangers("offsets", iter(found)) == set()
