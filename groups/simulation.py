"""Simulates assignments of groups as they are now: the membership as it would be, and what its assignment changes.

Reads only. Source: http-api.md 4 (`POST /v1/assignments/simulate`); the assignors are those of classic members (Kafka's
`ConsumerPartitionAssignor`) and of the coordinator (consumer.md 5).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial

from groups.configs import DecisionContext, DecisionContexts
from groups.core.assignors import Assignor, AssignorFailed, GroupSpec, MemberSpec
from groups.core.consumer.target import preferred_assignor
from groups.core.model.consumer_group import ConsumerGroup, ShareGroup
from groups.core.model.group import Group
from groups.core.model.types import ClassicGroup, TopicView
from groups.engine.assign import assign as assign_classic
from groups.engine.service import GroupService
from groups.readmodel import unknown_group
from kcoord.assignors import MemberSubscription, known_assignors
from kcoord.database.paging import EVERYTHING, Visible
from kcoord.process.runtime import Runtime
from kcoord.protocol.consumer_protocol import decode_assignment, decode_subscription
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


CONSUMER = "consumer"
MOST_ADDED = 10_000
MOST_PARTITIONS = 100_000


class Simulations:
    """Answers what would move. Methods may raise ProtocolError COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._groups = runtime.get(GroupService)
        self._contexts = runtime.get(DecisionContexts)

    async def assignors(self, group_id: str) -> tuple[Sequence[str], str]:
        """The assignors that a group can be simulated with, and the one that it uses.

        Raises GROUP_ID_NOT_FOUND, INVALID_REQUEST for a share group.
        """
        group, world = await self._read(group_id)
        return _offered(group, world)

    async def _read(self, group_id: str) -> tuple[Group, DecisionContext]:
        group = (await self._groups.describe(group_id)).group
        if group is None:
            raise unknown_group(group_id)
        if isinstance(group, ShareGroup):
            told = f"group {group_id!r} is a share group, whose members share partitions: there is nothing to simulate"
            raise ProtocolError(Error.INVALID_REQUEST, told)
        return group, await self._contexts.context_of(group_id)

    async def simulate(
        self, group_id: str, changes: Changes, assignor: str | None = None, visible: Visible = EVERYTHING
    ) -> Simulation:
        """What the assignor (None: the one in use) would assign, beside what members own now.

        `visible`: the topics that the caller may describe; others are left out of a classic group. Raises
        GROUP_ID_NOT_FOUND; TOPIC_AUTHORIZATION_FAILED if members of a consumer group use other topics;
        UNSUPPORTED_ASSIGNOR, naming those that there are; INVALID_REQUEST, naming the field.
        """
        group, world = await self._read(group_id)
        offered, used = _offered(group, world)
        name = assignor or used
        if name not in offered:
            told = f"assignor: {name!r} is not offered for this group; use one of {', '.join(offered)}"
            raise ProtocolError(Error.UNSUPPORTED_ASSIGNOR, told, fields={"field": "assignor"})
        if isinstance(group, ConsumerGroup):
            members = _of_consumers(group, world.topics)
            if any(topic not in visible for member in members for topic in (*member.topics, *member.owned)):
                denied = f"members of group {group_id!r} use topics that the token may not DESCRIBE"
                raise ProtocolError(Error.TOPIC_AUTHORIZATION_FAILED, denied)
            run: Assign = partial(_assign_by_coordinator, world.assignors[name])
        else:
            assert isinstance(group, ClassicGroup)
            members = [_seen(member, visible) for member in _of_classic(group)]
            run = partial(_assign_by_leader, name)
        known = {topic: found.partitions for topic, found in world.topics.by_name.items() if topic in visible}
        # A large assignment takes seconds; the event loop must serve others meanwhile.
        return await asyncio.to_thread(simulate, members, known, changes, name, run)


def _offered(group: Group, world: DecisionContext) -> tuple[Sequence[str], str]:
    """The assignors for a group, and the one in use."""
    if isinstance(group, ConsumerGroup):
        return tuple(world.assignors), preferred_assignor(group, world.assignors)
    known = known_assignors()
    assert isinstance(group, ClassicGroup), "a share group is refused before"
    return known, group.protocol_name if group.protocol_name in known else known[0]


def _seen(member: Standing, visible: Visible) -> Standing:
    """A member without topics that the caller may not describe, as in the description of a classic group."""
    owned = {topic: partitions for topic, partitions in member.owned.items() if topic in visible}
    return replace(member, topics=frozenset(topic for topic in member.topics if topic in visible), owned=owned)


def _of_consumers(group: ConsumerGroup, topics: TopicView) -> list[Standing]:
    """Members with the topics that they subscribe to, and their targets: what they own once all have reconciled."""
    return [
        Standing(
            member_id,
            frozenset(group.subscription_of(member)),
            {
                topics.by_id[topic_id].name: sorted(partitions)
                for topic_id, partitions in member.target.items()
                if topic_id in topics.by_id
            },
            member.instance_id,
            member.rack_id,
        )
        for member_id, member in group.members.items()
    ]


def _of_classic(group: ClassicGroup) -> list[Standing]:
    """Members with what their metadata says. Raises INVALID_REQUEST for a group whose members do not share topics."""
    if group.protocol_type != CONSUMER:
        told = f"group {group.group_id!r} has members of the protocol type {group.protocol_type or 'none'!r}"
        text = f"group_id: {told}; only type 'consumer' can be simulated"
        raise ProtocolError(Error.INVALID_REQUEST, text, fields={"field": "group_id"})
    found = []
    for member in group.members.values():
        names = [protocol.name for protocol in member.protocols]
        wanted = group.protocol_name if group.protocol_name in names else names[0]
        metadata = next(protocol.metadata for protocol in member.protocols if protocol.name == wanted)
        subscription, assignment = decode_subscription(metadata), decode_assignment(member.assignment)
        found.append(
            Standing(
                member.member_id,
                frozenset(subscription.topics if subscription else ()),
                assignment.partitions if assignment else {},
                member.instance_id,
                subscription.rack_id if subscription else None,
                subscription is not None and (assignment is not None or not member.assignment),
            )
        )
    return found


def _assign_by_leader(name: str, members: Sequence[Standing], topics: Mapping[str, int]) -> Mapping[str, Partitions]:
    """As the leader of a classic group assigns."""
    subscriptions = [
        MemberSubscription(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            topics=tuple(sorted(member.topics)),
            owned_partitions=member.owned,
            generation_id=1,
            rack_id=member.rack_id,
        )
        for member in members
    ]
    return dict(assign_classic(name, subscriptions, topics))


def _assign_by_coordinator(
    assignor: Assignor, members: Sequence[Standing], topics: Mapping[str, int]
) -> Mapping[str, Partitions]:
    """As the coordinator computes the target of a consumer group; names serve as ids of topics."""
    specs = {
        member.member_id: MemberSpec(
            frozenset(topic for topic in member.topics if topic in topics),
            {topic: frozenset(owned) for topic, owned in member.owned.items() if topic in topics},
            member.instance_id,
            member.rack_id,
        )
        for member in sorted(members, key=lambda member: member.member_id)
    }
    homogeneous = len({spec.topics for spec in specs.values()}) <= 1
    try:
        targets = assignor.assign(GroupSpec(specs, homogeneous), topics)
    except AssignorFailed as error:
        raise ProtocolError(Error.UNKNOWN_SERVER_ERROR, f"assignor {assignor.name!r} failed: {error}") from error
    return {member_id: {t: sorted(p) for t, p in targets.get(member_id, {}).items()} for member_id in specs}
