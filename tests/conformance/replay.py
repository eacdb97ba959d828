"""A run that is recorded once and replayed for every mutation of its case.

A mutation changes what a case expects, never what it does (`mutations`), so a run of it asks a coordinator the same
and gets the same answers. Through the whole service such a run takes some 130 ms of CPU time, replayed one.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.conformance.cases import Case
from tests.conformance.driver import Backend, Call, Driver, Response
from tests.conformance.mutations import mutations
from tests.conformance.runner import Status, Verdict, run_case


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What a run asked its driver (the method and its arguments), what that returned, and all answers by then.

    `answers`: of each call so far; None: it was parked.
    """

    asked: tuple[Any, ...]
    returned: Response | None
    answers: tuple[Response | None, ...]


class Recorder:
    """Passes on to the drivers of a backend, in its first mode, and keeps what they say."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.name = backend.name
        self.modes = tuple(backend.modes)[:1]
        self.exchanged: list[Exchanged] = []

    async def __aenter__(self) -> Recorder:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Whoever made the backend closes it."""

    async def open(self, case: Case, mode: str) -> RecordingDriver:
        """A driver of the backend that is recorded from its start."""
        self.exchanged = []
        return RecordingDriver(await self._backend.open(case, mode), self.exchanged)


class RecordingDriver:
    """Passes on, and records."""

    def __init__(self, driver: Driver, exchanged: list[Exchanged]) -> None:
        self._driver = driver
        self._exchanged = exchanged
        self._calls: list[Call] = []

    def _record(self, returned: Response | None, *asked: Any) -> None:
        answers = tuple(copy.deepcopy(call.response) for call in self._calls)
        self._exchanged.append(Exchanged(copy.deepcopy(asked), copy.deepcopy(returned), answers))

    async def call(self, name: str, args: Mapping[str, Any]) -> Call:
        call = await self._driver.call(name, args)
        self._calls.append(call)
        self._record(None, "call", name, args)
        return call

    async def advance(self, ms: int) -> None:
        await self._driver.advance(ms)
        self._record(None, "advance", ms)

    async def look(self) -> None:
        await self._driver.look()
        self._record(None, "look")

    async def inspect(self, group_id: str) -> Response:
        found = await self._driver.inspect(group_id)
        self._record(found, "inspect", group_id)
        return found

    async def metrics(self) -> Response:
        found = await self._driver.metrics()
        self._record(found, "metrics")
        return found

    async def control(self, kind: str, args: Any) -> None:
        await self._driver.control(kind, args)
        self._record(None, "control", kind, args)

    async def close(self) -> None:
        await self._driver.close()


class Replayer:
    """Answers runs as a recorded one was answered. `strayed`: what runs asked that the recorded one did not."""

    def __init__(self, recorded: Recorder) -> None:
        self.name = recorded.name
        self.modes = recorded.modes
        self.strayed: list[tuple[Any, ...]] = []
        self._exchanged = tuple(recorded.exchanged)

    async def __aenter__(self) -> Replayer:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Nothing is open."""

    async def open(self, case: Case, mode: str) -> ReplayDriver:
        """A driver that begins with the first exchange."""
        return ReplayDriver(self._exchanged, self.strayed)


class ReplayDriver:
    """Expects the recorded questions in their order."""

    def __init__(self, exchanged: tuple[Exchanged, ...], strayed: list[tuple[Any, ...]]) -> None:
        self._rest = iter(exchanged)
        self._strayed = strayed
        self._calls: list[Call] = []

    def _next(self, *asked: Any) -> Response:
        exchange = next(self._rest, None)
        if exchange is None or exchange.asked != asked:
            self._strayed.append(asked)
            raise AssertionError(f"asked {asked}, recorded was {exchange and exchange.asked}")
        for call, answer in zip(self._calls, exchange.answers, strict=True):
            call.response = answer
        return exchange.returned or {}

    async def call(self, name: str, args: Mapping[str, Any]) -> Call:
        call = Call()
        self._calls.append(call)
        self._next("call", name, args)
        return call

    async def advance(self, ms: int) -> None:
        self._next("advance", ms)

    async def look(self) -> None:
        self._next("look")

    async def inspect(self, group_id: str) -> Response:
        return self._next("inspect", group_id)

    async def metrics(self) -> Response:
        return self._next("metrics")

    async def control(self, kind: str, args: Any) -> None:
        self._next("control", kind, args)

    async def close(self) -> None:
        """Nothing is open."""


async def unnoticed_mutations(case: Case, backend: Backend) -> tuple[Verdict, list[str]]:
    """How the case went through `backend`, and the mutations that do not make it fail with the same answers.

    No mutation is looked at unless the case passes.
    """
    recorder = Recorder(backend)
    verdict = await run_case(case, recorder)
    if verdict.status is not Status.PASSED:
        return verdict, []
    replayer = Replayer(recorder)
    assert (await run_case(case, replayer)).status is Status.PASSED, "the replayed run differs from the recorded one"
    unnoticed = [
        words for words, changed in mutations(case) if (await run_case(changed, replayer)).status != Status.FAILED
    ]
    assert replayer.strayed == [], "a mutation does something else than its case"
    return verdict, unnoticed
