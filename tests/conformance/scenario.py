"""The interpreter of scenarios: one run of one case against one driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.conformance import skips
from tests.conformance.cases import Case, ConventionError, Step, Suite
from tests.conformance.conventions import RULES, expand
from tests.conformance.driver import BrokenPromise, Call, Driver, NoDriver, Response
from tests.conformance.matching import differences
from tests.conformance.references import UnknownReference, resolve


class StepFailed(Exception):
    """A step did not go as the case says."""

    def __init__(self, step: Step, problems: list[str]) -> None:
        super().__init__(f"{step}")
        self.step = step
        self.problems = problems


class Scenario:
    """One run. `run` returns the reasons for which parts were left out (none: everything was compared).

    `through`: the name of the backend of the driver, which decides what is left out.
    """

    def __init__(self, case: Case, driver: Driver, through: str = "core") -> None:
        self._case = case
        self._driver = driver
        self._through = through
        self._rules = RULES[case.suite]
        self._calls: dict[str, Call] = {}
        self._args: dict[str, Mapping[str, Any]] = {}

    async def run(self) -> tuple[str, ...]:
        """Take every step. Raises StepFailed at the first that does not go as the case says."""
        left_out: list[str] = []
        for step in self._case.steps:
            if (reason := skips.at_step(self._case, step, self._through)) is not None:
                return (*left_out, reason)
            step, reason = skips.without_parts(step)
            if reason is not None and reason not in left_out:
                left_out.append(reason)
            try:
                problems = await self._take(step)
            except (NoDriver, BrokenPromise, UnknownReference, ConventionError) as error:
                problems = [str(error)]
            if problems:
                raise StepFailed(step, problems)
        return tuple(left_out)

    async def _take(self, step: Step) -> list[str]:
        match step.kind:
            case "call":
                return await self._call(step)
            case "advance_ms":
                await self._driver.advance(step.subject)
            case "await" | "poll":
                await self._driver.look()
                return self._answered(step, step.subject)
            case "pending":
                await self._driver.look()
                aliases = step.subject if isinstance(step.subject, list) else [step.subject]
                return [problem for alias in aliases for problem in self._still_parked(alias)]
            case "inspect":
                return self._differences(step, {}, await self._driver.inspect(step.subject))
            case "check_group":
                expected = {key: value for key, value in step.subject.items() if key != "group_id"}
                return self._compare(expected, await self._driver.inspect(step.subject["group_id"]))
            case "metrics":
                return self._differences(step, {}, await self._driver.metrics())
            case _:
                await self._driver.control(step.kind, self._resolve(step.subject))
        return []

    async def _call(self, step: Step) -> list[str]:
        args = self._resolve(step.args)
        call = await self._driver.call(step.subject, args)
        if step.alias:
            self._calls[step.alias] = call
            self._args[step.alias] = args
        if step.parks is True:
            return [] if call.parked else [f"expected the request to be parked, it was answered {call.response!r}"]
        may_stay_open = step.parks is None and step.expect is None and step.alias is not None
        if call.response is None:
            return [] if may_stay_open else ["expected an answer, the request is parked"]
        return self._differences(step, args, call.response) if step.expect is not None else []

    def _answered(self, step: Step, alias: str) -> list[str]:
        call = self._calls.get(alias)
        if call is None:
            return [f"no earlier call is named {alias!r}"]
        if call.response is None:
            return [f"expected {alias} to be answered, it is still parked"]
        return self._differences(step, self._args[alias], call.response)

    def _still_parked(self, alias: str) -> list[str]:
        call = self._calls.get(alias)
        if call is None:
            return [f"no earlier call is named {alias!r}"]
        return [] if call.parked else [f"expected {alias} to be parked, it was answered {call.response!r}"]

    def _differences(self, step: Step, args: Mapping[str, Any], actual: Response) -> list[str]:
        expect = step.expect
        if expect is None:
            raise ConventionError(f"{step}: nothing is expected")
        return self._compare(expand(self._case.suite, step, args, expect), actual)

    def _compare(self, expected: Mapping[str, Any], actual: Response) -> list[str]:
        if self._case.suite is Suite.OFFSETS and actual.get("protocol_type", "") is None:
            actual = {**actual, "protocol_type": ""}  # this convention writes an absent type as ""
        return differences(self._resolve(expected), actual, self._rules)

    def _resolve(self, value: Any) -> Any:
        known = {alias: call.response for alias, call in self._calls.items() if call.response is not None}
        return resolve(value, known)
