"""The cases of both protocols, of commits, transactions and fetches, and of assignors, through the core alone."""

from __future__ import annotations

import pytest

from tests.conformance.cases import Case, Suite
from tests.conformance.core_driver import CoreBackend
from tests.conformance.runner import Status, run_case
from tests.conformance.support import case_file, is_commit_or_fetch


@pytest.mark.parametrize(
    "case",
    case_file(Suite.CLASSIC)
    + case_file(Suite.OFFSETS, lambda case: is_commit_or_fetch(case) or case.area == "delete")
    + case_file(Suite.CONSUMER),
)
async def test_scenario(case: Case) -> None:
    verdict = await run_case(case, CoreBackend())
    if verdict.status is Status.SKIPPED:
        pytest.skip("; ".join(verdict.lines))
    assert verdict.status is Status.PASSED, str(verdict)


@pytest.mark.parametrize("case", case_file(Suite.ASSIGNORS))
async def test_assignors(case: Case) -> None:
    verdict = await run_case(case, CoreBackend())
    assert verdict.status is Status.PASSED, str(verdict)
