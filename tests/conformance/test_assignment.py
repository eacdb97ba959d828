"""Comparing assignments: exactly, and each invariant."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.assignment import check

RAW: dict[str, Any] = {
    "name": "case",
    "assignor": "uniform",
    "topics": {"t": 2, "u": 1, "unread": 3},
    "members": {"a": {"topics": ["t", "u"], "owned": {"t": [0]}}, "b": {"topics": ["t"], "owned": {}}},
}
RESULT = {"a": {"t": [0], "u": [0]}, "b": {"t": [1]}}


@pytest.mark.parametrize(
    "expect",
    [
        {"a": {"u": [0], "t": [0]}, "b": {"t": [1]}},
        {"invariants": {"valid": True}},
        {"invariants": {"sizes": [2, 1]}},
        {"invariants": {"max_minus_min": 1}},
        {"invariants": {"keeps": {"a": {"t": [0]}}}},
        {"invariants": {"min_kept": {"a": 1}}},
        {"invariants": {"exact_members": {"b": {"t": [1]}}}},
    ],
)
def test_what_holds(expect: dict[str, Any]) -> None:
    assert check({**RAW, "expect": expect}, RESULT) == []


@pytest.mark.parametrize(
    ("expect", "words"),
    [
        ({"a": {"t": [0]}, "b": {"t": [1]}}, "a: expected"),
        ({"a": {"t": [0], "u": [0]}}, "expected the members"),
        ({"a": {"t": [0], "u": [0]}, "b": {"t": [1]}, "c": {}}, "expected the members"),
        ({"invariants": {"valid": False}}, "not valid"),
        ({"invariants": {"sizes": [1, 2]}}, "member totals"),
        ({"invariants": {"max_minus_min": 0}}, "largest minus the smallest"),
        ({"invariants": {"keeps": {"b": {"t": [0]}}}}, "b: expected to keep t [0]"),
        ({"invariants": {"min_kept": {"a": 2}}}, "at least 2"),
        ({"invariants": {"exact_members": {"b": {"t": [0]}}}}, "b: expected"),
        ({"invariants": {"fair": True}}, "unknown invariants"),
    ],
)
def test_what_differs(expect: dict[str, Any], words: str) -> None:
    found = check({**RAW, "expect": expect}, RESULT)
    assert words in found[0]


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"a": {"t": [0]}, "b": {"t": [1]}}, "u-0: assigned to nobody"),
        ({"a": {"t": [0, 1], "u": [0]}, "b": {"t": [1]}}, "t-1: assigned to ['a', 'b']"),
        ({"a": {"t": [0]}, "b": {"t": [1], "u": [0]}}, "u-0: b does not subscribe to it"),
        ({"a": {"t": [0], "u": [0]}, "b": {"t": [1], "unread": [0]}}, "unread-0: nobody may own it"),
    ],
)
def test_what_is_not_valid(result: dict[str, Any], words: str) -> None:
    assert words in check({**RAW, "expect": {"invariants": {"valid": True}}}, result)[0]
