"""Between the JSON of the membership calls and the commands and replies of the core."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

from msgspec import UNSET, Raw, UnsetType

from groups.api import wire
from groups.core.model.commands import Heartbeat, JoinGroup, LeaveGroup, LeavingMember, SyncGroup
from groups.core.model.replies import HeartbeatReply, JoinedMember, JoinReply, LeaveReply, SyncReply
from groups.core.model.types import Protocol
from kcoord.http.problem import invalid
from kcoord.http.types import rfc3339
from kcoord.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kcoord.protocol.errors import Error, ProtocolError

V = TypeVar("V", Subscription, Assignment)

CONSUMER = "consumer"
"""The protocol type whose bytes this service can read and write."""


def join_command(group_id: str, request: wire.JoinRequest, client_host: str, longest_wait_ms: int) -> JoinGroup:
    """The command of a join. Raises INVALID_REQUEST naming the protocol whose metadata is not valid.

    A join that names no rebalance timeout gets its session timeout, as JoinGroup version 0 did.
    """
    rebalance_timeout_ms = request.rebalance_timeout_ms
    return JoinGroup(
        group_id=group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        client_id=request.client_id,
        client_host=client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.session_timeout_ms if rebalance_timeout_ms is None else rebalance_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple(
            Protocol(protocol.name, _metadata(protocol, request.protocol_type, f"protocols[{index}]"))
            for index, protocol in enumerate(request.protocols)
        ),
        reason=request.reason,
        max_wait_ms=min(request.max_wait_ms, longest_wait_ms),
    )


def _metadata(protocol: wire.JoinProtocol, protocol_type: str, where: str) -> bytes:
    given = _one_of(where, metadata=protocol.metadata, subscription=protocol.subscription)
    if given == "metadata":
        assert not isinstance(protocol.metadata, UnsetType)
        return protocol.metadata
    assert not isinstance(protocol.subscription, UnsetType)
    _require_consumer(protocol_type, f"{where}.subscription", "metadata")
    return _encoded(f"{where}.subscription", encode_subscription, subscription(protocol.subscription))


def subscription(given: wire.Subscription) -> Subscription:
    """A subscription as the ConsumerProtocol module knows it."""
    return Subscription(
        topics=tuple(given.topics),
        owned_partitions={topic: tuple(partitions) for topic, partitions in given.owned_partitions.items()},
        generation_id=given.generation_id,
        rack_id=given.rack_id,
        user_data=given.user_data,
    )


def decodes(reply: JoinReply) -> bool:
    """Whether the metadata of the members is shown in readable form, too."""
    return reply.protocol_type == CONSUMER


def joined_member(member: JoinedMember, *, decodes: bool) -> wire.JoinedMember:
    """A member as its leader is told of it. `decodes`: see there."""
    return wire.JoinedMember(
        member.member_id,
        member.group_instance_id,
        member.metadata,
        _subscription_view(member.metadata) if decodes else UNSET,
    )


def join_response(reply: JoinReply, members: Raw | None = None) -> wire.JoinResponse:
    """The response of a successful join. `members`: those of the reply if they are encoded already."""
    readable = decodes(reply)
    return wire.JoinResponse(
        generation_id=reply.generation_id,
        protocol_type=reply.protocol_type,
        protocol_name=reply.protocol_name,
        leader=reply.leader,
        skip_assignment=reply.skip_assignment,
        member_id=reply.member_id,
        members=[joined_member(member, decodes=readable) for member in reply.members]
        if members is None
        else cast(list[wire.JoinedMember], members),
        session_expires_at=rfc3339(reply.session_deadline),
    )


def _subscription_view(metadata: bytes) -> wire.SubscriptionView | UnsetType:
    found = decode_subscription(metadata)
    if found is None:
        return UNSET
    return wire.SubscriptionView(
        topics=list(found.topics),
        owned_partitions=_lists(found.owned_partitions),
        generation_id=found.generation_id,
        rack_id=found.rack_id,
        user_data=found.user_data,
    )


def sync_command(group_id: str, request: wire.SyncRequest, longest_wait_ms: int) -> SyncGroup:
    """The command of a sync. Of several entries for one member the last one counts (classic.md 3.2).

    Raises INCONSISTENT_GROUP_PROTOCOL if the protocol type or name is null (classic.md 3.1 row 1), INVALID_REQUEST for
    an entry with both or neither of `assignment` and `partitions`.
    """
    if request.protocol_type is None or request.protocol_name is None:
        raise ProtocolError(
            Error.INCONSISTENT_GROUP_PROTOCOL,
            "protocol_type and protocol_name must not be null: send those that the join returned",
        )
    protocol_type = request.protocol_type
    return SyncGroup(
        group_id=group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        generation_id=request.generation_id,
        protocol_type=protocol_type,
        protocol_name=request.protocol_name,
        assignments={
            entry.member_id: _assignment(entry, protocol_type, f"assignments[{index}]")
            for index, entry in enumerate(request.assignments)
        },
        max_wait_ms=min(request.max_wait_ms, longest_wait_ms),
    )


def _assignment(entry: wire.SyncAssignment, protocol_type: str, where: str) -> bytes:
    given = _one_of(where, assignment=entry.assignment, partitions=entry.partitions)
    if given == "assignment":
        assert not isinstance(entry.assignment, UnsetType)
        if entry.user_data is not None:
            raise invalid(
                f"{where}.user_data: only valid together with partitions; assignment includes its own",
                f"{where}.user_data",
            )
        return entry.assignment
    assert not isinstance(entry.partitions, UnsetType)
    _require_consumer(protocol_type, f"{where}.partitions", "assignment")
    assignment = Assignment({topic: tuple(found) for topic, found in entry.partitions.items()}, entry.user_data)
    return _encoded(where, encode_assignment, assignment)


def sync_response(reply: SyncReply) -> wire.SyncResponse:
    """The response of a successful sync."""
    return wire.SyncResponse(
        protocol_type=reply.protocol_type,
        protocol_name=reply.protocol_name,
        assignment=reply.assignment,
        partitions=_partitions(reply),
        session_expires_at=rfc3339(reply.session_deadline),
    )


def _partitions(reply: SyncReply) -> dict[str, list[int]] | None:
    if reply.protocol_type != CONSUMER:
        return None
    if not reply.assignment:
        return {}  # the leader listed nothing for this member
    found = decode_assignment(reply.assignment)
    return None if found is None else _lists(found.partitions)


def heartbeat_command(group_id: str, request: wire.HeartbeatRequest | wire.GroupHeartbeat) -> Heartbeat:
    """The command of a heartbeat."""
    return Heartbeat(group_id, request.member_id, request.group_instance_id, request.generation_id)


def heartbeat_result(request: wire.GroupHeartbeat, reply: HeartbeatReply) -> wire.GroupHeartbeatResult:
    """The response to one of many heartbeats."""
    return wire.GroupHeartbeatResult(
        group_id=request.group_id,
        member_id=request.member_id,
        error_code=reply.error.code,
        error=reply.error.name,
        detail=None if reply.error is Error.NONE else reply.detail or reply.error.value.help,
        session_expires_at=rfc3339(reply.session_deadline),
    )


def leave_command(group_id: str, request: wire.LeaveRequest) -> LeaveGroup:
    """The command of a leave."""
    members = tuple(LeavingMember(entry.member_id, entry.group_instance_id, entry.reason) for entry in request.members)
    return LeaveGroup(group_id, members)


def leave_response(reply: LeaveReply) -> wire.LeaveResponse:
    """The response of a leave that was carried out, entry by entry."""
    return wire.LeaveResponse(
        [
            wire.LeftMember(member.member_id, member.group_instance_id, member.error.code, member.error.name)
            for member in reply.members
        ]
    )


def assign_subscription(member: wire.AssignMember, where: str) -> Subscription:
    """The subscription of a member as a join returned it. Raises INVALID_REQUEST if none can be read."""
    if not isinstance(member.subscription, UnsetType):
        return subscription(member.subscription)
    if isinstance(member.metadata, UnsetType):
        raise invalid(f"{where}: send metadata or subscription", f"{where}.metadata")
    found = decode_subscription(member.metadata)
    if found is None:
        raise invalid(f"{where}.metadata: not a ConsumerProtocol subscription", f"{where}.metadata")
    return found


def _lists(topics: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    return {topic: list(partitions) for topic, partitions in topics.items()}


def _one_of(where: str, **fields: object) -> str:
    """The name of the one field that is set. Raises INVALID_REQUEST unless exactly one is."""
    given = [name for name, value in fields.items() if value is not UNSET]
    if len(given) != 1:
        verb = "both were sent" if given else "neither was sent"
        raise invalid(f"{where}: send either {' or '.join(fields)}; {verb}", where)
    return given[0]


def _require_consumer(protocol_type: str, field: str, instead: str) -> None:
    if protocol_type != CONSUMER:
        raise invalid(
            f"{field}: only valid for protocol type 'consumer'; for type {protocol_type!r} send {instead}", field
        )


def _encoded(where: str, encode: Callable[[V], bytes], value: V) -> bytes:
    """The bytes of `value`. Raises INVALID_REQUEST naming its place in the request if the value does not fit."""
    try:
        return encode(value)
    except ProtocolError as error:
        raise invalid(f"{where}.{error.detail}", where) from error
