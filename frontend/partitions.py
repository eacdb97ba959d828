"""The picture of who owns which partition: member colours, one strip of cells per topic. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frontend.consumer.rows import Heir
from frontend.queries import GroupPage
from frontend.rows import GroupTopic, PartitionOwner
from frontend.wording import joined, plural, ranges, short_id

COLOURS = 12
"""Owner colours in the style sheet; with more owners they repeat."""
_COLOUR = re.compile(r"^([0-9]{1,18}):([0-9]{1,2})$")
PROMISES = 5
"""The maximum number of members named for partitions without an owner."""
ROOMY = 64
"""Up to this many partitions, the cells of a topic are large enough for their number."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A partition. `colour` None: it has no owner; `owner` is then "", else text that names the owner.

    `heir`: the colour of the member that should have it but does not; `moves`: there is such a member. `pending`: its
    owner was asked to give it up.
    """

    partition: int
    colour: int | None
    title: str
    owner: str
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

    @property
    def unowned_count(self) -> int:
        """Partitions without an owner."""
        return self.size - self.owned


@dataclass(frozen=True, slots=True)
class Owner:
    """An entry of the legend."""

    colour: int
    name: str
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
    return tuple(
        Owner(colour, short_id(member_id), member_id) for member_id, colour in chosen.items() if member_id in owning
    )


def _heirs(page: GroupPage) -> tuple[Heir, ...]:
    return page.consumer.heirs if page.consumer is not None else ()


def strips(page: GroupPage, chosen: Mapping[str, int]) -> tuple[Strip, ...]:
    """One strip per topic on the page."""
    owners: dict[str, dict[int, PartitionOwner]] = {topic.topic: {} for topic in page.topics}
    for owner in page.owners:
        owners[owner.topic][owner.partition] = owner
    heirs: dict[str, dict[int, Heir]] = {topic.topic: {} for topic in page.topics}
    for heir in _heirs(page):
        heirs[heir.topic][heir.partition] = heir
    return tuple(
        _strip(topic, owners[topic.topic], heirs[topic.topic], chosen, page.widths[topic.topic])
        for topic in page.topics
    )


def _strip(
    topic: GroupTopic,
    owners: Mapping[int, PartitionOwner],
    heirs: Mapping[int, Heir],
    chosen: Mapping[str, int],
    width: int,
) -> Strip:
    shown = min(topic.size, width)
    cells = tuple(_cell(partition, owners.get(partition), heirs.get(partition), chosen) for partition in range(shown))
    free = [cell.partition for cell in cells if cell.partition not in owners]
    return Strip(
        topic=topic.topic,
        size=topic.size,
        known=topic.partitions is not None,
        owned=topic.owned,
        cells=cells,
        roomy=topic.size <= ROOMY,
        unowned=ranges([partition for partition in free if partition not in heirs], most=12),
        hidden=topic.size - shown,
        description=_description(topic, owners, heirs, shown == topic.size),
        promised=_promised(free, heirs),
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


def _promised(free: Sequence[int], heirs: Mapping[int, Heir]) -> str:
    """For partitions without an owner: who should have them."""
    waiting: dict[str, list[int]] = {}
    for partition in free:
        if partition in heirs:
            waiting.setdefault(heirs[partition].member_id, []).append(partition)
    parts = [
        f"{ranges(numbers, most=8)} {'waits' if len(numbers) == 1 else 'wait'} for {short_id(member_id)}"
        for member_id, numbers in waiting.items()
    ]
    return joined(parts, PROMISES) if parts else ""


def _cell(partition: int, owner: PartitionOwner | None, heir: Heir | None, chosen: Mapping[str, int]) -> Cell:
    after = f", meant for {short_id(heir.member_id)}" if heir else ""
    colour = chosen.get(heir.member_id) if heir else None
    if owner is None:
        return Cell(partition, None, f"{partition}: no owner{after}", "", moves=heir is not None, heir=colour)
    # An owner that is no longer a member keeps the partition until the next generation.
    key = "gone" if owner.member_pk is None else str(owner.member_pk)
    title = f"{partition}: {short_id(owner.member_id)}" + (", which must give it up" if owner.pending else "") + after
    return Cell(partition, chosen.get(owner.member_id, 0), title, key, owner.pending, heir is not None, colour)
