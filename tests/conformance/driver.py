"""What the interpreter asks of a coordinator, whatever stands behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tests.conformance.cases import Case

Response = Mapping[str, Any]


class NoDriver(Exception):
    """The driver cannot do what a step asks: the case fails, and says which call or step lacks a driver."""


class BrokenPromise(Exception):
    """The coordinator broke a rule of its own that every case relies on (a timer that never ends, a bad response)."""


@dataclass(slots=True)
class Call:
    """A request on its way. `response` is None while it is parked."""

    response: Response | None = None

    @property
    def parked(self) -> bool:
        """Not answered yet."""
        return self.response is None


class Driver(Protocol):
    """One coordinator under virtual time, made for one case. Responses are in the terms of the conventions."""

    async def call(self, name: str, args: Mapping[str, Any]) -> Call:
        """Send one request and return when it is answered or parked. Raises NoDriver for an unknown call."""
        ...

    async def advance(self, ms: int) -> None:
        """Move the clock forward by `ms` milliseconds; timers that fall due fire."""
        ...

    async def look(self) -> None:
        """Called before a case looks at what is parked: nothing may be left that should have happened by now."""
        ...

    async def inspect(self, group_id: str) -> Response:
        """The stored group, white-box."""
        ...

    async def metrics(self) -> Response:
        """Totals since the start of the case."""
        ...

    async def control(self, kind: str, args: Any) -> None:
        """A step that is neither a request nor time: topics, settings of a group, background work."""
        ...

    async def close(self) -> None:
        """End the run; requests that are still parked are abandoned."""
        ...


class Backend(Protocol):
    """A way to run cases (`--through`)."""

    @property
    def name(self) -> str:
        """As `--through` names it."""
        ...

    @property
    def modes(self) -> tuple[str, ...]:
        """The ways in which time can pass; a case must hold in every one."""
        ...

    async def __aenter__(self) -> object:
        """Start what all cases share."""
        ...

    async def __aexit__(self, *error: object) -> None:
        """Stop it."""
        ...

    async def open(self, case: Case, mode: str) -> Driver:
        """A fresh coordinator for one run of a case."""
        ...
