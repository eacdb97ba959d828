"""`assignors.jsonl`: an assignment compared exactly, or by the invariants it must have.

Source: consumer.md 0.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Assignment = Mapping[str, Mapping[str, list[int]]]
_INVARIANTS = frozenset({"valid", "sizes", "max_minus_min", "keeps", "min_kept", "exact_members"})


def check(raw: Mapping[str, Any], result: Assignment) -> list[str]:
    """What is wrong with the assignment that case `raw` produced; empty when it is what the case says."""
    expect = raw["expect"]
    found = _not_the_members(raw, result)
    if "invariants" not in expect:
        return found + [
            f"{member}: expected {_plain(partitions)}, got {_plain(result.get(member, {}))}"
            for member, partitions in expect.items()
            if _plain(partitions) != _plain(result.get(member, {}))
        ]
    invariants = expect["invariants"]
    if unknown := set(invariants) - _INVARIANTS:
        return [f"unknown invariants {sorted(unknown)}"]
    for name, value in invariants.items():
        found += _CHECKS[name](value, raw, result)
    return found


def _not_the_members(raw: Mapping[str, Any], result: Assignment) -> list[str]:
    expected = set(raw["expect"]) if "invariants" not in raw["expect"] else set(raw["members"])
    return [] if set(result) == expected else [f"expected the members {sorted(expected)}, got {sorted(result)}"]


def _valid(value: bool, raw: Mapping[str, Any], result: Assignment) -> list[str]:
    """Each partition of each subscribed topic is assigned exactly once, to a member that subscribes to it."""
    subscribed = {topic for member in raw["members"].values() for topic in member["topics"]}
    wanted = {(topic, p) for topic, count in raw["topics"].items() if topic in subscribed for p in range(count)}
    owners: dict[tuple[str, int], list[str]] = {}
    for member, partitions in result.items():
        for topic, numbers in partitions.items():
            for number in numbers:
                owners.setdefault((topic, number), []).append(member)
    problems = [f"{topic}-{p}: assigned to nobody" for topic, p in sorted(wanted - set(owners))]
    problems += [f"{topic}-{p}: nobody may own it, {owners[topic, p]} do" for topic, p in sorted(set(owners) - wanted)]
    for (topic, p), members in sorted(owners.items()):
        if len(members) > 1:
            problems.append(f"{topic}-{p}: assigned to {members}")
        problems += [
            f"{topic}-{p}: {member} does not subscribe to it"
            for member in members
            if topic not in raw["members"].get(member, {"topics": ()})["topics"]
        ]
    if value:
        return problems
    return [] if problems else ["expected an assignment that is not valid, it is"]


def _sizes(value: list[int], raw: Mapping[str, Any], result: Assignment) -> list[str]:
    sizes = sorted(_totals(result).values(), reverse=True)
    return [] if sizes == value else [f"expected member totals {value}, got {sizes}"]


def _max_minus_min(value: int, raw: Mapping[str, Any], result: Assignment) -> list[str]:
    totals = _totals(result).values()
    spread = max(totals) - min(totals)
    return [] if spread == value else [f"expected the largest minus the smallest total to be {value}, it is {spread}"]


def _keeps(value: Assignment, raw: Mapping[str, Any], result: Assignment) -> list[str]:
    return [
        f"{member}: expected to keep {topic} {sorted(lost)}"
        for member, partitions in value.items()
        for topic, numbers in partitions.items()
        if (lost := set(numbers) - set(result.get(member, {}).get(topic, ())))
    ]


def _min_kept(value: Mapping[str, int], raw: Mapping[str, Any], result: Assignment) -> list[str]:
    problems = []
    for member, least in value.items():
        owned = raw["members"][member]["owned"]
        now = result.get(member, {})
        kept = sum(len(set(numbers) & set(now.get(topic, ()))) for topic, numbers in owned.items())
        if kept < least:
            problems.append(f"{member}: expected to keep at least {least} partitions, kept {kept}")
    return problems


def _exact_members(value: Assignment, raw: Mapping[str, Any], result: Assignment) -> list[str]:
    return [
        f"{member}: expected {_plain(partitions)}, got {_plain(result.get(member, {}))}"
        for member, partitions in value.items()
        if _plain(partitions) != _plain(result.get(member, {}))
    ]


_CHECKS: Mapping[str, Callable[[Any, Mapping[str, Any], Assignment], list[str]]] = {
    "valid": _valid,
    "sizes": _sizes,
    "max_minus_min": _max_minus_min,
    "keeps": _keeps,
    "min_kept": _min_kept,
    "exact_members": _exact_members,
}


def _totals(result: Assignment) -> dict[str, int]:
    return {member: sum(len(numbers) for numbers in partitions.values()) for member, partitions in result.items()}


def _plain(partitions: Mapping[str, Any]) -> dict[str, list[int]]:
    """Topics without partitions left out, partitions in order: how two assignments of a member are compared."""
    return {topic: sorted(numbers) for topic, numbers in sorted(partitions.items()) if numbers}
