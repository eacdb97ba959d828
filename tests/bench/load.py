"""Callers that do a job over and over, as many at once as the service is measured with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

CALLERS = 64

Job = Callable[[int], Awaitable[Any]]


async def per_second(job: Job, count: int) -> float:
    """How many of `count` jobs are done in a second with CALLERS callers at once."""
    numbers = iter(range(count))

    async def caller() -> None:
        for number in numbers:
            await job(number)

    started = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return count / (time.perf_counter() - started)
