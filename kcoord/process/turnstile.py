"""Requests that arrive at the same instant are let in a few at a time, so that the event loop serves others between.

A storm of joins is thousands of requests that can be read at once. Started at once they would all be decoded, decided
and answered before the loop looks at its sockets again, and a heartbeat that arrives meanwhile would wait for all of
them. Calls that members make all the time do not pass here. Members of a storm that are already talking to this server
take turns with those that have just come, so that a member's second request does not wait for the first of all others.

Big requests, with large bodies or large answers, moreover take one of a few places while they are worked on: they share
the interpreter with everybody else, and each holds its body, its answer and often a connection to Postgres. Small
requests never wait for a place.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError

AT_ONCE = 4
"""How many requests are let in each time the loop goes round."""
AGAIN = "kcoord.again"
"""Of a scope: whether the connection was answered before."""
LEAST_PLACES = 2
"""Big requests at a time on a machine with a single core: one of them usually waits for Postgres."""


def places_of(setting: int) -> int:
    """How many big requests are worked on at a time; `setting` 0: as many as this process may use cores."""
    if setting:
        return setting
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(LEAST_PLACES, cores)


T = TypeVar("T")


class TwoLines(Generic[T]):
    """Two queues that take turns while somebody waits in both; each in order of arrival."""

    def __init__(self) -> None:
        self._lines: tuple[deque[T], deque[T]] = deque(), deque()
        self._turn = 0

    def __len__(self) -> int:
        return len(self._lines[0]) + len(self._lines[1])

    def append(self, item: T, line: int) -> None:
        """`item` comes last in `line`, 0 or 1."""
        self._lines[line].append(item)

    def popleft(self) -> T:
        """The next one. Raises IndexError if nobody waits."""
        self._turn = 1 - self._turn
        return (self._lines[self._turn] or self._lines[1 - self._turn]).popleft()


class Turnstile:
    """In order of arrival. Requests that were let in may wait for as long as they like: they count no longer."""

    def __init__(self, runtime: Runtime) -> None:
        self._most = runtime.config.int("http.max.queue")
        self._retry_after_ms = runtime.config.int("http.retry.after.ms")
        self._waiting: TwoLines[asyncio.Future[None]] = TwoLines()
        self._let_in = 0
        """Since the loop last went round."""
        self._goes_round = False
        self._places = asyncio.Semaphore(places_of(runtime.config.int("http.max.big.requests")))
        self._most_big = runtime.config.int("http.max.big.queue")
        self._big = 0
        """Big requests that wait for a place."""

    async def pass_through(self, *, again: bool = False) -> None:
        """Wait for the caller's turn. `again`: not the first request of its connection.

        Raises ProtocolError COORDINATOR_NOT_AVAILABLE if too many wait already.
        """
        if self._let_in < AT_ONCE and not self._waiting:
            self._let_in += 1
            self._go_round()
            return
        if len(self._waiting) >= self._most:
            raise self._refusal(f"{self._most} requests wait for their turn (http.max.queue); send it again")
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn, again)
        self._go_round()
        await turn

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """One of the places for big requests, once it is the caller's turn; do not wait for other requests in it.

        Raises ProtocolError COORDINATOR_NOT_AVAILABLE if too many wait already.
        """
        if self._places.locked() and self._big >= self._most_big:
            raise self._refusal(f"{self._most_big} large requests wait for their turn (http.max.big.queue)")
        self._big += 1
        try:
            await self._places.acquire()
        finally:
            self._big -= 1
        try:
            yield
        finally:
            self._places.release()

    def _refusal(self, detail: str) -> ProtocolError:
        return ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, detail, retry_after_ms=self._retry_after_ms)

    def _go_round(self) -> None:
        if not self._goes_round:
            self._goes_round = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self._goes_round = False
        self._let_in = 0
        while self._waiting and self._let_in < AT_ONCE:
            turn = self._waiting.popleft()
            if not turn.done():  # the client of a cancelled one is gone
                turn.set_result(None)
                self._let_in += 1
        if self._let_in:
            self._go_round()
