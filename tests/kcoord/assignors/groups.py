"""Groups of members to assign to: strategies that make them, and what follows from an assignment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from kcoord.assignors import Assignment, Assignor, MemberSubscription, Partitions, TopicPartition, get_assignor

BUILT_IN = ("range", "roundrobin", "sticky", "cooperative-sticky")
STICKY = ("sticky", "cooperative-sticky")
RACKS = ("a", "b", "c")
MISSING_TOPIC = "missing"

PartitionRacks = Mapping[str, Sequence[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Group:
    """The arguments of an assignor."""

    topics: Mapping[str, int]
    members: tuple[MemberSubscription, ...]
    racks: PartitionRacks | None = None

    def assign(self, assignor: str | Assignor) -> Assignment:
        found = get_assignor(assignor) if isinstance(assignor, str) else assignor
        return found.assign(self.topics, self.members, self.racks)

    def wanted(self) -> set[TopicPartition]:
        """Every partition of every topic that exists and has a subscriber."""
        subscribed = {topic for member in self.members for topic in member.topics}
        return {(topic, p) for topic, count in self.topics.items() if topic in subscribed for p in range(count)}

    def after(self, assignment: Assignment, generation_id: int) -> Group:
        """The group as it joins again: the members own what they were assigned."""
        members = tuple(
            replace(member, owned_partitions=assignment[member.member_id], generation_id=generation_id)
            for member in self.members
        )
        return replace(self, members=members)

    def subscribes(self, member_id: str, topic: str) -> bool:
        return any(member.member_id == member_id and topic in member.topics for member in self.members)


def flat(partitions: Partitions) -> set[TopicPartition]:
    return {(topic, partition) for topic, numbers in partitions.items() for partition in numbers}


def assigned(assignment: Assignment) -> list[tuple[TopicPartition, str]]:
    """(partition, member id), a partition as often as it is assigned."""
    return [
        ((topic, partition), member_id)
        for member_id, partitions in assignment.items()
        for topic, numbers in partitions.items()
        for partition in numbers
    ]


def totals(assignment: Assignment) -> dict[str, int]:
    return {member_id: len(flat(partitions)) for member_id, partitions in assignment.items()}


def member(member_id: str, topics: Iterable[str], **owned: Sequence[int]) -> MemberSubscription:
    """A member in generation 1 that owns `owned`."""
    return MemberSubscription(member_id, None, tuple(topics), owned_partitions=owned, generation_id=1)


def topic_maps(max_topics: int = 4, max_partitions: int = 6) -> st.SearchStrategy[dict[str, int]]:
    names = [f"t{number}" for number in range(max_topics)]
    return st.dictionaries(st.sampled_from(names), st.integers(0, max_partitions), min_size=1)


@st.composite
def groups(draw: st.DrawFn, *, equal: bool | None = None, with_racks: bool = False, claims: bool = False) -> Group:
    """Any group. `equal`: all subscriptions are, or may not be, equal; `claims`: members claim whatever they like."""
    topics = draw(topic_maps())
    names = st.sampled_from([*topics, MISSING_TOPIC])
    subscriptions = st.lists(names, unique=True)
    same = draw(subscriptions) if draw(st.booleans() if equal is None else st.just(equal)) else None
    owned = st.dictionaries(names, st.lists(st.integers(0, 7), unique=True)) if claims else st.just({})
    ids = draw(st.lists(st.text("abz19-", min_size=1, max_size=4), min_size=1, max_size=7, unique=True))
    static = st.sampled_from([None, "static"])
    members = tuple(
        MemberSubscription(
            member_id=member_id,
            group_instance_id=f"i{number}" if draw(static) else None,
            topics=draw(subscriptions) if same is None else same,
            owned_partitions=draw(owned),
            generation_id=draw(st.integers(-1, 2)) if claims else -1,
            rack_id=draw(st.sampled_from([None, *RACKS])) if with_racks else None,
        )
        for number, member_id in enumerate(ids)
    )
    return Group(topics, members, draw(racks_of(topics)) if with_racks else None)


@st.composite
def racks_of(draw: st.DrawFn, topics: Mapping[str, int]) -> PartitionRacks:
    replicas = st.lists(st.sampled_from(RACKS), max_size=2, unique=True)
    return {topic: [draw(replicas) for _ in range(count)] for topic, count in topics.items()}


@st.composite
def changed(draw: st.DrawFn, group: Group, *, equal: bool) -> Group:
    """`group` after some members left, some came, topics grew or came, and (unless `equal`) subscriptions changed."""
    staying = [m for m in group.members if draw(st.booleans())]
    newcomers = draw(st.integers(0 if staying else 1, 3))
    topics = {**group.topics, **draw(topic_maps(max_topics=5))}
    subscriptions = st.lists(st.sampled_from(sorted(topics)), unique=True, min_size=1)
    same = draw(subscriptions)
    rack = st.sampled_from(RACKS) if group.racks is not None else st.none()
    joined = [
        MemberSubscription(f"new{number}", None, same if equal else draw(subscriptions), rack_id=draw(rack))
        for number in range(newcomers)
    ]
    stayed = [replace(m, topics=same if equal else draw(st.just(m.topics) | subscriptions)) for m in staying]
    racks = draw(racks_of(topics)) if group.racks is not None else None
    return Group(topics, (*stayed, *joined), racks)
