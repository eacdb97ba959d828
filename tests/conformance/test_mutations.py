"""A wrong expectation makes a case fail: every mutation of every sixth case that passes through the core is noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest

from tests.conformance.cases import Case, Suite, parse_case
from tests.conformance.core_driver import AT_DEADLINE, CoreBackend
from tests.conformance.mutations import mutations
from tests.conformance.runner import Status, run_assignment, run_case
from tests.conformance.support import case_file, is_of_the_core, scenarios

pytestmark = pytest.mark.whole("of what is not the product: how the cases are compared")


class OneMode(CoreBackend):
    """The core with timers at their deadlines only: mutations are about comparing, not about time."""

    modes = (AT_DEADLINE,)


async def unnoticed(case: Case) -> list[str]:
    """The mutations of `case` that did not make it fail."""
    backend = OneMode()
    return [words for words, changed in mutations(case) if (await run_case(changed, backend)).status != Status.FAILED]


@pytest.mark.parametrize("case", scenarios(is_of_the_core)[::6])
async def test_every_mutation_of_a_case_is_noticed(case: Case) -> None:
    verdict = await run_case(case, OneMode())
    if verdict.status is Status.SKIPPED:
        pytest.skip("; ".join(verdict.lines))
    assert verdict.status is Status.PASSED, str(verdict)
    assert list(mutations(case)), "a case that expects nothing"
    assert await unnoticed(case) == []


@pytest.mark.parametrize("case", case_file(Suite.ASSIGNORS))
async def test_every_mutation_of_an_assignment_is_noticed(case: Case) -> None:
    wrong = list(_wrong_assignments(case.raw["expect"]))
    assert wrong
    for expect in wrong:
        changed = parse_case(Suite.ASSIGNORS, {**case.raw, "expect": expect})
        assert run_assignment(changed).status is Status.FAILED, expect


def _wrong_assignments(expect: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "invariants" not in expect:
        yield from _wrong_members(expect)
        return
    wrong: Mapping[str, Callable[[Any], Iterable[Any]]] = {
        "valid": lambda value: (not value,),
        "sizes": lambda value: ([*value[:-1], 99],),
        "max_minus_min": lambda value: (value + 1,),
        "keeps": lambda value: ({**value, member: {"~": [0]}} for member in value),
        "min_kept": lambda value: ({**value, member: 99} for member in value),
        "exact_members": _wrong_members,
    }
    for name, value in expect["invariants"].items():
        yield from ({"invariants": {**expect["invariants"], name: changed}} for changed in wrong[name](value))


def _wrong_members(expect: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for member, partitions in expect.items():
        yield {**expect, member: {**partitions, "~": [0]}}
        if partitions:
            yield {**expect, member: {topic: numbers[1:] for topic, numbers in partitions.items()}}


async def test_a_case_of_our_own_and_its_mutations() -> None:
    """The same without any file: a member asks for an id, joins alone, syncs and reads its assignment."""
    case = parse_case(Suite.CLASSIC, {"name": "alone", "area": "join", "config": {}, "steps": LONE_MEMBER})
    assert (await run_case(case, CoreBackend())).status is Status.PASSED
    assert len(list(mutations(case))) > 20
    assert await unnoticed(case) == []


_JOIN = {
    "group_id": "g",
    "member_id": "",
    "group_instance_id": None,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 30_000,
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": "m"}],
    "client_id": "app",
    "api_version": 9,
}
_MEMBER = {"group_id": "g", "member_id": "$a.member_id", "group_instance_id": None, "generation_id": 1}
LONE_MEMBER = [
    {"call": "JoinGroup", "args": _JOIN, "as": "id", "async": False},
    {"await": "id", "expect": {"error": "MEMBER_ID_REQUIRED", "member_id": {"prefix": "app-"}, "members": []}},
    {"call": "JoinGroup", "args": {**_JOIN, "member_id": "$id.member_id"}, "as": "a", "async": True},
    {"pending": "a"},
    {"advance_ms": 3_000},
    {
        "await": "a",
        "expect": {
            "error": {"not": "UNKNOWN_MEMBER_ID"},
            "leader": {"any_of": ["$id.member_id", "nobody"]},
            "generation_id": 1,
            "skip_assignment": False,
            "members": {"unordered": [{"member_id": "$id.member_id", "group_instance_id": None, "metadata": "m"}]},
        },
    },
    {"await": "a", "expect": {"members": {"member_ids": ["$id.member_id"]}}},
    {"await": "a", "expect": {"members": {"len": 1}}},
    {
        "call": "SyncGroup",
        "args": {
            **_MEMBER,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [{"member_id": "$a.member_id", "assignment": "A"}],
        },
        "as": "s",
        "async": False,
    },
    {"await": "s", "expect": {"error": "NONE", "assignment": "A", "protocol_name": "range"}},
    {"inspect": "g", "expect": {"exists": True, "state": "Stable", "member_count": 1, "leader": "$a.member_id"}},
]
