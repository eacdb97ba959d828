"""Callers that do a job over and over, as many at once as the service is measured with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from groups.engine.agent import NodeAgent
from kcoord.process.runtime import Runtime

CALLERS = 64
NODE_SECONDS = 30.0
OWNED = b"select count(*) > 0 and bool_and(state = 'ACTIVE') from groups_coordinatorpartition"

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


async def start_node(runtime: Runtime) -> None:
    """Start a runtime that also runs the timers of its groups, as servers do; returns once it owns all of them."""
    await runtime.start()
    runtime.get(NodeAgent).start()
    deadline = time.monotonic() + NODE_SECONDS
    async with runtime.db.connection() as connection:
        while True:
            row = await (await connection.execute(OWNED)).fetchone()
            if row is not None and row[0]:
                return
            assert time.monotonic() < deadline, "the coordinator partitions have no owner"
            await asyncio.sleep(0.05)
