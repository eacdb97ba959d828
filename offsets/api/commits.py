"""From the topics of a commit to what is written of it, and back with the results.

Commits as members send them all the time, of known topics and partitions that exist, nothing of which is refused, are
taken from the request column by column (`plain_commit`) and answered without a look at each partition. All others, and
those of transactions, are taken partition by partition, which gives the same for these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import UnsetType

from groups.core.model.types import Topic, TopicView
from kcoord.access.rights import Operation, Principal
from kcoord.http.types import int64
from kcoord.protocol.errors import Error
from offsets.api import wire
from offsets.api.topics import Named
from offsets.core.commit import Commit, Lines
from offsets.core.types import PartitionCommit


def partitions_of(entries: Sequence[wire.CommitTopic], topics: Sequence[Named]) -> tuple[PartitionCommit, ...]:
    """The partitions of topics with known names. Raises INVALID_REQUEST for an offset of more than 64 bits."""
    return tuple(
        PartitionCommit(
            topic=topic.name,
            partition=partition.partition,
            offset=int64(partition.committed_offset, f"topics[{i}].partitions[{j}].committed_offset"),
            leader_epoch=partition.committed_leader_epoch,
            metadata=partition.committed_metadata,
        )
        for i, (topic, entry) in enumerate(zip(topics, entries, strict=True))
        if topic.name is not None
        for j, partition in enumerate(entry.partitions)
    )


def denied(principal: Principal, topics: Sequence[Named]) -> frozenset[str]:
    """The topics on which the caller may not commit offsets."""
    names = {topic.name for topic in topics if topic.name is not None}
    return frozenset(name for name in names if not principal.may_topic(Operation.READ, name))


def answered(
    entries: Sequence[wire.CommitTopic], topics: Sequence[Named], results: Iterable[tuple[str, int, Error]]
) -> list[wire.CommittedTopic]:
    """Results of the partitions whose topics have names, in the order of the request, topic by topic."""
    found = iter(results)

    def result(name: str | None, partition: int) -> wire.CommittedPartition:
        error = Error.UNKNOWN_TOPIC_ID if name is None else next(found)[2]
        return wire.CommittedPartition(partition, error.code, error.name)

    return [
        wire.CommittedTopic(
            topic.name, topic.topic_id, [result(topic.name, entry.partition) for entry in asked.partitions]
        )
        for topic, asked in zip(topics, entries, strict=True)
    ]


_LONGEST_CHARACTER = 2
"""In UTF-16 code units, which the limit of metadata counts."""


def plain_commit(
    group_id: str, body: wire.CommitRequest, view: TopicView, principal: Principal, metadata_limit: int
) -> Commit | None:
    """The commit of a request; None: it is not that simple."""
    if body.retention_time_ms != -1:
        return None
    topics: list[tuple[str, int]] = []
    partitions: list[int] = []
    offsets: list[int] = []
    epochs: list[int] = []
    metadata: list[str] = []
    by_id = False
    for entry in body.topics:
        topic = _topic(entry, view, principal)
        if topic is None or not entry.partitions:
            return None
        by_id = by_id or not isinstance(entry.topic_id, UnsetType)
        numbers = [partition.partition for partition in entry.partitions]
        if min(numbers) < 0 or max(numbers) >= topic.partitions or len(set(numbers)) != len(numbers):
            return None
        topics.append((topic.name, len(numbers)))
        partitions += numbers
        for partition in entry.partitions:
            offset = partition.committed_offset
            if type(offset) is not int:
                return None
            offsets.append(offset)
        epochs += [partition.committed_leader_epoch for partition in entry.partitions]
        metadata += [partition.committed_metadata or "" for partition in entry.partitions]
    if not partitions or (len(topics) > 1 and len({name for name, _ in topics}) != len(topics)):
        return None
    longest = max(map(len, metadata))
    if longest * _LONGEST_CHARACTER > metadata_limit or any("\0" in text for text in metadata):
        return None
    return Commit(
        group_id,
        body.member_id,
        body.group_instance_id,
        body.generation_id_or_member_epoch,
        Lines(tuple(topics), partitions, offsets, epochs, metadata if longest else None),
        principal.name,
        view.version if by_id else None,
    )


def _topic(entry: wire.CommitTopic, view: TopicView, principal: Principal) -> Topic | None:
    """The topic of an entry, if the caller may commit offsets on it, and so may know of it."""
    if isinstance(entry.topic_id, UnsetType):
        topic = None if isinstance(entry.name, UnsetType) else view.by_name.get(entry.name)
    else:
        topic = view.by_id.get(entry.topic_id) if isinstance(entry.name, UnsetType) else None
    return topic if topic is not None and principal.may_topic(Operation.READ, topic.name) else None


def all_accepted(entries: Sequence[wire.CommitTopic], plain: Commit, view: TopicView) -> list[wire.CommittedTopic]:
    """The results of a plain commit of these entries, in the order of the request."""
    return [
        wire.CommittedTopic(name, view.by_name[name].topic_id, [_accepted(p.partition) for p in entry.partitions])
        for (name, _), entry in zip(plain.lines.topics, entries, strict=True)
    ]


_ACCEPTED: dict[int, wire.CommittedPartition] = {}
"""Results are the same for all topics; as many as a topic may have partitions."""


def _accepted(partition: int) -> wire.CommittedPartition:
    result = _ACCEPTED.get(partition)
    if result is None:
        result = _ACCEPTED[partition] = wire.CommittedPartition(partition, 0, "NONE")
    return result
