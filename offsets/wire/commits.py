"""OffsetCommit and OffsetDelete.

Source: KIP-211, 345, 848, 1188 for the versions; offsets.md 2, 3 and 6 for the rules, which are the services'.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any, cast

from kcoord.access.rights import Operation
from kcoord.http.paths import check_group_id
from kcoord.metrics import COMMANDS, OFFSETS_COMMITTED, commands
from kcoord.process import off_loop
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.quotas.quotas import Quotas
from kcoord.wire.api import Answer, Call
from kcoord.wire.codes import UNSUPPORTED_VERSION
from kcoord.wire.reading import Fields
from offsets.api import wire as http
from offsets.api.handlers import commit as commit_over_http
from offsets.api.topics import Named
from offsets.core.commit import NO_RETENTION
from offsets.core.deletion import OffsetDelete
from offsets.core.types import OffsetCommit, PartitionCommit
from offsets.deletion import OffsetDeletion
from offsets.lane.lane import LARGEST
from offsets.service import OffsetService
from offsets.wire.named import check_identity, refused, resolve, topic_answer, unreadable

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
    plain = await _plain(call, request)
    if plain is not None:
        return plain
    topics = await resolve(call, request.topics)
    commit = OffsetCommit(
        group_id=group_id,
        member_id=request.member_id,
        group_instance_id=request.get("group_instance_id"),
        generation_id=request.generation_id_or_member_epoch,
        partitions=commits_of(topics, request.topics),
        retention_time_ms=request.get("retention_time", NO_RETENTION),
        denied=unreadable(call.principal, topics),
        principal=call.principal.name,
    )
    reply = await call.runtime.get(OffsetService).commit(commit)
    commands("commit", reply.error.name).inc()
    if reply.error is not Error.NONE:
        raise ProtocolError(reply.error, reply.detail)
    OFFSETS_COMMITTED.inc(sum([error is Error.NONE for _, _, error in reply.results]))
    size = off_loop.PER_OFFSET * len(reply.results)
    return {"topics": await off_loop.run(size, answered, request.topics, topics, reply.results)}


async def _plain(call: Call, request: Fields) -> Answer | None:
    """The answer to a commit as members send them all the time, by the short way of the REST API; None: it is not.

    Names of topics only: an unknown id has an error of its own here.
    """
    topics = request.topics
    if not topics or "name" not in topics[0] or request.get("retention_time", NO_RETENTION) != NO_RETENTION:
        return None
    if sum([len(entry["partitions"]) for entry in topics]) > LARGEST:
        return None
    if request.generation_id_or_member_epoch < 0 and call.runtime.get(Quotas).limits_joins:
        return None  # a quota makes a Kafka client wait, and does not refuse it
    body = http.CommitRequest(
        [http.CommitTopic([_partition(p) for p in entry["partitions"]], name=entry["name"]) for entry in topics],
        member_id=request.member_id,
        group_instance_id=request.get("group_instance_id"),
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
    )
    committed = cast(http.CommitResponse, await commit_over_http.carry_out(call.over_http(body, request.group_id)))
    results = [
        [{"partition_index": p.partition, "error_code": p.error_code} for p in topic.partitions]
        for topic in committed.topics
    ]
    return {"topics": [topic_answer(entry, result) for entry, result in zip(topics, results, strict=True)]}


def _partition(asked: Fields) -> http.CommitPartition:
    return http.CommitPartition(
        asked["partition_index"],
        asked["committed_offset"],
        asked.get("committed_leader_epoch", -1),
        asked["committed_metadata"],
    )


def commits_of(topics: Sequence[Named], entries: Iterable[Fields]) -> tuple[PartitionCommit, ...]:
    """The partitions of a commit, of topics with known names."""
    return tuple(
        PartitionCommit(
            topic.name,
            partition.partition_index,
            partition.committed_offset,
            partition.get("committed_leader_epoch", -1),
            partition.committed_metadata,
        )
        for topic, entry in zip(topics, entries, strict=True)
        if topic.name is not None
        for partition in entry.partitions
    )


def answered(
    entries: Iterable[Fields], topics: Sequence[Named], results: Iterable[tuple[str, int, Error]]
) -> list[dict[str, Any]]:
    """Results in the order of the request; the results of a partition named twice keep their order."""
    found: dict[tuple[str, int], deque[Error]] = defaultdict(deque)
    for name, partition, error in results:
        found[name, partition].append(error)

    def result(name: str | None, partition: int) -> dict[str, Any]:
        error = Error.UNKNOWN_TOPIC_ID if name is None else found[name, partition].popleft()
        return {"partition_index": partition, "error_code": error.code}

    return [
        topic_answer(entry, [result(topic.name, asked.partition_index) for asked in entry.partitions])
        for topic, entry in zip(topics, entries, strict=True)
    ]


async def offset_delete(call: Call, request: Fields) -> Answer:
    """OffsetDelete 0."""
    group_id, principal = check_group_id(request.group_id, may_be_empty=True), call.principal
    principal.require_group(Operation.DELETE, group_id)
    topics = await resolve(call, request.topics)
    partitions = tuple((entry.name, asked.partition_index) for entry in request.topics for asked in entry.partitions)
    command = OffsetDelete(group_id, partitions, unreadable(principal, topics), principal.name)
    reply = await call.runtime.get(OffsetDeletion).delete(command)
    COMMANDS.labels("delete_offsets", reply.error.name).inc()
    if reply.error is not Error.NONE:
        raise ProtocolError(reply.error, reply.detail)
    once = {(topic, partition): error for topic, partition, error in reply.results}
    results = [(topic, partition, once[topic, partition]) for topic, partition in partitions]
    return {"topics": answered(request.topics, topics, results)}
