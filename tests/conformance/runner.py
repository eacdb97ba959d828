"""Running cases and telling what happened."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from tests.conformance import skips
from tests.conformance.assignment import check
from tests.conformance.assignor_driver import assign
from tests.conformance.cases import Case, Suite
from tests.conformance.driver import Backend, BrokenPromise, NoDriver
from tests.conformance.scenario import Scenario, StepFailed


class Status(str, Enum):
    """How a case ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a case ended: `lines` say what differed, or why it was skipped."""

    case: Case
    status: Status
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = f"{self.status.name} {self.case.suite.value}: {self.case.name}"
        return "\n".join((head, *(f"    {line}" for line in self.lines)))


async def run_case(case: Case, backend: Backend) -> Verdict:
    """Run one case in every mode of the backend; the first mode in which it fails decides."""
    if (reason := skips.whole_case(case)) is not None:
        return Verdict(case, Status.SKIPPED, (reason,))
    if case.suite is Suite.ASSIGNORS:
        return run_assignment(case)
    reasons: dict[str, None] = {}
    for mode in backend.modes:
        failure = await _run_in(mode, case, backend, reasons)
        if failure is not None:
            return failure
    return Verdict(case, Status.SKIPPED if reasons else Status.PASSED, tuple(reasons))


async def _run_in(mode: str, case: Case, backend: Backend, reasons: dict[str, None]) -> Verdict | None:
    where = f"[{backend.name}, {mode}]"
    try:
        driver = await backend.open(case, mode)
        try:
            reasons.update(dict.fromkeys(await Scenario(case, driver, backend.name).run()))
        finally:
            await driver.close()
    except StepFailed as failed:
        return Verdict(case, Status.FAILED, (f"{failed.step}  {where}", *failed.problems))
    except (NoDriver, BrokenPromise) as error:
        return Verdict(case, Status.FAILED, (f"before or after the steps  {where}", str(error)))
    except Exception as error:  # noqa: BLE001 - a coordinator that crashes fails the case and must not end the run
        crash = "".join(traceback.format_exception(error)).rstrip().splitlines()
        return Verdict(case, Status.FAILED, (f"crashed  {where}", *crash))
    return None


def run_assignment(case: Case) -> Verdict:
    """Run one assignor case."""
    try:
        problems = check(case.raw, assign(case.raw))
    except (NoDriver, BrokenPromise) as error:
        problems = [str(error)]
    except Exception as error:  # noqa: BLE001 - an assignor that crashes fails the case and must not end the run
        problems = "".join(traceback.format_exception(error)).rstrip().splitlines()
    return Verdict(case, Status.FAILED if problems else Status.PASSED, tuple(problems))


class Tally:
    """Counts verdicts, and prints them as they come."""

    def __init__(self, *, verbose: bool = False) -> None:
        self._verbose = verbose
        self._counts: Counter[Status] = Counter()
        self._reasons: Counter[str] = Counter()

    def add(self, verdict: Verdict) -> None:
        """Count a verdict; failures are always printed, the rest on demand."""
        self._counts[verdict.status] += 1
        if verdict.status is Status.SKIPPED:
            self._reasons["; ".join(verdict.lines)] += 1
        if self._verbose or verdict.status is Status.FAILED:
            print(verdict, flush=True)

    @property
    def failed(self) -> bool:
        """Did anything fail?"""
        return self._counts[Status.FAILED] > 0

    def print_totals(self) -> None:
        """The reasons for skips, and the last line."""
        for reason, count in self._reasons.items():
            print(f"skipped {count}: {reason}")
        print(", ".join(f"{self._counts[status]} {status.value}" for status in Status))


async def run_all(cases: Iterable[Case], backend: Backend, tally: Tally) -> None:
    """Run cases one after the other against one backend."""
    async with backend:
        for case in cases:
            tally.add(await run_case(case, backend))
