"""A commit: what it stores, column by column, and which of its partitions are stored.

An object for each partition would cost more than everything else that is done for it.

Membership (may this caller commit at all?) is the group core's `CommitOffsets`; this is the rest of the table, and the
question to the group.

A commit was overtaken if a later one of a partition was written before it. A client that gives up sends its offsets
elsewhere. If the first server was frozen, or waited for Postgres, and goes on then, its older commit would turn the
newer one back. Heartbeats have the same rule (`groups.core.consumer.members`, `check_order`). Commits that came to one
process are written there in their order, so that only those of others count.
Source: offsets.md 2.2, 3.2 rows 3, 12, 13 and 3.6.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from groups.core.model.commands import CommitOffsets
from kcoord.protocol.errors import Error
from offsets.core.types import Millis, OffsetCommitReply, OffsetRecord, PartitionCounts

NO_RETENTION: Millis = -1
"""As the retention time of a commit: its offsets do not expire by themselves."""


@dataclass(frozen=True, slots=True)
class Lines:
    """`topics`: names, each with how many lines in a row are about it, at least one. `metadata` None: all is empty."""

    topics: tuple[tuple[str, int], ...]
    partitions: list[int]
    offsets: list[int]
    leader_epochs: list[int]
    metadata: list[str] | None = None

    def __len__(self) -> int:
        return len(self.partitions)


class Commit(NamedTuple):
    """What is written of an OffsetCommit.

    `principal`: the token's name, for the journal. `catalogue`: the revision of the catalogue in which ids of topics
    were looked up; None: topics were named, or looked up as of now. `retention_time_ms` -1: the offsets do not expire
    by themselves. `errors`: of each line that was asked for, in that order, once the group accepts the commit; `lines`
    are those without one, and no partition occurs twice. `is_for_group`: the group is asked, even if no line is left;
    False: the partition filter has left nothing (offsets.md 2.2). `knows_epochs`: as in `CommitOffsets`.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    lines: Lines
    principal: str = ""
    catalogue: int | None = None
    retention_time_ms: Millis = NO_RETENTION
    errors: tuple[Error, ...] = ()
    is_for_group: bool = True
    knows_epochs: bool = True


def lines_of(records: Iterable[OffsetRecord]) -> Lines:
    """Records, of which each is about another partition, as columns."""
    found = list(records)
    metadata = [record.metadata for record in found]
    return Lines(
        tuple((topic, len(list(run))) for topic, run in groupby(found, lambda record: record.topic)),
        [record.partition for record in found],
        [record.offset for record in found],
        [record.leader_epoch for record in found],
        metadata if any(metadata) else None,
    )


LARGEST_INSTANT_MS: Millis = 2**63 - 1
"""The latest instant that fits into 64 bits."""


class Taken(NamedTuple):
    """What is to be written of the lines of a commit: these fields of `Commit`, see there."""

    lines: Lines
    errors: tuple[Error, ...]
    is_for_group: bool


LONGEST_CHARACTER = 2
"""In UTF-16 code units, which the limit of metadata counts."""


def take(lines: Lines, counts: PartitionCounts, denied: Container[str], metadata_limit: int) -> Taken:
    """What is to be written of a commit. A partition named twice keeps its last line that is not refused.

    `denied`: topics that the caller may not read. Authorization comes before existence, so that it does not reveal what
    exists. Partitions with oversized metadata are refused in any case, so the group is not asked about them, but about
    the commit.
    """
    none, errors = Error.NONE, list[Error]()
    may_repeat = len(lines.topics) > 1 and len({topic for topic, _ in lines.topics}) != len(lines.topics)
    for topic, size in lines.topics:
        numbers = lines.partitions[len(errors) : len(errors) + size]
        count = counts.get(topic, 0)
        may_repeat = may_repeat or (size > 1 and len(set(numbers)) != size)
        if topic in denied:
            errors += [Error.TOPIC_AUTHORIZATION_FAILED] * size
        elif min(numbers) >= 0 and max(numbers) < count:
            errors += [none] * size
        else:
            errors += [none if 0 <= n < count else Error.UNKNOWN_TOPIC_OR_PARTITION for n in numbers]
    is_for_group, metadata = none in errors, lines.metadata
    if metadata and (max(map(len, metadata)) * LONGEST_CHARACTER > metadata_limit or "\0" in "".join(metadata)):
        for number, text in enumerate(metadata):
            if errors[number] is none and refuses_metadata(text, metadata_limit):
                errors[number] = Error.OFFSET_METADATA_TOO_LARGE
    if may_repeat or errors.count(none) != len(errors):
        lines = _without(lines, errors)
    return Taken(lines, tuple(errors), is_for_group)


def _without(lines: Lines, errors: list[Error]) -> Lines:
    """The lines without an error, of each partition the last one, where its first one was."""
    names = [topic for topic, size in lines.topics for _ in range(size)]
    last: dict[tuple[str, int], int] = {}
    for number, error in enumerate(errors):
        if error is Error.NONE:
            last[names[number], lines.partitions[number]] = number
    kept = list(last.values())
    return Lines(
        tuple((topic, len(list(run))) for topic, run in groupby(names[number] for number in kept)),
        [lines.partitions[number] for number in kept],
        [lines.offsets[number] for number in kept],
        [lines.leader_epochs[number] for number in kept],
        None if lines.metadata is None else [lines.metadata[number] for number in kept],
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
        knows_epochs=commit.knows_epochs,
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


def refuses_metadata(metadata: str, metadata_limit: int) -> bool:
    """Is it longer than the limit, or no text of Postgres? Then its partition is not stored.

    Differs from Kafka: U+0000 in metadata is answered OFFSET_METADATA_TOO_LARGE, the only error about metadata that
    clients know; Kafka stores it.
    """
    return "\0" in metadata or utf16_length(metadata) > metadata_limit


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units, which is what the metadata limit counts in spite of its name."""
    return len(text) if text.isascii() else len(text) + sum(1 for character in text if ord(character) > 0xFFFF)


def _by_topic(lines: Lines) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    start = 0
    for name, count in lines.topics:
        found.setdefault(name, set()).update(lines.partitions[start : start + count])
        start += count
    return {name: frozenset(partitions) for name, partitions in found.items()}


OVERTAKEN_MS: Millis = 500
"""By how much a commit must have been received before the other one was written. Clients that give up have waited for
longer. Clocks of processes differ by less, and shorter gaps of a process are not seen (`kcoord.requests.current`).
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
