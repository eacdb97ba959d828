"""The classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Versions differ in what they can say; the services behave as the newest. What an old version cannot say is filled in
here: its member id is not asked for twice (JoinGroup below 4), a leader that has returned is not told that it leads
(JoinGroup below 9), its protocol is not compared (SyncGroup below 5).

Source: classic.md 2 to 5; KIP-345, KIP-394, KIP-559.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, TypeVar, cast

from groups.api import handlers, wire
from groups.clients import Client, ClientSoftware, Software
from groups.core.model.commands import JoinGroup, SyncGroup
from groups.core.model.replies import JoinReply, SyncReply
from kcoord.access.rights import Operation
from kcoord.door.http.paths import check_group_id
from kcoord.door.kafka.api import SUCCESS, Answer, Api, Call, struct_of
from kcoord.door.kafka.codec import Fields
from kcoord.process.off_loop import then
from kcoord.protocol.errors import Action, Error, ProtocolError
from kcoord.requests import current

KNOWS_MEMBER_ID_REQUIRED = 4
"""The first version of JoinGroup whose clients join again with the id that they are given (KIP-394)."""
SKIPS_ASSIGNMENT = 9
"""The first version of JoinGroup that can tell a leader to leave the assignment as it is (KIP-814)."""
NAMES_ITS_PROTOCOL = 5
"""The first version of SyncGroup with protocol type and name (KIP-559)."""
LEAVES_IN_BATCHES = 3
REMEMBERED = 16_384
"""Bodies of heartbeats: members repeat them for hours."""

C = TypeVar("C", JoinGroup, SyncGroup)
R = TypeVar("R", JoinReply, SyncReply)


def require_member_of(call: Call, group_id: str) -> None:
    """Raise unless the caller may be a member of the group, and the id is one."""
    check_group_id(group_id, may_be_empty=True)
    call.principal.require_group(Operation.READ, group_id)


async def remember(call: Call) -> None:
    """Keep the name of the client's software, which it gave when it connected, for who looks at the member."""
    software = Software(*call.software)
    if software.name:
        await call.runtime.get(ClientSoftware).remember(Client(call.client_id, call.client_host), software)


def as_clients_know_it(refused: ProtocolError) -> ProtocolError:
    """The error for a join, if a quota refuses it; other errors as they are.

    Differs from Kafka: it has no quota of members. Its clients end when a join is answered THROTTLING_QUOTA_EXCEEDED;
    after COORDINATOR_LOAD_IN_PROGRESS they join again.
    """
    if refused.error is not Error.THROTTLING_QUOTA_EXCEEDED:
        return refused
    return ProtocolError(Error.COORDINATOR_LOAD_IN_PROGRESS, refused.detail, retry_after_ms=refused.retry_after_ms)


async def join(call: Call, request: Fields) -> Answer:
    """JoinGroup, held until the rebalance is complete."""
    require_member_of(call, request.group_id)
    body = struct_of(
        wire.JoinRequest,
        member_id=request.member_id,
        session_timeout_ms=request.session_timeout,
        # Version 0 has none.
        rebalance_timeout_ms=request.get("rebalance_timeout"),
        protocol_type=request.protocol_type,
        protocols=[{"name": entry.name, "metadata": entry.metadata} for entry in request.protocols],
        group_instance_id=request.get("group_instance_id"),
        client_id=call.client_id,
        reason=request.get("reason"),
        max_wait_ms=call.runtime.max_wait_ms,
    )
    command = handlers.join_command(request.group_id, body, call.client_host, call.runtime.max_wait_ms)
    try:
        await remember(call)
        reply = await _held(call, partial(handlers.joined, call.over_http(body, request.group_id)), command)
    except ProtocolError as refused:
        error = as_clients_know_it(refused)
        member_id = error.fields.get("member_id", request.member_id)
        return {**refuse_join(request, call.version, error.error.code, error.detail), "member_id": member_id}
    if reply.skip_assignment and call.version < SKIPS_ASSIGNMENT:
        # It would compute an assignment that nobody needs: the id that it had leads, as in Kafka (classic.md 7.2).
        reply = replace(reply, leader=reply.replaced_id, members=(), skip_assignment=False)
    return {
        "error_code": 0,
        "generation_id": reply.generation_id,
        "protocol_type": reply.protocol_type,
        "protocol_name": reply.protocol_name,
        "leader": reply.leader,
        "skip_assignment": reply.skip_assignment,
        "member_id": reply.member_id,
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "metadata": member.metadata,
            }
            for member in reply.members
        ],
    }


