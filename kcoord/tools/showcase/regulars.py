"""Groups whose members use the Python client as it is meant to be used: steady, slow, idle, restarting, static members,
and workers of queues.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from kcoord.client import AsyncConsumer, AsyncShareConsumer, Item
from kcoord.tools.showcase.cast import Behaviour, Part
from kcoord.tools.showcase.logs import GrowingSource
from kcoord.tools.showcase.stage import Stage

POLL_MS = 5_000
WORK_SECONDS = (1.0, 3.0)
COMMIT_MS = 10_000
SLOW_SHARE = 0.6
SESSION_MS = 45_000
HEARTBEAT_MS = 5_000
RESTART_SECONDS = (40.0, 90.0)
SHORT_VISIT_SECONDS = (3.0, 6.0)
VISIT_SECONDS = 30.0
HOLD_MS = 3_600_000
SECONDS_AN_ITEM = (0.1, 0.6)
BUSY_SHARE = 0.05
POISONED = 60
"""Each item whose offset is a multiple of it fails however often it is tried."""


def consumer(stage: Stage, part: Part, number: int, **more: Any) -> AsyncConsumer[None]:
    """Member `number` of the group, subscribed to its topic; `more` are settings of the client."""
    settings: dict[str, Any] = {
        "group_id": part.group_id,
        "group_protocol": part.protocol,
        "client_id": f"{part.group_id}-{number}",
        "url": stage.api.url,
        "token": stage.api.token,
        "auto_offset_reset": "latest",
        "auto_commit_interval_ms": COMMIT_MS,
        "fetch_wait_ms": POLL_MS,
        "watermark_interval_ms": 0,
    }
    if part.protocol == "classic":
        settings |= {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": HEARTBEAT_MS}
        settings["partition_assignment_strategy"] = (part.assignor,)
    else:
        settings["group_remote_assignor"] = part.assignor
    pace = part.topic.rate * SLOW_SHARE if part.behaviour is Behaviour.SLOW else None
    source = GrowingSource(stage.logs, part.topic, pace)
    return AsyncConsumer(part.topic.name, source=source, http_client=stage.api.client(), **settings | more)


async def work(stage: Stage, members: Iterable[AsyncConsumer[None]], seconds: float | None = None) -> None:
    """Poll with all of them until cancelled, or for `seconds`; then they leave. Raises KcoordError."""
    async with asyncio.TaskGroup() as tasks:
        for member in members:
            tasks.create_task(_poll(stage, member, seconds))


async def _poll(stage: Stage, member: AsyncConsumer[None], seconds: float | None) -> None:
    loop = asyncio.get_running_loop()
    ends = None if seconds is None else loop.time() + seconds
    async with member:
        while ends is None or loop.time() < ends:
            await member.poll(POLL_MS)
            await asyncio.sleep(stage.chance.uniform(*WORK_SECONDS))


async def steady(stage: Stage, part: Part) -> None:
    """Members that stay, and read whatever there is as fast as they can."""
    await work(stage, [consumer(stage, part, number) for number in range(part.members)])


async def rolling(stage: Stage, part: Part) -> None:
    """One member is restarted now and then, as a deployment does it."""
    await _one_restarts(stage, part, RESTART_SECONDS)


async def flapping(stage: Stage, part: Part) -> None:
    """One member ends soon after each start."""
    await _one_restarts(stage, part, SHORT_VISIT_SECONDS)


async def static(stage: Stage, part: Part) -> None:
    """Static members (KIP-345), of which one is restarted within its session."""
    await _one_restarts(stage, part, RESTART_SECONDS, is_static=True)


async def _one_restarts(stage: Stage, part: Part, seconds: tuple[float, float], *, is_static: bool = False) -> None:
    def member(number: int) -> AsyncConsumer[None]:
        more = {"group_instance_id": f"{part.group_id}-{number}"} if is_static else {}
        return consumer(stage, part, number, **more)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(work(stage, [member(number) for number in range(1, part.members)]))
        while True:
            await work(stage, [member(0)], stage.chance.uniform(*seconds))
            await asyncio.sleep(stage.chance.uniform(*SHORT_VISIT_SECONDS))


async def empty(stage: Stage, part: Part) -> None:
    """A group whose members worked for a while and left."""
    await work(stage, [consumer(stage, part, 0)], VISIT_SECONDS)


async def held(stage: Stage, part: Part) -> None:
    """A group that its operators hold."""
    await empty(stage, part)
    reason = "offsets are reset after a faulty deployment"
    await stage.api.post(part.group_id, "hold", {"duration_ms": HOLD_MS, "reason": reason})


def worker(stage: Stage, part: Part, number: int, **more: Any) -> AsyncShareConsumer[None]:
    """Worker `number` of a queue, whose items are offsets; `more` are settings of the client."""
    settings: dict[str, Any] = {
        "client_id": f"{part.group_id}-{number}",
        "url": stage.api.url,
        "token": stage.api.token,
    }
    return AsyncShareConsumer(
        part.topic.name, group_id=part.group_id, http_client=stage.api.client(), **settings | more
    )


async def queue(stage: Stage, part: Part, seconds: float | None = None) -> None:
    """Workers that take items as long as `seconds`. Some fail once, and a few each time: they become dead letters."""

    async def handle(item: Item[None]) -> None:
        await asyncio.sleep(stage.chance.uniform(*SECONDS_AN_ITEM))
        if item.offset % POISONED == 0:
            raise ValueError("no address in this item")
        if stage.chance.random() < BUSY_SHARE:
            raise TimeoutError("the mail server is busy")

    async def serve(number: int) -> None:
        async with worker(stage, part, number) as one:
            if seconds is not None:
                asyncio.get_running_loop().call_later(seconds, one.stop)
            await one.run(handle)

    async with asyncio.TaskGroup() as tasks:
        for number in range(part.members):
            tasks.create_task(serve(number))


async def unattended(stage: Stage, part: Part) -> None:
    """A queue whose workers have left while items still arrive."""
    await queue(stage, part, VISIT_SECONDS)
