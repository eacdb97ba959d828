"""What the tables of a group's page ask for, and what they get. Instants are milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from frontend.rows import Member, PartitionOffset
from offsets.core.samples import NOT_KNOWN, TimeLag

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


@dataclass(frozen=True, slots=True)
class Pages:
    """Where a table is: rows `first` to `last` of `matching`, and what leads on; "": nothing."""

    first: int
    last: int
    matching: int
    previous_url: str
    next_url: str


FIRST_PAGE = Table()
NO_MEMBERS, NO_OFFSETS = MemberRows(), OffsetRows()
NO_LOAD = Load(0, None, NOT_KNOWN)
"""Of a member that owns nothing."""
