"""What a problem body may carry, and what the document says of it: the same, field by field.

`ProblemFields` is the only type that errors take their fields from, which mypy checks; here the source is read as well,
so that a field which nothing sets any more is noticed too.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from typing import Any

import pytest

from kcoord.door.http import problem
from kcoord.protocol.errors import Error, ProblemFields
from tests.docs.citations import tracked
from tests.docs.pages import ROOT

CARRIERS = ("PlanRefused", "RunRefused")
"""Errors that take the fields as keywords."""


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    from kcoord.control.openapi.page import document

    found: dict[str, Any] = json.loads(document())["components"]["schemas"]["Problem"]
    return found


def trees() -> Iterator[ast.Module]:
    for path in tracked("kcoord/*.py", "groups/*.py", "offsets/*.py"):
        if path.is_relative_to(ROOT) and "migrations" not in path.parts and path.name not in ("models.py", "admin.py"):
            yield ast.parse(path.read_text(encoding="utf-8"))


def top(node: ast.AST | None) -> Iterator[str]:
    """The keys of a dict that is written out, or of both branches of a conditional expression."""
    for part in (node.body, node.orelse) if isinstance(node, ast.IfExp) else (node,):
        if isinstance(part, ast.Dict):
            yield from (str(key.value) for key in part.keys if isinstance(key, ast.Constant))


def fields_set(tree: ast.Module) -> Iterator[str]:
    """The names of problem fields that a module sets."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            for keyword in node.keywords:
                if keyword.arg == "fields":
                    yield from top(keyword.value)
                elif name in CARRIERS and keyword.arg is not None:
                    yield keyword.arg
        elif isinstance(node, ast.FunctionDef):
            yield from fields_in(node)


def fields_in(function: ast.FunctionDef) -> Iterator[str]:
    """The names of problem fields that a function puts in a variable, or returns."""
    variables = set()
    for node in ast.walk(function):
        if isinstance(node, ast.AnnAssign) and getattr(node.annotation, "id", "") == "ProblemFields":
            variables.add(getattr(node.target, "id", ""))
            yield from top(node.value)
        elif isinstance(node, ast.Return) and getattr(function.returns, "id", "") == "ProblemFields":
            yield from top(node.value)
    for node in ast.walk(function):
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key), ctx=ast.Store()):
                if name in variables:
                    yield str(key)


def test_what_the_code_sets_is_what_the_type_has() -> None:
    found = {name for tree in trees() for name in fields_set(tree)}
    assert found == set(ProblemFields.__annotations__)


def test_the_document_describes_every_field_and_no_other(described: dict[str, Any]) -> None:
    fixed = set(problem.body(Error.INVALID_REQUEST))
    assert set(described["required"]) == fixed
    assert set(described["properties"]) == fixed | set(ProblemFields.__annotations__)
    assert all(field.get("description") for field in described["properties"].values())


def test_no_field_replaces_a_fixed_member() -> None:
    assert not set(ProblemFields.__annotations__) & set(problem.body(Error.INVALID_REQUEST))


@pytest.mark.parametrize("name", ["problems", "lines", "partitions"])
def test_the_items_of_lists_are_described(described: dict[str, Any], name: str) -> None:
    from kcoord.control.openapi.page import document
    from kcoord.protocol import errors

    item = described["properties"][name]["items"]["$ref"].rsplit("/", 1)[1]
    schema = json.loads(document())["components"]["schemas"][item]
    assert set(schema["properties"]) == set(schema["required"]) == set(getattr(errors, item).__annotations__)
