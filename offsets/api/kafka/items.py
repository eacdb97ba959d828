"""ShareFetch and ShareAcknowledge: what keeps a Kafka client in its share group. Neither gives out nor settles items.

A client takes an offset that it is given without a record for a gap and acknowledges it, so that the item would be
lost. So it is given none: ShareFetch is held for as long as the client allows, and empty. Items are acquired over HTTP
and in SQL. Source: share.md 5; KIP-932, KIP-1222 for the second versions.
"""

from __future__ import annotations

from typing import Any

from groups.configs import GroupConfigs
from groups.core.model.types import TopicView
from groups.core.share import check_member_id
from groups.topics import TopicService
from kcoord.access.rights import Operation
from kcoord.door.http.paths import check_group_id
from kcoord.door.kafka.api import Answer, Call
from kcoord.door.kafka.codec import Fields
from kcoord.protocol.errors import Error
from offsets.api.kafka.logs import Holding, refusal_of
from offsets.share.store import rules_of

CLOSING = -1
"""The epoch of a share session that ends."""
NOBODYS = "nothing was acquired over this connection: items are acquired and settled over HTTP, or in SQL"


async def share_fetch(call: Call, request: Fields) -> Answer:
    """ShareFetch 1 and 2: nothing, after `max_wait` ms; errors, and what ends a session or asks for nothing, at once.

    Differs from Kafka: no share session is kept, so that every epoch is taken, and membership is not needed.
    """
    head = await _checked(call, request)
    view = await _view(call, request)
    topics = [
        {"topic_id": topic.topic_id, "partitions": found}
        for topic in request.topics
        if (found := [one for partition in topic.partitions if (one := _told(call, view, topic, partition))])
    ]
    asks = request.share_session_epoch != CLOSING and request.max_records > 0 and request.max_bytes > 0
    if asks and not topics:
        await call.runtime.get(Holding).hold(request.max_wait)
    return {**head, "responses": topics}


def _told(call: Call, view: TopicView, topic: Fields, partition: Fields) -> Answer | None:
    """What there is to say of a partition; None: nothing."""
    error, settled = _refusal(call, view, topic, partition), Error.NONE
    if partition.acknowledgement_batches:
        settled = Error.INVALID_RECORD_STATE if error is Error.NONE else error
    if error is Error.NONE and settled is Error.NONE:
        return None
    return {
        **_of_partition(partition, error),
        "acknowledge_error_code": settled.code,
        "acknowledge_error_message": None if settled is Error.NONE else NOBODYS,
        "records": b"",
        "acquired_records": (),
    }


async def share_acknowledge(call: Call, request: Fields) -> Answer:
    """ShareAcknowledge 1 and 2: nobody has acquired here what is to be settled; without it, as at a close, success."""
    head = await _checked(call, request)
    view = await _view(call, request)
    topics = []
    for topic in request.topics:
        answers = []
        for partition in topic.partitions:
            error = _refusal(call, view, topic, partition)
            if error is Error.NONE and partition.acknowledgement_batches:
                error = Error.INVALID_RECORD_STATE
            answers.append(_of_partition(partition, error))
        topics.append({"topic_id": topic.topic_id, "partitions": answers})
    return {**head, "responses": topics}


async def _checked(call: Call, request: Fields) -> dict[str, Any]:
    """The head of the answer. Raises ProtocolError."""
    group_id = check_group_id(request.group_id or "")
    call.principal.require_group(Operation.READ, group_id)
    check_member_id(request.member_id or "")
    rules = rules_of(await call.runtime.get(GroupConfigs).resolved(group_id))
    return {"error_code": 0, "error_message": None, "acquisition_lock_timeout": rules.lock_ms, "node_endpoints": ()}


async def _view(call: Call, request: Fields) -> TopicView:
    return await call.runtime.get(TopicService).find(topic_ids=[str(topic.topic_id) for topic in request.topics])


def _refusal(call: Call, view: TopicView, topic: Fields, partition: Fields) -> Error:
    known = view.by_id.get(str(topic.topic_id))
    if known is None:
        return Error.UNKNOWN_TOPIC_ID
    return refusal_of(call, view, Operation.READ, known.name, partition.partition_index)


def _of_partition(partition: Fields, error: Error) -> dict[str, Any]:
    message = {Error.NONE: None, Error.INVALID_RECORD_STATE: NOBODYS}.get(error, error.value.help)
    return {
        "partition_index": partition.partition_index,
        "error_code": error.code,
        "error_message": message,
        "current_leader": {"leader_id": -1, "leader_epoch": -1},
    }


def refused(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The error of the whole call."""
    return {
        "error_code": code,
        "error_message": detail,
        "acquisition_lock_timeout": 0,
        "responses": (),
        "node_endpoints": (),
    }
