"""What a commit stores, column by column.

An object for each partition would cost more than everything else that is done for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from kcoord.protocol.errors import Error
from offsets.core.types import Millis, PartitionCommit

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
