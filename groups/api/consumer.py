"""The consumer heartbeat: one call to join, stay, give partitions up, and leave.

Source: http-api.md "consumer-heartbeat"; consumer.md 2.
"""

from __future__ import annotations

from collections.abc import Awaitable

from groups.api import consumer_wire as wire
from groups.api.consumer_convert import (
    Beat,
    heartbeat_command,
    heartbeat_response,
    named_assignment,
    reported,
    require_describable,
)
from groups.api.endpoints import GROUP
from groups.api.handlers import raise_for_error
from groups.api.metering import CONSUMER, admit_member
from groups.engine.service import GroupService
from kcoord.access.rights import Operation
from kcoord.config import REBALANCE_PROTOCOLS
from kcoord.http.endpoint import Endpoint
from kcoord.http.problem import invalid
from kcoord.http.serving import serve
from kcoord.protocol.errors import Error

CONSUMER_HEARTBEAT = Endpoint(
    "POST",
    f"{GROUP}/consumer-heartbeat",
    "consumerGroupHeartbeat",
    "Join, stay in and leave a consumer group",
    request=wire.ConsumerHeartbeatRequest,
    response=wire.ConsumerHeartbeatResponse,
    errors=(
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.INVALID_GROUP_ID,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.GROUP_ID_NOT_FOUND,
        Error.UNKNOWN_MEMBER_ID,
        Error.FENCED_MEMBER_EPOCH,
        Error.FENCED_INSTANCE_ID,
        Error.UNRELEASED_INSTANCE_ID,
        Error.UNSUPPORTED_ASSIGNOR,
        Error.INVALID_REGULAR_EXPRESSION,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
    ),
    description="Join with `member_epoch` 0, `rebalance_timeout_ms`, a subscription and no `topic_partitions`. Then "
    "send a heartbeat every `heartbeat_interval_ms` with the `member_epoch` of the last response. Leave "
    "with -1. Stop using partitions that an `assignment` no longer lists, then report the remaining ones "
    "in `topic_partitions`: no other member gets a partition until then. After an error or a missing "
    "response send all fields; the response then repeats the assignment. With `max_wait_ms` the request "
    "waits until something changes for this member.",
    takes_empty_group_id=True,
)


@serve(CONSUMER_HEARTBEAT, waits=True, is_hot=True, is_quick=True, metering=CONSUMER)
def consumer_heartbeat(call: Beat) -> wire.ConsumerHeartbeatResponse | Awaitable[wire.ConsumerHeartbeatResponse]:
    """ConsumerGroupHeartbeat."""
    if "consumer" not in call.runtime.group_protocols:
        raise invalid(
            f"the consumer protocol is disabled on this server; enable it with the setting {REBALANCE_PROTOCOLS}"
        )
    call.principal.require_group(Operation.READ, call.group_id)
    if _says_nothing_new(call.body):
        reply = call.runtime.get(GroupService).consumer_heartbeat_at_once(heartbeat_command(call, None))
        if reply is not None and reply.error is Error.NONE and reply.assignment is None:
            raise_for_error("consumer_heartbeat", reply)  # which counts it
            return heartbeat_response(reply, None)
    return _consumer_heartbeat(call)


def _says_nothing_new(body: wire.ConsumerHeartbeatRequest) -> bool:
    """The member reports nothing, and does not wait: the answer may be known."""
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


async def _consumer_heartbeat(call: Beat) -> wire.ConsumerHeartbeatResponse:
    require_describable(call, call.body.subscribed_topic_names)
    if call.body.member_epoch == 0:
        await admit_member(
            call.runtime, call.principal, call.group_id, call.body.member_id, call.body.instance_id, is_new=True
        )
    command = heartbeat_command(call, await reported(call))
    reply = await call.runtime.get(GroupService).consumer_heartbeat(command)
    raise_for_error("consumer_heartbeat", reply)
    assignment = None if reply.assignment is None else await named_assignment(call, reply.assignment)
    return heartbeat_response(reply, assignment)
