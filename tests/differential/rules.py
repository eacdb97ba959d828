"""How two answers are compared, and which differences are meant: docs/differences.md says why."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.differential.sequences import Step

UNCOMPARED = {"throttle_time", "error_message"}
"""Times of quotas, and texts for people."""
ORDERED = {"partitions", "topics", "groups", "members", "topic_partitions", "results"}
"""Lists without an order of their own: Kafka takes it from its maps."""
EPOCHS = {"member_epoch", "group_epoch", "assignment_epoch"}
LATER_START = 1
"""Kafka begins the epochs of a new consumer group that has something to assign at 2 instead of 1."""


Known = Callable[[Step, str, Any, Any], bool]


def _nothing_to_commit(step: Step, where: str, ours: Any, theirs: Any) -> bool:
    """To commit where nothing is pending is no error here, and gives the producer its next epoch."""
    if step.kind != "transaction" or where != "[2]":
        return False
    return (ours["error_code"], theirs["error_code"]) == (0, INVALID_TXN_STATE)


INVALID_TXN_STATE = 48
KNOWN: tuple[Known, ...] = (_nothing_to_commit,)
"""Differences that are meant, besides the epochs of a new group."""


def canonical(value: Any, names: Mapping[Any, str]) -> Any:
    """An answer with the same names for what each side names in its own way, and without what is not compared."""
    if isinstance(value, Mapping):
        found = {key: canonical(entry, names) for key, entry in value.items() if key not in UNCOMPARED}
        return {key: _sorted(entry) if key in ORDERED else entry for key, entry in found.items()}
    if isinstance(value, (list, tuple)):
        return [canonical(entry, names) for entry in value]
    if isinstance(value, str | uuid.UUID):
        return names.get(value, str(value))
    return value


def _sorted(value: Any) -> Any:
    return sorted(value, key=repr) if isinstance(value, list) else value


@dataclass
class Comparison:
    """Compares the answers of one sequence, in order. `shift`: how much later Kafka's epochs are; None: not known."""

    shift: int | None = None
    differences: list[str] = field(default_factory=list)

    def step(self, number: int, step: Step, ours: Any, theirs: Any) -> None:
        """Note what differs in the answers to a step."""
        for where, one, other in self._unequal(ours, theirs, ""):
            if any(known(step, where, one, other) for known in KNOWN):
                continue
            self.differences.append(f"{number}. {step}: {where}: here {one!r}, Kafka {other!r}")
        if step.kind == "delete_group":
            self.shift = None

    def _unequal(self, ours: Any, theirs: Any, where: str) -> list[tuple[str, Any, Any]]:
        if isinstance(ours, Mapping) and isinstance(theirs, Mapping) and ours.keys() == theirs.keys():
            return [entry for key in ours for entry in self._unequal(ours[key], theirs[key], f"{where}.{key}")]
        if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
            pairs = enumerate(zip(ours, theirs, strict=True))
            return [entry for at, (one, other) in pairs for entry in self._unequal(one, other, f"{where}[{at}]")]
        if where.rpartition(".")[2] in EPOCHS and self._is_shifted(ours, theirs):
            return []
        return [] if ours == theirs else [(where or "answer", ours, theirs)]

    def _is_shifted(self, ours: Any, theirs: Any) -> bool:
        """Whether the epochs are the same but for where they began, which is the same for all of a group."""
        if not (isinstance(ours, int) and isinstance(theirs, int) and ours > 0 and theirs > 0):
            return False
        if self.shift is None and theirs - ours in (0, LATER_START):
            self.shift = theirs - ours
        return theirs - ours == self.shift


def kind_of(difference: str) -> str:
    """What is counted as one kind: the step and the field, without values."""
    matched = re.match(r"\d+\. (\w+)\(.*?\): ([\w.\[\]]+): here (.*), Kafka (.*)$", difference)
    if matched is None:
        return difference
    step, where, one, other = matched.groups()
    field_of = re.sub(r"\[\d+\]", "", where)
    return f"{step}{field_of}: {one[:40]} / {other[:40]}"


def compared(steps: Sequence[Step], ours: Sequence[Any], theirs: Sequence[Any]) -> list[str]:
    """The differences in the answers, which are canonical."""
    comparison = Comparison()
    for number, (step, one, other) in enumerate(zip(steps, ours, theirs, strict=False), 1):
        comparison.step(number, step, one, other)
    return comparison.differences
