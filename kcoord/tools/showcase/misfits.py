"""Groups that need attention: each behaviour leads to one state or verdict that the dashboard has to explain."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from kcoord.tools.showcase import regulars
from kcoord.tools.showcase.api import ClassicMember, ConsumerMember, Refused
from kcoord.tools.showcase.cast import Part
from kcoord.tools.showcase.stage import Stage

HEARTBEAT_SECONDS = 5.0
LATE_SECONDS = 50.0
"""Within the session of 60 s, but late by half of it."""
SHARE_OF_UNCOVERED = 2
EXPIRES_MS = 3_600_000
TRANSACTION_SECONDS = 20.0
HOUR_S = 3_600
DISPUTE_SECONDS = 10.0


def _classic(stage: Stage, part: Part, number: int, **more: Any) -> ClassicMember:
    client_id = f"{part.group_id}-{number}"
    return ClassicMember(stage.api, part.group_id, client_id, [part.topic.name], part.assignor, **more)


def _ranges(part: Part, member_ids: list[str], partitions: int) -> list[dict[str, Any]]:
    return [
        {"member_id": member_id, "partitions": {part.topic.name: list(range(number, partitions, len(member_ids)))}}
        for number, member_id in enumerate(member_ids)
    ]


async def _beat(heartbeat: Callable[[], Awaitable[None]], seconds: float = HEARTBEAT_SECONDS) -> None:
    """Send heartbeats until cancelled, and do nothing about a rebalance."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await heartbeat()
        except Refused as refused:
            if refused.name != "REBALANCE_IN_PROGRESS":
                raise


async def _alone(stage: Stage, part: Part, partitions: int, **more: Any) -> ClassicMember:
    member = _classic(stage, part, 0, **more)
    await member.join()
    await member.sync(_ranges(part, [member.member_id], partitions))
    return member


async def stalled(stage: Stage, part: Part) -> None:
    """Members whose heartbeats continue while they commit nothing: their work hangs."""
    members = [regulars.consumer(stage, part, n, enable_auto_commit=False) for n in range(part.members)]
    await regulars.work(stage, members)


async def late(stage: Stage, part: Part) -> None:
    """A member that is frozen again and again, for nearly its session."""
    member = await _alone(stage, part, part.topic.partitions)
    await _beat(member.heartbeat, LATE_SECONDS)


async def stuck_joining(stage: Stage, part: Part) -> None:
    """A member does not join again after another one has come, and the group waits for it."""
    member = await _alone(stage, part, part.topic.partitions)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_beat(member.heartbeat))
        tasks.create_task(_classic(stage, part, 1).join())


async def stuck_syncing(stage: Stage, part: Part) -> None:
    """A leader that joins and never sends the assignment."""
    member = _classic(stage, part, 0)
    await member.join()
    await _beat(member.heartbeat)


async def stuck_revoking(stage: Stage, part: Part) -> None:
    """A member of a consumer group does not give up what it should, so another one waits for it."""
    owner = ConsumerMember(stage.api, part.group_id, [part.topic.name])
    await owner.heartbeat()
    owner.reconcile()
    await owner.heartbeat()
    waiting = ConsumerMember(stage.api, part.group_id, [part.topic.name])
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_beat(owner.heartbeat))
        tasks.create_task(_beat(waiting.heartbeat))


