"""The consumer protocol: ConsumerGroupHeartbeat and ConsumerGroupDescribe.

Source: consumer.md 2 and 9.2; KIP-848.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable
from typing import Any, cast

from groups.api import consumer_wire
from groups.api.consumer import consumer_heartbeat
from groups.core.model.consumer_group import ConsumerGroup
from groups.engine.decision_context import DecisionContexts
from groups.engine.service import GroupService
from groups.nodes.directory import NodeDirectory
from groups.readmodel import unknown_group
from groups.rest.consumer_description import (
    ConsumerMemberDescription,
    TopicPartitionsDescription,
    describe_consumer_group,
)
from groups.rest.seen import seen_consumer_group
from groups.wire.clients import as_clients_know_it, remember
from groups.wire.reads import with_operations
from kcoord.access.rights import Operation, Resource
from kcoord.http.paths import check_group_id
from kcoord.process.later import then
from kcoord.protocol.errors import ProtocolError
from kcoord.wire.api import Answer, Api, Call
from kcoord.wire.reading import Fields
from kcoord.wire.translate import struct_of

CLIENT_MAKES_IDS = 1
"""The first version of ConsumerGroupHeartbeat whose clients choose their member id."""


def heartbeat(call: Call, request: Fields) -> Answer | Awaitable[Answer]:
    """ConsumerGroupHeartbeat, by the operation of the REST API."""
    check_group_id(request.group_id, may_be_empty=True)
    body = _body(call, request)
    if request.member_epoch == 0:
        call.principal.require_group(Operation.READ, request.group_id)
        return _joined(call, body, request.group_id)
    beaten = consumer_heartbeat.run(call.over_http(body, request.group_id))
    return then(cast(consumer_wire.ConsumerHeartbeatResponse, beaten), _answer)


async def _joined(call: Call, body: consumer_wire.ConsumerHeartbeatRequest, group_id: str) -> Answer:
    await remember(call)
    try:
        joined = await consumer_heartbeat.carry_out(call.over_http(body, group_id))
    except ProtocolError as refused:
        raise as_clients_know_it(refused) from None
    return _answer(cast(consumer_wire.ConsumerHeartbeatResponse, joined))


def _body(call: Call, request: Fields) -> consumer_wire.ConsumerHeartbeatRequest:
    member_id = request.member_id
    if call.version < CLIENT_MAKES_IDS and not member_id and request.member_epoch == 0:
        member_id = str(uuid.uuid4())
    owned = request.topic_partitions
    return struct_of(
        consumer_wire.ConsumerHeartbeatRequest,
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


def _answer(answer: consumer_wire.ConsumerHeartbeatResponse) -> Answer:
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
    groups = [await _described(call, group_id) for group_id in dict.fromkeys(request.group_ids)]
    return {"groups": [with_operations(call, request, group) for group in groups]}


def refuse_describe(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer when no group could be described."""
    groups = dict.fromkeys(request.get("group_ids", ()))
    return {"groups": [_refused(group_id, code, detail) for group_id in groups]}


def _refused(group_id: str, code: int, detail: str) -> Answer:
    return {"group_id": group_id, "error_code": code, "error_message": detail, "members": []}


async def _described(call: Call, group_id: str) -> Answer:
    try:
        check_group_id(group_id)
        call.principal.require_group(Operation.DESCRIBE, group_id)
        return await _description(call, group_id)
    except ProtocolError as error:
        return _refused(group_id, error.error.code, error.detail)


async def _description(call: Call, group_id: str) -> Answer:
    runtime = call.runtime
    stored = await runtime.get(GroupService).describe(group_id)
    group = stored.group
    if not isinstance(group, ConsumerGroup):
        raise unknown_group(group_id)
    world = await runtime.get(DecisionContexts).context_of(group_id)
    coordinator = await runtime.get(NodeDirectory).shown_for(group_id, "")
    whole = describe_consumer_group(group, stored.due, coordinator, world.topics, world.assignors)
    seen = seen_consumer_group(whole, call.principal.visible(Resource.TOPIC))
    return {
        "group_id": group_id,
        "error_code": 0,
        "group_state": seen.state,
        "group_epoch": seen.group_epoch,
        "assignment_epoch": seen.assignment_epoch,
        "assignor_name": seen.assignor,
        "members": [_member(member) for member in seen.members],
    }


def _member(member: ConsumerMemberDescription) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "instance_id": member.group_instance_id,
        "rack_id": member.rack_id,
        "member_epoch": member.member_epoch,
        "client_id": member.client_id,
        "client_host": f"/{member.client_host}",
        "subscribed_topic_names": member.subscribed_topic_names,
        "subscribed_topic_regex": member.subscribed_topic_regex or "",
        "assignment": _partitions(member.assignment),
        "target_assignment": _partitions(member.target_assignment),
        "member_type": 1 if member.member_type == "consumer" else 0,
    }


def _partitions(found: list[TopicPartitionsDescription]) -> dict[str, Any]:
    """Of topics that exist: others have no name."""
    return {
        "topic_partitions": [
            {"topic_id": entry.topic_id, "topic_name": entry.topic, "partitions": entry.partitions}
            for entry in found
            if entry.topic is not None
        ]
    }


APIS = (
    Api(68, "consumer_group_heartbeat", (0, 1), heartbeat, refuse_heartbeat, is_hot=True, is_quick=True),
    Api(69, "consumer_group_describe", (0, 1), describe, refuse_describe),
)
