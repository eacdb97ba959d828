"""The membership calls: join, sync, heartbeat, leave, and heartbeats of many members; and what quotas count of them.

A quota never costs a membership: heartbeats over the limit are carried out, and members that are in the group may
always join again, sync and leave.
Source: http-api.md 6.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

import structlog

from groups.api import consumer_wire, convert, endpoints, share_wire, wire
from groups.api.leader_list import LeaderLists
from groups.core.model.commands import JoinGroup, SyncGroup
from groups.core.model.group import Group
from groups.core.model.replies import ConsumerHeartbeatReply, HeartbeatReply, JoinReply, LeaveReply, SyncReply
from groups.engine.service import GroupService
from kcoord.access.rights import Operation, Principal
from kcoord.http.paths import check_group_id
from kcoord.http.serving import Call, serve
from kcoord.http.types import rfc3339
from kcoord.metrics import commands
from kcoord.process import off_loop
from kcoord.process.off_loop import then
from kcoord.process.runtime import Runtime
from kcoord.process.turnstile import Turnstile
from kcoord.protocol.errors import Error, ProblemFields, ProtocolError
from kcoord.quotas.budgets import Budget, Metering
from kcoord.quotas.quotas import Quotas


def _members_of(body: wire.ManyHeartbeatsRequest) -> int:
    return len(body.heartbeats)


def _all_kept(body: wire.ManyHeartbeatsRequest, answer: wire.ManyHeartbeatsResponse) -> bool:
    return all(result.error_code == Error.NONE.code for result in answer.heartbeats)


def _kept(body: wire.HeartbeatRequest, answer: wire.HeartbeatResponse) -> bool:
    return True  # errors are raised, and are the answer


def _consumer_kept(
    body: consumer_wire.ConsumerHeartbeatRequest | share_wire.ShareHeartbeatRequest,
    answer: consumer_wire.ConsumerHeartbeatResponse,
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
    command = convert.join_command(call.group_id, call.body, call.client_host, call.runtime.max_wait_ms)
    reply = await joined(call, command)
    return convert.join_response(reply, await call.runtime.get(LeaderLists).encoded(call.group_id, reply))


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
    return convert.sync_response(await synced(call, await sync_command(call)))


async def sync_command(call: Call[wire.SyncRequest]) -> SyncGroup:
    """The command of a sync. Raises as `convert.sync_command`."""
    size = off_loop.PER_MEMBER * len(call.body.assignments)
    if size <= off_loop.ABOVE:
        return convert.sync_command(call.group_id, call.body, call.runtime.max_wait_ms)
    async with call.runtime.get(Turnstile).place(call.principal.token_id):
        return await off_loop.run(size, convert.sync_command, call.group_id, call.body, call.runtime.max_wait_ms)


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
    command = convert.heartbeat_command(call.group_id, call.body)
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
    return wire.ManyHeartbeatsResponse([convert.heartbeat_result(*pair) for pair in pairs])


def _one_of_many(
    call: Call[wire.ManyHeartbeatsRequest], request: wire.GroupHeartbeat
) -> HeartbeatReply | Awaitable[HeartbeatReply]:
    """Raises nothing: one that fails must not fail the others."""
    try:
        call.principal.require_group(Operation.READ, check_group_id(request.group_id))
        found = call.runtime.get(GroupService).heartbeat(convert.heartbeat_command(request.group_id, request))
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
    reply = await call.runtime.get(GroupService).leave(convert.leave_command(call.group_id, call.body))
    raise_for_error("leave", reply)
    return convert.leave_response(reply)
