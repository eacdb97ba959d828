"""What the map of partitions isolates, as the URL says, and the legend whose entries choose it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from frontend.partitions import LOOKS, Cell, Mark, Owner, Strip
from frontend.queries import GroupPage
from frontend.rows import PartitionOwner
from frontend.views.page import BadAddress, address, choice, number, text
from frontend.wording import ranges

LABELS: Mapping[Mark, str] = {
    Mark.UNOWNED: "no owner",
    Mark.MOVING: "changing hands",
    Mark.STALLED: "stalled",
    Mark.BEHIND: "with records to read",
}
MEANINGS: Mapping[Mark, str] = {
    Mark.UNOWNED: "No member owns these partitions",
    Mark.MOVING: "Their owner must give them up, or another member is meant to have them",
    Mark.STALLED: "Their owner makes no progress although there are records to read",
    Mark.BEHIND: "Something is committed, and there are records after it",
}
EMPTY: Mapping[Mark, int] = {}
LARGEST = 2**31 - 1
RANGES_SHOWN = 24


@dataclass(frozen=True, slots=True)
class Focus:
    """The partitions to isolate: of a member, with a mark, with a number; none of these: all.

    `by_lag`: cells show how far partitions are behind instead of whose they are.
    """

    member_id: str = ""
    mark: Mark | None = None
    partition: int | None = None
    by_lag: bool = False

    @property
    def narrows(self) -> bool:
        """Some cells are left out."""
        return self != Focus(by_lag=self.by_lag)

    def has(self, cell: Cell) -> bool:
        """Is the cell one of those that are isolated?"""
        return (
            self.member_id in ("", cell.member_id)
            and (self.mark is None or self.mark in cell.marks)
            and self.partition in (None, cell.partition)
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the legend: a link that isolates what it stands for, or all again if it is `chosen`.

    `look`: the class of its swatch. `detail`: a shortened id, or how many partitions there are.
    """

    look: str
    label: str
    detail: str
    title: str
    url: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Drawn:
    """A topic of the map: its cells with their classes, and as text which of them are isolated, "" if all are."""

    strip: Strip
    cells: Sequence[tuple[Cell, str]]
    isolated: str


@dataclass(frozen=True, slots=True)
class Found:
    """A partition that was asked for by its number."""

    topic: str
    text: str
    member_id: str


def focus_of(request: HttpRequest) -> Focus:
    """What the URL isolates. Raises BadAddress."""
    marked = choice(request, "mark", tuple(mark.value for mark in Mark))
    partition = number(request, "partition")
    if partition is not None and partition > LARGEST:
        raise BadAddress(f"partition: at most {LARGEST}.")
    return Focus(
        member_id=text(request, "owner"),
        mark=Mark(marked) if marked else None,
        partition=partition,
        by_lag=choice(request, "cells", ("lag",)) == "lag",
    )


def context_of(
    request: HttpRequest,
    focus: Focus,
    strips: Sequence[Strip],
    owners: Sequence[Owner],
    rows: Sequence[PartitionOwner],
    *,
    many_owners: bool,
    totals: Mapping[Mark, int] = EMPTY,
) -> dict[str, Any]:
    """The map. `many_owners`: more than there are colours, so that `owners` is empty and cells show lag.

    `totals`: of all partitions by mark, where not all are drawn; marks that are not in it are counted in what is drawn.
    """
    names = {row.member_id: row for row in rows}
    by_lag = focus.by_lag or many_owners
    return {
        "strips": [_drawn(strip, focus, by_lag) for strip in strips],
        "focus": focus,
        "by_lag": by_lag,
        "owner_entries": [] if by_lag else list(_owners(request, focus, owners)),
        "looks": LOOKS if by_lag else (),
        "mark_entries": list(_marks(request, focus, strips, totals)),
        "cells_urls": {"owner": address(request, cells=None), "lag": address(request, cells="lag")},
        "all_url": address(request, owner=None, mark=None, partition=None) if focus.narrows else "",
        "focused": names.get(focus.member_id),
        "found": list(_found(focus, strips)),
    }


def _drawn(strip: Strip, focus: Focus, by_lag: bool) -> Drawn:
    cells = [(cell, _classes(cell, by_lag, focus.has(cell))) for cell in strip.cells]
    if not focus.narrows:
        return Drawn(strip, cells, "")
    isolated = [cell.partition for cell in strip.cells if focus.has(cell)]
    return Drawn(strip, cells, ranges(isolated, most=RANGES_SHOWN) or "none")


def _classes(cell: Cell, by_lag: bool, isolated: bool) -> str:
    """Classes of the style sheet."""
    found = ["cell"]
    if cell.colour is None:
        found.append("free")
    found.append(cell.look if by_lag else "" if cell.colour is None else f"o{cell.colour}")
    if Mark.STALLED in cell.marks:
        found.append("stalled")
    if cell.pending:
        found.append("leaving")
    if cell.moves:
        found.append("moves" if by_lag or cell.heir is None else f"moves n{cell.heir}")
    if not isolated:
        found.append("dim")
    return " ".join(filter(None, found))


def _owners(request: HttpRequest, focus: Focus, owners: Sequence[Owner]) -> Iterator[Entry]:
    for owner in owners:
        chosen = owner.member_id == focus.member_id
        yield Entry(
            look=f"o{owner.colour}", label=owner.name, detail=owner.short, title=owner.member_id,
            url=address(request, owner=None if chosen else owner.member_id), chosen=chosen,
        )  # fmt: skip


def totals_of(page: GroupPage) -> Mapping[Mark, int]:
    """How many partitions have each mark, if not all are drawn."""
    if page.marks is None:
        return EMPTY
    found = {Mark.UNOWNED: page.marks.unowned, Mark.BEHIND: page.marks.behind}
    return {**found, Mark.STALLED: page.stalled_in_all}


def _marks(request: HttpRequest, focus: Focus, strips: Sequence[Strip], totals: Mapping[Mark, int]) -> Iterator[Entry]:
    for mark, label in LABELS.items():
        drawn = sum(mark in cell.marks for strip in strips for cell in strip.cells)
        count = max(totals.get(mark, drawn), drawn)
        chosen = focus.mark is mark
        if count or chosen:
            yield Entry(
                look=f"key-{mark.value}", label=label, title=MEANINGS[mark],
                detail=_counted(count, drawn, partly=bool(totals)),
                url=address(request, mark=None if chosen else mark.value), chosen=chosen,
            )  # fmt: skip


def _counted(count: int, drawn: int, *, partly: bool) -> str:
    """`2,212`, or `2,212, 960 drawn` where the map does not have them all."""
    if not partly:
        return f"{count:,}"
    return f"{count:,}, {drawn:,} drawn" if count > drawn else f"{drawn:,}"


def _found(focus: Focus, strips: Sequence[Strip]) -> Iterator[Found]:
    if focus.partition is None:
        return
    for strip in strips:
        for cell in strip.cells[focus.partition : focus.partition + 1]:
            yield Found(strip.topic, cell.title, cell.member_id)
