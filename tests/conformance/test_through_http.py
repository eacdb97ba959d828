"""The cases of the classic protocol, and of commits and fetches of classic groups, through the whole service."""

from __future__ import annotations

import pytest

from tests.conformance.cases import Case, Suite
from tests.conformance.http_backend import HttpBackend
from tests.conformance.runner import Status, run_case
from tests.conformance.support import case_file

ELSEWHERE = frozenset({"GivenConsumerGroup", "TxnOffsetCommit"})
"""Calls of protocols that come later; the runner itself reports their cases as failed until then."""


def is_classic_commit_or_fetch(case: Case) -> bool:
    """A case of the offsets convention about groups of the classic protocol, or without members."""
    return case.area in ("commit", "fetch") and not case.calls & ELSEWHERE


async def run(case: Case, database: str) -> None:
    """Run a case on a database; a skip tells its reason."""
    async with HttpBackend(database) as backend:
        verdict = await run_case(case, backend)
    if verdict.status is Status.SKIPPED:
        pytest.skip("; ".join(verdict.lines))
    assert verdict.status is Status.PASSED, str(verdict)


@pytest.mark.parametrize("case", case_file(Suite.CLASSIC))
async def test_classic(case: Case, database: str) -> None:
    await run(case, database)


@pytest.mark.parametrize("case", case_file(Suite.OFFSETS, is_classic_commit_or_fetch))
async def test_commit_and_fetch(case: Case, database: str) -> None:
    await run(case, database)
