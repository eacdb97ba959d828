"""How often the event loop has gone round: what happens in one round, nothing else gets in between."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


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
def bounded(seconds: float, over: BaseException) -> Iterator[None]:
    """Raise `over` after this number of seconds, also if the loop does not go round; in the main thread."""

    def end(*_: object) -> None:
        raise over

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
