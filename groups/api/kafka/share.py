"""The membership of share groups: ShareGroupHeartbeat and ShareGroupDescribe. Source: share.md 2 and 5; KIP-932."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, cast

from groups.api.consumer import share_heartbeat
from groups.api.kafka.classic import as_clients_know_it, remember
from groups.api.kafka.consumer import (
    describe_each,
    described_head,
    heartbeat_answer,
    named_partitions,
    refuse_describe,
    refuse_heartbeat,
    seen_group,
)
from groups.api.rest.consumer_description import ConsumerMemberView
from groups.api.wire import ConsumerHeartbeatResponse, ShareHeartbeatRequest
from groups.core.model.consumer_group import ShareGroup
from kcoord.access.rights import Operation
from kcoord.door.http.paths import check_group_id
from kcoord.door.kafka.api import Answer, Api, Call, struct_of
from kcoord.door.kafka.codec import Fields
from kcoord.protocol.errors import ProtocolError


async def heartbeat(call: Call, request: Fields) -> Answer:
    """ShareGroupHeartbeat, by the operation of the REST API."""
    check_group_id(request.group_id, may_be_empty=True)
    body = struct_of(
        ShareHeartbeatRequest,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        rack_id=request.rack_id,
        client_id=call.client_id,
        subscribed_topic_names=request.subscribed_topic_names,
    )
    if request.member_epoch == 0:
        call.principal.require_group(Operation.READ, request.group_id)
        await remember(call)
    try:
        beaten = share_heartbeat.run(call.over_http(body, request.group_id))
        return heartbeat_answer(await cast(Awaitable[ConsumerHeartbeatResponse], beaten))
    except ProtocolError as refused:
        raise as_clients_know_it(refused) from None


async def describe(call: Call, request: Fields) -> Answer:
    """ShareGroupDescribe: each group with an error of its own."""
    return await describe_each(call, request, _description)


async def _description(call: Call, group_id: str) -> Answer:
    seen = await seen_group(call, group_id, ShareGroup)
    return {**described_head(seen), "members": [_member(member) for member in seen.members]}


def _member(member: ConsumerMemberView) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "rack_id": member.rack_id,
        "member_epoch": member.member_epoch,
        "client_id": member.client_id,
        "client_host": f"/{member.client_host}",
        "subscribed_topic_names": member.subscribed_topic_names,
        "assignment": named_partitions(member.assignment),
    }


APIS = (
    Api.of(share_heartbeat, 76, "share_group_heartbeat", (1, 1), heartbeat, refuse_heartbeat),
    Api(77, "share_group_describe", (1, 1), describe, refuse_describe),
)
