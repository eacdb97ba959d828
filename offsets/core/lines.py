"""What a commit stores, column by column: for the lane, which writes many commits at once.

An object for each partition would cost more than everything else that is done for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from offsets.core.types import OffsetCommit, OffsetRecord, PartitionCommit


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
class PlainCommit:
    """A commit of `lines` by a caller who may read their topics, which have these partitions.

    No offset expires by itself, and no metadata is too large. `catalogue`: the revision of the catalogue in which ids
    of topics were looked up; None: topics were named, or looked up as of now.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    lines: Lines
    principal: str = ""
    catalogue: int | None = None

    def general(self) -> OffsetCommit:
        """The same as any other commit."""
        return OffsetCommit(
            self.group_id,
            self.member_id,
            self.group_instance_id,
            self.generation_id,
            partitions_of(self.lines),
            principal=self.principal,
        )


def partitions_of(lines: Lines) -> tuple[PartitionCommit, ...]:
    """Each line as an object."""
    names = [name for name, count in lines.topics for _ in range(count)]
    metadata = lines.metadata or [""] * len(lines)
    columns = zip(names, lines.partitions, lines.offsets, lines.leader_epochs, metadata, strict=True)
    return tuple(PartitionCommit(*line) for line in columns)


def lines_of(records: Sequence[OffsetRecord]) -> Lines:
    """Records, of which each is about another partition, as columns."""
    return Lines(
        tuple((topic, len(list(run))) for topic, run in groupby(records, lambda record: record.topic)),
        [record.partition for record in records],
        [record.offset for record in records],
        [record.leader_epoch for record in records],
        [record.metadata for record in records] if any(record.metadata for record in records) else None,
    )
