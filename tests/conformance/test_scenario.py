"""The interpreter against a scripted coordinator: what fails a case, and what never counts as a skip.

That each expectation is compared is seen from the cases themselves (`test_mutations`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.conformance.cases import ConventionError, Suite, parse_case
from tests.conformance.driver import BrokenPromise, Call, NoDriver, Response
from tests.conformance.runner import Status, Verdict, run_case


class Scripted:
    """Answers call `X` with the response of the script, parks `park`, and lets `advance` answer what is parked."""

    name = "scripted"
    modes = ("only",)

    def __init__(self, responses: Mapping[str, Response] | None = None) -> None:
        self._responses = responses or {}
        self._parked: list[Call] = []
        self.seen: list[tuple[str, Mapping[str, Any]]] = []

    async def __aenter__(self) -> Scripted:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None

    async def open(self, case: object, mode: str) -> Scripted:
        return self

    async def call(self, name: str, args: Mapping[str, Any]) -> Call:
        self.seen.append((name, args))
        if name == "park":
            self._parked.append(Call())
            return self._parked[-1]
        if name == "crash":
            raise ZeroDivisionError("boom")
        if name == "stuck":
            raise BrokenPromise("a deadline does not move")
        if name not in self._responses:
            raise NoDriver(f"no driver for call {name}")
        return Call(self._responses[name])

    async def advance(self, ms: int) -> None:
        for call in self._parked:
            call.response = {"error": "NONE", "waited": ms}

    async def look(self) -> None:
        return None

    async def inspect(self, group_id: str) -> Response:
        return {"exists": group_id == "g", "protocol_type": None}

    async def metrics(self) -> Response:
        return {"NumOffsets": 1}

    async def control(self, kind: str, args: Any) -> None:
        raise NoDriver(f"no driver for step {kind}")

    async def close(self) -> None:
        return None


async def run(
    *steps: Mapping[str, Any],
    suite: Suite = Suite.CLASSIC,
    area: str = "join",
    driver: Scripted | None = None,
    **raw: Any,
) -> Verdict:
    """Run steps as one case."""
    case = parse_case(suite, {"name": "case", "area": area, "config": {}, "steps": list(steps), **raw})
    return await run_case(case, driver or Scripted({"X": {"error": "NONE", "ids": [{"id": "m"}]}}))


def call(name: str, alias: str | None = None, **keys: Any) -> dict[str, Any]:
    """A call step; `parks` stands for `async`."""
    step = {"call": name, "args": keys.pop("args", {}), **({"as": alias} if alias else {})}
    if "parks" in keys:
        step["async"] = keys.pop("parks")
    return {**step, **keys}


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([{"await": "x", "expect": {}}], "no earlier call"),
        ([{"pending": ["x"]}], "no earlier call"),
        ([call("park", "y", parks=True), call("X", "x", args={"a": "$y.error"})], "no response 'y'"),
        ([call("X", "x"), call("X", "z", args={"a": "$x.nope"})], "has no 'nope'"),
        ([call("Nothing", "x", parks=False)], "no driver"),
        ([{"create_topic": {"name": "t"}}], "no driver"),
        ([call("stuck", "x", parks=False)], "does not move"),
        ([call("crash", "x", parks=False)], "crashed"),
    ],
)
async def test_a_step_that_cannot_be_run_fails_the_case(steps: list[dict[str, Any]], words: str) -> None:
    verdict = await run(*steps)
    assert verdict.status is Status.FAILED
    assert words in str(verdict)


async def test_skips_are_the_table_and_hide_nothing() -> None:
    whole = await run(call("Nothing", "x", parks=False), config={"group.coordinator.append.linger.ms": 10})
    assert (whole.status, whole.lines) == (
        Status.SKIPPED,
        ("append.linger.ms: Postgres replaces the replicated log",),
    )
    old = await run(call("X"), suite=Suite.CONSUMER, until="4.3")
    assert old.status is Status.SKIPPED
    current = await run(call("X"), suite=Suite.CONSUMER, until="4.4")
    assert current.status is Status.PASSED
    version = call("JoinGroup", "x", args={"api_version": 8})
    assert (await run(call("X"), version)).status is Status.SKIPPED
    hidden = await run(call("X", "x", parks=True), version)
    assert hidden.status is Status.FAILED, "what stands before the skipped step is checked"
    newest = await run(call("JoinGroup", "x", args={"api_version": 9}))
    assert newest.status is Status.FAILED, "a call without a driver is no skip"
    static = await run(call("JoinGroup", "x", args={"api_version": 3, "instance_id": "i"}), suite=Suite.CONSUMER)
    assert static.status is Status.FAILED, "the version makes no difference to a static member"


async def test_records_are_left_out_and_the_rest_is_compared() -> None:
    right = call("X", expect={"error": "NONE", "records": ["anything"]})
    wrong = call("X", expect={"error": "Y", "records": ["anything"]})
    verdict = await run(right, suite=Suite.OFFSETS)
    assert verdict.status is Status.SKIPPED
    assert verdict.lines == ("expect.records: Postgres replaces the replicated log",)
    assert (await run(wrong, suite=Suite.OFFSETS)).status is Status.FAILED
    assert (await run(right, call("X", expect={"error": "Y"}), suite=Suite.OFFSETS)).status is Status.FAILED


@pytest.mark.parametrize(
    "step",
    [{}, {"call": "X", "inspect": "g"}, {"call": "X", "expects": {}}, {"await": "x"}, {"inspect": "g"}],
)
def test_a_malformed_step_is_refused(step: dict[str, Any]) -> None:
    with pytest.raises(ConventionError, match="case: step 1"):
        parse_case(Suite.CLASSIC, {"name": "case", "area": "join", "config": {}, "steps": [step]})
