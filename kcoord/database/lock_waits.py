"""Waiting for locks without using up the pool.

A transaction that hits a lock returns its connection and tries again, a few at a time, however many there are: all
other groups have the rest of the pool. While few wait, each try is long enough to keep its place in Postgres' own lock
queue, so that a group with constant traffic at several servers does not starve others.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kcoord.config import Config
from kcoord.protocol.errors import Error, ProtocolError

FIRST_TRY_MS = 250
"""How long a transaction waits for a lock that no other transaction of this process is known to wait for."""
TRY_MS = 500
"""How long a later try waits for a lock while no other transaction needs its place."""
CROWDED_TRY_MS = 50
"""How long any try waits for a lock while more transactions are waiting than may try at once."""
PAUSE_SECONDS = 0.05
"""The longest pause between two tries of a transaction."""


class LockWaits:
    """Transactions of one process that hit a lock.

    They may use at most a quarter of the pool's connections. `wait_ms`: how long each of them keeps trying.
    """

    def __init__(self, config: Config) -> None:
        self.wait_ms = config.int("database.lock.timeout.ms")
        self.width = max(config.int("database.pool.size") // 4, 1)
        self._retry_after_ms = config.int("http.retry.after.ms")
        self._places = asyncio.Semaphore(self.width)
        self._waiting = 0
        self._locked: dict[str, float] = {}

    @property
    def crowded(self) -> bool:
        """More transactions are waiting for locks than may try at once."""
        return self._waiting > self.width

    def is_locked(self, key: str) -> bool:
        """The lock with this key was unavailable a moment ago: the next transaction queues immediately."""
        at = self._locked.get(key)
        return at is not None and time.monotonic() - at < self.wait_ms / 1000

    def note(self, key: str, *, locked: bool) -> None:
        """A transaction that locks `key` hit a lock, or got it."""
        if not locked:
            self._locked.pop(key, None)
            return
        now = time.monotonic()
        if len(self._locked) > 1_000:
            self._locked = {k: at for k, at in self._locked.items() if now - at < self.wait_ms / 1000}
        self._locked[key] = now

    def enter(self) -> float:
        """A transaction that hit a lock queues; returns until when it may try (monotonic seconds)."""
        self._waiting += 1
        return time.monotonic() + self.wait_ms / 1000

    def leave(self) -> None:
        """It finished, or gave up."""
        self._waiting -= 1

    @asynccontextmanager
    async def place(self, until: float) -> AsyncIterator[int]:
        """Wraps one try; yields how long it waits for a lock (ms). Raises as `pause` does."""
        try:
            async with asyncio.timeout(until - time.monotonic()):
                await self._places.acquire()
        except TimeoutError:
            raise self.refused() from None
        try:
            yield CROWDED_TRY_MS if self.crowded else TRY_MS
        finally:
            self._places.release()

    async def pause(self, until: float) -> None:
        """Between two tries. Raises ProtocolError COORDINATOR_NOT_AVAILABLE at `until` (monotonic seconds)."""
        if time.monotonic() >= until:
            raise self.refused()
        await asyncio.sleep(random.uniform(0, PAUSE_SECONDS))  # noqa: S311 - jitter, not a secret

    def refused(self) -> ProtocolError:
        """The answer when a lock was not available in time."""
        return ProtocolError(
            Error.COORDINATOR_NOT_AVAILABLE,
            f"another transaction has held the same rows for {self.wait_ms} ms (database.lock.timeout.ms); the same "
            "request may succeed later",
            retry_after_ms=self._retry_after_ms,
        )
