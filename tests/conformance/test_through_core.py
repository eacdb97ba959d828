"""The cases through the core alone, in every way in which its timers can fire."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.conformance.cases import Case, Suite
from tests.conformance.core_driver import CoreBackend
from tests.conformance.support import case_file, case_of, is_of_the_core, own_cases, passes, scenarios


@pytest.mark.parametrize("case", scenarios(is_of_the_core))
async def test_scenario(case: Case) -> None:
    await passes(case, CoreBackend())


@pytest.mark.parametrize("case", case_file(Suite.ASSIGNORS))
async def test_assignors(case: Case) -> None:
    await passes(case, CoreBackend())


def test_a_case_that_ended_with_4_2_has_a_twin_that_began_with_4_3() -> None:
    cases = [case_of(parameter) for parameter in own_cases()]
    assert [case.until for case in cases].count("4.2") == 3
    assert all(case.raw.get("since") == "4.3" for before, case in pairwise(cases) if before.until)
