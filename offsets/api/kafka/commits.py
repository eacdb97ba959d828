"""OffsetCommit and OffsetDelete.

Source: KIP-211, 345, 848, 1188 for the versions; offsets.md 2, 3 and 6 for the rules, which are the services'.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from functools import partial
from typing import Any

from msgspec import UNSET

from kcoord.access.rights import Operation
from kcoord.door.http.paths import check_group_id
from kcoord.door.kafka.api import UNSUPPORTED_VERSION, Answer, Call
from kcoord.door.kafka.codec import Columns, Fields
from kcoord.metrics import COMMANDS
from kcoord.protocol.errors import Error, ProblemFields, ProtocolError
from offsets.api.handlers import Asked, AskedTopic, Named, by_topic, committed
from offsets.commits.deletion import OffsetDeletion
from offsets.core.commit import NO_RETENTION, Commit
from offsets.core.deletion import OffsetDelete
from offsets.core.types import OffsetCommitReply

LONGEST_MEMBER_ID, LONGEST_INSTANCE_ID = 300, 249
"""Characters, as in `kcoord.door.http.types`."""


def check_identity(request: Fields) -> None:
    """Raise INVALID_REQUEST for ids that no member can have: what is stored has bounds, as those of the REST API."""
    for name, longest in (("member_id", LONGEST_MEMBER_ID), ("group_instance_id", LONGEST_INSTANCE_ID)):
        if len(request.get(name) or "") > longest:
            raise ProtocolError(Error.INVALID_REQUEST, f"{name} has more than {longest} characters")


def topic_answer(entry: Fields, partitions: Sequence[Answer] | Columns) -> dict[str, Any]:
    """A topic of an answer, with the name or id that the request had, and these partitions."""
    return {"name": entry.get("name", ""), "topic_id": entry.get("topic_id"), "partitions": partitions}


def refused(request: Fields, version: int, code: int, detail: str) -> Answer:
    """An answer in which every partition has the error of the whole request, for which there is no other room."""
    topics = [
        topic_answer(entry, _results(numbers, [code] * len(numbers)))
        for entry in request.topics
        for numbers in [entry.partitions["partition_index"]]
    ]
    return {"topics": topics}


KNOWS_EPOCHS = 9
"""The first version of OffsetCommit whose clients know member epochs (KIP-848)."""


def refused_commit(request: Fields, version: int, code: int, detail: str) -> Answer:
    """As `refused`, of OffsetCommit.

    Older clients are told of a missing group by an error that they know, and get none that is about epochs
    (offsets.md 3.2 row 8 and 3.4 row 3).
    """
    return refused(request, version, code if version >= KNOWS_EPOCHS else _BEFORE_EPOCHS.get(code, code), detail)


_BEFORE_EPOCHS = {
    Error.GROUP_ID_NOT_FOUND.code: Error.ILLEGAL_GENERATION.code,
    Error.STALE_MEMBER_EPOCH.code: UNSUPPORTED_VERSION,
}


def with_own_errors(request: Fields, answer: Answer, fields: ProblemFields) -> Answer:
    """A refusal in which partitions about which the group is not asked have their own error (offsets.md 2.2)."""
    own: dict[tuple[str | None, int], int] = {}
    for one in fields.get("partition_errors", ()):
        own |= {(name, one["partition"]): one["error_code"] for name in (one["topic"], one["topic_id"]) if name}
    if not own:
        return answer
    for entry, told in zip(request.topics, answer["topics"], strict=True):
        name, results = str(entry["topic_id"]) if "topic_id" in entry else entry.name, told["partitions"]
        pairs = zip(results["partition_index"], results["error_code"], strict=True)
        results["error_code"] = [own.get((name, number), code) for number, code in pairs]
    return answer


def offset_commit(call: Call, request: Fields) -> Awaitable[Answer]:
    """OffsetCommit 2 to 10."""
    group_id = check_group_id(request.group_id, may_be_empty=True)
    call.principal.require_group(Operation.READ, group_id)
    check_identity(request)
    asked = Asked(
        topics_of(request.topics),
        request.generation_id_or_member_epoch,
        request.member_id,
        request.get("group_instance_id"),
        request.get("retention_time", NO_RETENTION),
        call.version >= KNOWS_EPOCHS,
    )
    # Not by the operation: a quota makes a Kafka client wait, and does not refuse it.
    return committed(call.over_http(None, group_id), asked, partial(answer, request.topics, asked))


def topics_of(entries: Iterable[Fields]) -> list[AskedTopic]:
    """The topics of a commit. Nothing is checked: these fields have the same bounds over HTTP."""
    found = []
    for entry in entries:
        columns = entry["partitions"]
        numbers, texts = columns["partition_index"], columns["committed_metadata"]
        found.append(
            AskedTopic(
                numbers,
                columns["committed_offset"],
                columns.get("committed_leader_epoch") or [-1] * len(numbers),
                [text or "" for text in texts] if any(texts) else None,
                entry.get("name", UNSET),
                str(entry["topic_id"]) if "topic_id" in entry else UNSET,
            )
        )
    return found


def answer(
    entries: Sequence[Fields], asked: Asked, named: Sequence[Named], commit: Commit, _reply: OffsetCommitReply
) -> Answer:
    """The answer to a commit of these topics."""
    found = by_topic(asked.topics, named, commit.errors)
    topics = [
        topic_answer(entry, _results(topic.partitions, _codes(errors)))
        for entry, (topic, _, errors) in zip(entries, found, strict=True)
    ]
    return {"topics": topics}


def _codes(errors: Sequence[Error]) -> list[int]:
    if errors.count(Error.NONE) == len(errors):
        return [0] * len(errors)
    return [error.code for error in errors]


def _results(partitions: list[int], codes: list[int]) -> Columns:
    return Columns(partition_index=partitions, error_code=codes)


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
        if entry.partitions
    ]
    return {"topics": topics}
