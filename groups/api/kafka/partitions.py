"""DescribeTopicPartitions: topics with their partitions, a page at a time.

Source: KIP-966. Leaders are nominal, as in Metadata (`groups.api.kafka.brokers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groups.api.kafka.brokers import brokers, led
from groups.core.model.types import Topic
from groups.topics import TopicService
from kcoord.access.rights import Operation, Resource
from kcoord.door.kafka.api import Answer, Call, authorized_operations
from kcoord.door.kafka.codec import Fields
from kcoord.protocol.errors import Error, ProtocolError

MOST_PARTITIONS = 2_000
"""Of one answer, as Kafka's `max.request.partition.size.limit`."""

NO_REPLICAS: Answer = {"eligible_leader_replicas": (), "last_known_elr": ()}
"""Empty, not null: Kafka's Java client, and with it every tool that describes topics, fails on null."""


async def describe_topic_partitions(call: Call, request: Fields) -> Answer:
    """DescribeTopicPartitions 0: the named topics by name, or all that the caller may describe, from the cursor on."""
    asked = sorted({entry.name for entry in request.topics})
    service = call.runtime.get(TopicService)
    view = await (service.find(names=asked) if asked else service.view())
    start = (request.cursor.topic_name, request.cursor.partition_index) if request.cursor else ("", 0)
    if start[1] < 0:
        raise ProtocolError(Error.INVALID_REQUEST, "cursor.partition_index must not be negative")
    left = min(request.response_partition_limit, MOST_PARTITIONS)
    if left < 1:
        raise ProtocolError(Error.INVALID_REQUEST, "response_partition_limit must be 1 or more")
    ids = [broker.id for broker in (await brokers(call)).values()]
    names = asked or sorted(name for name in view.by_name if call.principal.may_topic(Operation.DESCRIBE, name))
    shown: list[Answer] = []
    for name in names:
        if name < start[0]:
            continue
        first = start[1] if name == start[0] else 0
        if left <= 0:
            return {"topics": shown, "next_cursor": {"topic_name": name, "partition_index": first}}
        partitions, topic = _topic(call, name, view.by_name.get(name), ids)
        shown.append({**topic, "partitions": partitions[first : first + left]})
        if first + left < len(partitions):
            return {"topics": shown, "next_cursor": {"topic_name": name, "partition_index": first + left}}
        left -= len(partitions[first:])
    return {"topics": shown, "next_cursor": None}


def _topic(call: Call, name: str, topic: Topic | None, ids: Sequence[int]) -> tuple[list[dict[str, Any]], Answer]:
    """The partitions of a topic and what else is told of it."""
    if not call.principal.may_topic(Operation.DESCRIBE, name):
        return [], {"error_code": Error.TOPIC_AUTHORIZATION_FAILED.code, "name": name}
    if topic is None:
        return [], {"error_code": Error.UNKNOWN_TOPIC_OR_PARTITION.code, "name": name}
    partitions = [{**partition, **NO_REPLICAS} for partition in led(topic, ids)]
    return partitions, {
        "error_code": 0,
        "name": name,
        "topic_id": topic.topic_id,
        "topic_authorized_operations": authorized_operations(call.principal, Resource.TOPIC, name),
    }


def refused(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer with the same error for every topic."""
    return {"topics": [{"name": entry.name, "error_code": code} for entry in request.topics], "next_cursor": None}
