"""What a member of the classic protocol sends to a group of either protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from groups.core.commands import Heartbeat, JoinGroup, LeaveGroup, LeavingMember, SyncGroup
from groups.core.types import Protocol
from kcoord.consumer_protocol import Assignment, Subscription, decode_assignment, encode_assignment, encode_subscription
from tests.core.consumer.world import GROUP, Call, World


def join_classic(
    world: World,
    member_id: str,
    topics: Sequence[str],
    owned: Mapping[str, Sequence[int]] | None = None,
    instance_id: str | None = None,
    **fields: Any,
) -> Call:
    """A JoinGroup of an eager client, or with `owned` of a cooperative one."""
    partitions = {name: tuple(numbers) for name, numbers in (owned or {}).items()}
    metadata = encode_subscription(Subscription(tuple(topics), partitions))
    command = JoinGroup(
        group_id=GROUP,
        member_id=member_id,
        group_instance_id=instance_id,
        client_id="classic",
        client_host="10.0.0.2",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=5_000,
        protocol_type="consumer",
        protocols=(Protocol("range", metadata),),
    )
    return world.send(replace(command, **fields))


def sync_classic(
    world: World,
    member_id: str,
    generation_id: int,
    plan: Mapping[str, Mapping[str, Sequence[int]]] | None = None,
    instance_id: str | None = None,
) -> Call:
    """A SyncGroup; a leader brings a plan."""
    assignments = {
        other: encode_assignment(Assignment({name: tuple(numbers) for name, numbers in partitions.items()}))
        for other, partitions in (plan or {}).items()
    }
    return world.send(SyncGroup(GROUP, member_id, instance_id, generation_id, None, None, assignments))


def beat_classic(world: World, member_id: str, generation_id: int, instance_id: str | None = None) -> Call:
    """A Heartbeat."""
    return world.send(Heartbeat(GROUP, member_id, instance_id, generation_id))


def leave_classic(world: World, *entries: tuple[str, str | None]) -> Call:
    """A LeaveGroup of (member id, instance id)."""
    return world.send(LeaveGroup(GROUP, tuple(LeavingMember(*entry) for entry in entries)))


def synced(call: Call) -> dict[str, list[int]]:
    """What a SyncGroup was answered, by topic name."""
    assignment = decode_assignment(call.reply.assignment)
    assert assignment is not None
    return {name: sorted(numbers) for name, numbers in assignment.partitions.items()}
