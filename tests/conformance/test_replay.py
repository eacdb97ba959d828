"""A replayed run is judged as the run that was recorded, and only that run is replayed."""

from __future__ import annotations

import copy

import pytest

from tests.conformance import replay
from tests.conformance.cases import Case, Suite, parse_case
from tests.conformance.core_driver import CoreBackend
from tests.conformance.runner import Status
from tests.conformance.test_mutations import LONE_MEMBER


def alone(advance_ms: int = 3_000) -> Case:
    """A member joins alone; `advance_ms`: for how long the join waits."""
    steps = copy.deepcopy(LONE_MEMBER)
    (wait,) = [step for step in steps if "advance_ms" in step]
    wait["advance_ms"] = advance_ms
    return parse_case(Suite.CLASSIC, {"name": "alone", "area": "join", "config": {}, "steps": steps})


async def test_every_mutation_of_a_replayed_case_is_noticed() -> None:
    verdict, unnoticed = await replay.unnoticed_mutations(alone(), CoreBackend())
    assert (verdict.status, unnoticed) == (Status.PASSED, [])


async def test_a_mutation_that_changes_nothing_is_unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "mutations", lambda case: [("nothing", case)])
    assert (await replay.unnoticed_mutations(alone(), CoreBackend()))[1] == ["nothing"]


async def test_what_does_something_else_than_its_case_is_no_mutation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "mutations", lambda case: [("waits longer", alone(3_001))])
    with pytest.raises(AssertionError, match="does something else"):
        await replay.unnoticed_mutations(alone(), CoreBackend())


async def test_of_a_case_that_fails_no_mutation_is_looked_at() -> None:
    verdict, unnoticed = await replay.unnoticed_mutations(alone(2_999), CoreBackend())
    assert (verdict.status, unnoticed) == (Status.FAILED, [])
