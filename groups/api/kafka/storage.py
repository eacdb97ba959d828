"""DescribeLogDirs and DescribeProducers: brokers report the records that they store. This service stores no records.

Consoles and exporters ask for both, and some report a cluster as down that does not answer.
Source: KIP-113, 664 and 827 for the versions.
"""

from __future__ import annotations

from collections.abc import Sequence

from groups.api.kafka.brokers import brokers, led
from groups.core.model.types import Topic, TopicView
from groups.nodes.directory import node_name
from groups.topics import TopicService
from kcoord.access.rights import Operation
from kcoord.door.kafka.api import Answer, Api, Call
from kcoord.door.kafka.codec import Fields
from kcoord.protocol.errors import Error

LOG_DIRECTORY = "/no-records"
"""Shown as the path of the one log directory of each broker."""


async def describe_log_dirs(call: Call, request: Fields) -> Answer:
    """DescribeLogDirs 1 to 4: one directory with the partitions that this broker leads, all of them empty."""
    call.principal.require_cluster(Operation.DESCRIBE)
    view = await call.runtime.get(TopicService).view()
    if request.topics is None:
        asked = {name: set(range(topic.partitions)) for name, topic in view.by_name.items()}
    else:
        asked = {entry.topic: set(entry.partitions) for entry in request.topics}
    found = await brokers(call)
    own, ids = found.get(node_name(call.runtime.config)), [broker.id for broker in found.values()]
    topics = []
    for name, numbers in sorted(asked.items()):
        topic = view.by_name.get(name)
        if own is not None and topic is not None and call.principal.may_topic(Operation.DESCRIBE, name):
            topics.append({"name": name, "partitions": _empty(numbers & _led_by(own.id, topic, ids))})
    return {"error_code": 0, "results": [{"error_code": 0, "log_dir": LOG_DIRECTORY, "topics": topics}]}


def _led_by(broker: int, topic: Topic, ids: Sequence[int]) -> set[int]:
    return {partition["partition_index"] for partition in led(topic, ids) if partition["leader_id"] == broker}


def _empty(numbers: set[int]) -> list[Answer]:
    size = {"partition_size": 0, "offset_lag": 0, "is_future_key": False}
    return [{"partition_index": number, **size} for number in sorted(numbers)]


def refused_directories(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer to DescribeLogDirs with an error, which an answer without directories means below version 3."""
    return {"error_code": code, "results": ()}


async def describe_producers(call: Call, request: Fields) -> Answer:
    """DescribeProducers 0: nobody writes to any partition."""
    view = await call.runtime.get(TopicService).find(names=[entry.name for entry in request.topics])
    return {
        "topics": [
            {"name": entry.name, "partitions": [_unwritten(call, view, entry.name, n) for n in entry.partition_indexes]}
            for entry in request.topics
        ]
    }


def _unwritten(call: Call, view: TopicView, name: str, number: int) -> Answer:
    topic, error = view.by_name.get(name), Error.NONE
    if not call.principal.may_topic(Operation.READ, name):
        error = Error.TOPIC_AUTHORIZATION_FAILED
    elif topic is None or not 0 <= number < topic.partitions:
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
    return {"partition_index": number, "error_code": error.code, "active_producers": ()}


def refused_producers(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer to DescribeProducers with the same error for every partition."""

    def refused(number: int) -> Answer:
        return {"partition_index": number, "error_code": code, "error_message": detail, "active_producers": ()}

    return {
        "topics": [{"name": e.name, "partitions": [refused(n) for n in e.partition_indexes]} for e in request.topics]
    }


APIS = (
    Api(35, "describe_log_dirs", (1, 4), describe_log_dirs, refused_directories),
    Api(61, "describe_producers", (0, 0), describe_producers, refused_producers),
)
