"""The project's own assignor cases: ties as Kafka's assignors resolve them, recorded from the real ones.

Each case is the answer of 60 runs of kafka-group-coordinator 4.3.1 with shuffled members, topic ids and map kinds. A
case with a `reference` has several answers: the reference is the one where members and topics come in ascending
order, which is the order that ours has.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.assignment import Assignment
from tests.conformance.cases import Case, read_cases
from tests.conformance.core_driver import CoreBackend
from tests.conformance.runner import Status, run_case
from tests.conformance.server_assignors import assign

CASES = list(read_cases(Path(__file__).parent / "own" / "assignors.jsonl"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_ties(case: Case) -> None:
    verdict = await run_case(case, CoreBackend())
    assert verdict.status is Status.PASSED, str(verdict)


@pytest.mark.parametrize(
    "case", [case for case in CASES if "reference" in case.raw["expect"]], ids=lambda case: case.name
)
def test_of_several_answers_ours_is_the_reference(case: Case) -> None:
    assert _without_empty(assign(case.raw)) == _without_empty(case.raw["expect"]["reference"])


def _without_empty(assignment: Assignment) -> Assignment:
    return {
        member_id: {topic: numbers for topic, numbers in partitions.items() if numbers}
        for member_id, partitions in assignment.items()
    }
