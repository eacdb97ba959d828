"""The membership calls: join, sync, heartbeat, leave, and heartbeats of many members; and what quotas count of them.

Their JSON becomes commands of the core, and replies of the core become JSON. What the answer of a large group says to
its leader of a member is encoded once and kept, so the rebalances that follow encode only the members that are new or
have other metadata. The loop has its turn all along: the answer of 5,000 members is a megabyte.

A quota never costs a membership: heartbeats over the limit are carried out, and members that are in the group may
always join again, sync and leave.
Source: http-api.md 6.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar, cast

import msgspec
import structlog
from msgspec import UNSET, Raw, UnsetType

from groups.api import endpoints, wire
from groups.core.model.commands import Heartbeat, JoinGroup, LeaveGroup, LeavingMember, SyncGroup
from groups.core.model.group import Group
from groups.core.model.replies import (
    ConsumerHeartbeatReply,
    HeartbeatReply,
    JoinedMember,
    JoinReply,
    LeaveReply,
    SyncReply,
)
from groups.core.model.types import Protocol
from groups.engine.service import GroupService
from kcoord.access.quotas.budgets import Budget, Metering
from kcoord.access.quotas.quotas import Quotas
from kcoord.access.rights import Operation, Principal
from kcoord.door.http.paths import check_group_id
from kcoord.door.http.problem import invalid
from kcoord.door.http.serving import Call, serve
from kcoord.door.http.types import rfc3339
from kcoord.metrics import commands
from kcoord.process import off_loop
from kcoord.process.off_loop import then
from kcoord.process.runtime import Runtime
from kcoord.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kcoord.protocol.errors import Error, ProblemFields, ProtocolError
from kcoord.requests.turnstile import Turnstile

V = TypeVar("V", Subscription, Assignment)

CONSUMER_TYPE = "consumer"
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
    return reply.protocol_type == CONSUMER_TYPE


def joined_member(member: JoinedMember, *, decodes: bool) -> wire.JoinedMember:
    """A member as shown to its leader. `decodes`: see there."""
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


@lru_cache(maxsize=16)  # most members of a group send the same bytes
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


def _sync_command(group_id: str, request: wire.SyncRequest, longest_wait_ms: int) -> SyncGroup:
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
    if reply.protocol_type != CONSUMER_TYPE:
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
    if protocol_type != CONSUMER_TYPE:
        raise invalid(
            f"{field}: only valid for protocol type 'consumer'; for type {protocol_type!r} send {instead}", field
        )


def _encoded(where: str, encode: Callable[[V], bytes], value: V) -> bytes:
    """The bytes of `value`. Raises INVALID_REQUEST naming its place in the request if the value does not fit."""
    try:
        return encode(value)
    except ProtocolError as error:
        raise invalid(f"{where}.{error.detail}", where) from error


FEW = 50
"""Members of a group whose list is encoded with its answer: keeping the parts would cost more than it saves."""

Parts = dict[str, tuple[JoinedMember, bytes]]


class LeaderLists:
    """The encoded members of groups, by group and member id; of as many groups as the process keeps in memory."""

    def __init__(self, runtime: Runtime) -> None:
        self._most = runtime.config.int("cache.max.groups")
        self._encoder = msgspec.json.Encoder()
        self._kept: OrderedDict[tuple[str, bool], Parts] = OrderedDict()

    async def encoded(self, group_id: str, reply: JoinReply) -> msgspec.Raw | None:
        """The members of a leader's answer as a JSON array; None: they are few, and encoded with it."""
        if len(reply.members) <= FEW:
            return None
        key = group_id, decodes(reply)
        parts: Parts = {}
        await off_loop.in_slices(self._encode(reply, self._kept.pop(key, {}), parts))
        self._kept[key] = parts
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return msgspec.Raw(b"[%b]" % b",".join([part for _, part in parts.values()]))

    def _encode(self, reply: JoinReply, before: Parts, parts: Parts) -> Iterator[None]:
        readable = decodes(reply)
        for member in reply.members:
            known = before.get(member.member_id)
            if known is None or known[0] != member:
                known = member, self._encoder.encode(joined_member(member, decodes=readable))
            parts[member.member_id] = known
            yield


def _members_of(body: wire.ManyHeartbeatsRequest) -> int:
    return len(body.heartbeats)


def _all_kept(body: wire.ManyHeartbeatsRequest, answer: wire.ManyHeartbeatsResponse) -> bool:
    return all(result.error_code == Error.NONE.code for result in answer.heartbeats)


def _kept(body: wire.HeartbeatRequest, answer: wire.HeartbeatResponse) -> bool:
    return True  # errors are raised, and are the answer


def _consumer_kept(
    body: wire.ConsumerHeartbeatRequest | wire.ShareHeartbeatRequest,
    answer: wire.ConsumerHeartbeatResponse,
) -> bool:
    """The answer says nothing but that the member is still in the group."""
    return answer.assignment is None and 0 < body.member_epoch == answer.member_epoch


