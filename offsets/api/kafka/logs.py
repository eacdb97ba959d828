"""What stands in for logs: ListOffsets, Fetch and Produce. Records are in the user's own source; none is stored here.

ListOffsets answers from watermarks, samples and commits (`offsets.lag.ends`). Fetch never has records, and is held as
long as the client allows, so that a consumer which only wants its assignment costs two requests a second at most.
Produce is served because clients derive from it what else they may use (KIP-35); it answers an error.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from groups.core.model.types import TopicView
from groups.topics import TopicService
from kcoord.access.rights import Operation
from kcoord.door.kafka.api import Answer, Call
from kcoord.door.kafka.codec import Fields
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.lag.ends import AtTime, LogEnd, LogEnds

UNSUPPORTED_FOR_MESSAGE_FORMAT, POLICY_VIOLATION = 43, 44
"""Kafka's numbers of errors that only this module answers: a time that cannot be looked up, and Produce."""

LATEST, EARLIEST, LARGEST_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
"""Timestamps with a meaning of their own."""

TOPIC_IDS = 13
"""The first version of Fetch that names topics by id (KIP-516)."""

NOTHING: dict[str, Any] = {"offset": -1, "timestamp": -1}

NO_RECORDS = (
    "kcoord coordinates groups and keeps their offsets; it stores no records. "
    "Produce them where your consumers read them"
)


async def list_offsets(call: Call, request: Fields) -> Answer:
    """ListOffsets 1 to 9."""
    view = await call.runtime.get(TopicService).find(names=[entry.name for entry in request.topics])
    return {"topics": [await _offsets(call, view, entry) for entry in request.topics]}


async def _offsets(call: Call, view: TopicView, entry: Fields) -> Answer:
    ends = call.runtime.get(LogEnds)
    refused = {
        p.partition_index: refusal_of(call, view, Operation.DESCRIBE, entry.name, p.partition_index)
        for p in entry.partitions
    }
    asked = [p for p in entry.partitions if refused[p.partition_index] is Error.NONE]
    instants: dict[int, list[int]] = defaultdict(list)
    for partition in asked:
        if partition.timestamp >= 0:
            instants[partition.timestamp].append(partition.partition_index)
    found = {at: await ends.at(entry.name, numbers, at) for at, numbers in instants.items()}
    plain = [p.partition_index for p in asked if p.timestamp < 0]
    logs = await ends.read(entry.name, plain) if plain else {}

    def answer(partition: Fields) -> Answer:
        number, at = partition.partition_index, partition.timestamp
        error = refused[number]
        if error is not Error.NONE:
            found_here: dict[str, Any] = {**NOTHING, "error_code": error.code}
        elif at >= 0:
            found_here = _by_time(found[at][number], at)
        else:
            found_here = _by_meaning(logs[number], at)
        return {"partition_index": number, "leader_epoch": -1, **found_here}

    return {"name": entry.name, "partitions": [answer(partition) for partition in entry.partitions]}


def _by_meaning(log: LogEnd, meaning: int) -> dict[str, Any]:
    """The offset that a negative timestamp asks for; of none of them is the timestamp known."""
    if meaning == LATEST:
        return {"offset": log.end, "timestamp": -1}
    if meaning in (EARLIEST, EARLIEST_LOCAL):
        return {"offset": log.start, "timestamp": -1}
    if meaning == LATEST_TIERED:
        return NOTHING
    return {**NOTHING, "error_code": UNSUPPORTED_FOR_MESSAGE_FORMAT}


def _by_time(found: AtTime, at: int) -> dict[str, Any]:
    """The offset of an instant, with that instant: Java's client refuses an offset without one.

    If samples do not reach back, a consumer is told that there is no such offset, and tools are refused: they would
    take the end of the log otherwise, and a reset to a time would skip what was to be read again.
    """
    if not found.is_known:
        return {**NOTHING, "error_code": UNSUPPORTED_FOR_MESSAGE_FORMAT}
    return NOTHING if found.offset is None else {"offset": found.offset, "timestamp": at}


