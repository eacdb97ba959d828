"""Comparing an expectation with what happened.

An expectation is a subset of the answer: objects are compared on the keys given, lists of objects in order and on
the keys given. `Rules` says where a convention is stricter (maps whose key sets must be equal) or looser (lists
whose order means nothing). The result is a list of differences; an empty list means the expectation holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Rules:
    """How one convention compares.

    `exact_maps`: names of objects whose key sets must be equal; `nested_exact` of them also one level further down
    (topic -> partition). `unordered_lists`: names of lists whose order means nothing. `matchers`: the names of the
    one-key objects that are matchers rather than values.
    """

    exact_maps: frozenset[str] = frozenset()
    nested_exact: frozenset[str] = frozenset()
    unordered_lists: frozenset[str] = frozenset()
    matchers: frozenset[str] = frozenset()


def differences(expected: Mapping[str, Any], actual: Mapping[str, Any], rules: Rules) -> list[str]:
    """What is wrong with `actual`, one sentence for each place. The outermost object is never a matcher."""
    return _object(expected, actual, rules, "", exact=False, nested_exact=False)


def _compare(expected: Any, actual: Any, rules: Rules, path: str, name: str) -> list[str]:
    if expected == "$any" and "$any" in rules.matchers:
        return []
    if isinstance(expected, Mapping):
        if len(expected) == 1 and (matcher := next(iter(expected))) in rules.matchers:
            return _MATCHERS[matcher](expected[matcher], actual, rules, path)
        if not isinstance(actual, Mapping):
            return [_differ(path, expected, actual)]
        return _object(
            expected, actual, rules, path, exact=name in rules.exact_maps, nested_exact=name in rules.nested_exact
        )
    if isinstance(expected, list):
        if not isinstance(actual, list):
            return [_differ(path, expected, actual)]
        return (
            _any_order(expected, actual, rules, path)
            if name in rules.unordered_lists
            else _in_order(expected, actual, rules, path)
        )
    return [] if _same(expected, actual) else [_differ(path, expected, actual)]


def _object(
    expected: Mapping[str, Any], actual: Mapping[str, Any], rules: Rules, path: str, *, exact: bool, nested_exact: bool
) -> list[str]:
    found = []
    for key, value in expected.items():
        here = f"{path}.{key}" if path else str(key)
        got = actual.get(key, _MISSING)
        if got is _MISSING:
            found.append(f"{here}: expected {_show(value)}, but it is missing")
        elif nested_exact and isinstance(value, Mapping) and isinstance(got, Mapping):
            found += _object(value, got, rules, here, exact=True, nested_exact=False)
        else:
            found += _compare(value, got, rules, here, key)
    if exact:
        found += [
            f"{path}.{key}: expected to be absent, got {_show(actual[key])}" for key in actual if key not in expected
        ]
    return found


def _in_order(expected: Sequence[Any], actual: Sequence[Any], rules: Rules, path: str) -> list[str]:
    if len(expected) != len(actual):
        return [f"{path}: expected {len(expected)} entries {_show(expected)}, got {len(actual)} {_show(actual)}"]
    return [
        difference
        for index, (want, got) in enumerate(zip(expected, actual, strict=True))
        for difference in _compare(want, got, rules, f"{path}.{index}", "")
    ]


def _any_order(expected: Sequence[Any], actual: Sequence[Any], rules: Rules, path: str) -> list[str]:
    """Pair every expected entry with a different actual one; partial entries may fit several, so pairs can move."""
    if len(expected) != len(actual):
        return [f"{path}: expected {len(expected)} entries {_show(expected)}, got {len(actual)} {_show(actual)}"]
    fits = [
        [index for index, got in enumerate(actual) if not _compare(want, got, rules, path, "")] for want in expected
    ]
    taken: dict[int, int] = {}

    def place(want: int, tried: set[int]) -> bool:
        for index in fits[want]:
            if index not in tried:
                tried.add(index)
                if index not in taken or place(taken[index], tried):
                    taken[index] = want
                    return True
        return False

    return [
        f"{path}: no entry is {_show(expected[want])}, got {_show(actual)}"
        for want in range(len(expected))
        if not place(want, set())
    ]


def _not(unwanted: Any, actual: Any, rules: Rules, path: str) -> list[str]:
    if _compare(unwanted, actual, rules, path, ""):
        return []
    return [f"{path}: expected anything but {_show(unwanted)}"]


def _any_of(choices: Any, actual: Any, rules: Rules, path: str) -> list[str]:
    if any(not _compare(choice, actual, rules, path, "") for choice in choices):
        return []
    return [f"{path}: expected one of {_show(choices)}, got {_show(actual)}"]


def _prefix(prefix: Any, actual: Any, rules: Rules, path: str) -> list[str]:
    if isinstance(actual, str) and actual.startswith(prefix):
        return []
    return [f"{path}: expected a text that begins with {_show(prefix)}, got {_show(actual)}"]


def _len(length: Any, actual: Any, rules: Rules, path: str) -> list[str]:
    if isinstance(actual, list | dict | str) and len(actual) == length:
        return []
    return [f"{path}: expected {length} entries, got {_show(actual)}"]


def _member_ids(ids: Any, actual: Any, rules: Rules, path: str) -> list[str]:
    got = [entry.get("member_id") for entry in actual] if isinstance(actual, list) else actual
    if isinstance(got, list) and sorted(map(str, got)) == sorted(map(str, ids)):
        return []
    return [f"{path}: expected the member ids {_show(ids)}, got {_show(got)}"]


def _unordered(entries: Any, actual: Any, rules: Rules, path: str) -> list[str]:
    return _any_order(entries, actual, rules, path) if isinstance(actual, list) else [_differ(path, entries, actual)]


def _count(total: Any, actual: Any, rules: Rules, path: str) -> list[str]:
    got = sum(len(partitions) for partitions in actual.values()) if isinstance(actual, Mapping) else None
    if got == total:
        return []
    return [f"{path}: expected {total} partitions in total, got {_show(actual)}"]


_MATCHERS = {
    "not": _not,
    "any_of": _any_of,
    "prefix": _prefix,
    "len": _len,
    "member_ids": _member_ids,
    "unordered": _unordered,
    "$count": _count,
}


def _same(expected: Any, actual: Any) -> bool:
    """Equal, and of one kind: in JSON true is not 1."""
    return expected == actual and isinstance(expected, bool) == isinstance(actual, bool)


def _differ(path: str, expected: Any, actual: Any) -> str:
    return f"{path}: expected {_show(expected)}, got {_show(actual)}"


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=repr)
