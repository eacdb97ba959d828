"""A folded classic group as `GET /v1/groups/{group_id}` shows it.

Source: http-api.md 4; classic.md 1 (metadata and protocol are shown only in Stable);
offsets.md 8.3.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Annotated

from groups.api.rest.operator_serializers import HoldView
from groups.core.model.types import ClassicGroup, ClassicMember, GroupState, Hold, Millis
from groups.models import Group
from groups.nodes.directory import GroupCoordinator
from kcoord.control.rest.answers import Answer, Instant, Int32, Natural32, doc, one_of
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


LabelsOfGroup = Annotated[Mapping[str, str], doc("Labels of the group, by name.")]
PartitionsByTopic = Mapping[str, tuple[Int32, ...]]


class MemberSubscription(Answer):
    """What a member of protocol type `consumer` subscribes to."""

    topics: Sequence[str]
    owned_partitions: PartitionsByTopic
    generation_id: Int32
    rack_id: str | None


class AnyMember(Answer, kw_only=True):
    """What is shown of a member of any group."""

    member_id: str
    client_id: str
    client_host: str
    session_expires_at: Instant | None
    client_software_name: Annotated[
        str | None, doc("As a client of Kafka's protocol names itself; null: it did not, or uses HTTP.")
    ] = None
    client_software_version: str | None = None


class MemberView(AnyMember, kw_only=True):
    """A member of a classic group."""

    group_instance_id: str | None
    state: Annotated[
        str,
        one_of(
            [state.value for state in MemberState],
            "stable; awaiting_join: its join waits for other members; not_rejoined: the group is rebalancing and it "
            "has not joined yet; pending_sync: it has not asked for its assignment yet; awaiting_sync: it waits for "
            "the leader's assignment.",
        ),
    ]
    session_timeout_ms: Int32
    rebalance_timeout_ms: Int32
    protocols: Annotated[Sequence[str], doc("Names of the protocols it supports, preferred first.")]
    metadata: Annotated[str, doc("For the chosen protocol, base64; empty unless the group is Stable.")]
    subscription: Annotated[
        MemberSubscription | None,
        doc("`metadata` decoded; null if it is not a ConsumerProtocol subscription."),
    ]
    assignment: Annotated[str, doc("What the leader assigned to it, base64.")]
    partitions: Annotated[
        PartitionsByTopic | None,
        doc("`assignment` decoded; null if it is not a ConsumerProtocol assignment."),
    ]
    last_heartbeat_at: Annotated[Instant | None, doc("The last request that renewed its session.")]


class AnyGroup(Answer, kw_only=True):
    """What is shown of any group."""

    group_id: str
    type: Annotated[str, one_of(Group.Type.values)]
    state_since: Instant
    coordinator: GroupCoordinator
    hold: Annotated[HoldView | None, doc("No member can join until it ends; null: the group is not held.")]
    labels: LabelsOfGroup
    wake_at: Annotated[Instant | None, doc("When the next timer of the group is due.")]


class GroupView(AnyGroup, kw_only=True):
    """A group, its members, and what it waits for."""

    state: Annotated[str, one_of([state.value for state in GroupState])]
    generation_id: Natural32
    protocol_type: str
    protocol_name: Annotated[str, doc("Empty unless the group is Stable.")]
    leader: Annotated[str, doc("Member id of the leader; empty: the group has no leader.")]
    members: Sequence[MemberView]
    pending_member_ids: Annotated[Sequence[str], doc("Member ids given out with MEMBER_ID_REQUIRED and not used yet.")]
    join_deadline: Annotated[Instant | None, doc("When the join in progress completes at the latest.")]
    sync_deadline: Annotated[Instant | None, doc("When members that have not synced are removed.")]


def describe_group(
    group: ClassicGroup,
    wake_at: Millis | None,
    coordinator: GroupCoordinator,
    hold: Hold | None = None,
    labels: Mapping[str, str] = NO_LABELS,
) -> GroupView:
    """The description of a group whose next deadline is `wake_at`. `hold`: the one in force now."""
    stable = group.state is GroupState.STABLE
    return GroupView(
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
        hold=hold_view(hold),
        wake_at=wake_at,
        labels=labels,
    )


def hold_view(hold: Hold | None) -> HoldView | None:
    """How a hold is shown."""
    return None if hold is None else HoldView(hold.until, hold.by, hold.reason)


def subscription_view(found: Subscription | None) -> MemberSubscription | None:
    """How a subscription is shown: without the bytes of the assignor."""
    if found is None:
        return None
    return MemberSubscription(found.topics, found.owned_partitions, found.generation_id, found.rack_id)


def _member(group: ClassicGroup, member: ClassicMember) -> MemberView:
    metadata = b""
    if group.state is GroupState.STABLE:
        metadata = next((p.metadata for p in member.protocols if p.name == group.protocol_name), b"")
    readable = member.protocol_type == CONSUMER_PROTOCOL_TYPE
    assignment = decode_assignment(member.assignment) if readable else None
    return MemberView(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        state=_state(group, member).value,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=tuple(protocol.name for protocol in member.protocols),
        metadata=_base64(metadata),
        subscription=subscription_view(decode_subscription(metadata)) if readable else None,
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
