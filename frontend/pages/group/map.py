"""The map of partitions: who owns which and how far it is behind, a strip per topic; and a focus on some. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from django.http import HttpRequest

from frontend.pages.group.reads import DrawnOffset, GroupPage, GroupTopic, Heir, PartitionOwner
from frontend.ui.page import BadAddress, address, choice, number, text
from frontend.ui.rows import Names
from frontend.ui.states import level
from frontend.ui.wording import client_at, joined, member_name, plural, ranges, short_id

COLOURS = 12
"""Owner colours in the style sheet; with more owners they repeat."""
_COLOUR = re.compile(r"^([0-9]{1,18}):([0-9]{1,2})$")
PROMISES = 5
"""The maximum number of members named for partitions without an owner."""
ROOMY = 64
"""Up to this many partitions, the cells of a topic are large enough for their number."""


class Mark(str, Enum):
    """What matters about a partition, regardless of its owner."""

    UNOWNED = "unowned"
    MOVING = "moving"
    STALLED = "stalled"
    BEHIND = "behind"


LOOKS = (
    ("l0", "no lag"),
    ("l1", "up to 100 behind"),
    ("l2", "up to 10,000"),
    ("l3", "up to 1,000,000"),
    ("l4", "more"),
    ("unread", "lag not known"),
)
"""Classes of cells that show lag, and what each means: fuller cells are further behind."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A partition. `colour` None: it has no owner; `owner` is then "", else text that names the owner.

    `heir`: the colour of the member that should have it but does not; `moves`: there is such a member. `pending`: its
    owner was asked to give it up. `look`: one of LOOKS. `member_id`: the owner, "" if there is none.
    """

    partition: int
    colour: int | None
    title: str
    owner: str
    member_id: str
    marks: frozenset[Mark]
    look: str
    pending: bool = False
    moves: bool = False
    heir: int | None = None


@dataclass(frozen=True, slots=True)
class Strip:
    """A topic: its cells, and the same as text for users who cannot see them."""

    topic: str
    size: int
    known: bool
    owned: int
    cells: tuple[Cell, ...]
    roomy: bool
    unowned: str
    hidden: int
    description: str
    promised: str
    """Partitions without an owner that a member should have: `3–5 wait for m4`."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A member with a colour of its own. `name`: client and host; `short`: its id, shortened."""

    colour: int
    name: str
    short: str
    member_id: str


def colours(owners: Mapping[str, int], kept: Mapping[int, int]) -> dict[str, int]:
    """A colour for each owner, given the keys of their rows.

    `kept` maps keys to the colours an open page has already assigned: they stay with their members while others come
    and go. A new member gets the next free colour in order of arrival, preferably one that was not in use a moment
    ago; when none is left, colours repeat.
    """
    arrived = sorted(owners.items(), key=lambda owner: owner[1])
    chosen = {member_id: kept[pk] for member_id, pk in arrived if pk in kept}
    free = [colour for colour in range(COLOURS) if colour not in chosen.values()]
    free.sort(key=lambda colour: colour in kept.values())
    for member_id, pk in arrived:
        if member_id not in chosen:
            chosen[member_id] = free.pop(0) if free else pk % COLOURS
    return chosen


def page_colours(page: GroupPage, kept: Mapping[int, int]) -> dict[str, int]:
    """Colours of the members that own something on this page, or did a moment ago."""
    keys = {owner.member_id: owner.member_pk for owner in page.owners if owner.member_pk is not None}
    keys |= {member.member_id: member.pk for member in page.members if member.owned or member.pk in kept}
    keys |= {heir.member_id: heir.member_pk for heir in _heirs(page)}
    return colours(keys, kept)


def read_colours(text: str) -> dict[int, int]:
    """The colours that the page sends back from `written_colours`; anything it did not write is ignored."""
    kept: dict[int, int] = {}
    for part in text.split(",")[:COLOURS]:
        match = _COLOUR.match(part)
        if match and int(match[2]) < COLOURS and int(match[2]) not in kept.values():
            kept[int(match[1])] = int(match[2])
    return kept


def written_colours(page: GroupPage, chosen: Mapping[str, int]) -> str:
    """Colours by member key, for the page to keep: `12:0,15:1`. Empty when there are more owners than colours."""
    if len(chosen) > COLOURS:
        return ""
    keys = {owner.member_id: owner.member_pk for owner in page.owners}
    keys |= {member.member_id: member.pk for member in page.members}
    keys |= {heir.member_id: heir.member_pk for heir in _heirs(page)}
    return ",".join(f"{keys[member_id]}:{colour}" for member_id, colour in chosen.items())


def legend(page: GroupPage, chosen: Mapping[str, int]) -> tuple[Owner, ...]:
    """Which member has which colour; empty when there are more owners than colours."""
    if len(chosen) > COLOURS:
        return ()
    owning = {owner.member_id for owner in page.owners} | {heir.member_id for heir in _heirs(page)}
    known = names(page)
    return tuple(
        Owner(colour, known.get(member_id, ""), short_id(member_id), member_id)
        for member_id, colour in chosen.items()
        if member_id in owning
    )


def names(page: GroupPage) -> Names:
    """`client@host` of the members that the page has read."""
    found = dict(page.names)
    found |= {member.member_id: client_at(member.client_id, member.client_host) for member in page.members}
    found |= {
        owner.member_id: client_at(owner.client_id, owner.client_host or "")
        for owner in page.owners
        if owner.client_id is not None
    }
    return found


