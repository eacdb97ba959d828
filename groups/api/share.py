"""The share heartbeat: one call to join, stay in, and leave a share group.

Source: http-api.md "share-heartbeat"; share.md 2.
"""

from __future__ import annotations

from groups.api.consumer import heartbeat_response, named_assignment, require_describable
from groups.api.consumer_wire import ConsumerHeartbeatResponse
from groups.api.endpoints import GROUP
from groups.api.handlers import SHARE, admit_member, raise_for_error
from groups.api.share_wire import ShareHeartbeatRequest
from groups.core.model.commands import ShareHeartbeat
from groups.engine.service import GroupService
from kcoord.access.rights import Operation
from kcoord.http.endpoint import Endpoint
from kcoord.http.serving import Call, serve
from kcoord.protocol.errors import Error

SHARE_HEARTBEAT = Endpoint(
    "POST",
    f"{GROUP}/share-heartbeat",
    "shareGroupHeartbeat",
    "Join, stay in and leave a share group",
    request=ShareHeartbeatRequest,
    response=ConsumerHeartbeatResponse,
    errors=(
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.INVALID_GROUP_ID,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.GROUP_ID_NOT_FOUND,
        Error.UNKNOWN_MEMBER_ID,
        Error.FENCED_MEMBER_EPOCH,
        Error.GROUP_MAX_SIZE_REACHED,
    ),
    description="Join with `member_epoch` 0 and `subscribed_topic_names`. Then send a heartbeat every "
    "`heartbeat_interval_ms` with the `member_epoch` of the last response. Leave with -1. Members share partitions: an "
    "`assignment` says which ones the member is meant to work on, and other members may have the same.",
    takes_empty_group_id=True,
)


@serve(SHARE_HEARTBEAT, is_hot=True, metering=SHARE)
async def share_heartbeat(call: Call[ShareHeartbeatRequest]) -> ConsumerHeartbeatResponse:
    """ShareGroupHeartbeat."""
    body = call.body
    call.principal.require_group(Operation.READ, call.group_id)
    require_describable(call, body.subscribed_topic_names)
    if body.member_epoch == 0:
        await admit_member(call.runtime, call.principal, call.group_id, body.member_id, None, is_new=True)
    names = body.subscribed_topic_names
    reply = await call.runtime.get(GroupService).share_heartbeat(
        ShareHeartbeat(
            group_id=call.group_id,
            member_id=body.member_id,
            member_epoch=body.member_epoch,
            rack_id=body.rack_id,
            client_id=body.client_id,
            client_host=call.client_host,
            subscribed_topic_names=None if names is None else frozenset(names),
        )
    )
    raise_for_error("share_heartbeat", reply)
    assignment = None if reply.assignment is None else await named_assignment(call, reply.assignment)
    return heartbeat_response(reply, assignment)
