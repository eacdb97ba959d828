"""The cases by Kafka's protocol, over sockets, in the versions that they name."""

from __future__ import annotations

import pytest

from groups.api.kafka.apis import APIS as OF_GROUPS
from offsets.api.kafka.apis import APIS as OF_OFFSETS
from tests.conformance.cases import Case, Suite
from tests.conformance.runner import Status, run_case
from tests.conformance.skips import OLDEST_OVER_THE_WIRE
from tests.conformance.support import case_file, passes, through_door
from tests.conformance.wire_backend import WireBackend


@pytest.mark.parametrize("case", through_door("wire"))
async def test_scenario(case: Case, database: str, token: str) -> None:
    async with WireBackend(database, token) as backend:
        await passes(case, backend)


async def test_a_wrong_expectation_fails(database: str, token: str) -> None:
    """The answers that are compared are those of the gateway."""
    (case,) = case_file(Suite.CLASSIC, lambda case: case.name == "join_new_group_asks_for_member_id")[0].values
    assert isinstance(case, Case)
    step = next(step for step in case.steps if step.expect and "error" in step.expect)
    step.expect["error"] = "NONE"  # type: ignore[index]
    async with WireBackend(database, token) as backend:
        verdict = await run_case(case, backend)
    assert verdict.status is Status.FAILED
    assert "MEMBER_ID_REQUIRED" in str(verdict)


def test_the_oldest_versions_are_those_that_are_served() -> None:
    oldest = {api.name.replace("_", ""): api.versions[0] for api in (*OF_GROUPS, *OF_OFFSETS)}
    assert {name: oldest[name.lower()] for name in OLDEST_OVER_THE_WIRE} == OLDEST_OVER_THE_WIRE
