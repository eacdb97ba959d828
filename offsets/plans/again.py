"""The request behind a plan, from the plan: to plan the same once more.

A plan keeps the names of its topics and, line by line, their partitions. Source: http-api.md 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kcoord.resets.strategies import PARAMETER, Reset, Strategy
from offsets.core.plan_types import Line, PlanHeader


def request_of(found: PlanHeader, lines: Sequence[Line]) -> Reset:
    """What was asked for, with the choices of later revisions (`clamp`, `keep_unknown`).

    A plan for all committed partitions stays one for all of them; any other one keeps exactly its partitions. Of
    a file, the lines of partitions without a requested offset are left out.
    """
    strategy, kept = Strategy(found.strategy), found.parameters
    careful: Mapping[str, Any] = {key: bool(kept.get(key)) for key in ("clamp", "keep_unknown")}
    if strategy is Strategy.FROM_FILE:
        return Reset(
            strategy, csv={line.key: line.requested for line in lines if line.requested is not None}, **careful
        )
    name = PARAMETER[strategy]
    given: Mapping[str, Any] = {} if name is None else {name: kept[name]}
    scope = None if kept.get("topics") is None else _scope(lines)
    return Reset(strategy, scope, **given, **careful)


def _scope(lines: Sequence[Line]) -> tuple[tuple[str, tuple[int, ...] | None], ...]:
    by_topic: dict[str, list[int]] = {}
    for line in lines:
        by_topic.setdefault(line.topic, []).append(line.partition)
    return tuple((topic, tuple(sorted(numbers))) for topic, numbers in by_topic.items())
