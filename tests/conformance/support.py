"""For the pytest wrappers: the cases as parameters, and which of them stand for all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from tests.conformance.cases import Case, Suite, conformance_directory, read_cases
from tests.conformance.driver import Backend
from tests.conformance.runner import Status, run_case
from tests.conformance.skips import at_step, whole_case

OWN = Path(__file__).with_name("own")
"""The project's own cases."""

ABOVE_THE_CORE = frozenset(
    ("ConsumerGroupDescribe", "Coordinator", "DeleteTopics", "Elect", "FindCoordinator", "ListGroups", "Resign")
)
"""Calls of the offsets convention that are the service's."""

DOORS = ("http", "wire")
"""The backends above the core."""

ERROR = re.compile('"([A-Z][A-Z_]{3,})"')


def case_file(suite: Suite, where: Callable[[Case], bool] = lambda _: True) -> list[ParameterSet]:
    """One parameter for each case of the suite's file that `where` lets through, named after it.

    Raises OSError when the file is missing: a suite without its cases must not look like one that passed.
    """
    path = conformance_directory() / f"{suite.value}.jsonl"
    return [pytest.param(case, id=case.name) for case in read_cases(path) if where(case)]


def own_cases() -> list[ParameterSet]:
    """The project's own scenarios, in the conventions of the others; `test_own_assignors` has the assignors'."""
    files = (OWN / f"{suite.value}.jsonl" for suite in Suite if suite is not Suite.ASSIGNORS)
    return [pytest.param(case, id=case.name) for path in files if path.exists() for case in read_cases(path)]


def scenarios(where: Callable[[Case], bool] = lambda _: True) -> list[ParameterSet]:
    """Every case that has steps and that `where` lets through."""
    files = case_file(Suite.CLASSIC) + case_file(Suite.CONSUMER) + case_file(Suite.OFFSETS) + own_cases()
    return [parameter for parameter in files if where(case_of(parameter))]


def case_of(parameter: ParameterSet) -> Case:
    """The case of a parameter."""
    case = parameter.values[0]
    assert isinstance(case, Case)
    return case


def is_of_the_core(case: Case) -> bool:
    """The core's driver has all that the case calls."""
    return case.suite is not Suite.OFFSETS or not case.calls & ABOVE_THE_CORE


def through_door(door: str) -> list[ParameterSet]:
    """The scenarios that are run through the backend of this name, which is one of DOORS. All but few are `whole`.

    Those few have every call and kind of step, and every error that a call is expected to answer, in each suite. The
    others, if the core runs them too, are run through the doors that can in turn.
    """
    everything = scenarios()
    parameters = [parameter for parameter in everything if door in _doors(case_of(parameter))]
    kept: set[int] = set()
    for suite in Suite:
        cases = enumerate(map(case_of, parameters))
        met = {index: _met(case) for index, case in cases if case.suite is suite and whole_case(case) is None}
        left = set().union(*met.values())
        while left:
            most = max(met, key=lambda index: len(met[index] & left))
            kept.add(most)
            left -= met[most]
    whole = pytest.mark.whole("a sample of the cases has each call with each of its errors")
    numbers = {id(parameter): number for number, parameter in enumerate(everything)}
    return [
        parameter if index in kept else pytest.param(*parameter.values, id=parameter.id, marks=whole)
        for index, parameter in enumerate(parameters)
        if index in kept or _is_its_turn(door, case_of(parameter), numbers[id(parameter)])
    ]


def _doors(case: Case) -> list[str]:
    """Kafka's protocol has nothing that lets offsets expire."""
    return [door for door in DOORS if door != "wire" or case.area != "expire"]


def _is_its_turn(door: str, case: Case, number: int) -> bool:
    if not is_of_the_core(case):
        return True
    to_its_end = [other for other in _doors(case) if not any(at_step(case, step, other) for step in case.steps)]
    return not to_its_end or to_its_end[number % len(to_its_end)] == door


def _met(case: Case) -> set[tuple[str, str]]:
    """Calls and kinds of steps, each with every error that is expected of it."""
    called: dict[str | None, str] = {}
    met: set[tuple[str, str]] = set()
    for step in case.steps:
        about = step.subject if step.kind == "call" else called.get(step.subject, "") if step.kind == "await" else ""
        if step.kind == "call":
            called[step.alias] = about
        met.add((about or step.kind, ""))
        met |= {(about or step.kind, error) for error in ERROR.findall(json.dumps(step.expect))}
    return met


async def passes(case: Case, backend: Backend) -> None:
    """Run a case; a skip tells its reason."""
    verdict = await run_case(case, backend)
    if verdict.status is Status.SKIPPED:
        pytest.skip("; ".join(verdict.lines))
    assert verdict.status is Status.PASSED, str(verdict)
