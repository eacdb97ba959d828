"""Which partitions of a commit are stored, and what is stored for them.

Membership (may this caller commit at all?) is the group core's `CommitOffsets`; this is the rest of the table, and the
question to the group.
Source: offsets.md 2.2, 3.2 rows 3, 12, 13 and 3.6.
"""

from __future__ import annotations

from collections.abc import Iterable

from groups.core.model.commands import CommitOffsets
from kcoord.protocol.errors import Error
from offsets.core.types import Millis, OffsetCommit, OffsetRecord, PartitionCommit, PartitionCounts

Results = tuple[tuple[str, int, Error], ...]

NO_RETENTION: Millis = -1
"""As the retention time of a commit: its offsets do not expire by themselves."""

LARGEST_INSTANT_MS: Millis = 2**63 - 1
"""The latest instant that fits into 64 bits."""


def refuse(commit: OffsetCommit, counts: PartitionCounts) -> tuple[Results, tuple[PartitionCommit, ...]]:
    """The partition filter: what is refused, and what is passed on to the coordinator.

    Authorization comes before existence, so that it does not reveal what exists.
    """
    refused: list[tuple[str, int, Error]] = []
    passed: list[PartitionCommit] = []
    for entry in commit.partitions:
        if entry.topic in commit.denied:
            refused.append((entry.topic, entry.partition, Error.TOPIC_AUTHORIZATION_FAILED))
        elif not 0 <= entry.partition < counts.get(entry.topic, 0):
            refused.append((entry.topic, entry.partition, Error.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            passed.append(entry)
    return tuple(refused), tuple(passed)


def membership_half(
    commit: OffsetCommit, passed: Iterable[PartitionCommit], metadata_limit: int, *, transactional: bool = False
) -> CommitOffsets:
    """The group's part of a commit: may this caller commit the partitions that `passed` the filter?

    Partitions with oversized metadata are refused in any case, so the group is not asked about them.
    """
    return CommitOffsets(
        commit.group_id,
        commit.member_id,
        commit.group_instance_id,
        commit.generation_id,
        transactional=transactional,
        partitions=_by_topic(entry for entry in passed if not refuses_metadata(entry, metadata_limit)),
    )


def record(
    entries: tuple[PartitionCommit, ...], retention_time_ms: Millis, now: Millis, metadata_limit: int
) -> tuple[Results, tuple[OffsetRecord, ...]]:
    """The results of accepted entries and the rows they become. A partition named twice keeps its last entry.

    `retention_time_ms` -1: none. Any other value is added to `now`, even a negative one: such an offset has already
    expired.
    """
    results: list[tuple[str, int, Error]] = []
    records: dict[tuple[str, int], OffsetRecord] = {}
    # Differs from Kafka: a sum of more than 64 bits is capped at the largest instant instead of wrapping into the past.
    expires = None if retention_time_ms == NO_RETENTION else min(now + retention_time_ms, LARGEST_INSTANT_MS)
    for entry in entries:
        if refuses_metadata(entry, metadata_limit):
            results.append((entry.topic, entry.partition, Error.OFFSET_METADATA_TOO_LARGE))
            continue
        results.append((entry.topic, entry.partition, Error.NONE))
        records[entry.topic, entry.partition] = OffsetRecord(
            entry.topic, entry.partition, entry.offset, entry.leader_epoch, entry.metadata or "", expires
        )
    return tuple(results), tuple(records.values())


def refuses_metadata(entry: PartitionCommit, metadata_limit: int) -> bool:
    """Is the metadata longer than the limit, or no text of Postgres? Then the entry is not stored.

    Differs from Kafka: U+0000 in metadata is answered OFFSET_METADATA_TOO_LARGE, the only error about metadata that
    clients know; Kafka stores it.
    """
    metadata = entry.metadata or ""
    return "\0" in metadata or utf16_length(metadata) > metadata_limit


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units, which is what the metadata limit counts in spite of its name."""
    return len(text) + sum(1 for character in text if ord(character) > 0xFFFF)


def _by_topic(entries: Iterable[PartitionCommit]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for entry in entries:
        found.setdefault(entry.topic, set()).add(entry.partition)
    return {topic: frozenset(partitions) for topic, partitions in found.items()}
