"""How often the event loop has gone round: what happens in one round, nothing else gets in between."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest


class Rounds:
    """`now` grows each time the loop goes round."""

    now = 0


@asynccontextmanager
async def counted_rounds() -> AsyncIterator[Rounds]:
    """Count the loop's rounds meanwhile."""
    rounds = Rounds()

    async def count() -> None:
        while True:
            rounds.now += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    try:
        yield rounds
    finally:
        counting.cancel()


@contextmanager
def turning(seconds: float = 5.0) -> Iterator[None]:
    """Fail if the block takes longer, even if it does not let the loop go round. For the main thread."""

    def give_up(*_: object) -> None:
        pytest.fail(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