def refuse_join(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer to a join that did not reach its group."""
    return {"error_code": code, "generation_id": -1, "member_id": request.get("member_id", "")}


async def sync(call: Call, request: Fields) -> Answer:
    """SyncGroup, held until the leader has sent the assignment."""
    require_member_of(call, request.group_id)
    names_protocol = call.version >= NAMES_ITS_PROTOCOL
    body = struct_of(
        wire.SyncRequest,
        member_id=request.member_id,
        generation_id=request.generation_id,
        protocol_type=request.protocol_type if names_protocol else "",
        protocol_name=request.protocol_name if names_protocol else "",
        group_instance_id=request.get("group_instance_id"),
        assignments=[{"member_id": entry.member_id, "assignment": entry.assignment} for entry in request.assignments],
        max_wait_ms=call.runtime.max_wait_ms,
    )
    asked = call.over_http(body, request.group_id)
    command = await handlers.sync_command(asked)
    if not names_protocol:
        command = replace(command, protocol_type=None, protocol_name=None)
    reply = await _held(call, partial(handlers.synced, asked), command)
    return {
        "error_code": 0,
        "protocol_type": reply.protocol_type,
        "protocol_name": reply.protocol_name,
        "assignment": reply.assignment,
    }


async def _held(call: Call, ask: Callable[[C], Awaitable[R]], command: C) -> R:
    """The reply to a command, which is sent again as long as its wait ends without one.

    A client of HTTP does that itself; in Kafka a join has one answer. A process that stops ends the wait with
    COORDINATOR_NOT_AVAILABLE: the client then looks for the coordinator, and joins there with the id that it has.
    Nor do old clients know that they have to join again with the id that they are given.
    """
    while True:
        try:
            return await ask(command)
        except ProtocolError as error:
            is_over = error.error is Error.REBALANCE_IN_PROGRESS and error.action is Action.RETRY
            is_new = error.error is Error.MEMBER_ID_REQUIRED and call.version < KNOWS_MEMBER_ID_REQUIRED
            if not is_over and not is_new:
                raise
            if call.runtime.is_draining:
                raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "this server is stopping") from None
            command = replace(command, member_id=error.fields.get("member_id") or command.member_id)
            current.enter_receipt(call.runtime.db.request_age.receive())


def heartbeat(call: Call, request: Fields) -> Answer | Awaitable[Answer]:
    """Heartbeat."""
    group_id = request["group_id"]
    body = _beat(group_id, request["member_id"], request["generation_id"], request.get("group_instance_id"))
    beaten = handlers.heartbeat.run(call.over_http(body, group_id))
    return then(beaten, _succeeded)


@lru_cache(maxsize=REMEMBERED)
def _beat(group_id: str, member_id: str, generation_id: int, group_instance_id: str | None) -> wire.HeartbeatRequest:
    check_group_id(group_id, may_be_empty=True)
    return struct_of(
        wire.HeartbeatRequest,
        member_id=member_id,
        generation_id=generation_id,
        group_instance_id=group_instance_id,
    )


def _succeeded(beaten: Any) -> Answer:
    return SUCCESS


async def leave(call: Call, request: Fields) -> Answer:
    """LeaveGroup; below version 3 of one member, whose error is that of the answer."""
    require_member_of(call, request.group_id)
    leaving = request.members if call.version >= LEAVES_IN_BATCHES else [request]
    body = struct_of(
        wire.LeaveRequest,
        members=[
            {
                "member_id": entry.member_id,
                "group_instance_id": entry.get("group_instance_id"),
                "reason": entry.get("reason"),
            }
            for entry in leaving
        ],
    )
    left = await cast(Awaitable[wire.LeaveResponse], handlers.leave.run(call.over_http(body, request.group_id)))
    return {
        "error_code": 0 if call.version >= LEAVES_IN_BATCHES else left.members[0].error_code,
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "error_code": member.error_code,
            }
            for member in left.members
        ],
    }


APIS = (
    Api.of(handlers.join, 11, "join_group", (0, 9), join, refuse_join, waits=True),
    Api.of(handlers.heartbeat, 12, "heartbeat", (0, 4), heartbeat),
    Api.of(handlers.leave, 13, "leave_group", (0, 5), leave),
    Api.of(handlers.sync, 14, "sync_group", (0, 5), sync, waits=True),
)
