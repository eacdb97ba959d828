"""OffsetFetch: one group below version 8, many from there.

Source: KIP-447, 709, 848, 1188 for the versions; offsets.md 5 for the rules, which are the service's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from groups.catalogue.topics import TopicService
from kcoord.access.rights import Operation
from kcoord.http.paths import check_group_id
from kcoord.metrics import commands
from kcoord.process import off_loop
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.wire.api import Answer, Call
from kcoord.wire.reading import Fields
from offsets.api.topics import Named
from offsets.core.types import FetchedOffset, OffsetFetch, OffsetFetchReply
from offsets.service import OffsetService
from offsets.wire.named import resolve, topic_answer

GROUPS_AT_ONCE = 4
"""How many groups of one fetch are read concurrently, so that one request does not take the whole pool."""

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
        topics = await _topics(call, asked, stable)
        error = Error.NONE
    except ProtocolError as refusal:
        error = refusal.error
        # Version 1 has no room for it elsewhere.
        topics = _refused(asked.topics, error.code) if call.version == 1 else []
    commands("fetch", error.name).inc()
    return {"group_id": asked.group_id, "topics": topics, "error_code": error.code}


async def _topics(call: Call, asked: Fields, stable: bool) -> list[dict[str, Any]]:
    group_id, principal = check_group_id(asked.group_id, may_be_empty=True), call.principal
    principal.require_group(Operation.DESCRIBE, group_id)
    named = await resolve(call, asked.topics)
    wanted = None
    hidden: frozenset[str] = frozenset()
    if asked.topics is not None:
        wanted = tuple(
            (topic.name, tuple(entry.partition_indexes))
            for topic, entry in zip(named, asked.topics, strict=True)
            if topic.name is not None
        )
        hidden = frozenset(name for name, _ in wanted if not principal.may_topic(Operation.DESCRIBE, name))
    member_id, epoch = asked.get("member_id"), asked.get("member_epoch", -1)
    reply = await call.runtime.get(OffsetService).fetch(OffsetFetch(group_id, member_id, epoch, wanted, stable, hidden))
    if reply.error is not Error.NONE:
        raise ProtocolError(reply.error, reply.detail)
    if asked.topics is None:
        return await _everything(call, reply)
    size = off_loop.PER_OFFSET * len(reply.offsets)
    return await off_loop.run(size, _as_asked, asked.topics, named, reply.offsets)


async def _everything(call: Call, reply: OffsetFetchReply) -> list[dict[str, Any]]:
    """A fetch of everything: topics that the caller may not describe are silently left out.

    Where topics have ids only, so are those of topics that no longer exist.
    """
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for offset in reply.offsets:
        if call.principal.may_topic(Operation.DESCRIBE, offset.topic):
            by_topic.setdefault(offset.topic, []).append(_partition(offset))
    if call.version < FIRST_WITH_IDS:
        return [{"name": name, "partitions": partitions} for name, partitions in by_topic.items()]
    known = (await call.runtime.get(TopicService).find(names=by_topic)).by_name
    return [
        {"topic_id": known[name].topic_id, "partitions": partitions}
        for name, partitions in by_topic.items()
        if name in known
    ]


def _as_asked(
    entries: Iterable[Fields], named: Sequence[Named], offsets: Iterable[FetchedOffset]
) -> list[dict[str, Any]]:
    found = {(offset.topic, offset.partition): offset for offset in offsets}

    def partition(name: str | None, number: int) -> dict[str, Any]:
        if name is None:
            return _partition(FetchedOffset("", number, error=Error.UNKNOWN_TOPIC_ID))
        return _partition(found.get((name, number)) or FetchedOffset(name, number))

    return [
        topic_answer(entry, [partition(topic.name, number) for number in entry.partition_indexes])
        for topic, entry in zip(named, entries, strict=True)
    ]


def _refused(entries: Iterable[Fields], code: int) -> list[dict[str, Any]]:
    return [
        topic_answer(entry, [{**_partition(FetchedOffset("", p)), "error_code": code} for p in entry.partition_indexes])
        for entry in entries
    ]


def _partition(offset: FetchedOffset) -> dict[str, Any]:
    return {
        "partition_index": offset.partition,
        "committed_offset": offset.committed_offset,
        "committed_leader_epoch": offset.leader_epoch,
        "metadata": offset.metadata,
        "error_code": offset.error.code,
    }


def refused(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer with the same error for every group; version 1 has room for it in partitions only."""
    if version >= FIRST_WITH_MANY_GROUPS:
        return {"groups": [{"group_id": asked.group_id, "error_code": code} for asked in request.groups]}
    topics = [] if version > 1 else _refused(request.topics, code)
    return {"topics": topics, "error_code": code}
