"""What generators for Go and Python make of the document: names that do not collide, numbers that are numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def schemas(django_db_setup: None) -> dict[str, Any]:
    """The components of the document."""
    from kcoord.control.openapi.page import document

    found: dict[str, Any] = json.loads(document())["components"]["schemas"]
    return found


def objects(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object of a JSON tree."""
    if isinstance(tree, dict):
        yield tree
    for item in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from objects(item)


def test_no_schema_has_the_name_of_a_wrapped_answer(schemas: dict[str, Any]) -> None:
    """oapi-codegen calls the answer of the operation `join` JoinResponse."""
    assert not [name for name in schemas if name.endswith("Response")]
    assert {"JoinResult", "CommitResult", "FetchResult"} <= set(schemas)


def test_only_what_may_be_a_word_is_a_union_of_number_and_text(schemas: dict[str, Any]) -> None:
    unions = [found["anyOf"] for found in objects(schemas) if "anyOf" in found]
    found = [one for one in unions if {"integer", "string"} <= {choice.get("type") for choice in one}]
    assert found == [schemas["SettingValue"]["anyOf"]]
    offset = schemas["CommitPartition"]["properties"]["committed_offset"]
    assert (offset["type"], offset["format"]) == ("integer", "int64")


def test_a_join_needs_no_member_id(schemas: dict[str, Any]) -> None:
    join = schemas["JoinRequest"]
    assert "member_id" not in join["required"]
    assert join["properties"]["member_id"]["default"] == ""
