"""Requests that were read in one round of the loop are started a few each round.

Uvicorn starts a task for each request as it is read. Those of a storm, thousands that are read at once, would all take
their first steps before the loop looks at its sockets again. Calls that members make all the time have `Starts` of
their own, so that a heartbeat that needs the application does not wait for a storm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kcoord.process.turnstile import TwoLines

AT_ONCE = 16
"""How many requests are started each time the loop goes round."""


class Starts:
    """In order of arrival; connections that were answered before take turns with others.

    There are never more than connections: each has one request at a time.
    """

    def __init__(self) -> None:
        self._waiting: TwoLines[Callable[[], None]] = TwoLines()
        self._started = 0
        """Since the loop last went round."""
        self._goes_round = False

    def is_free(self) -> bool:
        """A request may start now, and is counted."""
        if self._waiting or self._started >= AT_ONCE:
            return False
        self._started += 1
        self._go_round()
        return True

    def later(self, start: Callable[[], None], *, again: bool = False) -> None:
        """Call `start` when it is its turn. `again`: not the first request of its connection."""
        self._waiting.append(start, again)
        self._go_round()

    def _go_round(self) -> None:
        if not self._goes_round:
            self._goes_round = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self._goes_round = False
        self._started = min(len(self._waiting), AT_ONCE)
        if self._started:
            self._go_round()  # first: a start that fails must not stop the others
        for _ in range(self._started):
            self._waiting.popleft()()
