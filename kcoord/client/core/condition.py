"""Waiting for what other lanes do, without missing any of it."""

from __future__ import annotations

from collections.abc import Callable

from kcoord.client.core.effects import Wait

Clock = Callable[[], float]
"""The time in seconds; never goes back."""


def _nothing() -> None:
    return None


class Condition:
    """A condition variable of one consumer, shared by its lanes.

    `version` grows with each notification: remember it, read the state, then wait for a newer one. Parameters:
    `clock` the time; `announce` wakes those who wait, in a way that only the driver knows.
    """

    def __init__(self, clock: Clock, announce: Callable[[], None] = _nothing) -> None:
        self.clock = clock
        self.announce = announce
        self.version = 0

    def notify_all(self) -> None:
        """Something changed: those who wait look again."""
        self.version += 1
        self.announce()

    async def wait_for(
        self, predicate: Callable[[], bool], deadline: float | None = None, check: Callable[[], None] = _nothing
    ) -> bool:
        """Wait until `predicate`, at most until `deadline` (None: indefinitely). True if it holds.

        `check` is called before each look; what it raises ends the wait.
        """
        while True:
            seen = self.version
            check()
            if predicate():
                return True
            left_s = None if deadline is None else deadline - self.clock()
            if left_s is not None and left_s <= 0:
                return False
            await Wait(seen, left_s)

    async def pause(self, seconds: float, stopped: Callable[[], bool]) -> None:
        """Wait for `seconds`, or until `stopped`."""
        await self.wait_for(stopped, self.clock() + seconds)
