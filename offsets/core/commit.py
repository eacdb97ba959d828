"""Which partitions of a commit are stored, and what is stored for them.

Membership (may this caller commit at all?) is the group core's `CommitOffsets`; this is the rest of the table, and the
question to the group.
Source: offsets.md 2.2, 3.2 rows 3, 12, 13 and 3.6.
"""

from __future__ import annotations

from groups.core.model.commands import CommitOffsets
from kcoord.protocol.errors import Error
from offsets.core.lines import NO_RETENTION, Commit, Lines, lines_of
from offsets.core.types import Millis, OffsetCommit, OffsetRecord, PartitionCommit, PartitionCounts

LARGEST_INSTANT_MS: Millis = 2**63 - 1
"""The latest instant that fits into 64 bits."""


def take(asked: OffsetCommit, counts: PartitionCounts, metadata_limit: int) -> Commit:
    """What is to be written of a commit. A partition named twice keeps its last entry that is not refused.

    Authorization comes before existence, so that it does not reveal what exists. Partitions with oversized metadata are
    refused in any case, so the group is not asked about them, but about the commit.
    """
    results: list[tuple[str, int, Error]] = []
    entries: dict[tuple[str, int], PartitionCommit] = {}
    is_for_group = False
    for entry in asked.partitions:
        error = Error.NONE
        if entry.topic in asked.denied:
            error = Error.TOPIC_AUTHORIZATION_FAILED
        elif not 0 <= entry.partition < counts.get(entry.topic, 0):
            error = Error.UNKNOWN_TOPIC_OR_PARTITION
        else:
            is_for_group = True
            if refuses_metadata(entry, metadata_limit):
                error = Error.OFFSET_METADATA_TOO_LARGE
            else:
                entries[entry.topic, entry.partition] = entry
        results.append((entry.topic, entry.partition, error))
    return Commit(
        asked.group_id,
        asked.member_id,
        asked.group_instance_id,
        asked.generation_id,
        lines_of(entries.values()),
        asked.principal,
        retention_time_ms=asked.retention_time_ms,
        results=tuple(results),
        is_for_group=is_for_group,
    )


def membership_half(commit: Commit, *, transactional: bool = False) -> CommitOffsets:
    """The group's part of a commit: may this caller commit these partitions?"""
    return CommitOffsets(
        commit.group_id,
        commit.member_id,
        commit.group_instance_id,
        commit.generation_id,
        transactional=transactional,
        partitions=_by_topic(commit.lines),
    )


def records_of(commit: Commit, now: Millis) -> tuple[OffsetRecord, ...]:
    """The rows that a commit becomes, if it is accepted at `now`.

    A retention time of -1 is none. Any other value is added to `now`, even a negative one: such an offset has already
    expired.
    """
    # Differs from Kafka: a sum of more than 64 bits is capped at the largest instant instead of wrapping into the past.
    retention_ms = commit.retention_time_ms
    expires = None if retention_ms == NO_RETENTION else min(now + retention_ms, LARGEST_INSTANT_MS)
    lines = commit.lines
    names = [name for name, count in lines.topics for _ in range(count)]
    metadata = lines.metadata or [""] * len(lines)
    columns = zip(names, lines.partitions, lines.offsets, lines.leader_epochs, metadata, strict=True)
    return tuple(OffsetRecord(*line, expires) for line in columns)


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


def _by_topic(lines: Lines) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    start = 0
    for name, count in lines.topics:
        found.setdefault(name, set()).update(lines.partitions[start : start + count])
        start += count
    return {name: frozenset(partitions) for name, partitions in found.items()}
