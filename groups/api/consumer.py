"""The consumer heartbeat: one call to join, stay, give partitions up, and leave.

Source: HTTP contract, "consumer-heartbeat"; consumer specification, section 2.
"""

from __future__ import annotations

import uuid

from groups.api import consumer_wire as wire
from groups.api.endpoints import GROUP
from groups.api.replies import raise_for_error
from groups.core.assignors import Partitions
from groups.core.commands import ConsumerHeartbeat
from groups.core.consumer.group import ConsumerGroup
from groups.core.replies import ConsumerHeartbeatReply
from groups.core.types import TopicView
from groups.service import GroupService
from groups.topics import TopicService
from kcoord.access import Operation
from kcoord.errors import Error, ProtocolError
from kcoord.http.endpoint import Endpoint
from kcoord.http.problem import invalid
from kcoord.http.serving import Call, serve
from kcoord.http.types import rfc3339

SWITCH = "group.coordinator.rebalance.protocols"

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
    description="KIP-848. With `max_wait_ms` the request is held while nothing changes for this member and answered "
    "at once when something does.",
)


@serve(CONSUMER_HEARTBEAT, waits=True)
async def consumer_heartbeat(call: Call[wire.ConsumerHeartbeatRequest]) -> wire.ConsumerHeartbeatResponse:
    """ConsumerGroupHeartbeat."""
    if "consumer" not in call.runtime.config.names(SWITCH):
        raise invalid(f"the consumer protocol is switched off here; the setting {SWITCH} switches it on")
    call.principal.require_group(Operation.READ, call.group_id)
    for name in call.body.subscribed_topic_names or ():
        if not call.principal.may_topic(Operation.DESCRIBE, name):
            raise ProtocolError(Error.TOPIC_AUTHORIZATION_FAILED, f"not allowed to describe topic {name!r}")
    service = call.runtime.get(GroupService)
    view = await call.runtime.get(TopicService).view()
    reply = await service.consumer_heartbeat(
        await _command(call, view), visible=lambda name: call.principal.may_topic(Operation.DESCRIBE, name)
    )
    raise_for_error("consumer_heartbeat", reply)
    return _response(reply, await call.runtime.get(TopicService).view())


async def _command(call: Call[wire.ConsumerHeartbeatRequest], view: TopicView) -> ConsumerHeartbeat:
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
        rebalance_timeout_ms=body.rebalance_timeout_ms,
        subscribed_topic_names=None if names is None else frozenset(names),
        subscribed_topic_regex=body.subscribed_topic_regex,
        server_assignor=body.server_assignor,
        topic_partitions=None if body.topic_partitions is None else await _owned(call, body.topic_partitions, view),
        max_wait_ms=min(body.max_wait_ms, call.max_wait_ms),
    )


async def _owned(
    call: Call[wire.ConsumerHeartbeatRequest], reported: list[wire.OwnedTopic], view: TopicView
) -> Partitions:
    """What the member says it has, by topic id.

    Raises INVALID_REQUEST, UNKNOWN_TOPIC_ID or UNKNOWN_TOPIC_OR_PARTITION naming the entry. What the member was given
    is accepted even where its topic was deleted since: else it could never give it up.
    """
    owned: dict[str, set[int]] = {}
    for index, entry in enumerate(reported):
        where = f"topic_partitions[{index}]"
        topic_id = _topic_id(entry, view, where)
        topic = view.by_id.get(topic_id)
        beyond = [p for p in entry.partitions if topic is None or p >= topic.partitions]
        if beyond and not await _has(call, topic_id, beyond):
            if topic is None:
                raise ProtocolError(Error.UNKNOWN_TOPIC_ID, f"{where}.topic_id: there is no topic {topic_id}")
            raise ProtocolError(
                Error.UNKNOWN_TOPIC_OR_PARTITION,
                f"{where}.partitions: topic {topic.name!r} has {topic.partitions} partitions, not number {beyond[0]}",
            )
        owned.setdefault(topic_id, set()).update(entry.partitions)
    return {topic_id: frozenset(partitions) for topic_id, partitions in owned.items() if partitions}


def _topic_id(entry: wire.OwnedTopic, view: TopicView, where: str) -> str:
    if (entry.topic_id is None) == (entry.topic is None):
        raise invalid(f"{where}: give either topic_id or topic", where)
    if entry.topic_id is not None:
        try:
            return str(uuid.UUID(entry.topic_id))
        except ValueError:
            raise invalid(f"{where}.topic_id: expected a UUID", f"{where}.topic_id") from None
    assert entry.topic is not None
    topic = view.by_name.get(entry.topic)
    if topic is None:
        raise ProtocolError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"{where}.topic: there is no topic {entry.topic!r}")
    return topic.topic_id


async def _has(call: Call[wire.ConsumerHeartbeatRequest], topic_id: str, partitions: list[int]) -> bool:
    """Was the member given these?"""
    group = (await call.runtime.get(GroupService).describe(call.group_id)).group
    member = group.members.get(call.body.member_id) if isinstance(group, ConsumerGroup) else None
    if member is None:
        return False
    given = member.assigned.get(topic_id, {}).keys() | member.pending_revocation.get(topic_id, {}).keys()
    return given >= set(partitions)


def _response(reply: ConsumerHeartbeatReply, view: TopicView) -> wire.ConsumerHeartbeatResponse:
    assignment = None
    if reply.assignment is not None:
        topics = [
            wire.AssignedTopic(topic_id, topic.name if topic else None, sorted(partitions))
            for topic_id, partitions in reply.assignment.items()
            for topic in (view.by_id.get(topic_id),)
        ]
        assignment = wire.MemberAssignment(sorted(topics, key=lambda entry: (entry.topic or "", entry.topic_id)))
    return wire.ConsumerHeartbeatResponse(
        reply.member_id,
        reply.member_epoch,
        reply.heartbeat_interval_ms,
        rfc3339(reply.session_deadline),
        assignment,
    )