async def uncovered(stage: Stage, part: Part) -> None:
    """A leader whose assignor leaves out half of the partitions."""
    member = await _alone(stage, part, part.topic.partitions // SHARE_OF_UNCOVERED)
    await _beat(member.heartbeat)


async def opaque(stage: Stage, part: Part) -> None:
    """A group of another protocol type, whose metadata the service cannot read, as Kafka Connect's workers form it."""
    member = _classic(stage, part, 0, protocol_type="connect")
    await member.join()
    await member.sync([{"member_id": member.member_id, "assignment": "AAEAAA=="}])
    await _beat(member.heartbeat)


async def zombie(stage: Stage, part: Part) -> None:
    """A member that dies without leaving, and a new one in its place; again and again."""
    while True:
        members = [regulars.consumer(stage, part, number) for number in range(part.members)]
        if part.protocol == "classic":
            dead = _classic(stage, part, 99, session_timeout_ms=10_000, rebalance_timeout_ms=10_000)
            await dead.join()
        else:
            await ConsumerMember(stage.api, part.group_id, [part.topic.name], rebalance_timeout_ms=10_000).heartbeat()
        await regulars.work(stage, members, stage.chance.uniform(90, 150))


async def expiring(stage: Stage, part: Part) -> None:
    """Offsets that a program outside the group committed, to be kept for an hour."""
    commit = {"topics": _offsets(stage, part), "retention_time_ms": EXPIRES_MS}
    await stage.api.post(part.group_id, "offsets/commit", commit)


async def new(stage: Stage, part: Part) -> None:
    """A group that was created with start offsets and that no member has joined."""
    await stage.api.request("POST", "groups", {"group_id": part.group_id, "topics": _offsets(stage, part, back=500)})


async def mixed(stage: Stage, part: Part) -> None:
    """A consumer group in which a member still uses the classic protocol: it is being migrated."""
    upgraded = [regulars.consumer(stage, part, number) for number in range(part.members)]
    classic = Part(part.group_id, part.behaviour, "classic", "range", part.topic, 1)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(regulars.work(stage, upgraded))
        await asyncio.sleep(HEARTBEAT_SECONDS)
        tasks.create_task(regulars.work(stage, [regulars.consumer(stage, classic, 99)]))


async def regex(stage: Stage, part: Part) -> None:
    """A member that subscribes by regular expression, on the server."""
    member = ConsumerMember(stage.api, part.group_id, [], regex=f"{part.topic.name.split('.', 1)[0]}\\..*")
    while True:
        await member.heartbeat()
        member.reconcile()
        await asyncio.sleep(member.heartbeat_seconds)


async def transaction(stage: Stage, part: Part) -> None:
    """A producer that commits offsets in transactions, each of which stays open for a while."""
    path = f"transactions/{part.group_id}-writer"
    while True:
        producer = await stage.api.request("POST", f"{path}/init", {"transaction_timeout_ms": 60_000})
        identity = {"producer_id": producer["producer_id"], "producer_epoch": producer["producer_epoch"]}
        pending = identity | {"transactional_id": f"{part.group_id}-writer", "topics": _offsets(stage, part)}
        await stage.api.post(part.group_id, "offsets/txn-commit", pending)
        await asyncio.sleep(TRANSACTION_SECONDS)
        await stage.api.request("POST", f"{path}/end", identity | {"committed": True})


async def disputed(stage: Stage, part: Part) -> None:
    """Members that work, while somebody reports that their logs end earlier than they do."""
    path = f"topics/{part.topic.name}/watermarks"
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(regulars.steady(stage, part))
        while True:
            await asyncio.sleep(DISPUTE_SECONDS)
            ends = [stage.logs.end(part.topic, number) // 2 for number in range(part.topic.partitions)]
            lower = [{"partition": n, "log_start_offset": 0, "log_end_offset": end} for n, end in enumerate(ends)]
            await stage.api.request("POST", path, {"partitions": lower})


async def unsettled(stage: Stage, part: Part) -> None:
    """Workers that keep the first items that they get: their work hangs."""

    async def keep(number: int) -> None:
        more = {"acknowledgement_mode": "explicit", "max_processing_s": HOUR_S, "max_poll_interval_ms": HOUR_S * 1_000}
        async with regulars.worker(stage, part, number, **more) as one:
            while not await one.poll(regulars.POLL_MS):
                pass
            await asyncio.sleep(HOUR_S)

    async with asyncio.TaskGroup() as tasks:
        for number in range(part.members):
            tasks.create_task(keep(number))


def _offsets(stage: Stage, part: Part, back: int = 0) -> list[dict[str, Any]]:
    """Offsets of all partitions, `back` records before the end."""
    ends = [stage.logs.end(part.topic, partition) for partition in range(part.topic.partitions)]
    positions = [{"partition": number, "committed_offset": max(0, end - back)} for number, end in enumerate(ends)]
    return [{"name": part.topic.name, "partitions": positions}]
