"""The nodes of this service as the brokers that Kafka clients know: Metadata, DescribeCluster, FindCoordinator.

Every live node that listens for Kafka clients is a broker, under the number that it keeps over restarts. Brokers lead
topic partitions only in name: any of them answers for any topic.

Source: offsets.md 8.1; KIP-516 (topic ids), KIP-699 (FindCoordinator in batches), KIP-700 (DescribeCluster),
KIP-1242 (the node in ApiVersions).
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from groups.api import wire
from groups.api.coordination import coordinator
from groups.core.model.types import Topic
from groups.nodes.directory import NodeDirectory, kafka_address, node_name
from groups.nodes.hosting import Hosting
from groups.nodes.view import Node
from groups.topics import TopicService, check_topic_name
from kcoord.access.rights import Operation, Resource
from kcoord.door.http import serving
from kcoord.door.kafka import session
from kcoord.door.kafka.api import REBOOTSTRAP_REQUIRED, Answer, Api, Call, HangUp, authorized_operations
from kcoord.door.kafka.codec import Fields
from kcoord.protocol.errors import Error, ProtocolError

CLUSTER_ID = "kcoord"
GROUP_KEY, TRANSACTION_KEY = 0, 1
ALONE = 1
"""The number of a server that is not, or not yet, one of several nodes."""
FINDS_MANY = 4
"""The first version of FindCoordinator with several keys."""
NAMES_MAY_BE_EMPTY = 1
"""The first version of Metadata in which an empty list of topics is no topic, and null is all."""
TOPIC_IDS = 12
"""The first version of Metadata that may ask for a topic by id alone."""


class Broker(NamedTuple):
    """A node as Kafka clients see it."""

    id: int
    host: str
    port: int


async def brokers(call: Call) -> Mapping[str, Broker]:
    """The live nodes that listen for Kafka clients, by name, in order of their numbers. Never empty.

    A node that does not know its host is reached by the one that the client came by.
    """
    view = await call.runtime.get(NodeDirectory).find()
    listening = sorted((node for node in view.live.values() if node.kafka_port), key=lambda node: node.broker_id)
    return {node.node_id: _broker(call, node) for node in listening} or {node_name(call.runtime.config): _this(call)}


def _broker(call: Call, node: Node) -> Broker:
    return Broker(node.broker_id, node.kafka_host or call.session.server_host, node.kafka_port)


def _this(call: Call) -> Broker:
    host, port = kafka_address(call.runtime.config)
    return Broker(ALONE, host or call.session.server_host, port or call.session.server_port)


async def api_versions(call: Call, request: Fields) -> Answer:
    """ApiVersions 0 to 5: what is served, and from 5 on whether this is the node that the client wants to reach."""
    answer = await session.api_versions(call, request)
    if answer["error_code"] or request.get("cluster_id") is None:
        return answer
    is_meant = request.cluster_id == CLUSTER_ID and await _is_here(call, request.node_id)
    return answer if is_meant else session.versions_served(call, REBOOTSTRAP_REQUIRED)


async def _is_here(call: Call, broker_id: int) -> bool:
    """Whether this node has that number, or the address of the one that has: nodes behind one address share it.

    True while nodes cannot be read: the client keeps what it knows until then.
    """
    try:
        found = await brokers(call)
    except ProtocolError:
        return True
    own = found.get(node_name(call.runtime.config)) or _this(call)
    return any(broker.id == broker_id and broker[1:] == own[1:] for broker in found.values())


async def metadata(call: Call, request: Fields) -> Answer:
    """Metadata: brokers, and the topics that the caller may describe. Topics are never created by it."""
    found = await brokers(call)
    ids = [broker.id for broker in found.values()]
    return {
        "brokers": [{"node_id": broker.id, "host": broker.host, "port": broker.port} for broker in found.values()],
        "cluster_id": CLUSTER_ID,
        "controller_id": ids[0],
        "topics": [_with_operations(call, request, topic) for topic in await _topics(call, request, ids)],
        **_cluster_operations(call, request),
    }


def _with_operations(call: Call, request: Fields, topic: Answer) -> Answer:
    if topic["error_code"] or not request.get("include_topic_authorized_operations"):
        return topic
    return {
        **topic,
        "topic_authorized_operations": authorized_operations(call.principal, Resource.TOPIC, topic["name"]),
    }


def _cluster_operations(call: Call, request: Fields) -> Answer:
    """Empty unless the request asks for them: the field then has the number that says so."""
    if not request.get("include_cluster_authorized_operations"):
        return {}
    return {"cluster_authorized_operations": authorized_operations(call.principal, Resource.CLUSTER)}


def refuse_metadata(request: Fields, version: int, code: int, detail: str) -> Answer:
    """Metadata has no error of its own, and an answer without topics would be believed: the client shall ask again.

    A request that is wrong whenever it is asked has the error in each of its topics instead.
    """
    if code == Error.INVALID_REQUEST.code and request.get("topics"):
        topics = [
            {"name": asked.name, "topic_id": asked.get("topic_id"), "error_code": code} for asked in request.topics
        ]
        return {
            "topics": [{**topic, "partitions": ()} for topic in topics],
            "cluster_id": CLUSTER_ID,
            "controller_id": -1,
        }
    raise HangUp(f"metadata cannot be answered now: {detail or code}")


async def _topics(call: Call, request: Fields, ids: Sequence[int]) -> list[Answer]:
    """As Kafka: if any topic is asked for by id, all are, and a name beside an id is ignored (Java sends "")."""
    asked = request.topics
    if asked is None or (not asked and call.version < NAMES_MAY_BE_EMPTY):
        view = await call.runtime.get(TopicService).view()
        visible = [topic for name, topic in sorted(view.by_name.items()) if _may_see(call, name)]
        return [_topic(topic, ids) for topic in visible]
    topic_ids = [str(entry.topic_id) for entry in asked if entry.get("topic_id")]
    if call.version < TOPIC_IDS and (topic_ids or any(entry.name is None for entry in asked)):
        return [_no_topic(Error.INVALID_REQUEST, entry.name or "", entry.get("topic_id")) for entry in asked]
    if topic_ids:
        view = await call.runtime.get(TopicService).find(topic_ids=topic_ids)
        return [_identified(call, topic_id, view.by_id.get(topic_id), ids) for topic_id in dict.fromkeys(topic_ids)]
    names = list(dict.fromkeys(entry.name or "" for entry in asked))
    view = await call.runtime.get(TopicService).find(names=names)
    return [_named(call, name, view.by_name.get(name), ids) for name in names]


def _may_see(call: Call, name: str) -> bool:
    return call.principal.may_topic(Operation.DESCRIBE, name)


def _named(call: Call, name: str, topic: Topic | None, ids: Sequence[int]) -> Answer:
    error = Error.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_topic_name(name)
        call.principal.require_described(name)
    except ProtocolError as refused:
        topic, error = None, refused.error
    return _topic(topic, ids) if topic is not None else _no_topic(error, name)


def _identified(call: Call, topic_id: str, topic: Topic | None, ids: Sequence[int]) -> Answer:
    if topic is not None and _may_see(call, topic.name):
        return _topic(topic, ids)
    return _no_topic(Error.UNKNOWN_TOPIC_ID, None, topic_id)


def _no_topic(error: Error, name: str | None, topic_id: object = None) -> Answer:
    return {"error_code": error.code, "name": name, "topic_id": topic_id, "partitions": []}


def _topic(topic: Topic, ids: Sequence[int]) -> Answer:
    return {"error_code": 0, "name": topic.name, "topic_id": topic.topic_id, "partitions": led(topic, ids)}


def led(topic: Topic, ids: Sequence[int]) -> list[dict[str, Any]]:
    """The partitions of a topic with their nominal leaders: spread over the brokers, the same at each of them."""
    first = zlib.crc32(topic.name.encode())
    leaders = [ids[(first + number) % len(ids)] for number in range(topic.partitions)]
    return [
        {
            "error_code": 0,
            "partition_index": number,
            "leader_id": leader,
            "leader_epoch": 0,
            "replica_nodes": [leader],
            "isr_nodes": [leader],
        }
        for number, leader in enumerate(leaders)
    ]


async def describe_cluster(call: Call, request: Fields) -> Answer:
    """DescribeCluster: the brokers."""
    found = await brokers(call)
    return {
        "error_code": 0,
        "cluster_id": CLUSTER_ID,
        "controller_id": next(iter(found.values())).id,
        "brokers": [{"broker_id": broker.id, "host": broker.host, "port": broker.port} for broker in found.values()],
        **_cluster_operations(call, request),
    }


async def find_coordinator(call: Call, request: Fields) -> Answer:
    """FindCoordinator of groups and transactional ids: the broker that owns the coordinator partition of each."""
    keys = request.coordinator_keys if call.version >= FINDS_MANY else [request.key]
    kind = request.get("key_type", GROUP_KEY)
    if kind == GROUP_KEY:
        answers = await _of_groups(call, keys)
    elif kind == TRANSACTION_KEY:
        answers = [await _of_transaction(call, key) for key in keys]
    else:
        answers = [_none(key, Error.INVALID_REQUEST.code, "key_type must be 0 or 1") for key in keys]
    return _found(call.version, answers)


def refuse_coordinator(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer when no coordinator could be looked for."""
    keys = request.get("coordinator_keys", ()) if version >= FINDS_MANY else [request.get("key", "")]
    return _found(version, [_none(key, code, detail) for key in keys])


