"""A copy in memory of something small in the database that every request needs and that changes seldom.

Reading the copy costs no query. It is read again after a hint, and every few seconds
(`notifications.repair.interval.ms`) in case a hint was lost; a caller that asks after a hint gets what was read after
it. The database is the truth: what must not be wrong is checked there, in its transaction. When a connection was lost
the copy is dropped: what answers from then on may be an older state of the database (restore, failover), and its
revision tells nothing about the copy.

Source: architecture.md 5.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import structlog

from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError

log = structlog.get_logger(__name__)

T = TypeVar("T")


class WatchedCopy(Generic[T]):
    """The copy. Nothing is read before somebody asks for it.

    Parameters: `channel` of the notifications that hint at changes; `read` returns the copy, given the one there is
    (None before the first, and after a connection was lost), which it may return again when nothing has changed.
    """

    def __init__(self, runtime: Runtime, channel: str, read: Callable[[T | None], Awaitable[T]]) -> None:
        self._repair_seconds = runtime.config.int("notifications.repair.interval.ms") / 1000
        self._channel = channel
        self._read = read
        self._value: T | None = None
        self._dropped = False
        self._hints = 1
        self._hints_seen = 0
        self._reading: asyncio.Task[None] | None = None
        self._repairing: asyncio.Task[None] | None = None
        self._closed = False
        runtime.notifications.on(channel, self.hint)
        runtime.on_connection_lost(self.drop)
        runtime.on_stop(self._close)

    def hint(self, payload: str | None = None) -> None:
        """It may have changed: who asks from now on gets what is read from now on."""
        self._hints += 1
        if self._repairing is not None and not self._closed:
            self._begin()

    def drop(self) -> None:
        """Whatever the copy says of itself, it is not to be trusted: what is read next is read in full."""
        self._dropped = True
        self.hint()

    async def get(self) -> T:
        """The copy. Raises what `read` raises while there is none, or none as new as the last hint."""
        hints = self._hints
        while self._hints_seen < hints:
            await asyncio.shield(self._begin())
        if self._repairing is None and not self._closed:
            self._repairing = asyncio.create_task(
                self._repair(),
                name=f"{self._channel}-copy",
                context=contextvars.Context(),  # else what it logs bears the id of the first request for ever
            )
        assert self._value is not None
        return self._value

    def _begin(self) -> asyncio.Task[None]:
        """The reading under way, else a new one: many who ask at the same time make one query.

        One that is done is none, although `_ended` may not have been called yet: awaiting it does not give way, and
        who asks again until it has seen the last hint would keep the loop from ever calling it.
        """
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._renew(), name=f"{self._channel}-read")
            self._reading.add_done_callback(self._ended)
        return self._reading

    async def _renew(self) -> None:
        hints, known = self._hints, None if self._dropped else self._value
        self._dropped = False
        try:
            self._value = await self._read(known)
        except BaseException:
            self._dropped = self._dropped or known is None
            raise
        self._hints_seen = hints

    def _ended(self, reading: asyncio.Task[None]) -> None:
        if self._reading is reading:
            self._reading = None
        if reading.cancelled():
            return
        error = reading.exception()  # seen here, or asyncio reports it when every caller went away
        if error is None and self._hints_seen < self._hints:
            self._begin()
        elif error is not None and not isinstance(error, ProtocolError):
            log.error("watched_copy_failed", channel=self._channel, exc_info=error)

    async def _repair(self) -> None:
        """A reading that fails is one of many: the copy stays, and the next reading is not far."""
        while True:
            await asyncio.sleep(self._repair_seconds)
            await asyncio.wait([self._begin()])

    async def _close(self) -> None:
        """Look no more by itself; who waits for a reading gets it."""
        self._closed = True
        if self._repairing is not None:
            self._repairing.cancel()
        tasks = [task for task in (self._repairing, self._reading) if task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
