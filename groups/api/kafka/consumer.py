"""The consumer protocol: ConsumerGroupHeartbeat and ConsumerGroupDescribe.

Source: consumer.md 2 and 9.2; KIP-848.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import Any, cast

from groups.api import wire
from groups.api.consumer import DISABLED, consumer_heartbeat
from groups.api.kafka.classic import as_clients_know_it, remember
from groups.api.kafka.reads import with_operations
from groups.api.rest.consumer_description import (
    ConsumerGroupView,
    ConsumerMemberView,
    TopicPartitionsView,
    describe_consumer_group,
)
from groups.api.rest.seen import seen_consumer_group
from groups.configs import DecisionContexts
from groups.core.model.consumer_group import DEPARTED_EPOCH, ConsumerGroup, EpochGroup
from groups.engine.service import GroupService
from groups.nodes.directory import NodeDirectory
from groups.readmodel import unknown_group
from kcoord.access.rights import Operation, Resource
from kcoord.door.http.paths import check_group_id
from kcoord.door.kafka.api import UNSUPPORTED_VERSION, Answer, Api, Call, struct_of
from kcoord.door.kafka.codec import Fields
from kcoord.process.off_loop import then
from kcoord.protocol.errors import ProtocolError

CLIENT_MAKES_IDS = 1
"""The first version of ConsumerGroupHeartbeat whose clients choose their member id."""


def heartbeat(call: Call, request: Fields) -> Answer | Awaitable[Answer]:
    """ConsumerGroupHeartbeat, by the operation of the REST API, which has no UNSUPPORTED_VERSION."""
    if "consumer" not in call.runtime.group_protocols:
        return refuse_heartbeat(request, call.version, UNSUPPORTED_VERSION, DISABLED)
    check_group_id(request.group_id, may_be_empty=True)
    body = _body(call, request)
    if request.member_epoch == 0:
        call.principal.require_group(Operation.READ, request.group_id)
        return _joined(call, body, request.group_id)
    beaten = consumer_heartbeat.run(call.over_http(body, request.group_id))
    return then(cast(wire.ConsumerHeartbeatResponse, beaten), heartbeat_answer)


async def _joined(call: Call, body: wire.ConsumerHeartbeatRequest, group_id: str) -> Answer:
    await remember(call)
    try:
        joined = consumer_heartbeat.run(call.over_http(body, group_id))
        return heartbeat_answer(await cast(Awaitable[wire.ConsumerHeartbeatResponse], joined))
    except ProtocolError as refused:
        raise as_clients_know_it(refused) from None


def _body(call: Call, request: Fields) -> wire.ConsumerHeartbeatRequest:
    member_id = request.member_id
    if call.version < CLIENT_MAKES_IDS and not member_id and request.member_epoch in (0, DEPARTED_EPOCH):
        member_id = str(uuid.uuid4())
    owned = request.topic_partitions
    return struct_of(
        wire.ConsumerHeartbeatRequest,
        member_id=member_id,
        member_epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        client_id=call.client_id,
        rebalance_timeout_ms=request.rebalance_timeout,
        subscribed_topic_names=request.subscribed_topic_names,
        subscribed_topic_regex=request.get("subscribed_topic_regex"),
        server_assignor=request.server_assignor,
        topic_partitions=None
        if owned is None
        else [{"topic_id": str(entry.topic_id), "partitions": entry.partitions} for entry in owned],
    )


def heartbeat_answer(answer: wire.ConsumerHeartbeatResponse) -> Answer:
    """The answer to a heartbeat of a consumer or share group."""
    assignment = answer.assignment
    return {
        "error_code": 0,
        "member_id": answer.member_id,
        "member_epoch": answer.member_epoch,
        "heartbeat_interval": answer.heartbeat_interval_ms,
        "assignment": None
        if assignment is None
        else {
            "topic_partitions": [
                {"topic_id": entry.topic_id, "partitions": entry.partitions} for entry in assignment.topic_partitions
            ]
        },
    }


def refuse_heartbeat(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer to a heartbeat with an error: as Kafka's, without a member id."""
    return {"error_code": code, "error_message": detail, "member_id": None, "member_epoch": 0, "assignment": None}


