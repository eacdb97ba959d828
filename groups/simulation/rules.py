"""The rules of a simulation: the membership as it would be, and what its assignment changes. Pure.

Source: http-api.md 4 (`POST /v1/assignments/simulate`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from kcoord.protocol.errors import Error, ProtocolError

Partitions = Mapping[str, Sequence[int]]
"""Topic name -> partitions."""
TopicPartition = tuple[str, int]

NEW_MEMBER = "new-{}"
MOST_ROUNDS = 3
"""A cooperative assignor withholds what changes hands in its first round, and gives it in the second."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A member as it is: the topics that it subscribes to, and what it owns.

    `is_readable`: that is known; clients may describe themselves in a format of their own.
    """

    member_id: str
    topics: Set[str]
    owned: Partitions = field(default_factory=dict)
    instance_id: str | None = None
    rack_id: str | None = None
    is_readable: bool = True


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be different. `add`: members like most of those that exist; `remove`: ids; `partitions`: by topic."""

    add: int = 0
    remove: Sequence[str] = ()
    partitions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MemberChange:
    """A member with numbers of partitions. `is_new`, `is_removed`: it exists only after, or only before.

    The numbers are None if it is not known what the member subscribes to or owns.
    """

    member_id: str
    before: int | None
    after: int | None
    gained: int | None
    lost: int | None
    is_new: bool = False
    is_removed: bool = False

    @property
    def is_readable(self) -> bool:
        """The numbers are known."""
        return self.after is not None


@dataclass(frozen=True, slots=True)
class Move:
    """A partition whose owner changes; None: nobody."""

    topic: str
    partition: int
    owner: str | None
    new_owner: str | None


@dataclass(frozen=True, slots=True)
class Simulation:
    """What would happen. `total`: partitions of subscribed topics; `moves`: those whose owner changes, in order."""

    assignor: str
    total: int
    members: tuple[MemberChange, ...]
    moves: tuple[Move, ...]

    @property
    def moved(self) -> int:
        """Partitions that one member would have to give up to another, or to nobody."""
        return sum(move.owner is not None for move in self.moves)

    @property
    def unreadable(self) -> int:
        """Members of the group of which it is not known what they subscribe to or own."""
        return sum(not member.is_readable and not member.is_new for member in self.members)

    @property
    def spread(self) -> tuple[int, int]:
        """The fewest and the most partitions of a member, as far as they are known."""
        counts = [one.after for one in self.members if one.after is not None and not one.is_removed] or [0]
        return min(counts), max(counts)


Assign = Callable[[Sequence[Standing], Mapping[str, int]], Mapping[str, Partitions]]
"""An assignor: members and number of partitions by topic -> partitions by member id."""


def simulate(
    members: Sequence[Standing], topics: Mapping[str, int], changes: Changes, assignor: str, assign: Assign
) -> Simulation:
    """The assignment that the changed membership would get, beside the present one.

    Parameters: `topics` the number of partitions of each topic that exists. Raises INVALID_REQUEST, naming the field,
    for a member that the group does not have, for a topic that does not exist, and for fewer partitions than it has.
    """
    _check(members, topics, changes)
    stay = [member for member in members if member.member_id not in set(changes.remove)]
    changed = [*stay, *_added(members, changes.add)]
    counts = {**topics, **changes.partitions}
    subscribed = {topic for member in changed for topic in member.topics}
    counts = {topic: counts[topic] for topic in sorted(subscribed) if topic in counts}
    after = _settled(changed, counts, assign)
    owners = {key: member.member_id for member in members for key in _keys(member.owned)}
    new_owners = {key: member_id for member_id, owned in after.items() for key in _keys(owned)}
    moves = tuple(
        Move(topic, partition, owners.get((topic, partition)), new_owners.get((topic, partition)))
        for topic, partition in sorted(owners.keys() | new_owners.keys())
        if owners.get((topic, partition)) != new_owners.get((topic, partition))
    )
    return Simulation(assignor, sum(counts.values()), _changes_of(members, changed, owners, new_owners), moves)


def _check(members: Sequence[Standing], topics: Mapping[str, int], changes: Changes) -> None:
    known = {member.member_id for member in members}
    for index, member_id in enumerate(changes.remove):
        if member_id not in known:
            raise _invalid(f"remove_members[{index}]", f"{member_id!r} is not a member of the group")
    for topic, count in changes.partitions.items():
        if topic not in topics:
            raise _invalid("topics", f"there is no topic {topic!r}")
        if count < topics[topic]:
            raise _invalid("topics", f"{topic!r} has {topics[topic]} partitions, and a topic cannot lose any")
    if changes.add and not members:
        raise _invalid("add_members", "the group has no member whose subscription a new one could have")


def _added(members: Sequence[Standing], count: int) -> Iterator[Standing]:
    """New members with the subscription that most members have, as far as it is known; on a tie, that of the first."""
    if not count:
        return
    known = [frozenset(member.topics) for member in members if member.is_readable]
    usual = Counter(known).most_common(1)[0][0] if known else frozenset()
    taken = {member.member_id for member in members}
    number = 0
    while count:
        number += 1
        if NEW_MEMBER.format(number) not in taken:
            count -= 1
            yield Standing(NEW_MEMBER.format(number), usual, is_readable=bool(known))


def _settled(members: Sequence[Standing], counts: Mapping[str, int], assign: Assign) -> Mapping[str, Partitions]:
    """The assignment once nothing is withheld any more."""
    found = assign(members, counts)
    for _ in range(MOST_ROUNDS - 1):
        if sum(len(partitions) for owned in found.values() for partitions in owned.values()) == sum(counts.values()):
            break
        members = [replace(member, owned=found.get(member.member_id, {})) for member in members]
        found = assign(members, counts)
    return found


def _changes_of(
    members: Sequence[Standing],
    changed: Sequence[Standing],
    owners: Mapping[TopicPartition, str],
    new_owners: Mapping[TopicPartition, str],
) -> tuple[MemberChange, ...]:
    """Every member of before and after, the new ones last."""
    before, after = Counter(owners.values()), Counter(new_owners.values())
    kept = Counter(owner for key, owner in owners.items() if new_owners.get(key) == owner)
    known, left = {member.member_id for member in members}, {member.member_id for member in changed}

    def change(member: Standing) -> MemberChange:
        name = member.member_id
        fate = {"is_new": name not in known, "is_removed": name not in left}
        if not member.is_readable:
            return MemberChange(name, None, None, None, None, **fate)
        return MemberChange(
            name, before[name], after[name], after[name] - kept[name], before[name] - kept[name], **fate
        )

    return tuple(map(change, {member.member_id: member for member in (*members, *changed)}.values()))


def _keys(owned: Partitions) -> Iterator[TopicPartition]:
    return ((topic, partition) for topic, partitions in owned.items() for partition in partitions)


def _invalid(field_name: str, detail: str) -> ProtocolError:
    return ProtocolError(Error.INVALID_REQUEST, f"{field_name}: {detail}", fields={"field": field_name})
