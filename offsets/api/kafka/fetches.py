"""OffsetFetch: one group below version 8, many from there.

Source: KIP-447, 709, 848, 1188 for the versions; offsets.md 5 for the rules, which are the service's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from kcoord.door.http.paths import check_group_id
from kcoord.door.kafka.api import Answer, Call
from kcoord.door.kafka.codec import Fields
from kcoord.metrics import commands
from kcoord.protocol.errors import ProtocolError
from offsets.api import wire as http
from offsets.api.handlers import GROUPS_AT_ONCE, fetched
from offsets.api.kafka.commits import topic_answer
from offsets.core.types import NO_OFFSET

FIRST_WITH_MANY_GROUPS = 8
FIRST_WITH_IDS = 10


async def offset_fetch(call: Call, request: Fields) -> Answer:
    """OffsetFetch 1 to 10."""
    stable = request.get("require_stable", False)
    if call.version < FIRST_WITH_MANY_GROUPS:
        return await _one(call, request, stable)
    slots = asyncio.Semaphore(GROUPS_AT_ONCE)

    async def one(asked: Fields) -> dict[str, Any]:
        async with slots:
            return await _one(call, asked, stable)

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(one(asked)) for asked in request.groups]
    return {"groups": [task.result() for task in running]}


async def _one(call: Call, asked: Fields, stable: bool) -> dict[str, Any]:
    """What is committed by one group, or why that is not told."""
    try:
        group_id = check_group_id(asked.group_id, may_be_empty=True)
        found = await fetched(call.over_http(None, group_id), group_id, _body(asked), stable)
        topics, code = _answer(call, asked.topics, found), 0
    except ProtocolError as refusal:
        code = refusal.error.code
        # Version 1 has no room for it elsewhere.
        topics = _refused(asked.topics, code) if call.version == 1 else []
        commands("fetch", refusal.error.name).inc()
    return {"group_id": asked.group_id, "topics": topics, "error_code": code}


def _body(asked: Fields) -> http.FetchRequest:
    topics = None
    if asked.topics is not None:
        topics = [
            http.FetchTopic(entry.partition_indexes, name=entry.name)
            if "name" in entry
            else http.FetchTopic(entry.partition_indexes, topic_id=str(entry.topic_id))
            for entry in asked.topics
        ]
    return http.FetchRequest(topics, asked.get("member_id"), asked.get("member_epoch", -1))


def _answer(call: Call, entries: Sequence[Fields] | None, found: Sequence[http.FetchedTopic]) -> list[dict[str, Any]]:
    """In a fetch of everything, topics that no longer exist are left out where topics have ids only."""
    if entries is not None:
        return [
            topic_answer(entry, [_partition(p) for p in topic.partitions])
            for entry, topic in zip(entries, found, strict=True)
        ]
    return [
        {"name": topic.name, "topic_id": topic.topic_id, "partitions": [_partition(p) for p in topic.partitions]}
        for topic in found
        if call.version < FIRST_WITH_IDS or topic.topic_id is not None
    ]


def _partition(found: http.FetchedPartition) -> dict[str, Any]:
    return {
        "partition_index": found.partition,
        "committed_offset": found.committed_offset,
        "committed_leader_epoch": found.committed_leader_epoch,
        "metadata": found.metadata,
        "error_code": found.error_code,
    }


def _refused(entries: Iterable[Fields], code: int) -> list[dict[str, Any]]:
    none = {"committed_offset": NO_OFFSET, "committed_leader_epoch": -1, "metadata": "", "error_code": code}
    return [
        topic_answer(entry, [{"partition_index": number, **none} for number in entry.partition_indexes])
        for entry in entries
    ]


def refused(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer with the same error for every group; version 1 has room for it in partitions only."""
    if version >= FIRST_WITH_MANY_GROUPS:
        return {"groups": [{"group_id": asked.group_id, "error_code": code} for asked in request.groups]}
    topics = [] if version > 1 else _refused(request.topics, code)
    return {"topics": topics, "error_code": code}
