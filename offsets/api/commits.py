"""Shared by both kinds of commits: from the topics of a request to partitions, and back with their results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kcoord.access.rights import Operation, Principal
from kcoord.http.types import int64
from kcoord.protocol.errors import Error
from offsets.api import wire
from offsets.api.topics import Named
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