HEARTBEAT = Metering(Budget.HEARTBEATS, keeps=_kept)
MANY_HEARTBEATS = Metering(Budget.HEARTBEATS, weight=_members_of, keeps=_all_kept)
CONSUMER = Metering(Budget.HEARTBEATS, keeps=_consumer_kept)
SHARE = Metering(Budget.HEARTBEATS, keeps=_consumer_kept)


async def admit_member(
    runtime: Runtime,
    principal: Principal,
    group_id: str,
    member_id: str,
    instance_id: str | None,
    *,
    is_new: bool = False,
) -> None:
    """Count a join that makes a member, and a group if it does not exist. `is_new`: even if the request has an id.

    Raises THROTTLING_QUOTA_EXCEEDED. Nothing is read unless somebody has a limit of members or groups.
    """
    quotas = runtime.get(Quotas)
    if not quotas.limits_joins or (member_id and not is_new):
        return
    if quotas.meter(principal).keys().isdisjoint((Budget.MEMBERS, Budget.GROUPS)):
        return
    group = (await runtime.get(GroupService).describe(group_id, partitions=False)).group
    if group is not None and _is_in(group, member_id, instance_id):
        return
    quotas.admit(principal, {Budget.MEMBERS: 1} if group is not None else {Budget.MEMBERS: 1, Budget.GROUPS: 1})


def _is_in(group: Group, member_id: str, instance_id: str | None) -> bool:
    return member_id in group.members or (
        instance_id is not None and any(member.instance_id == instance_id for member in group.members.values())
    )


async def admit_group(runtime: Runtime, principal: Principal, group_id: str) -> None:
    """Count a request that makes the group unless it exists. Raises THROTTLING_QUOTA_EXCEEDED."""
    quotas = runtime.get(Quotas)
    if not quotas.limits_joins or Budget.GROUPS not in quotas.meter(principal):
        return
    if (await runtime.get(GroupService).describe(group_id, partitions=False)).group is None:
        quotas.admit(principal, {Budget.GROUPS: 1})


log = structlog.get_logger(__name__)

_BEATEN = commands("heartbeat", Error.NONE.name)

MOST_AT_ONCE = 100
"""Heartbeats of one request that are answered from memory without letting others have their turn."""


def raise_for_error(
    command: str, reply: JoinReply | SyncReply | HeartbeatReply | LeaveReply | ConsumerHeartbeatReply
) -> None:
    """Count the reply of `command`; raise it as ProtocolError if it is an error.

    Every problem of a join carries the `member_id` of the reply. If the session was renewed despite the error (a
    heartbeat during a rebalance), `session_expires_at` says so.
    """
    commands(command, reply.error.name).inc()
    if reply.error is Error.NONE:
        return
    fields: ProblemFields = {}
    if isinstance(reply, JoinReply):
        fields["member_id"] = reply.member_id
    expires_at = None if isinstance(reply, LeaveReply) else rfc3339(reply.session_deadline)
    if expires_at is not None:
        fields["session_expires_at"] = expires_at
    retry_after_ms = reply.retry_after_ms if isinstance(reply, JoinReply | ConsumerHeartbeatReply) else None
    raise ProtocolError(reply.error, reply.detail, fields=fields, retry_after_ms=retry_after_ms)


@serve(endpoints.JOIN, waits=True)
async def join(call: Call[wire.JoinRequest]) -> wire.JoinResponse:
    """JoinGroup."""
    command = join_command(call.group_id, call.body, call.client_host, call.runtime.max_wait_ms)
    reply = await joined(call, command)
    return join_response(reply, await call.runtime.get(LeaderLists).encoded(call.group_id, reply))


async def joined(call: Call[wire.JoinRequest], command: JoinGroup) -> JoinReply:
    """The reply to the command of a join, for either protocol. Raises its error."""
    call.principal.require_group(Operation.READ, call.group_id)
    await admit_member(call.runtime, call.principal, call.group_id, command.member_id, command.group_instance_id)
    reply = await call.runtime.get(GroupService).join(command)
    raise_for_error("join", reply)
    return reply


@serve(endpoints.SYNC, waits=True)
async def sync(call: Call[wire.SyncRequest]) -> wire.SyncResponse:
    """SyncGroup."""
    return sync_response(await synced(call, await sync_command(call)))


async def sync_command(call: Call[wire.SyncRequest]) -> SyncGroup:
    """The command of a sync. Raises as `_sync_command`."""
    size = off_loop.PER_MEMBER * len(call.body.assignments)
    if size <= off_loop.ABOVE:
        return _sync_command(call.group_id, call.body, call.runtime.max_wait_ms)
    async with call.runtime.get(Turnstile).place(call.principal.token_id):
        return await off_loop.run(size, _sync_command, call.group_id, call.body, call.runtime.max_wait_ms)


