"""How often the event loop has gone round: what happens in one round, nothing else gets in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


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