def _found(version: int, answers: list[Answer]) -> Answer:
    return {"coordinators": answers} if version >= FINDS_MANY else answers[0]


async def _of_groups(call: Call, keys: list[str]) -> list[Answer]:
    query: Mapping[str, Sequence[str]] = {"group_id": keys}
    asked = serving.Call(call.runtime, call.principal, None, "", query, call.client_host)
    known = await brokers(call)
    answered = await cast(Awaitable[wire.CoordinatorResponse], coordinator.run(asked))
    return [
        _none(entry.key, entry.error_code, "")
        if entry.error_code
        else _some(entry.key, known.get(entry.node_id) or next(iter(known.values())))
        for entry in answered.coordinators
    ]


async def _of_transaction(call: Call, key: str) -> Answer:
    """Any node answers for a transactional id; which one is named only has to be the same everywhere."""
    try:
        call.principal.require_transactional_id(key)
    except ProtocolError as error:
        return _none(key, error.error.code, error.detail)
    known = list((await brokers(call)).values())
    return _some(key, known[call.runtime.get(Hosting).partition_of(key) % len(known)])


def _some(key: str, broker: Broker) -> Answer:
    return {"key": key, "error_code": 0, "node_id": broker.id, "host": broker.host, "port": broker.port}


def _none(key: str, code: int, detail: str) -> Answer:
    return {"key": key, "error_code": code, "error_message": detail or None, "node_id": -1, "host": "", "port": -1}


APIS = (
    Api(18, "api_versions", (0, 5), api_versions, needs_login=False, is_hot=True),
    Api(3, "metadata", (0, 12), metadata, refuse_metadata),
    Api(10, "find_coordinator", (0, 4), find_coordinator, refuse_coordinator),
    Api(60, "describe_cluster", (0, 1), describe_cluster),
)
