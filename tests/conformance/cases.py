"""Reading the files of cases. A file that breaks its convention is an error, never a case that passes by accident."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

DIRECTORY_VARIABLE = "KCOORD_CONFORMANCE_DIR"

STEP_KINDS = (
    "call",
    "advance_ms",
    "await",
    "poll",
    "pending",
    "inspect",
    "check_group",
    "metrics",
    "create_topic",
    "alter_topic",
    "delete_topic",
    "set_group_config",
    "await_regex_resolution",
)
_STEP_KEYS = frozenset((*STEP_KINDS, "args", "as", "async", "expect"))
_SCENARIO_KEYS = frozenset(
    ("name", "area", "config", "topics", "steps", "source", "since", "until", "verified", "note")
)
_ASSIGNMENT_KEYS = frozenset(
    ("name", "assignor", "topics", "members", "expect", "source", "subscription_type", "partition_racks", "note")
)


class Suite(str, Enum):
    """Which convention a file follows: the base name of the file."""

    CLASSIC = "classic"
    OFFSETS = "offsets"
    CONSUMER = "consumer"
    ASSIGNORS = "assignors"


class ConventionError(Exception):
    """A file or a case that does not follow its convention; the text says where and what is expected."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `subject` is the value beside the kind: a call's name, a number of ms, an alias, a group id, …

    `parks` is the `async` of the classic convention: True, the response must not exist yet when the call returns;
    False, it must; None, the convention leaves it to `expect`.
    """

    number: int
    kind: str
    subject: Any
    args: Mapping[str, Any] = field(default_factory=dict)
    alias: str | None = None
    parks: bool | None = None
    expect: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        subject = json.dumps(self.subject, ensure_ascii=False) if self.kind not in ("call", "await") else self.subject
        text = f"step {self.number}: {self.kind} {subject}"
        if self.args:
            text += f" {json.dumps(self.args, ensure_ascii=False)}"
        return text + (f" as {self.alias}" if self.alias else "")


@dataclass(frozen=True, slots=True)
class Case:
    """One line of a file. `raw` is the line; assignor cases have no steps."""

    suite: Suite
    name: str
    area: str
    config: Mapping[str, Any]
    topics: Mapping[str, int]
    steps: tuple[Step, ...]
    until: str | None
    raw: Mapping[str, Any]

    @property
    def calls(self) -> frozenset[str]:
        """The names of the calls that the case makes."""
        return frozenset(step.subject for step in self.steps if step.kind == "call")


def parse_step(number: int, raw: Mapping[str, Any]) -> Step:
    """Read one step. Raises ConventionError when it is none, or several, of the known kinds, or has unknown keys."""
    kinds = [kind for kind in STEP_KINDS if kind in raw]
    if len(kinds) != 1:
        raise ConventionError(
            f"step {number}: expected exactly one of {', '.join(STEP_KINDS)}, found {kinds or 'none'}"
        )
    if unknown := set(raw) - _STEP_KEYS:
        raise ConventionError(f"step {number}: unknown keys {sorted(unknown)}")
    kind = kinds[0]
    expect = raw["metrics"] if kind == "metrics" else raw.get("expect")
    if kind in ("await", "poll", "inspect") and expect is None:
        raise ConventionError(f"step {number}: {kind} needs expect")
    return Step(number, kind, raw[kind], raw.get("args", {}), raw.get("as"), raw.get("async"), expect)


def parse_case(suite: Suite, raw: Mapping[str, Any]) -> Case:
    """Read one case. Raises ConventionError when it does not follow the convention of `suite`."""
    name = raw.get("name")
    if not isinstance(name, str) or not name:
        raise ConventionError("a case needs a name")
    keys = _ASSIGNMENT_KEYS if suite is Suite.ASSIGNORS else _SCENARIO_KEYS
    if unknown := set(raw) - keys:
        raise ConventionError(f"{name}: unknown keys {sorted(unknown)}")
    required = ("assignor", "topics", "members", "expect") if suite is Suite.ASSIGNORS else ("area", "steps")
    if missing := [key for key in required if key not in raw]:
        raise ConventionError(f"{name}: missing keys {missing}")
    try:
        steps = tuple(parse_step(number, step) for number, step in enumerate(raw.get("steps", ()), start=1))
    except ConventionError as error:
        raise ConventionError(f"{name}: {error}") from error
    return Case(
        suite, name, raw.get("area", ""), raw.get("config", {}), raw.get("topics", {}), steps, raw.get("until"), raw
    )


def suite_of(path: Path) -> Suite:
    """The convention of a file, by its base name. Raises ConventionError for any other name."""
    try:
        return Suite(path.stem) if path.suffix == ".jsonl" else Suite("")
    except ValueError:
        names = ", ".join(f"{suite.value}.jsonl" for suite in Suite)
        raise ConventionError(f"{path}: the base name must be one of {names}") from None


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a file, in order. Raises ConventionError naming the line, OSError when it cannot be read."""
    suite = suite_of(path)
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                yield parse_case(suite, json.loads(line))
            except (json.JSONDecodeError, ConventionError) as error:
                raise ConventionError(f"{path}:{number}: {error}") from error


def conformance_directory() -> Path:
    """Where the files of cases are: `KCOORD_CONFORMANCE_DIR`, or `cases` beside this module."""
    if named := os.environ.get(DIRECTORY_VARIABLE):
        return Path(named)
    return Path(__file__).with_name("cases")
