"""The cases through the core alone, in every way in which its timers can fire."""

from __future__ import annotations

from collections import Counter
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


def test_a_case_that_ended_with_a_release_has_a_twin_that_began_with_the_next() -> None:
    following = {"4.2": "4.3", "4.3": "4.4"}
    cases = [case_of(parameter) for parameter in own_cases()]
    ended = [(before.until, case.raw.get("since")) for before, case in pairwise(cases) if before.until]
    assert Counter(until for until, _ in ended) == {"4.2": 3, "4.3": 2}
    assert all(since == following[until] for until, since in ended)
