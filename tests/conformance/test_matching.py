"""Each rule of comparison, matching and not matching."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.cases import Suite
from tests.conformance.conventions import RULES
from tests.conformance.matching import Rules, differences

CLASSIC = RULES[Suite.CLASSIC]
OFFSETS = RULES[Suite.OFFSETS]
CONSUMER = RULES[Suite.CONSUMER]
M1, M2 = {"member_id": "1", "metadata": "a"}, {"member_id": "2", "metadata": "b"}


@pytest.mark.parametrize(
    ("rules", "expected", "actual"),
    [
        (CLASSIC, {"a": 1}, {"a": 1, "b": 2}),
        (CLASSIC, {"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}),
        (CLASSIC, {"members": [{"member_id": "1"}, {"member_id": "2"}]}, {"members": [M1, M2]}),
        (CLASSIC, {"members": {"unordered": [{"metadata": "b"}, {"member_id": "1"}]}}, {"members": [M1, M2]}),
        (CLASSIC, {"members": {"unordered": [{}, {"member_id": "1"}]}}, {"members": [M1, M2]}),
        (CLASSIC, {"members": {"member_ids": ["2", "1"]}}, {"members": [M1, M2]}),
        (CLASSIC, {"member_ids": ["2", "1"]}, {"member_ids": ["1", "2"]}),
        (CLASSIC, {"members": {"len": 2}}, {"members": [M1, M2]}),
        (CLASSIC, {"id": {"prefix": "c-"}}, {"id": "c-1"}),
        (CLASSIC, {"id": {"not": "x"}}, {"id": "y"}),
        (CLASSIC, {"id": {"any_of": ["x", "y"]}}, {"id": "y"}),
        (OFFSETS, {"partitions": {"t": {"0": "NONE"}}}, {"partitions": {"t": {"0": "NONE"}}, "more": 1}),
        (OFFSETS, {"groups": {"g": {"error": "NONE"}}}, {"groups": {"g": {"error": "NONE", "offsets": {}}}}),
        (OFFSETS, {"tombstones": [["g", "t", 1], ["g", "t", 0]]}, {"tombstones": [["g", "t", 0], ["g", "t", 1]]}),
        (CONSUMER, {"member_id": "$any"}, {"member_id": "m"}),
        (CONSUMER, {"assignment": {"$count": 3}}, {"assignment": {"t": [0, 1], "u": [0]}}),
        (CONSUMER, {"members": {"m": {"epoch": 1}}}, {"members": {"m": {"epoch": 1, "state": "STABLE"}}}),
    ],
)
def test_what_holds(rules: Rules, expected: dict[str, Any], actual: dict[str, Any]) -> None:
    assert differences(expected, actual, rules) == []


@pytest.mark.parametrize(
    ("rules", "expected", "actual", "words"),
    [
        (CLASSIC, {"a": 1}, {}, "a: expected 1, but it is missing"),
        (CLASSIC, {"a": None}, {}, "a: expected null, but it is missing"),
        (CLASSIC, {"a": 1}, {"a": True}, "a: expected 1, got true"),
        (CLASSIC, {"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, "a.b.c: expected 1, got 2"),
        (CLASSIC, {"members": []}, {"members": [M1]}, "members: expected 0 entries"),
        (CLASSIC, {"members": [{"member_id": "2"}, {"member_id": "1"}]}, {"members": [M1, M2]}, "members.0.member_id"),
        (CLASSIC, {"members": {"unordered": [{"member_id": "1"}] * 2}}, {"members": [M1, M2]}, "no entry is"),
        (CLASSIC, {"members": {"unordered": [{}]}}, {"members": [M1, M2]}, "expected 1 entries"),
        (CLASSIC, {"members": {"member_ids": ["1"]}}, {"members": [M1, M2]}, "expected the member ids"),
        (CLASSIC, {"members": {"len": 1}}, {"members": [M1, M2]}, "expected 1 entries"),
        (CLASSIC, {"member_ids": ["1", "1"]}, {"member_ids": ["1", "2"]}, "no entry is"),
        (CLASSIC, {"id": {"prefix": "c-"}}, {"id": None}, "begins with"),
        (CLASSIC, {"id": {"not": "x"}}, {"id": "x"}, "anything but"),
        (CLASSIC, {"id": {"any_of": ["x", "y"]}}, {"id": "z"}, "one of"),
        (CLASSIC, {"id": {"prefx": "c-"}}, {"id": "c-1"}, "id: expected"),
        (OFFSETS, {"partitions": {}}, {"partitions": {"t": {"0": "NONE"}}}, "partitions.t: expected to be absent"),
        (OFFSETS, {"partitions": {"t": {}}}, {"partitions": {"t": {"0": "NONE"}}}, "partitions.t.0: expected to be"),
        (OFFSETS, {"groups": {}}, {"groups": {"g": {}}}, "groups.g: expected to be absent"),
        (OFFSETS, {"a": {"not": 1}}, {"a": 2}, "a: expected"),
        (CONSUMER, {"assignment": {"t": [0]}}, {"assignment": {"t": [0], "u": [0]}}, "assignment.u"),
        (CONSUMER, {"assignment": {}}, {"assignment": None}, "assignment: expected {}"),
        (CONSUMER, {"assignment": None}, {"assignment": {}}, "assignment: expected null"),
        (CONSUMER, {"assignment": {"$count": 3}}, {"assignment": {"t": [0, 1]}}, "3 partitions in total"),
        (CONSUMER, {"member_id": "$any"}, {}, "missing"),
    ],
)
def test_what_differs(rules: Rules, expected: dict[str, Any], actual: dict[str, Any], words: str) -> None:
    found = differences(expected, actual, rules)
    assert len(found) >= 1
    assert words in found[0]


def test_every_difference_is_told() -> None:
    found = differences({"a": 1, "b": 2, "c": 3}, {"a": 0, "b": 2}, CLASSIC)
    assert found == ["a: expected 1, got 0", "c: expected 3, but it is missing"]
