"""The assignors as plainly as they can be said, however slow: what the fast ones are compared with.

Source: Kafka's `RangeAssignor` and `RoundRobinAssignor` of the clients; KIP-345, KIP-881. Without racks `range` is what
consumer.md 5.4 says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import cycle

from kcoord.assignors import MemberSubscription, TopicPartition
from tests.kcoord.assignors.groups import Group

Assigned = dict[str, dict[str, list[int]]]


def static_first(members: Iterable[MemberSubscription]) -> list[MemberSubscription]:
    return sorted(members, key=lambda m: (m.group_instance_id is None, m.group_instance_id or "", m.member_id))


def as_assignment(group: Group, given: Iterable[tuple[str, str, int]]) -> Assigned:
    """(member id, topic, partition) as an assignor returns them."""
    assigned: Assigned = {member_id: {} for member_id in sorted(member.member_id for member in group.members)}
    for member_id, topic, partition in sorted(given):
        assigned[member_id].setdefault(topic, []).append(partition)
    return assigned


def roundrobin(group: Group) -> Assigned:
    """Partition by partition to the next member that subscribes to its topic."""
    given = []
    turns = cycle(static_first(group.members))
    for topic, partition in sorted(group.wanted()):
        taker = next(member for member in turns if topic in member.topics)
        given.append((taker.member_id, topic, partition))
    return as_assignment(group, given)


class RangeOfTopic:
    """One topic under `range`: who has how many, who may have more, who is on a rack of which partition."""

    def __init__(self, group: Group, topic: str) -> None:
        self.topic = topic
        self.count = group.topics[topic]
        self.members = [member for member in static_first(group.members) if topic in member.topics]
        self.has: dict[str, list[int]] = {member.member_id: [] for member in self.members}
        told = (group.racks or {}).get(topic, ())
        self.replicas = [set(told[p]) if p < len(told) else set() for p in range(self.count)]
        racks = {member.rack_id for member in self.members if member.rack_id}
        everywhere = set().union(*self.replicas)
        self.racks_matter = bool(racks & everywhere) and any(held != everywhere for held in self.replicas)
        self.racks_are_told = bool(group.racks) and bool(racks)

    def may_have(self, member: MemberSubscription, total: int) -> bool:
        """Each may have P div n, and P mod n of them one more."""
        least, extra = divmod(self.count, len(self.members))
        others = sum(len(has) > least for member_id, has in self.has.items() if member_id != member.member_id)
        return total <= least + (others < extra)

    def fits(self, member: MemberSubscription, partition: int) -> bool:
        return not (self.racks_are_told and member.rack_id) or member.rack_id in self.replicas[partition]

    def unassigned(self) -> list[int]:
        return [p for p in range(self.count) if not any(p in partitions for partitions in self.has.values())]

    def serve(self, *, by_rack: bool) -> None:
        """Each member in turn takes the first partitions that nobody has, as long as it has room."""
        for member in self.members:
            has = self.has[member.member_id]
            for partition in self.unassigned():
                if self.may_have(member, len(has) + 1) and (not by_rack or self.fits(member, partition)):
                    has.append(partition)


def range_(group: Group) -> Assigned:
    """Racks first, where they matter; then consecutive ranges of what is left."""
    topics = [RangeOfTopic(group, topic) for topic in sorted({topic for topic, _ in group.wanted()})]
    if any(topic.racks_matter for topic in topics):
        for alike in co_partitioned(topics):
            if len(alike) > 1:
                align_together(alike)
            elif alike[0].racks_matter:
                alike[0].serve(by_rack=True)
    for topic in topics:
        topic.serve(by_rack=False)
    given = [(member_id, t.topic, p) for t in topics for member_id, partitions in t.has.items() for p in partitions]
    return as_assignment(group, given)


def co_partitioned(topics: Sequence[RangeOfTopic]) -> list[list[RangeOfTopic]]:
    """Topics with the same number of partitions and the same subscribers together."""
    found: list[list[RangeOfTopic]] = []
    for topic in topics:
        for alike in found:
            if (alike[0].members, alike[0].count) == (topic.members, topic.count):
                alike.append(topic)
                break
        else:
            found.append([topic])
    return found


def align_together(topics: Sequence[RangeOfTopic]) -> None:
    """Partition n of all of them goes to the first member with room whose rack has a replica of each."""
    for partition in range(topics[0].count):
        for member in topics[0].members:
            has = len(topics[0].has[member.member_id])
            if all(topic.may_have(member, has + 1) and topic.fits(member, partition) for topic in topics):
                for topic in topics:
                    topic.has[member.member_id].append(partition)
                break


def owners(group: Group) -> tuple[dict[TopicPartition, str], dict[TopicPartition, str], set[TopicPartition]]:
    """Partition -> who owns it: who alone claims it in the highest generation; -> who claims it in the latest
    generation before the newest of all; those that somebody claims who does not own them.
    """
    newest = max(max(member.generation_id, -1) for member in group.members)
    owner, previous, also_claimed = {}, {}, set()
    for topic, partition in group.wanted():
        claims = sorted(
            (-max(member.generation_id, -1), member.member_id)
            for member in group.members
            if partition in member.owned_partitions.get(topic, ())
        )
        if claims and [generation for generation, _ in claims].count(claims[0][0]) == 1:
            owner[topic, partition] = claims[0][1]
        stale = [member_id for generation, member_id in claims if -generation < newest]
        if stale:
            previous[topic, partition] = stale[0]
        if any(member_id != owner.get((topic, partition)) for _, member_id in claims):
            also_claimed.add((topic, partition))
    return owner, previous, also_claimed
