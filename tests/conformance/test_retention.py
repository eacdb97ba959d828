"""The cases of retention through the whole service and the core; each of their expectations is looked at."""

from __future__ import annotations

import pytest

from tests.conformance.cases import Case, Suite
from tests.conformance.core_driver import AT_DEADLINE, CoreBackend
from tests.conformance.http_backend import HttpBackend
from tests.conformance.mutations import mutations
from tests.conformance.runner import Status, run_case
from tests.conformance.support import case_file


class OneMode(HttpBackend):
    """Timers at their deadlines only."""

    modes = (AT_DEADLINE,)


def expires(case: Case) -> bool:
    """A case of retention, as far as it is about this protocol."""
    return case.area == "expire" and "TxnOffsetCommit" not in case.calls


@pytest.mark.parametrize("case", case_file(Suite.OFFSETS, expires))
async def test_expiration(case: Case, database: str) -> None:
    async with HttpBackend(database) as backend:
        verdict = await run_case(case, backend)
    assert verdict.status is Status.PASSED, str(verdict)


def expires_in_core(case: Case) -> bool:
    """A case of retention whose calls the core's driver of this convention has."""
    return expires(case) and case.calls <= {"OffsetCommit", "OffsetFetch", "RunExpiration", "GivenClassicGroup"}


@pytest.mark.parametrize("case", case_file(Suite.OFFSETS, expires_in_core))
async def test_expiration_through_the_core(case: Case) -> None:
    verdict = await run_case(case, CoreBackend())
    assert verdict.status is Status.PASSED, str(verdict)


@pytest.mark.parametrize("case", case_file(Suite.OFFSETS, expires))
async def test_every_mutation_of_an_expiration_is_noticed(case: Case, database: str) -> None:
    async with OneMode(database) as backend:
        unnoticed = [
            words for words, changed in mutations(case) if (await run_case(changed, backend)).status != Status.FAILED
        ]
    assert unnoticed == []
