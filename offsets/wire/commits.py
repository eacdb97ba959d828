"""OffsetCommit and OffsetDelete.

Source: KIP-211, 345, 848, 1188 for the versions; offsets.md 2, 3 and 6 for the rules, which are the services'.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kcoord.access.rights import Operation
from kcoord.http.paths import check_group_id
from kcoord.metrics import COMMANDS
from kcoord.process import off_loop
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.wire.api import UNSUPPORTED_VERSION, Answer, Call
from kcoord.wire.reading import Fields
from offsets.api import wire as http
from offsets.api.handlers import committed
from offsets.core.commit import NO_RETENTION
from offsets.core.deletion import OffsetDelete
from offsets.deletion import OffsetDeletion

LONGEST_MEMBER_ID, LONGEST_INSTANCE_ID = 300, 249
"""Characters, as in `kcoord.http.types`."""


def check_identity(request: Fields) -> None:
    """Raise INVALID_REQUEST for ids that no member can have: what is stored has bounds, as those of the REST API."""
    for name, longest in (("member_id", LONGEST_MEMBER_ID), ("group_instance_id", LONGEST_INSTANCE_ID)):
        if len(request.get(name) or "") > longest:
            raise ProtocolError(Error.INVALID_REQUEST, f"{name} has more than {longest} characters")


def topic_answer(entry: Fields, partitions: Sequence[Answer]) -> dict[str, Any]:
    """A topic of an answer, with the name or id that the request had, and these partitions."""
    return {"name": entry.get("name", ""), "topic_id": entry.get("topic_id"), "partitions": partitions}


def refused(request: Fields, version: int, code: int, detail: str) -> Answer:
    """An answer in which every partition has the error of the whole request, for which there is no other room.

    Differs from Kafka: partitions that do not exist, or that the caller may not read, have it too; Kafka tells theirs.
    """
    topics = [
        topic_answer(entry, [{"partition_index": p.partition_index, "error_code": code} for p in entry.partitions])
        for entry in request.topics
    ]
    return {"topics": topics}


KNOWS_EPOCHS = 9
"""The first version of OffsetCommit whose clients know member epochs (KIP-848)."""


async def offset_commit(call: Call, request: Fields) -> Answer:
    """OffsetCommit 2 to 10.

    Older clients are told of a missing group by an error that they know, and get none that is about epochs.
    Differs from Kafka: below version 9, which no client of the consumer protocol sends, a commit with the right epoch
    is accepted; Kafka refuses it with UNSUPPORTED_VERSION as it does one with a wrong epoch (offsets.md 3.4 row 3).
    """
    try:
        return await _committed(call, request)
    except ProtocolError as error:
        if call.version >= KNOWS_EPOCHS:
            raise
        if error.error is Error.GROUP_ID_NOT_FOUND:
            raise ProtocolError(Error.ILLEGAL_GENERATION, error.detail) from None
        if error.error is Error.STALE_MEMBER_EPOCH:
            return refused(request, call.version, UNSUPPORTED_VERSION, error.detail)
        raise


async def _committed(call: Call, request: Fields) -> Answer:
    group_id = check_group_id(request.group_id, may_be_empty=True)
    call.principal.require_group(Operation.READ, group_id)
    check_identity(request)
    body = http.CommitRequest(
        topics_of(request.topics),
        member_id=request.member_id,
        group_instance_id=request.get("group_instance_id"),
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        retention_time_ms=request.get("retention_time", NO_RETENTION),
    )
    # Not by the operation: a quota makes a Kafka client wait, and does not refuse it.
    return await answer(request.topics, (await committed(call.over_http(body, group_id))).topics)


def topics_of(entries: Iterable[Fields]) -> list[http.CommitTopic]:
    """The topics of a commit, as over HTTP. Nothing is checked: these fields have the same bounds here."""
    return [
        http.CommitTopic([_partition(p) for p in entry["partitions"]], name=entry["name"])
        if "name" in entry
        else http.CommitTopic([_partition(p) for p in entry["partitions"]], topic_id=str(entry["topic_id"]))
        for entry in entries
    ]


def _partition(asked: Fields) -> http.CommitPartition:
    return http.CommitPartition(
        asked["partition_index"],
        asked["committed_offset"],
        asked.get("committed_leader_epoch", -1),
        asked["committed_metadata"],
    )


async def answer(entries: Sequence[Fields], found: Sequence[http.CommittedTopic]) -> Answer:
    """The answer to a commit of these topics."""
    size = off_loop.PER_OFFSET * sum(len(topic.partitions) for topic in found)
    return {"topics": await off_loop.run(size, _answered, entries, found)}


def _answered(entries: Iterable[Fields], found: Iterable[http.CommittedTopic]) -> list[dict[str, Any]]:
    return [
        topic_answer(entry, [{"partition_index": p.partition, "error_code": p.error_code} for p in topic.partitions])
        for entry, topic in zip(entries, found, strict=True)
    ]


async def offset_delete(call: Call, request: Fields) -> Answer:
    """OffsetDelete 0."""
    group_id, principal = check_group_id(request.group_id, may_be_empty=True), call.principal
    principal.require_group(Operation.DELETE, group_id)
    partitions = tuple((entry.name, asked.partition_index) for entry in request.topics for asked in entry.partitions)
    denied = frozenset(name for name, _ in partitions if not principal.may_topic(Operation.READ, name))
    command = OffsetDelete(group_id, partitions, denied, principal.name)
    reply = await call.runtime.get(OffsetDeletion).delete(command)
    COMMANDS.labels("delete_offsets", reply.error.name).inc()
    if reply.error is not Error.NONE:
        raise ProtocolError(reply.error, reply.detail)
    once = {(topic, partition): error for topic, partition, error in reply.results}
    topics = [
        topic_answer(
            entry,
            [
                {"partition_index": asked.partition_index, "error_code": once[entry.name, asked.partition_index].code}
                for asked in entry.partitions
            ],
        )
        for entry in request.topics
    ]
    return {"topics": topics}