async def fetch(call: Call, request: Fields) -> Answer:
    """Fetch 4 to 18: nothing, after the time that the client allows; errors at once. From 13 on topics have ids.

    The end that it tells is never below what is asked for: watermarks lag behind, and OFFSET_OUT_OF_RANGE would make
    the client give up its place.
    """
    service, by_id = call.runtime.get(TopicService), call.version >= TOPIC_IDS
    asked = [str(entry.topic_id) if by_id else entry.topic for entry in request.topics]
    view = await service.find(topic_ids=asked) if by_id else await service.find(names=asked)
    names = [view.by_id[key].name if key in view.by_id else None for key in asked] if by_id else asked
    topics = [await _nothing(call, view, *each) for each in zip(names, request.topics, strict=True)]
    if not any(partition["error_code"] for topic in topics for partition in topic["partitions"]):
        await call.runtime.get(Holding).hold(request.max_wait)
    return {"error_code": 0, "session_id": 0, "responses": topics}


async def _nothing(call: Call, view: TopicView, name: str | None, entry: Fields) -> dict[str, Any]:
    """The answer for a topic; `name` None: its id is unknown."""
    if name is None:
        return {"topic_id": entry.topic_id, "partitions": _unread(entry.partitions, Error.UNKNOWN_TOPIC_ID.code)}
    numbers = [partition.partition for partition in entry.partitions]
    errors = {number: refusal_of(call, view, Operation.READ, name, number) for number in numbers}
    readable = [number for number in numbers if errors[number] is Error.NONE]
    logs = await call.runtime.get(LogEnds).lately(name, readable) if readable else {}

    def answer(partition: Fields) -> dict[str, Any]:
        log = logs.get(partition.partition, LogEnd(-1, -1))
        end = max(log.end, partition.fetch_offset) if partition.partition in logs else -1
        return {
            "partition_index": partition.partition,
            "error_code": errors[partition.partition].code,
            "high_watermark": end,
            "last_stable_offset": end,
            "log_start_offset": log.start,
            "aborted_transactions": (),
            "records": b"",  # not null: kafka-python fails on that
        }

    partitions = [answer(partition) for partition in entry.partitions]
    return {"topic": name, "topic_id": entry.get("topic_id"), "partitions": partitions}


class Holding:
    """Fetches that wait for records which never come. Each is a timer: no thread, no connection to the database."""

    def __init__(self, runtime: Runtime) -> None:
        self._stopping = asyncio.Event()
        runtime.on_drain(self._stop)

    async def hold(self, wait_ms: int) -> None:
        """Wait that long, or until the process begins to stop."""
        if wait_ms > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_ms / 1000):
                    await self._stopping.wait()

    async def _stop(self) -> None:
        self._stopping.set()


async def produce(call: Call, request: Fields) -> Answer | None:
    """Produce 3 to 9: refused. A producer that wants no answer (`acks=0`) gets none, so it does not notice."""
    return refused_produce(request, call.version, POLICY_VIOLATION, NO_RECORDS) if request.acks else None


def refused_produce(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer to Produce with the same error for every partition."""
    return {
        "responses": [
            {
                "name": topic.name,
                "partition_responses": [
                    {
                        "index": p.index,
                        "error_code": code,
                        "base_offset": -1,
                        "log_append_time": -1,
                        "error_message": detail or None,
                    }
                    for p in topic.partition_data
                ],
            }
            for topic in request.topic_data
        ]
    }


def refused_list(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer to ListOffsets with the same error for every partition."""
    return {"topics": [_refused(entry, code) for entry in request.topics]}


def _refused(entry: Fields, code: int) -> Answer:
    answers = [{"partition_index": p.partition_index, "error_code": code, **NOTHING} for p in entry.partitions]
    return {"name": entry.name, "partitions": answers}


def refused_fetch(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer to Fetch with the same error for every partition: below version 7 there is no other room."""
    return {
        "error_code": code,
        "session_id": 0,
        "responses": [
            {
                "topic": entry.get("topic", ""),
                "topic_id": entry.get("topic_id"),
                "partitions": _unread(entry.partitions, code),
            }
            for entry in request.topics
        ],
    }


def _unread(partitions: Iterable[Fields], code: int) -> list[Answer]:
    return [
        {
            "partition_index": p.partition,
            "error_code": code,
            "high_watermark": -1,
            "aborted_transactions": (),
            "records": b"",
        }
        for p in partitions
    ]


def refusal_of(call: Call, view: TopicView, operation: Operation, name: str, partition: int) -> Error:
    """Why a partition is not told of; NONE: it is. Rights come first, so that they do not reveal what exists."""
    if not call.principal.may_topic(operation, name):
        return Error.TOPIC_AUTHORIZATION_FAILED
    topic = view.by_name.get(name)
    exists = topic is not None and 0 <= partition < topic.partitions
    return Error.NONE if exists else Error.UNKNOWN_TOPIC_OR_PARTITION
