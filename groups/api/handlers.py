"""The membership calls: join, sync, heartbeat, leave, and heartbeats of many members."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

import structlog

from groups.api import convert, endpoints, wire
from groups.api.leader_list import LeaderLists
from groups.api.metering import HEARTBEAT, MANY_HEARTBEATS, admit_member
from groups.core.model.commands import JoinGroup, SyncGroup
from groups.core.model.replies import ConsumerHeartbeatReply, HeartbeatReply, JoinReply, LeaveReply, SyncReply
from groups.engine.service import GroupService
from kcoord.access.rights import Operation
from kcoord.http.paths import check_group_id
from kcoord.http.serving import Call, serve
from kcoord.http.types import rfc3339
from kcoord.metrics import commands
from kcoord.process import off_loop
from kcoord.process.later import then
from kcoord.process.turnstile import Turnstile
from kcoord.protocol.errors import Error, ProblemFields, ProtocolError

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
    service = call.runtime.get(GroupService)
    reply = service.heartbeat_at_once(command)
    return then(service.heartbeat(command), _beaten) if reply is None else _beaten(reply)


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
    service = call.runtime.get(GroupService)
    replies: list[HeartbeatReply] = []
    if len(call.body.heartbeats) > MOST_AT_ONCE:
        return _many_heartbeats(call)
    for request in call.body.heartbeats:
        try:
            call.principal.require_group(Operation.READ, check_group_id(request.group_id))
        except ProtocolError:
            return _many_heartbeats(call)
        reply = service.heartbeat_at_once(convert.heartbeat_command(request.group_id, request))
        if reply is None or reply.error is not Error.NONE:
            return _many_heartbeats(call)  # the sessions that were extended just now are extended again
        replies.append(reply)
    if replies:
        commands("heartbeat", Error.NONE.name).inc(len(replies))
    return _many_beaten(call, replies)


async def _many_heartbeats(call: Call[wire.ManyHeartbeatsRequest]) -> wire.ManyHeartbeatsResponse:
    return _many_beaten(call, await asyncio.gather(*(_one_of_many(call, one) for one in call.body.heartbeats)))


def _many_beaten(
    call: Call[wire.ManyHeartbeatsRequest], replies: Sequence[HeartbeatReply]
) -> wire.ManyHeartbeatsResponse:
    pairs = zip(call.body.heartbeats, replies, strict=True)
    return wire.ManyHeartbeatsResponse([convert.heartbeat_result(*pair) for pair in pairs])


async def _one_of_many(call: Call[wire.ManyHeartbeatsRequest], request: wire.GroupHeartbeat) -> HeartbeatReply:
    try:
        call.principal.require_group(Operation.READ, check_group_id(request.group_id))
        command = convert.heartbeat_command(request.group_id, request)
        reply = await call.runtime.get(GroupService).heartbeat(command)
    except ProtocolError as error:
        reply = HeartbeatReply(error.error, detail=error.detail)
    except Exception:
        log.exception("heartbeat_failed")
        reply = HeartbeatReply(Error.UNKNOWN_SERVER_ERROR)
    commands("heartbeat", reply.error.name).inc()
    return reply


@serve(endpoints.LEAVE)
async def leave(call: Call[wire.LeaveRequest]) -> wire.LeaveResponse:
    """LeaveGroup."""
    call.principal.require_group(Operation.READ, call.group_id)
    reply = await call.runtime.get(GroupService).leave(convert.leave_command(call.group_id, call.body))
    raise_for_error("leave", reply)
    return convert.leave_response(reply)
