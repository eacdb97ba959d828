"""Where share groups are: DescribeShareGroupOffsets, AlterShareGroupOffsets, DeleteShareGroupOffsets.

Source: KIP-932 and 1226 for the versions; share.md 5 and 7.8 for the rules, which are the service's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groups.core.model.types import TopicView
from groups.topics import TopicService
from kcoord.access.rights import Operation, Resource
from kcoord.door.http.paths import check_group_id
from kcoord.door.kafka.api import Answer, Call
from kcoord.door.kafka.codec import Fields
from kcoord.protocol.errors import Error, ProtocolError
from offsets.share.operators import ItemOperators, ShareOffset

UNKNOWN = -1
LARGEST_START = 10**18 - 1
NO_EPOCH = 0
"""Logs have no leaders here."""
OUT_OF_RANGE = f"a start offset is from 0 to {LARGEST_START}"

Found = Mapping[tuple[str, int], ShareOffset]


async def describe_offsets(call: Call, request: Fields) -> Answer:
    """DescribeShareGroupOffsets 0 and 1: start offset and lag of partitions, -1 for what is not begun.

    A group that does not exist has nothing, as in Kafka.
    """
    view = await call.runtime.get(TopicService).current()
    return {"groups": [await _described(call, view, asked) for asked in request.groups]}


async def _described(call: Call, view: TopicView, asked: Fields) -> dict[str, Any]:
    try:
        found = await _offsets(call, check_group_id(asked.group_id))
    except ProtocolError as refusal:
        return _refused_group(asked, refusal.error.code, refusal.detail)
    wanted: dict[str, list[int]] = {}
    if asked.topics is None:
        for name, number in found:
            wanted.setdefault(name, []).append(number)
    else:
        wanted = {entry.topic_name: entry.partitions for entry in asked.topics}
    topics = [
        {
            "topic_name": name,
            "topic_id": _topic_id(view, name),
            "partitions": [_partition(call, found, name, number) for number in numbers],
        }
        for name, numbers in wanted.items()
    ]
    return {"group_id": asked.group_id, "topics": topics, "error_code": 0, "error_message": None}


async def _offsets(call: Call, group_id: str) -> Found:
    """Raises ProtocolError for a group that the caller may not describe."""
    call.principal.require_group(Operation.DESCRIBE, group_id)
    visible = call.principal.visible(Resource.TOPIC)
    try:
        listed = await call.runtime.get(ItemOperators).offsets(group_id, visible)
    except ProtocolError as refusal:
        if refusal.error is not Error.GROUP_ID_NOT_FOUND:
            raise
        return {}
    return {(one.topic, one.partition): one for one in listed}


def _partition(call: Call, found: Found, topic: str, number: int) -> dict[str, Any]:
    error = Error.NONE
    if not call.principal.may_topic(Operation.DESCRIBE, topic):
        error = Error.TOPIC_AUTHORIZATION_FAILED
    one = found.get((topic, number))
    start, lag = (UNKNOWN, UNKNOWN) if one is None else (one.start_offset, one.lag)
    answer = {
        "partition_index": number,
        "start_offset": UNKNOWN if start is None else start,
        "leader_epoch": NO_EPOCH,
        "error_code": error.code,
        "error_message": _message(error),
    }
    return answer if call.version < 1 else {**answer, "lag": UNKNOWN if lag is None else lag}


def _message(error: Error) -> str | None:
    return None if error is Error.NONE else error.value.help


def _topic_id(view: TopicView, name: str) -> Any:
    topic = view.by_name.get(name)
    return None if topic is None else topic.topic_id


def _refused_group(asked: Fields, code: int, detail: str) -> dict[str, Any]:
    return {"group_id": asked.group_id, "topics": [], "error_code": code, "error_message": detail}


def refused_description(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The same error for every group."""
    return {"groups": [_refused_group(asked, code, detail) for asked in request.groups]}


def refused_change(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The error of the whole call."""
    return {"error_code": code, "error_message": detail, "responses": []}


async def alter_offsets(call: Call, request: Fields) -> Answer:
    """AlterShareGroupOffsets 0.

    Differs from Kafka: a negative offset is refused, it would be no offset of an item.
    """
    group_id, principal = check_group_id(request.group_id), call.principal
    principal.require_group(Operation.ALTER_OFFSETS, group_id)
    asked = {
        (entry.topic_name, one.partition_index): one.start_offset
        for entry in request.topics
        for one in entry.partitions
    }
    starts = {key: start for key, start in asked.items() if 0 <= start <= LARGEST_START}
    results = await call.runtime.get(ItemOperators).alter(group_id, starts, principal)
    view = await call.runtime.get(TopicService).current()
    responses = [
        {
            "topic_name": entry.topic_name,
            "topic_id": _topic_id(view, entry.topic_name),
            "partitions": [
                _altered(one.partition_index, results.get((entry.topic_name, one.partition_index)))
                for one in entry.partitions
            ],
        }
        for entry in request.topics
    ]
    return {"error_code": 0, "error_message": None, "responses": responses}


def _altered(number: int, result: Error | None) -> dict[str, Any]:
    error = Error.INVALID_REQUEST if result is None else result
    message = OUT_OF_RANGE if result is None else _message(error)
    return {"partition_index": number, "error_code": error.code, "error_message": message}


async def delete_offsets(call: Call, request: Fields) -> Answer:
    """DeleteShareGroupOffsets 0."""
    group_id, principal = check_group_id(request.group_id), call.principal
    principal.require_group(Operation.DELETE, group_id)
    names = list(dict.fromkeys(entry.topic_name for entry in request.topics))
    results = await call.runtime.get(ItemOperators).delete(group_id, names, principal)
    view = await call.runtime.get(TopicService).current()
    responses = [
        {
            "topic_name": name,
            "topic_id": _topic_id(view, name) if error is Error.NONE else None,
            "error_code": error.code,
            "error_message": _message(error),
        }
        for name, error in results.items()
    ]
    return {"error_code": 0, "error_message": None, "responses": responses}
