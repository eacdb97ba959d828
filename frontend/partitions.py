"""The picture of who owns which partition: colours of members, one strip of cells for each topic. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from frontend.queries import GroupPage
from frontend.rows import GroupTopic, PartitionOwner
from frontend.wording import plural, ranges, short_id

COLOURS = 12
"""Colours of owners in the style sheet; beyond as many owners they repeat."""
ROOMY = 64
"""Up to so many partitions the cells of a topic are large enough for their number."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A partition. `colour` None: nobody owns it. `owner` is "" then, else something that names the owner."""

    partition: int
    colour: int | None
    title: str
    owner: str


@dataclass(frozen=True, slots=True)
class Strip:
    """A topic: its cells, and the same in words for who does not see them."""

    topic: str
    size: int
    known: bool
    owned: int
    cells: tuple[Cell, ...]
    roomy: bool
    unowned: str
    hidden: int
    description: str

    @property
    def unowned_count(self) -> int:
        """Partitions that nobody owns."""
        return self.size - self.owned


@dataclass(frozen=True, slots=True)
class Owner:
    """An entry of the legend."""

    colour: int
    name: str
    member_id: str


def colours(owners: Mapping[str, int]) -> dict[str, int]:
    """A colour for each owner, given the keys of their rows.

    Keys are given out in order of arrival and never again, so a colour stays with its member while others come and
    go. Two owners that would get the same colour are kept apart as long as there are colours left.
    """
    chosen: dict[str, int] = {}
    free = set(range(COLOURS))
    for member_id, pk in sorted(owners.items(), key=lambda owner: owner[1]):
        colour = pk % COLOURS
        while free and colour not in free:
            colour = (colour + 1) % COLOURS
        free.discard(colour)
        chosen[member_id] = colour
    return chosen


def page_colours(page: GroupPage) -> dict[str, int]:
    """Colours of the members that own something on this page."""
    keys = {owner.member_id: owner.member_pk for owner in page.owners if owner.member_pk is not None}
    keys |= {member.member_id: member.pk for member in page.members if member.owned}
    return colours(keys)


def legend(page: GroupPage, chosen: Mapping[str, int]) -> tuple[Owner, ...]:
    """Whose colour is which; empty when there are more owners than colours."""
    if len(chosen) > COLOURS:
        return ()
    return tuple(Owner(colour, short_id(member_id), member_id) for member_id, colour in chosen.items())


def strips(page: GroupPage, chosen: Mapping[str, int]) -> tuple[Strip, ...]:
    """One strip for each topic of the page."""
    by_topic: dict[str, dict[int, PartitionOwner]] = {topic.topic: {} for topic in page.topics}
    for owner in page.owners:
        by_topic[owner.topic][owner.partition] = owner
    return tuple(_strip(topic, by_topic[topic.topic], chosen, page.map_width) for topic in page.topics)


def _strip(topic: GroupTopic, owners: Mapping[int, PartitionOwner], chosen: Mapping[str, int], width: int) -> Strip:
    shown = min(topic.size, width)
    cells = tuple(_cell(partition, owners.get(partition), chosen) for partition in range(shown))
    free = [cell.partition for cell in cells if cell.partition not in owners]
    unowned = ranges(free, most=12)
    members = len({owner.member_id for owner in owners.values()})
    description = f"{plural(topic.size, 'partition')}, {plural(members, 'owner')}"
    if topic.size > topic.owned:
        description += f", {topic.size - topic.owned:,} without an owner"
    return Strip(
        topic=topic.topic,
        size=topic.size,
        known=topic.partitions is not None,
        owned=topic.owned,
        cells=cells,
        roomy=topic.size <= ROOMY,
        unowned=unowned,
        hidden=topic.size - shown,
        description=description,
    )


def _cell(partition: int, owner: PartitionOwner | None, chosen: Mapping[str, int]) -> Cell:
    if owner is None:
        return Cell(partition, None, f"{partition}: no owner", "")
    # An owner that is not a member any more keeps the partition until the next generation.
    key = "gone" if owner.member_pk is None else str(owner.member_pk)
    return Cell(partition, chosen.get(owner.member_id, 0), f"{partition}: {short_id(owner.member_id)}", key)