async def describe(call: Call, request: Fields) -> Answer:
    """ConsumerGroupDescribe: each group with an error of its own."""
    return await describe_each(call, request, _description)


Description = Callable[[Call, str], Awaitable[Answer]]


async def describe_each(call: Call, request: Fields, description: Description) -> Answer:
    """The groups that are asked for, each by `description`, which may raise its error."""
    groups = [await _described(call, group_id, description) for group_id in dict.fromkeys(request.group_ids)]
    return {"groups": [with_operations(call, request, group) for group in groups]}


def refuse_describe(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer when no group could be described."""
    groups = dict.fromkeys(request.get("group_ids", ()))
    return {"groups": [_refused(group_id, code, detail) for group_id in groups]}


def _refused(group_id: str, code: int, detail: str) -> Answer:
    return {"group_id": group_id, "error_code": code, "error_message": detail, "members": []}


async def _described(call: Call, group_id: str, description: Description) -> Answer:
    try:
        call.principal.require_group(Operation.DESCRIBE, group_id)
        call.runtime.get(GroupService).check_active()  # whatever the id (offsets.md 2.1)
        check_group_id(group_id)
        return await description(call, group_id)
    except ProtocolError as error:
        return _refused(group_id, error.error.code, error.detail)


async def _description(call: Call, group_id: str) -> Answer:
    seen = await seen_group(call, group_id, ConsumerGroup)
    return {**described_head(seen), "members": [_member(member) for member in seen.members]}


async def seen_group(call: Call, group_id: str, kind: type[EpochGroup]) -> ConsumerGroupView:
    """A group of this type as the caller may see it. Raises GROUP_ID_NOT_FOUND, TOPIC_AUTHORIZATION_FAILED."""
    runtime = call.runtime
    stored = await runtime.get(GroupService).describe(group_id)
    group = stored.group
    if not isinstance(group, kind):
        raise unknown_group(group_id)
    world = await runtime.get(DecisionContexts).context_of(group_id)
    coordinator = await runtime.get(NodeDirectory).shown_for(group_id, "")
    whole = describe_consumer_group(group, stored.due, coordinator, world.topics, world.assignors)
    return seen_consumer_group(whole, call.principal.visible(Resource.TOPIC))


def described_head(seen: ConsumerGroupView) -> Answer:
    """What ConsumerGroupDescribe and ShareGroupDescribe say of a group itself."""
    return {
        "group_id": seen.group_id,
        "error_code": 0,
        "group_state": seen.state,
        "group_epoch": seen.group_epoch,
        "assignment_epoch": seen.assignment_epoch,
        "assignor_name": seen.assignor,
    }


def _member(member: ConsumerMemberView) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "instance_id": member.group_instance_id,
        "rack_id": member.rack_id,
        "member_epoch": member.member_epoch,
        "client_id": member.client_id,
        "client_host": f"/{member.client_host}",
        "subscribed_topic_names": member.subscribed_topic_names,
        "subscribed_topic_regex": member.subscribed_topic_regex or "",
        "assignment": named_partitions(member.assignment),
        "target_assignment": named_partitions(member.target_assignment),
        "member_type": 1 if member.member_type == "consumer" else 0,
    }


def named_partitions(found: list[TopicPartitionsView]) -> dict[str, Any]:
    """The partitions of topics that exist: others have no name."""
    return {
        "topic_partitions": [
            {"topic_id": entry.topic_id, "topic_name": entry.topic, "partitions": entry.partitions}
            for entry in found
            if entry.topic is not None
        ]
    }


APIS = (
    Api.of(consumer_heartbeat, 68, "consumer_group_heartbeat", (0, 1), heartbeat, refuse_heartbeat),
    Api(69, "consumer_group_describe", (0, 1), describe, refuse_describe),
)
