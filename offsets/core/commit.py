"""A commit: what it stores, column by column, and which of its partitions are stored.

An object for each partition would cost more than everything else that is done for it.

Membership (may this caller commit at all?) is the group core's `CommitOffsets`; this is the rest of the table, and the
question to the group.

A commit was overtaken if a later one of a partition was written before it. A client that gives up sends its offsets
elsewhere. If the first server was frozen, or waited for Postgres, and goes on then, its older commit would turn the
newer one back. Heartbeats have the same rule (`groups.core.consumer.checks`, `check_order`). Commits that came to one
process are written there in their order, so that only those of others count.
Source: offsets.md 2.2, 3.2 rows 3, 12, 13 and 3.6.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from groups.core.model.commands import CommitOffsets
from kcoord.protocol.errors import Error
from offsets.core.types import Millis, OffsetCommit, OffsetCommitReply, OffsetRecord, PartitionCommit, PartitionCounts

Results = tuple[tuple[str, int, Error], ...]

NO_RETENTION: Millis = -1
"""As the retention time of a commit: its offsets do not expire by themselves."""


@dataclass(frozen=True, slots=True)
class Lines:
    """`topics`: names, each with how many lines in a row are about it. No partition occurs twice.

    `metadata` None: all of it is empty.
    """

    topics: tuple[tuple[str, int], ...]
    partitions: list[int]
    offsets: list[int]
    leader_epochs: list[int]
    metadata: list[str] | None = None

    def __len__(self) -> int:
        return len(self.partitions)


@dataclass(frozen=True, slots=True)
class Commit:
    """What is written of an OffsetCommit: `lines` of partitions that exist and that the caller may commit.

    `retention_time_ms`: see `OffsetCommit`. `catalogue`: the revision of the catalogue in which ids of topics were
    looked up; None: topics were named, or looked up as of now. `results`: of each partition of the request, in its
    order, once the group accepts the commit; empty if none of them is refused. `is_for_group`: the group is asked, even
    if no line is left; False: the partition filter has left nothing (offsets.md 2.2).
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    lines: Lines
    principal: str = ""
    catalogue: int | None = None
    retention_time_ms: Millis = NO_RETENTION
    results: Results = ()
    is_for_group: bool = True


def lines_of(entries: Iterable[PartitionCommit]) -> Lines:
    """Entries, of which each is about another partition, as columns."""
    found = list(entries)
    metadata = [entry.metadata or "" for entry in found]
    return Lines(
        tuple((topic, len(list(run))) for topic, run in groupby(found, lambda entry: entry.topic)),
        [entry.partition for entry in found],
        [entry.offset for entry in found],
        [entry.leader_epoch for entry in found],
        metadata if any(metadata) else None,
    )


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


OVERTAKEN_MS: Millis = 500
"""By how much a commit must have been received before the other one was written. Clients that give up have waited for
longer. Clocks of processes differ by less, and shorter gaps of a process are not seen (`kcoord.database.request_age`).
"""


def overtaken_before(now: Millis, age_ms: Millis) -> Millis | None:
    """A commit of this age is overtaken by one of its partitions written later than this, up to `now`.

    None: it is so young that none can have overtaken it.
    """
    return None if age_ms <= OVERTAKEN_MS else now - age_ms + OVERTAKEN_MS


def overtaken(group_id: str, ago_ms: Millis) -> OffsetCommitReply:
    """COORDINATOR_NOT_AVAILABLE: nothing was written. `ago_ms`: how long ago the later commit was written.

    Differs from Kafka: there commits of different connections are written in whatever order they are handled.
    """
    detail = (
        f"a later commit of group {group_id!r} on one of these partitions was written {ago_ms} ms ago, before this one"
    )
    return OffsetCommitReply(Error.COORDINATOR_NOT_AVAILABLE, detail=detail)
