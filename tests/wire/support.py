"""Members of the classic protocol over the wire."""

from __future__ import annotations

import asyncio
from typing import Any

from groups.engine.service import GroupService
from kcoord.database.clock import VirtualClock
from kcoord.door.kafka.codec import Fields
from tests.support.api import REBALANCE_DELAY_MS, Members
from tests.wire.client import WireClient


def join_fields(member_id: str = "", **changes: Any) -> dict[str, Any]:
    """The fields of a JoinGroup, in every version."""
    body = {
        "group_id": "g",
        "session_timeout": 10_000,
        "rebalance_timeout": 30_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"\x00\x01"}],
    }
    return {**body, **changes}


async def joined(
    client: WireClient, service: GroupService, clock: VirtualClock, version: int = 9, **changes: Any
) -> Fields:
    """The answer to the join of the first member of a group, the delay of an empty group included."""
    member_id = changes.pop("member_id", "")
    if version >= 4 and not member_id and not changes.get("group_instance_id"):
        pending = await client.ask("join_group", version, **join_fields(**changes))
        assert pending.error_code == 79, pending
        member_id = pending.member_id
    client.send("join_group", version, **join_fields(member_id, **changes))
    answer = asyncio.create_task(client.receive("join_group", version))
    group_id = changes.get("group_id", "g")
    await until_joining(service, group_id)
    clock.advance(REBALANCE_DELAY_MS)
    await service.tick(group_id)
    async with asyncio.timeout(30):
        return await answer


async def until_joining(service: GroupService, group_id: str, members: int = 1) -> None:
    """Return when that many members wait for a join to complete."""
    from tests.support.members import eventually

    async def is_joining() -> bool:
        found = (await service.describe(group_id)).group
        return found is not None and sum(bool(m.awaiting_join) for m in found.members.values()) >= members  # type: ignore[union-attr]

    await eventually(is_joining, f"{members} members of {group_id} wait")


def sync_fields(answer: Fields, assignments: dict[str, bytes] | None = None, **changes: Any) -> dict[str, Any]:
    """The fields of a SyncGroup after a join, in every version."""
    return {
        "group_id": "g",
        "generation_id": answer.generation_id,
        "member_id": answer.member_id,
        "protocol_type": "consumer",
        "protocol_name": answer.protocol_name,
        "assignments": [{"member_id": k, "assignment": v} for k, v in (assignments or {}).items()],
        **changes,
    }


__all__ = ["Members", "join_fields", "joined", "sync_fields", "until_joining"]