def _heirs(page: GroupPage) -> tuple[Heir, ...]:
    return page.consumer.heirs if page.consumer is not None else ()


@dataclass(frozen=True, slots=True)
class _Rows:
    """What is known of the drawn partitions of a topic, by number."""

    owners: dict[int, PartitionOwner] = field(default_factory=dict)
    heirs: dict[int, Heir] = field(default_factory=dict)
    offsets: dict[int, DrawnOffset] = field(default_factory=dict)
    stalled: set[int] = field(default_factory=set)


def strips(page: GroupPage, chosen: Mapping[str, int]) -> tuple[Strip, ...]:
    """One strip per topic on the page."""
    of: dict[str, _Rows] = {topic.topic: _Rows() for topic in page.topics}
    for owner in page.owners:
        of[owner.topic].owners[owner.partition] = owner
    for heir in _heirs(page):
        of[heir.topic].heirs[heir.partition] = heir
    for offset in page.drawn:
        of[offset.topic].offsets[offset.partition] = offset
    for topic, partition in page.stalled:
        if topic in of:
            of[topic].stalled.add(partition)
    known = names(page)
    return tuple(_strip(topic, of[topic.topic], chosen, known, page.widths[topic.topic]) for topic in page.topics)


def _strip(topic: GroupTopic, rows: _Rows, chosen: Mapping[str, int], known: Names, width: int) -> Strip:
    shown = min(topic.size, width)
    cells = tuple(_cell(partition, rows, chosen, known) for partition in range(shown))
    free = [cell.partition for cell in cells if cell.partition not in rows.owners]
    return Strip(
        topic=topic.topic,
        size=topic.size,
        known=topic.partitions is not None,
        owned=topic.owned,
        cells=cells,
        roomy=topic.size <= ROOMY,
        unowned=ranges([partition for partition in free if partition not in rows.heirs], most=12),
        hidden=topic.size - shown,
        description=_description(topic, rows.owners, rows.heirs, shown == topic.size),
        promised=_promised(free, rows.heirs, known),
    )


def _description(
    topic: GroupTopic, owners: Mapping[int, PartitionOwner], heirs: Mapping[int, Heir], all_shown: bool
) -> str:
    description = plural(topic.size, "partition")
    if all_shown:
        description += f", {plural(len({owner.member_id for owner in owners.values()}), 'owner')}"
    moving = sum(owner.pending or partition in heirs for partition, owner in owners.items())
    if moving:
        description += f", {moving:,} changing hands"
    if topic.size > topic.owned:
        description += f", {topic.size - topic.owned:,} without an owner"
    return description


def _promised(free: Sequence[int], heirs: Mapping[int, Heir], known: Names) -> str:
    """For partitions without an owner: who should have them."""
    waiting: dict[str, list[int]] = {}
    for partition in free:
        if partition in heirs:
            waiting.setdefault(heirs[partition].member_id, []).append(partition)
    parts = [
        f"{ranges(numbers, most=8)} {'waits' if len(numbers) == 1 else 'wait'} for {member_name(member_id, known)}"
        for member_id, numbers in waiting.items()
    ]
    return joined(parts, PROMISES) if parts else ""


def _cell(partition: int, rows: _Rows, chosen: Mapping[str, int], known: Names) -> Cell:
    owner, heir, offset = rows.owners.get(partition), rows.heirs.get(partition), rows.offsets.get(partition)
    marks = frozenset(_marks(partition, rows))
    member_id = owner.member_id if owner else ""
    whose = member_name(member_id, known) if owner else "no owner"
    must = ", which must give it up" if owner and owner.pending else ""
    after = f", meant for {member_name(heir.member_id, known)}" if heir else ""
    stalls = ", no progress" if Mark.STALLED in marks else ""
    # An owner that is no longer a member keeps the partition until the next generation.
    key = "" if owner is None else "gone" if owner.member_pk is None else str(owner.member_pk)
    return Cell(
        partition,
        chosen.get(member_id, 0) if owner else None,
        f"{partition}: {whose}{must}{after}, {_read(offset)}{stalls}",
        key,
        member_id,
        marks,
        "unread" if offset is None or offset.lag is None else f"l{level(offset.lag)}",
        pending=owner is not None and owner.pending,
        moves=heir is not None,
        heir=chosen.get(heir.member_id) if heir else None,
    )


def _marks(partition: int, rows: _Rows) -> Iterator[Mark]:
    owner, offset = rows.owners.get(partition), rows.offsets.get(partition)
    if owner is None:
        yield Mark.UNOWNED
    if partition in rows.heirs or (owner is not None and owner.pending):
        yield Mark.MOVING
    if partition in rows.stalled:
        yield Mark.STALLED
    if offset is not None and offset.lag:
        yield Mark.BEHIND


def _read(offset: DrawnOffset | None) -> str:
    if offset is None:
        return "nothing committed"
    return "lag not known" if offset.lag is None else f"{offset.lag:,} behind"


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


def focus_context(
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
        "mark_entries": list(_mark_entries(request, focus, strips, totals)),
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


def _mark_entries(
    request: HttpRequest, focus: Focus, strips: Sequence[Strip], totals: Mapping[Mark, int]
) -> Iterator[Entry]:
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
