"""Runs the showcase: topics, watermarks, groups, operators, and a line now and then about how it goes."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import quote

from kcoord.tools.showcase import misfits, regulars
from kcoord.tools.showcase.acts import operate
from kcoord.tools.showcase.api import Api, Refused
from kcoord.tools.showcase.cast import Behaviour, Part, Topic, labels, topics
from kcoord.tools.showcase.logs import Logs
from kcoord.tools.showcase.stage import Stage

REPORT_SECONDS = 15.0
WATERMARK_SECONDS = 15.0
STARTS_PER_SECOND = 12
RESTART_SECONDS = 5.0
MAY_EXIST = ("TOPIC_ALREADY_EXISTS",)

Say = Callable[[str], None]
Perform = Callable[[Stage, Part], Awaitable[None]]

PERFORM: Mapping[Behaviour, Perform] = {
    Behaviour.STEADY: regulars.steady,
    Behaviour.SLOW: regulars.steady,
    Behaviour.IDLE: regulars.steady,
    Behaviour.LARGE: regulars.steady,
    Behaviour.STALE: regulars.steady,
    Behaviour.ROLLING: regulars.rolling,
    Behaviour.FLAPPING: regulars.flapping,
    Behaviour.STATIC: regulars.static,
    Behaviour.EMPTY: regulars.empty,
    Behaviour.HELD: regulars.held,
    Behaviour.STALLED: misfits.stalled,
    Behaviour.LATE: misfits.late,
    Behaviour.STUCK_JOINING: misfits.stuck_joining,
    Behaviour.STUCK_SYNCING: misfits.stuck_syncing,
    Behaviour.STUCK_REVOKING: misfits.stuck_revoking,
    Behaviour.UNCOVERED: misfits.uncovered,
    Behaviour.OPAQUE: misfits.opaque,
    Behaviour.ZOMBIE: misfits.zombie,
    Behaviour.EXPIRING: misfits.expiring,
    Behaviour.NEW: misfits.new,
    Behaviour.MIXED: misfits.mixed,
    Behaviour.REGEX: misfits.regex,
    Behaviour.TRANSACTION: misfits.transaction,
    Behaviour.DISPUTED: misfits.disputed,
    Behaviour.QUEUE: regulars.queue,
    Behaviour.UNATTENDED: regulars.unattended,
    Behaviour.UNSETTLED: misfits.unsettled,
}


async def showcase(url: str, token: str, parts: Sequence[Part], seconds: float | None, say: Say) -> None:
    """Run these groups against the service until cancelled, or for so long. Raises Refused, httpx.TransportError."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with Api(url, token) as api:
        stage = Stage(api, Logs(), random.Random(len(parts)))  # noqa: S311 - not for secrets
        for topic in topics(parts):
            await _create(stage, topic)
        for part in parts:
            path = f"groups/{quote(part.group_id, safe='')}/labels"
            await stage.api.request("PATCH", path, {"labels": labels(part)})
        say(f"{len(topics(parts))} topics; starting {len(parts)} groups: {url}/")
        try:
            async with asyncio.timeout(seconds), asyncio.TaskGroup() as tasks:
                for topic in topics(parts):
                    tasks.create_task(_keep_reporting(stage, topic))
                tasks.create_task(_tell(stage, say))
                tasks.create_task(operate(stage, parts))
                for part in parts:
                    tasks.create_task(_perform(stage, part))
                    await asyncio.sleep(1 / STARTS_PER_SECOND)
                say("all groups have started; verdicts follow as their thresholds pass")
        except TimeoutError:
            say("the time is over")


async def _create(stage: Stage, topic: Topic) -> None:
    try:
        team = {"team": topic.name.split(".", 1)[0]}
        await stage.api.request("POST", "topics", {"name": topic.name, "partitions": topic.partitions, "labels": team})
    except Refused as refused:
        if refused.name not in MAY_EXIST:
            raise
    await _report(stage, topic)


async def _report(stage: Stage, topic: Topic) -> None:
    path = f"topics/{quote(topic.name, safe='')}/watermarks"
    partitions = [
        {"partition": partition, "log_start_offset": 0, "log_end_offset": stage.logs.end(topic, partition)}
        for partition in range(topic.partitions)
    ]
    await stage.api.request("POST", path, {"partitions": partitions})


async def _keep_reporting(stage: Stage, topic: Topic) -> None:
    while topic.is_reported:
        await asyncio.sleep(stage.chance.uniform(0.5, 1.5) * WATERMARK_SECONDS)
        await stage.attempt(topic.name, _report(stage, topic))


async def _perform(stage: Stage, part: Part) -> None:
    """The group's behaviour, started again whenever it is interrupted, until it ends by itself."""
    while True:
        if await stage.attempt(part.group_id, PERFORM[part.behaviour](stage, part)):
            return
        await asyncio.sleep(stage.chance.uniform(1, 2) * RESTART_SECONDS)


async def _tell(stage: Stage, say: Say) -> None:
    before: Counter[str] = Counter()
    while True:
        await asyncio.sleep(REPORT_SECONDS)
        recent = stage.failures - before
        before = stage.failures.copy()
        if recent:
            named = ", ".join(f"{name} {number}" for name, number in recent.most_common())
            say(f"interrupted and started again: {named}; the last: {stage.last_failure}")