async def synced(call: Call[wire.SyncRequest], command: SyncGroup) -> SyncReply:
    """The reply to the command of a sync, for either protocol. Raises its error."""
    call.principal.require_group(Operation.READ, call.group_id)
    reply = await call.runtime.get(GroupService).sync(command)
    raise_for_error("sync", reply)
    return reply


@serve(endpoints.HEARTBEAT, is_hot=True, is_quick=True, metering=HEARTBEAT)
def heartbeat(call: Call[wire.HeartbeatRequest]) -> wire.HeartbeatResponse | Awaitable[wire.HeartbeatResponse]:
    """Heartbeat."""
    call.principal.require_group(Operation.READ, call.group_id)
    command = heartbeat_command(call.group_id, call.body)
    reply = call.runtime.get(GroupService).heartbeat(command)
    return _beaten(reply) if isinstance(reply, HeartbeatReply) else then(reply, _beaten)


def _beaten(reply: HeartbeatReply) -> wire.HeartbeatResponse:
    if reply.error is Error.NONE:
        _BEATEN.inc()
    else:
        raise_for_error("heartbeat", reply)
    return wire.HeartbeatResponse(rfc3339(reply.session_deadline))


@serve(endpoints.MANY_HEARTBEATS, is_hot=True, is_quick=True, metering=MANY_HEARTBEATS)
def many_heartbeats(
    call: Call[wire.ManyHeartbeatsRequest],
) -> wire.ManyHeartbeatsResponse | Awaitable[wire.ManyHeartbeatsResponse]:
    """Heartbeats of many members: each is answered separately."""
    if len(call.body.heartbeats) > MOST_AT_ONCE:
        return _very_many(call)
    found = [_one_of_many(call, one) for one in call.body.heartbeats]
    replies = [reply for reply in found if isinstance(reply, HeartbeatReply)]
    return _many_beaten(call, replies) if len(replies) == len(found) else _all_of_many(call, found)


async def _very_many(call: Call[wire.ManyHeartbeatsRequest]) -> wire.ManyHeartbeatsResponse:
    found: list[HeartbeatReply | Awaitable[HeartbeatReply]] = []
    async for part in off_loop.in_parts(call.body.heartbeats, MOST_AT_ONCE):
        for one in part:
            reply = _one_of_many(call, one)
            found.append(reply if isinstance(reply, HeartbeatReply) else asyncio.ensure_future(reply))
    return await _all_of_many(call, found)


async def _all_of_many(
    call: Call[wire.ManyHeartbeatsRequest], found: Sequence[HeartbeatReply | Awaitable[HeartbeatReply]]
) -> wire.ManyHeartbeatsResponse:
    awaited = iter(await asyncio.gather(*(one for one in found if not isinstance(one, HeartbeatReply))))
    return _many_beaten(call, [one if isinstance(one, HeartbeatReply) else next(awaited) for one in found])


def _many_beaten(
    call: Call[wire.ManyHeartbeatsRequest], replies: Sequence[HeartbeatReply]
) -> wire.ManyHeartbeatsResponse:
    pairs = zip(call.body.heartbeats, replies, strict=True)
    return wire.ManyHeartbeatsResponse([heartbeat_result(*pair) for pair in pairs])


def _one_of_many(
    call: Call[wire.ManyHeartbeatsRequest], request: wire.GroupHeartbeat
) -> HeartbeatReply | Awaitable[HeartbeatReply]:
    """Raises nothing: one that fails must not fail the others."""
    try:
        call.principal.require_group(Operation.READ, check_group_id(request.group_id))
        found = call.runtime.get(GroupService).heartbeat(heartbeat_command(request.group_id, request))
    except Exception as error:  # noqa: BLE001 - it is logged
        return _failed(error)
    return _counted(found) if isinstance(found, HeartbeatReply) else _awaited(found)


async def _awaited(answer: Awaitable[HeartbeatReply]) -> HeartbeatReply:
    try:
        return _counted(await answer)
    except Exception as error:  # noqa: BLE001 - it is logged
        return _failed(error)


def _failed(error: Exception) -> HeartbeatReply:
    if isinstance(error, ProtocolError):
        return _counted(HeartbeatReply(error.error, detail=error.detail))
    log.error("heartbeat_failed", exc_info=error)
    return _counted(HeartbeatReply(Error.UNKNOWN_SERVER_ERROR))


def _counted(reply: HeartbeatReply) -> HeartbeatReply:
    (_BEATEN if reply.error is Error.NONE else commands("heartbeat", reply.error.name)).inc()
    return reply


@serve(endpoints.LEAVE)
async def leave(call: Call[wire.LeaveRequest]) -> wire.LeaveResponse:
    """LeaveGroup."""
    call.principal.require_group(Operation.READ, call.group_id)
    reply = await call.runtime.get(GroupService).leave(leave_command(call.group_id, call.body))
    raise_for_error("leave", reply)
    return leave_response(reply)
