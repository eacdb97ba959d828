"""Commits for tests, partition by partition, as the columns that they are taken from."""

from __future__ import annotations

from dataclasses import dataclass

from kcoord.protocol.errors import Error
from offsets.core import commit as core
from offsets.core.commit import Commit, Lines
from offsets.core.types import PartitionCounts

Results = tuple[tuple[str, int, Error], ...]


@dataclass(frozen=True, slots=True)
class PartitionCommit:
    """One partition of a commit."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = None


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """A commit. `denied`: topics that the caller may not read."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    partitions: tuple[PartitionCommit, ...]
    retention_time_ms: int = -1
    denied: frozenset[str] = frozenset()
    principal: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a commit, with the result of each partition."""

    error: Error
    results: Results = ()
    session_deadline: int | None = None
    detail: str = ""


def take(asked: OffsetCommit, counts: PartitionCounts, metadata_limit: int = 4_096) -> Commit:
    """What is to be written of a commit."""
    entries = asked.partitions
    lines = Lines(
        tuple((entry.topic, 1) for entry in entries),
        [entry.partition for entry in entries],
        [entry.offset for entry in entries],
        [entry.leader_epoch for entry in entries],
        [entry.metadata or "" for entry in entries],
    )
    taken = core.take(lines, counts, asked.denied, metadata_limit)
    return Commit(
        asked.group_id,
        asked.member_id,
        asked.group_instance_id,
        asked.generation_id,
        taken.lines,
        asked.principal,
        retention_time_ms=asked.retention_time_ms,
        errors=taken.errors,
        is_for_group=taken.is_for_group,
    )


def results_of(asked: OffsetCommit, commit: Commit) -> Results:
    """The result of each partition, in the order of the commit."""
    pairs = zip(asked.partitions, commit.errors, strict=True)
    return tuple((entry.topic, entry.partition, error) for entry, error in pairs)
