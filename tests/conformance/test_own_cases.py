"""The project's own cases, in the conventions of those in `cases/`: through the core alone, and the whole service.

Those of assignors, which have no steps, are in `test_own_assignors`.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.conformance.cases import Case, read_cases
from tests.conformance.core_driver import CoreBackend
from tests.conformance.driver import Backend
from tests.conformance.http_backend import HttpBackend
from tests.conformance.mutations import mutations
from tests.conformance.runner import Status, run_case

CASES = [
    pytest.param(case, id=case.name)
    for file in sorted(Path(__file__).with_name("own").glob("*.jsonl"))
    if file.stem != "assignors"
    for case in read_cases(file)
]


async def run(case: Case, backend: Backend) -> None:
    """Run a case; a skip tells its reason."""
    verdict = await run_case(case, backend)
    if verdict.status is Status.SKIPPED:
        pytest.skip("; ".join(verdict.lines))
    assert verdict.status is Status.PASSED, str(verdict)


@pytest.mark.parametrize("case", CASES)
async def test_through_core(case: Case) -> None:
    await run(case, CoreBackend())


@pytest.mark.parametrize("case", CASES)
async def test_through_http(case: Case, database: str) -> None:
    async with HttpBackend(database) as backend:
        await run(case, backend)


@pytest.mark.parametrize("case", CASES)
async def test_every_mutation_is_noticed(case: Case) -> None:
    if (await run_case(case, CoreBackend())).status is Status.SKIPPED:
        pytest.skip("of another release, and its mutations with it")
    unnoticed = [
        words for words, changed in mutations(case) if (await run_case(changed, CoreBackend())).status != Status.FAILED
    ]
    assert unnoticed == []


def test_a_case_that_ended_with_4_2_has_a_twin_that_began_with_4_3() -> None:
    cases = [param.values[0] for param in CASES]
    assert [case.raw.get("until") for case in cases].count("4.2") == 3
    assert all(case.raw.get("since") == "4.3" for before, case in pairwise(cases) if before.until)
