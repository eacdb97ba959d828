"""The cases of both protocols, and of commits, transactions and fetches, through the whole service."""

from __future__ import annotations

import pytest

from tests.conformance.cases import Case, Suite
from tests.conformance.http_backend import HttpBackend
from tests.conformance.replay import unnoticed_mutations
from tests.conformance.runner import Status, run_case
from tests.conformance.support import case_file, is_commit_or_fetch


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


@pytest.mark.parametrize("case", case_file(Suite.CONSUMER))
async def test_consumer(case: Case, database: str) -> None:
    await run(case, database)


@pytest.mark.parametrize("case", case_file(Suite.OFFSETS, is_commit_or_fetch))
async def test_commit_and_fetch(case: Case, database: str) -> None:
    await run(case, database)


def is_about_groups(case: Case) -> bool:
    """A case of the offsets convention that no other test has."""
    return not is_commit_or_fetch(case) and case.area != "expire"


@pytest.mark.parametrize("case", case_file(Suite.OFFSETS, is_about_groups))
async def test_lists_descriptions_and_deletions(case: Case, database: str) -> None:
    await run(case, database)


@pytest.mark.parametrize("case", case_file(Suite.OFFSETS, is_commit_or_fetch))
async def test_every_mutation_of_a_commit_or_fetch_is_noticed(case: Case, database: str) -> None:
    async with HttpBackend(database) as backend:
        verdict, unnoticed = await unnoticed_mutations(case, backend)
    if verdict.status is Status.SKIPPED:
        pytest.skip("steps that are left out, and their mutations with them")
    assert verdict.status is Status.PASSED, str(verdict)
    assert unnoticed == []
