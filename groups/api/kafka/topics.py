"""CreateTopics, DeleteTopics, CreatePartitions: the catalogue of topics.

A topic has partitions and nothing else: it has no replicas and no records, so any replication factor is accepted.
The rights are those of `/v1/topics`.

Differs from Kafka: settings of a new topic are passed over; the answer names none. Consoles send some with every topic
that they create. To change a setting is refused (`groups.api.kafka.configs`): all of them say how records are stored.
Source: KIP-4, 195, 516 for the versions; the rules are those of `groups.topics`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from groups.topics import (
    Topic,
    TopicService,
    admit_creation,
    admit_deletion,
    admit_growth,
    check_partitions,
    check_topic_name,
    unknown_topic,
)
from kcoord.access.rights import Operation, Principal
from kcoord.door.kafka.api import Answer, Call
from kcoord.door.kafka.codec import Fields
from kcoord.protocol.errors import Error, ProtocolError

DEFAULT_PARTITIONS = 1
"""Of a topic whose creator leaves it to the server; as in Kafka."""

FIRST_WITH_IDS = 6
"""Version of DeleteTopics."""

FIRST_CREATION_THROTTLED, FIRST_DELETION_THROTTLED, FIRST_GROWTH_THROTTLED = 6, 5, 3
"""Versions of CreateTopics, DeleteTopics, CreatePartitions whose clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


async def create_topics(call: Call, request: Fields) -> Answer:
    """CreateTopics 2 to 7: each topic on its own."""
    twice = _twice(topic.name for topic in request.topics)

    async def create(asked: Fields) -> dict[str, Any]:
        _once(asked.name, twice)
        check_topic_name(asked.name)
        _require_admin(call.principal, asked.name)
        partitions = _partitions(asked)
        topics = call.runtime.get(TopicService)
        if request.validate_only:
            check_partitions(partitions)
            if asked.name in (await topics.find(names=[asked.name])).by_name:
                raise ProtocolError(Error.TOPIC_ALREADY_EXISTS, f"topic {asked.name!r} already exists")
            return _created(partitions, None)
        await _admitted(call, FIRST_CREATION_THROTTLED, admit_creation(call.runtime, call.principal, partitions))
        topic = await topics.create(asked.name, partitions)
        return _created(topic.partitions, topic)

    return {"topics": [{"name": asked.name, **await _answered(create, asked)} for asked in request.topics]}


def _partitions(asked: Fields) -> int:
    """How many partitions a topic shall have; replicas that are named for them say so as well."""
    if asked.assignments:
        return len(asked.assignments)
    return DEFAULT_PARTITIONS if asked.num_partitions == -1 else int(asked.num_partitions)


def _created(partitions: int, topic: Topic | None) -> dict[str, Any]:
    found = {"num_partitions": partitions, "replication_factor": 1, "configs": ()}
    return found if topic is None else {**found, "topic_id": topic.topic_id}


async def delete_topics(call: Call, request: Fields) -> Answer:
    """DeleteTopics 1 to 6: each topic on its own, by name, or by id in version 6."""
    if call.version < FIRST_WITH_IDS:
        entries = [Fields(name=name, topic_id=None) for name in request.topic_names]
    else:
        entries = request.topics
    topics = call.runtime.get(TopicService)

    async def delete(asked: Fields) -> dict[str, Any]:
        name = asked.name
        if name is None:
            found = (await topics.current()).by_id.get(str(asked.topic_id))
            if found is None or not call.principal.may_topic(Operation.DESCRIBE, found.name):
                raise ProtocolError(Error.UNKNOWN_TOPIC_ID, f"there is no topic with the id {asked.topic_id}")
            name = found.name
        check_topic_name(name)
        _require_admin(call.principal, name)
        await _admitted(call, FIRST_DELETION_THROTTLED, admit_deletion(call.runtime, call.principal, name))
        await topics.delete(name, principal=call.principal.name)
        return {"name": name}

    return {
        "responses": [
            {"name": asked.name, "topic_id": asked.topic_id, **await _answered(delete, asked)} for asked in entries
        ]
    }


async def create_partitions(call: Call, request: Fields) -> Answer:
    """CreatePartitions 0 to 3: `count` is how many partitions the topic has afterwards."""
    twice = _twice(topic.name for topic in request.topics)
    topics = call.runtime.get(TopicService)

    async def create(asked: Fields) -> dict[str, Any]:
        _once(asked.name, twice)
        check_topic_name(asked.name)
        _require_admin(call.principal, asked.name)
        if not request.validate_only:
            admission = admit_growth(call.runtime, call.principal, asked.name, asked.count)
            await _admitted(call, FIRST_GROWTH_THROTTLED, admission)
            await topics.update(asked.name, partitions=asked.count)
            return {}
        check_partitions(asked.count)
        if (await topics.get(asked.name)).partitions >= asked.count:
            raise ProtocolError(Error.INVALID_PARTITIONS, "the number of partitions can only be raised")
        return {}

    return {"results": [{"name": asked.name, **await _answered(create, asked)} for asked in request.topics]}


async def _admitted(call: Call, first: int, admission: Coroutine[Any, Any, None]) -> None:
    """Wait for an admission by quotas. Clients below version `first` are only told to be silent for a while."""
    try:
        await admission
    except ProtocolError as refused:
        call.session.throttle_ms = max(call.session.throttle_ms, refused.retry_after_ms or 0)
        if call.version >= first:
            raise


async def _answered(work: Callable[[Fields], Awaitable[dict[str, Any]]], asked: Fields) -> dict[str, Any]:
    """What became of one topic of a request."""
    try:
        return {"error_code": 0, **await work(asked)}
    except ProtocolError as refusal:
        return {"error_code": refusal.error.code, "error_message": refusal.detail or refusal.error.value.help}


def _require_admin(principal: Principal, name: str) -> None:
    """Raise unless the caller may change the topic; one that it may not see does not exist, as over HTTP."""
    if principal.may_topic(Operation.ADMIN, name):
        return
    if not principal.may_topic(Operation.DESCRIBE, name):
        raise unknown_topic(name)
    raise ProtocolError(Error.TOPIC_AUTHORIZATION_FAILED, f"{principal.said} may not ADMIN topic {name!r}")


def _twice(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name for name, times in Counter(names).items() if times > 1)


def _once(name: str, twice: frozenset[str]) -> None:
    if name in twice:
        raise ProtocolError(Error.INVALID_REQUEST, f"topic {name!r} is named twice in the request")


def refused_topics(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer to CreateTopics with the same error for every topic."""
    return {"topics": _refused(request.topics, code, detail)}


def refused_deletions(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer to DeleteTopics with the same error for every topic."""
    entries = request.topics if version >= FIRST_WITH_IDS else [Fields(name=name) for name in request.topic_names]
    return {"responses": _refused(entries, code, detail)}


def refused_partitions(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer to CreatePartitions with the same error for every topic."""
    return {"results": _refused(request.topics, code, detail)}


def _refused(entries: Iterable[Fields], code: int, detail: str) -> list[Answer]:
    return [
        {"name": entry.name, "topic_id": entry.get("topic_id"), "error_code": code, "error_message": detail}
        for entry in entries
    ]
