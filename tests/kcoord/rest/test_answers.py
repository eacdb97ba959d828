"""Responses are declared once, and JSON is made of the declaration."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from kcoord.control.rest.answers import Answer, From, Instant, doc, shown
from kcoord.control.rest.base import AnswerRenderer

ROOT = Path(__file__).parents[3]
PACKAGES = ("kcoord/control/rest", "groups/api/rest", "offsets/api/rest")


@dataclass(frozen=True, slots=True)
class Inner:
    """A row of a service."""

    at: Annotated[Instant | None, doc("null: never.")]
    name: str


@dataclass(frozen=True, slots=True)
class Plain:
    """A row without instants."""

    number: int


class Sometimes(TypedDict, total=False):
    """What may be missing."""

    at: Instant
    name: str


class Shown(Answer):
    """Everything that a declaration may consist of."""

    inner: Inner
    rows: Sequence[Inner]
    by_name: Mapping[str, Instant | None]
    plain: list[Plain]
    other: Annotated[str | None, From("elsewhere.name")]
    missing: Annotated[str | None, From("nothing.name")]
    itself: Annotated[Inner, From("")]
    parameters: Sometimes
    lag: int | None


def test_what_is_shown_is_what_is_declared() -> None:
    value: dict[str, Any] = {
        "at": 1_000, "name": "x", "hidden": 1, "inner": Inner(None, "a"), "rows": (Inner(0, "b"),),
        "by_name": {"c": 1, "d": None}, "plain": [row := Plain(1)], "elsewhere": Inner(0, "e"), "nothing": None,
        "parameters": {"at": 2}, "lag": Decimal(2**63 - 1),
    }  # fmt: skip
    found = shown(Shown, value)
    assert found["plain"][0] is row, "rows without instants are encoded as they are"
    assert AnswerRenderer().render(found).decode() == (
        '{"inner":{"at":null,"name":"a"},"rows":[{"at":"1970-01-01T00:00:00.000Z","name":"b"}],'
        '"by_name":{"c":"1970-01-01T00:00:00.001Z","d":null},"plain":[{"number":1}],"other":"e","missing":null,'
        '"itself":{"at":"1970-01-01T00:00:01.000Z","name":"x"},"parameters":{"at":"1970-01-01T00:00:00.002Z"},'
        '"lag":9223372036854775807}'
    )


def classes() -> list[tuple[str, ast.ClassDef]]:
    """The classes of the control plane, with the names of their files."""
    files = [file for package in PACKAGES for file in sorted((ROOT / package).glob("*.py"))]
    return [
        (file.name, found) for file in files for found in ast.parse(file.read_text()).body
        if isinstance(found, ast.ClassDef)
    ]  # fmt: skip


def declares(found: ast.ClassDef, field: str) -> bool:
    return any(
        isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and one.target.id == field
        for one in found.body
    )


@pytest.mark.parametrize("field", ["client_host", "client_software_name", "session_expires_at", "coordinator"])
def test_what_all_groups_or_members_have_is_declared_once(field: str) -> None:
    found = [one.name for _, one in classes() if declares(one, field) and not one.name.endswith("Problem")]
    assert found in (["AnyMember"], ["AnyGroup"])


def test_serializers_are_of_requests_only() -> None:
    """A serializer with the fields of a response would be its second declaration."""
    found = {one.name for _, one in classes() if any("serializers.Serializer" in ast.unparse(b) for b in one.bases)}
    assert found == {"StrictSerializer", "GroupConfigChange"}
