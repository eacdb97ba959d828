"""A folded classic group as `GET /v1/groups/{group_id}` shows it.

Source: http-api.md 4; classic.md 1 (metadata and protocol are shown only in Stable);
offsets.md 8.3.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from groups.core.model.types import ClassicGroup, ClassicMember, GroupState, Hold, Millis
from groups.models import Group
from groups.nodes.directory import CoordinatorNode
from kcoord.protocol.consumer_protocol import Subscription, decode_assignment, decode_subscription

CONSUMER_PROTOCOL_TYPE = "consumer"
NO_LABELS: Mapping[str, str] = MappingProxyType({})


class MemberState(str, Enum):
    """What a member is doing, in the order of a rebalance."""

    NOT_REJOINED = "not_rejoined"
    AWAITING_JOIN = "awaiting_join"
    PENDING_SYNC = "pending_sync"
    AWAITING_SYNC = "awaiting_sync"
    STABLE = "stable"


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member. `metadata` and `assignment` are base64; instants are in ms."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    state: str
    session_timeout_ms: Millis
    rebalance_timeout_ms: Millis
    protocols: tuple[str, ...]
    metadata: str
    subscription: Subscription | None
    assignment: str
    partitions: Mapping[str, tuple[int, ...]] | None
    last_heartbeat_at: Millis | None
    session_expires_at: Millis | None
    client_software_name: str | None = None
    client_software_version: str | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group. Missing values are "" or None; instants are in ms."""

    group_id: str
    type: str
    state: str
    state_since: Millis
    generation_id: int
    protocol_type: str
    protocol_name: str
    leader: str
    coordinator: CoordinatorNode
    members: tuple[MemberDescription, ...]
    pending_member_ids: tuple[str, ...]
    join_deadline: Millis | None
    sync_deadline: Millis | None
    hold: Hold | None
    wake_at: Millis | None
    labels: Mapping[str, str]


def describe_group(
    group: ClassicGroup,
    wake_at: Millis | None,
    coordinator: CoordinatorNode,
    hold: Hold | None = None,
    labels: Mapping[str, str] = NO_LABELS,
) -> GroupDescription:
    """The description of a group whose next deadline is `wake_at`. `hold`: the one in force now."""
    stable = group.state is GroupState.STABLE
    return GroupDescription(
        group_id=group.group_id,
        type=Group.Type.CLASSIC.value,
        state=group.state.value,
        state_since=group.state_since,
        generation_id=group.generation_id,
        protocol_type=group.protocol_type or "",
        protocol_name=(group.protocol_name or "") if stable else "",
        leader=group.leader_id or "",
        coordinator=coordinator,
        members=tuple(_member(group, member) for member in group.members.values()),
        pending_member_ids=tuple(group.pending_join),
        join_deadline=None if group.join_timer is None else group.join_timer.deadline,
        sync_deadline=group.sync_deadline,
        hold=hold,
        wake_at=wake_at,
        labels=labels,
    )


def _member(group: ClassicGroup, member: ClassicMember) -> MemberDescription:
    metadata = b""
    if group.state is GroupState.STABLE:
        metadata = next((p.metadata for p in member.protocols if p.name == group.protocol_name), b"")
    readable = member.protocol_type == CONSUMER_PROTOCOL_TYPE
    assignment = decode_assignment(member.assignment) if readable else None
    return MemberDescription(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        state=_state(group, member).value,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=tuple(protocol.name for protocol in member.protocols),
        metadata=_base64(metadata),
        subscription=decode_subscription(metadata) if readable else None,
        assignment=_base64(member.assignment),
        partitions=None if assignment is None else assignment.partitions,
        last_heartbeat_at=member.last_heartbeat_at,
        session_expires_at=member.session_deadline,
    )


def _state(group: ClassicGroup, member: ClassicMember) -> MemberState:
    if member.awaiting_join:
        return MemberState.AWAITING_JOIN
    if member.awaiting_sync:
        return MemberState.AWAITING_SYNC
    if group.state is GroupState.PREPARING_REBALANCE:
        return MemberState.NOT_REJOINED
    if member.pending_sync:
        return MemberState.PENDING_SYNC
    return MemberState.STABLE


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
