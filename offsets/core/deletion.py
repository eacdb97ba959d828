"""Which partitions of an OffsetDelete lose their offset.

Whether the group's offsets may be deleted at all, and on which topics not, is the group core's `DeleteOffsets`; this is
the rest of the table. Source: offsets.md 2.2 and 6.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kcoord.protocol.errors import Error
from offsets.core.types import PartitionCounts, TopicPartition

Results = tuple[tuple[str, int, Error], ...]


@dataclass(frozen=True, slots=True)
class OffsetDelete:
    """OffsetDelete, version 0. `denied` holds topics that the caller may not read; `principal` the token's name."""

    group_id: str
    partitions: tuple[TopicPartition, ...]
    denied: frozenset[str] = frozenset()
    principal: str = ""


@dataclass(frozen=True, slots=True)
class OffsetDeleteReply:
    """`error` concerns the whole request and leaves no `results`; otherwise there is one for each requested partition.

    `deleted`: number of offsets deleted, committed or pending.
    """

    error: Error
    results: Results = ()
    deleted: int = 0
    detail: str = ""


def refuse(delete: OffsetDelete, counts: PartitionCounts) -> tuple[Results, tuple[TopicPartition, ...]]:
    """The partition filter: what is refused, and what is passed on to the coordinator, each partition once.

    Authorization comes before existence, so that it does not reveal what exists.
    """
    refused: list[tuple[str, int, Error]] = []
    passed: list[TopicPartition] = []
    for topic, partition in dict.fromkeys(delete.partitions):
        if topic in delete.denied:
            refused.append((topic, partition, Error.TOPIC_AUTHORIZATION_FAILED))
        elif not 0 <= partition < counts.get(topic, 0):
            refused.append((topic, partition, Error.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            passed.append((topic, partition))
    return tuple(refused), tuple(passed)


def spare(passed: Iterable[TopicPartition], subscribed: Collection[str]) -> tuple[Results, tuple[TopicPartition, ...]]:
    """The results of partitions that passed the filter, and those whose offsets go: none on a subscribed topic.

    NONE does not mean that an offset existed (offsets.md 6, row 9).
    """
    results: list[tuple[str, int, Error]] = []
    gone: list[TopicPartition] = []
    for topic, partition in passed:
        if topic in subscribed:
            results.append((topic, partition, Error.GROUP_SUBSCRIBED_TO_TOPIC))
        else:
            results.append((topic, partition, Error.NONE))
            gone.append((topic, partition))
    return tuple(results), tuple(gone)
