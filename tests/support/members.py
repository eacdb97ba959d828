"""Members for tests of the service: commands with sensible defaults, and waiting on conditions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from groups.core.model.commands import Heartbeat, JoinGroup, LeaveGroup, LeavingMember, SyncGroup
from groups.core.model.replies import JoinReply
from groups.core.model.types import Protocol
from groups.engine.service import GroupService
from kcoord.database.clock import VirtualClock
from kcoord.protocol.errors import Error

T = TypeVar("T")

PATIENCE_SECONDS = 10.0
"""How long a test waits for something that must happen; it fails then, it does not go on."""


def join(group_id: str = "g", member_id: str = "", **changes: Any) -> JoinGroup:
    """A JoinGroup."""
    values: dict[str, Any] = {
        "group_id": group_id,
        "member_id": member_id,
        "group_instance_id": None,
        "client_id": "client",
        "client_host": "127.0.0.1",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": (Protocol("range", b"m"),),
        "max_wait_ms": 60_000,
    }
    return JoinGroup(**{**values, **changes})


def sync(
    reply: JoinReply, assignments: dict[str, bytes] | None = None, group_id: str = "g", **changes: Any
) -> SyncGroup:
    """A SyncGroup of the member and generation of a join's answer."""
    values: dict[str, Any] = {
        "group_id": group_id,
        "member_id": reply.member_id,
        "group_instance_id": None,
        "generation_id": reply.generation_id,
        "protocol_type": reply.protocol_type,
        "protocol_name": reply.protocol_name,
        "assignments": assignments or {},
        "max_wait_ms": 60_000,
    }
    return SyncGroup(**{**values, **changes})


def heartbeat(reply: JoinReply, group_id: str = "g") -> Heartbeat:
    """A Heartbeat of the member and generation of a join's answer."""
    return Heartbeat(group_id, reply.member_id, None, reply.generation_id)


def leave(member_id: str, group_id: str = "g") -> LeaveGroup:
    """A LeaveGroup of one dynamic member."""
    return LeaveGroup(group_id, (LeavingMember(member_id, None),))


async def eventually(condition: Callable[[], Awaitable[T] | T], what: str) -> T:
    """The first true value of `condition`; fails after PATIENCE_SECONDS, saying what was waited for."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while True:
        value = condition()
        if isinstance(value, Awaitable):
            value = await value
        if value:
            return value
        assert asyncio.get_running_loop().time() < deadline, f"waited in vain for: {what}"
        await asyncio.sleep(0.005)


async def pending_id(service: GroupService, group_id: str = "g", **changes: Any) -> str:
    """A member id handed out with MEMBER_ID_REQUIRED."""
    reply = await service.join(join(group_id, **changes))
    assert reply.error is Error.MEMBER_ID_REQUIRED
    return reply.member_id


async def parked_join(service: GroupService, group_id: str = "g", **changes: Any) -> asyncio.Task[JoinReply]:
    """A join that is parked and committed."""
    member_id = changes.pop("member_id", None) or await pending_id(service, group_id, **changes)
    task = asyncio.create_task(service.join(join(group_id, member_id, **changes)))

    async def is_parked() -> bool:
        group = (await service.describe(group_id)).group
        return bool(group and member_id in group.members and group.members[member_id].awaiting_join)

    await eventually(is_parked, f"{member_id} is parked")
    return task


async def stable_member(service: GroupService, clock: VirtualClock, group_id: str = "g") -> JoinReply:
    """The only member of a Stable group, at its first generation."""
    task = await parked_join(service, group_id)
    clock.advance(3_000)
    await service.tick(group_id)
    reply = await task
    synced = await service.sync(sync(reply, {reply.member_id: b"a"}, group_id))
    assert synced.error is Error.NONE
    return reply
