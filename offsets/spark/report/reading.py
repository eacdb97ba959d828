"""What pages read from a report's files: its groups, its busiest partitions, all of one group. No Spark here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from offsets.spark.archive.storage import Storage

SORTS: Mapping[str, tuple[str, str]] = {
    "name": ("group_name", "ascending"),
    "consumed": ("consumed", "descending"),
    "commits": ("commits", "descending"),
    "rewinds": ("rewinds", "descending"),
    "rebalances": ("rebalances", "descending"),
    "idle": ("last_commit_at", "ascending"),
}
"""The sort orders of groups; those that never committed come last."""
GROUP = (
    "group_name", "commits", "consumed", "rewinds", "members", "rebalances", "rebalances_since", "first_commit_at",
    "last_commit_at",
)  # fmt: skip
PARTITION = ("topic", "partition", "consumed", "commits", "groups")
MEMBER = ("member_id", "first_commit_at", "last_commit_at", "generations", "commits")
OF_DAYS = {
    "consumption": ("commits", "consumed", "records_per_second", "rewinds", "partitions"),
    "rebalances": ("rebalances", "causes"),
    "generations": ("generations",),
    "turnover": ("came", "went"),
}
"""Columns of the tables that have a row for each group and day."""


@dataclass(frozen=True, slots=True)
class GroupTotals:
    """A group over all of the archive. Instants in ms; `last_commit_at` None: it has events, but never committed."""

    group_name: str
    commits: int
    consumed: int
    rewinds: int
    members: int
    rebalances: int
    rebalances_since: int
    first_commit_at: int | None
    last_commit_at: int | None


@dataclass(frozen=True, slots=True)
class GroupsFound:
    """The total number of groups, and a page of them."""

    total: int
    groups: Sequence[GroupTotals]


@dataclass(frozen=True, slots=True)
class PartitionTotals:
    """A partition of a topic, over all groups."""

    topic: str
    partition: int
    consumed: int
    commits: int
    groups: int


@dataclass(frozen=True, slots=True)
class MemberSeen:
    """A member that committed, from when to when (ms)."""

    member_id: str
    first_commit_at: int
    last_commit_at: int
    generations: int
    commits: int


@dataclass(frozen=True, slots=True)
class GroupDay:
    """A group on a day (UTC); missing values are 0. `causes`: number of rebalances by cause."""

    date: date
    commits: int = 0
    consumed: int = 0
    records_per_second: float = 0.0
    rewinds: int = 0
    partitions: int = 0
    rebalances: int = 0
    causes: Mapping[str, int] = field(default_factory=dict)
    generations: int = 0
    came: int = 0
    went: int = 0


@dataclass(frozen=True, slots=True)
class GroupReport:
    """A complete group: `days` ascending, only the newest; `members` last seen first, out of `totals.members`."""

    totals: GroupTotals
    days: Sequence[GroupDay]
    members: Sequence[MemberSeen]


class ReportFiles:
    """The tables of one run. Methods raise JobError if files cannot be read."""

    def __init__(self, storage: Storage, written: Iterable[str]) -> None:
        """`written`: the files of the run, as its result names them: `reports/run=<id>/<table>/<file>`."""
        self._storage = storage
        self._files: dict[str, list[str]] = {}
        for path in written:
            self._files.setdefault(path.split("/")[-2], []).append(path)

    def groups(self, sort: str, part_of_name: str, idle_before: int | None, first: int, limit: int) -> GroupsFound:
        """Groups from the `first` on, counted from 0. `idle_before` (ms): only those that last committed before.

        `sort`: of `SORTS`.
        """
        wanted = None
        if part_of_name:
            wanted = pc.match_substring(ds.field("group_name"), part_of_name)
        if idle_before is not None:
            idle = ds.field("last_commit_at") <= idle_before
            wanted = idle if wanted is None else wanted & idle
        found = self._read("groups", GROUP, wanted)
        column, order = SORTS[sort]
        found = found.sort_by([(column, order), ("group_name", "ascending")])
        return GroupsFound(found.num_rows, [GroupTotals(**row) for row in found.slice(first, limit).to_pylist()])

    def partitions(self, first: int, limit: int) -> tuple[int, list[PartitionTotals]]:
        """The total number, and those from number `first` on: the busiest first, in the order of the file."""
        found = self._read("busiest_partitions", PARTITION)
        return found.num_rows, [PartitionTotals(**row) for row in found.slice(first, limit).to_pylist()]

    def of_group(self, group_id: str, most_days: int, most_members: int) -> GroupReport | None:
        """A group; None: the report has nothing about it."""
        wanted = ds.field("group_name") == group_id
        totals = self._read("groups", GROUP, wanted).to_pylist()
        if not totals:
            return None
        members = self._read("members", MEMBER, wanted).sort_by(
            [("last_commit_at", "descending"), ("member_id", "ascending")]
        )
        seen = [MemberSeen(**row) for row in members.slice(0, most_members).to_pylist()]
        return GroupReport(GroupTotals(**totals[0]), self._days(wanted)[-most_days:], seen)

    def _days(self, wanted: ds.Expression) -> list[GroupDay]:
        by_date: dict[date, dict[str, Any]] = {}
        for table, columns in OF_DAYS.items():
            for row in self._read(table, ("date", *columns), wanted).to_pylist():
                by_date.setdefault(row.pop("date"), {}).update(row)
        for row in by_date.values():
            row["causes"] = dict(row.get("causes") or ())
        return [GroupDay(day, **row) for day, row in sorted(by_date.items())]

    def _read(self, table: str, columns: Sequence[str], wanted: ds.Expression | None = None) -> pa.Table:
        files = self._files.get(table)
        if not files:
            return pa.table({name: [] for name in columns})
        return self._storage.rows(files, columns, wanted)
