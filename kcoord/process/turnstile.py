"""Requests that arrive at the same instant are let in a few at a time, so that the event loop serves others between.

A storm of joins is thousands of requests that can be read at once. Started at once they would all be decoded, decided
and answered before the loop looks at its sockets again, and a heartbeat that arrives meanwhile would wait for all of
them. Calls that members make all the time do not pass here.
"""

from __future__ import annotations

import asyncio
from collections import deque

from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError

AT_ONCE = 4
"""How many requests are let in each time the loop goes round."""


class Turnstile:
    """In order of arrival. Requests that were let in may wait for as long as they like: they count no longer."""

    def __init__(self, runtime: Runtime) -> None:
        self._most = runtime.config.int("http.max.queue")
        self._retry_after_ms = runtime.config.int("http.retry.after.ms")
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._let_in = 0
        """Since the loop last went round."""
        self._goes_round = False

    async def pass_through(self) -> None:
        """Wait for the caller's turn. Raises ProtocolError COORDINATOR_NOT_AVAILABLE if too many wait already."""
        if self._let_in < AT_ONCE and not self._waiting:
            self._let_in += 1
            self._go_round()
            return
        if len(self._waiting) >= self._most:
            raise ProtocolError(
                Error.COORDINATOR_NOT_AVAILABLE,
                f"{self._most} requests wait for their turn (http.max.queue); send it again",
                retry_after_ms=self._retry_after_ms,
            )
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._go_round()
        await turn

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
