"""The tables of members and partitions of a group's page: what they ask for, and how it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from frontend.ui.members import member_rates
from frontend.ui.rows import Member, Millis, PartitionOffset
from frontend.ui.viewer import Viewer
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from offsets.core.lag import longest
from offsets.core.samples import NOT_KNOWN, TimeLag
from offsets.lag.positions import lags

PAGE_ROWS = 50
LAST_PAGE = 200
"""Pages of a table; what lies beyond is found with its filter, or in the CSV file."""


@dataclass(frozen=True, slots=True)
class Table:
    """How the table of a tab is narrowed and sorted, as the URL says; `page` counts from 1.

    `q`: part of an id, a client id or a host (members). `only`: a condition (partitions). `member_id`: the owner.
    """

    q: str = ""
    sort: str = ""
    page: int = 1
    only: str = ""
    member_id: str = ""

    @property
    def skip(self) -> int:
        """Rows on the pages before."""
        return (self.page - 1) * PAGE_ROWS

    @property
    def is_plain(self) -> bool:
        """It is the first page, of everything, in the usual order."""
        return self == Table()


@dataclass(frozen=True, slots=True)
class Load:
    """How far a member is behind on what it owns. `lag` None: not known. `time_lag`: the largest.

    `rate`: records that it reads in a minute; None: it has just begun, or owns too many partitions to be asked here.
    """

    measured: int
    lag: int | None
    time_lag: TimeLag
    rate: int | None = None


@dataclass(frozen=True, slots=True)
class MemberRows:
    """A page of members; `matching`: how many match the filter. `loads` by member id."""

    members: tuple[Member, ...] = ()
    matching: int = 0
    loads: Mapping[str, Load] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OffsetRows:
    """A page of partitions; `matching`: how many match, None: not counted. `times` by (topic, partition)."""

    offsets: Sequence[PartitionOffset] = ()
    matching: int | None = None
    times: Mapping[tuple[str, int], TimeLag] = field(default_factory=dict)

    def time_lag(self, topic: str, partition: int) -> TimeLag:
        """The age of the next record to read."""
        return self.times.get((topic, partition), NOT_KNOWN)


FIRST_PAGE = Table()
NO_MEMBERS, NO_OFFSETS = MemberRows(), OffsetRows()

Q = queries("frontend")

ENDLESS = 2**62
"""Whether a watermark is stale is not asked here."""


async def member_rows(
    db: Database, connection: Connection, group: Mapping[str, Any], table: Table, limit: int, count: int, now: Millis
) -> MemberRows:
    """Members of a group, of which there are `count`.

    `group`: its key (`pk`), `group_id`, the `epoch` of its target, and the parameters of the viewer.
    """
    parameters = {
        **group, "limit": limit, "skip": table.skip, "q": table.q, "sort": table.sort,
        "unsettled_first": count > limit,
    }  # fmt: skip
    found = await db.records(connection, _member, Q.group_members, parameters)
    members = tuple(member for member, _ in found)
    wanted = {**group, "member_ids": [member.member_id for member in members]}
    parts = await db.records(connection, _Part, Q.member_loads, wanted)
    behind = await lags(db, connection, parts, now, ENDLESS)
    rates = await member_rates(db, connection, group, wanted["member_ids"], now)
    times: dict[str, list[TimeLag]] = {}
    for part, lag in zip(parts, behind, strict=True):
        times.setdefault(part.member_id, []).extend([lag.time_lag] if lag.lag is not None else [])
    loads = {part.member_id: _load(part, times[part.member_id], rates.get(part.member_id)) for part in parts}
    return MemberRows(members, found[0][1] if found else 0, loads)


def _member(*, matching: int, **member: Any) -> tuple[Member, int]:
    return Member(**member), matching


@dataclass(frozen=True, slots=True)
class _Part:
    """How far a member is behind, and one of the partitions where it is furthest behind; None: it is nowhere."""

    member_id: str
    measured: int
    lag: int | None
    topic: str | None
    partition: int | None
    committed_offset: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    sampled_at: Millis | None


def _load(part: _Part, times: Sequence[TimeLag], rate: int | None) -> Load:
    """What is the same in all rows of a member, and the largest of its time lags; 0 if it has read everything."""
    return Load(part.measured, part.lag, longest(times or ([TimeLag(0)] if part.lag is not None else [])), rate)


async def offset_rows(
    db: Database, connection: Connection, viewer: Viewer, pk: int, q: str, table: Table, limit: int, now: Millis
) -> OffsetRows:
    """Partitions of the topics whose names contain `q`. Their number is counted only if not all are wanted."""
    parameters = {"pk": pk, "q": q, "limit": limit, **viewer.parameters()}
    matching = None
    if table.is_plain and (not q or limit == 1):
        offsets = await db.records(connection, PartitionOffset, Q.partition_offsets, parameters)
    else:
        parameters |= {"sort": table.sort, "skip": table.skip, "only": table.only, "member_id": table.member_id}
        found = await db.records(connection, _offset, Q.partition_table, parameters)
        offsets = [offset for offset, _ in found]
        matching = found[0][1] if found else 0
    behind = await lags(db, connection, offsets, now, ENDLESS)
    times = {(row.topic, row.partition): lag.time_lag for row, lag in zip(offsets, behind, strict=True)}
    return OffsetRows(offsets, matching, times)


def _offset(*, matching: int, **offset: Any) -> tuple[PartitionOffset, int]:
    return PartitionOffset(**offset), matching
