"""Between the JSON of the consumer heartbeat and the command and reply of the core."""

from __future__ import annotations

from functools import partial

from groups.api import consumer_wire as wire
from groups.api.consumer_topics import Beat, describable
from groups.core.assignors import Partitions
from groups.core.model.commands import ConsumerHeartbeat
from groups.core.model.replies import ConsumerHeartbeatReply
from groups.core.model.rights import TopicRights
from kcoord.access.rights import Operation, Resource
from kcoord.http.types import rfc3339


def heartbeat_command(call: Beat, owned: Partitions | None) -> ConsumerHeartbeat:
    """The command of a heartbeat. `owned`: what the member reports to have, by topic id; None: it does not report."""
    body = call.body
    names = body.subscribed_topic_names
    return ConsumerHeartbeat(
        group_id=call.group_id,
        member_id=body.member_id,
        member_epoch=body.member_epoch,
        instance_id=body.instance_id,
        rack_id=body.rack_id,
        client_id=body.client_id,
        client_host=call.client_host,
        rebalance_timeout_ms=-1 if body.rebalance_timeout_ms is None else body.rebalance_timeout_ms,
        subscribed_topic_names=None if names is None else frozenset(names),
        subscribed_topic_regex=body.subscribed_topic_regex,
        server_assignor=body.server_assignor,
        topic_partitions=owned,
        max_wait_ms=min(body.max_wait_ms, call.max_wait_ms),
        rights=TopicRights(call.principal.rules.key(Operation.DESCRIBE, Resource.TOPIC), partial(describable, call)),
    )


def heartbeat_response(
    reply: ConsumerHeartbeatReply, assignment: wire.ConsumerAssignment | None
) -> wire.ConsumerHeartbeatResponse:
    """The response of a successful heartbeat. `assignment`: that of the reply, with the names of its topics."""
    return wire.ConsumerHeartbeatResponse(
        member_id=reply.member_id,
        member_epoch=reply.member_epoch,
        heartbeat_interval_ms=reply.heartbeat_interval_ms,
        session_expires_at=rfc3339(reply.session_deadline),
        assignment=assignment,
    )
