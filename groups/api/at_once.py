"""Heartbeats that are answered from memory, without waiting: those that only extend a session.

Each function answers just as the handler of its endpoint would, or returns None and leaves the request to it.
"""

from __future__ import annotations

from groups.api import consumer_convert, consumer_wire, convert, wire
from groups.api.consumer_topics import Beat
from groups.core.model.replies import HeartbeatReply
from groups.engine.service import GroupService
from kcoord.access.rights import Operation
from kcoord.config import REBALANCE_PROTOCOLS
from kcoord.http.paths import check_group_id
from kcoord.http.serving import Call
from kcoord.http.types import rfc3339
from kcoord.metrics import commands
from kcoord.protocol.errors import Error

NONE = Error.NONE.name

MOST_AT_ONCE = 100
"""Heartbeats of one request that are answered without letting others have their turn."""


def heartbeat(call: Call[wire.HeartbeatRequest]) -> wire.HeartbeatResponse | None:
    """Heartbeat. Raises GROUP_AUTHORIZATION_FAILED."""
    call.principal.require_group(Operation.READ, call.group_id)
    command = convert.heartbeat_command(call.group_id, call.body)
    reply = call.runtime.get(GroupService).heartbeat_at_once(command)
    if reply is None or reply.error is not Error.NONE:
        return None
    commands("heartbeat", NONE).inc()
    return wire.HeartbeatResponse(rfc3339(reply.session_deadline))


def many_heartbeats(call: Call[wire.ManyHeartbeatsRequest]) -> wire.ManyHeartbeatsResponse | None:
    """Heartbeats of many members, if all of them succeed; sessions that were extended before one does not may be
    extended again. Raises GROUP_AUTHORIZATION_FAILED or INVALID_GROUP_ID for any of the groups.
    """
    requests = call.body.heartbeats
    if len(requests) > MOST_AT_ONCE:
        return None
    for group_id in {request.group_id for request in requests}:
        call.principal.require_group(Operation.READ, check_group_id(group_id))
    service = call.runtime.get(GroupService)
    replies: list[HeartbeatReply] = []
    for request in requests:
        reply = service.heartbeat_at_once(convert.heartbeat_command(request.group_id, request))
        if reply is None or reply.error is not Error.NONE:
            return None
        replies.append(reply)
    if replies:
        commands("heartbeat", NONE).inc(len(replies))
    return wire.ManyHeartbeatsResponse(
        [convert.heartbeat_result(*pair) for pair in zip(requests, replies, strict=True)]
    )


def consumer_heartbeat(call: Beat) -> consumer_wire.ConsumerHeartbeatResponse | None:
    """ConsumerGroupHeartbeat of a member that reports nothing and does not wait. Raises GROUP_AUTHORIZATION_FAILED."""
    if not _says_nothing_new(call.body) or "consumer" not in call.runtime.config.names(REBALANCE_PROTOCOLS):
        return None
    call.principal.require_group(Operation.READ, call.group_id)
    command = consumer_convert.heartbeat_command(call, None)
    reply = call.runtime.get(GroupService).consumer_heartbeat_at_once(command)
    if reply is None or reply.error is not Error.NONE or reply.assignment is not None:
        return None
    commands("consumer_heartbeat", NONE).inc()
    return consumer_convert.heartbeat_response(reply, None)


def _says_nothing_new(body: consumer_wire.ConsumerHeartbeatRequest) -> bool:
    return (
        body.member_epoch > 0
        and body.max_wait_ms == 0
        and body.topic_partitions is None
        and body.subscribed_topic_names is None
        and body.subscribed_topic_regex is None
        and body.server_assignor is None
        and body.rack_id is None
        and body.rebalance_timeout_ms in (None, -1)
    )
