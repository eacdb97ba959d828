"""Wrong expectations, made from right ones: what the runner's own tests feed it to see that it notices.

Each mutation changes one thing that a case expects, never what it does. A mutation that a run does not notice is an
expectation that was not compared.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from tests.conformance.cases import Case, parse_case
from tests.conformance.conventions import RULES
from tests.conformance.matching import Rules
from tests.conformance.skips import SKIPS

_NOT_COMPARED = frozenset(skip.part for skip in SKIPS if skip.part)


def mutations(case: Case) -> Iterator[tuple[str, Case]]:
    """Every mutation of a scenario, with words for it."""
    rules = RULES[case.suite]
    for index, step in enumerate(case.raw["steps"]):
        for words, changed in _step_mutations(step, rules):
            raw = copy.deepcopy(dict(case.raw))
            raw["steps"][index] = changed
            yield f"step {index + 1}: {words}", parse_case(case.suite, raw)


def _step_mutations(step: Mapping[str, Any], rules: Rules) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(step.get("async"), bool):
        yield "async", {**step, "async": not step["async"]}
    if "pending" in step:
        for alias in step["pending"] if isinstance(step["pending"], list) else [step["pending"]]:
            yield f"pending {alias}", {"await": alias, "expect": {}}
    if "await" in step:
        yield f"await {step['await']}", {"pending": step["await"]}
    key = "expect" if "expect" in step else "metrics" if "metrics" in step else "check_group"
    expect = step.get(key)
    if isinstance(expect, Mapping):
        for path, changed in _object(expect, rules, "", exact=False):
            if path.split(".")[1] not in (*_NOT_COMPARED, "group_id"):
                yield f"{key}{path}", {**step, key: changed}


def _value(value: Any, rules: Rules, path: str, name: str) -> Iterator[tuple[str, Any]]:
    """Values that `value` must not match where `value` matches."""
    if isinstance(value, Mapping):
        if len(value) == 1 and (matcher := next(iter(value))) in rules.matchers:
            yield from _matcher(matcher, value[matcher], rules, path)
        else:
            yield from _object(value, rules, path, exact=name in rules.exact_maps)
    elif isinstance(value, list):
        yield f"{path} longer", [*value, value[-1] if value else "~"]
        if value:
            yield f"{path} shorter", value[:-1]
        for index, entry in enumerate(value):
            for where, changed in _value(entry, rules, f"{path}.{index}", ""):
                yield where, [*value[:index], changed, *value[index + 1 :]]
    elif value != "$any":
        yield path, _other(value)


def _object(value: Mapping[str, Any], rules: Rules, path: str, *, exact: bool) -> Iterator[tuple[str, Any]]:
    for key, entry in value.items():
        for where, changed in _value(entry, rules, f"{path}.{key}", key):
            yield where, {**value, key: changed}
        if exact:
            yield f"{path}.{key} left out", {other: kept for other, kept in value.items() if other != key}


def _matcher(matcher: str, value: Any, rules: Rules, path: str) -> Iterator[tuple[str, Any]]:
    match matcher:
        case "not":
            yield f"{path} turned round", value
        case "any_of":
            yield f"{path} none of", {"any_of": [_other(choice) for choice in value]}
        case "member_ids":
            yield f"{path} one more", {"member_ids": [*value, "~"]}
            yield f"{path} one less", {"member_ids": value[:-1]}
        case "unordered":
            for where, changed in _value(value, rules, path, ""):
                yield where, {"unordered": changed}
        case _:
            yield f"{path} {matcher}", {matcher: _other(value)}


def _other(value: Any) -> Any:
    """Another value of the same kind. A reference in front of which something stands is a plain text."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return f"~{value}"
