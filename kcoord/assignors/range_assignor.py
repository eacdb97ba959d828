"""The `range` assignor: each topic separately, cut into consecutive ranges.

Source: Kafka's client `RangeAssignor`; KIP-881 for racks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kcoord.assignors._partitions import grouped_by_topic, static_first, subscribed_topics
from kcoord.assignors._racks import Racks, known_racks
from kcoord.assignors.assignor import (
    Assignment,
    MemberSubscription,
    PartitionRacks,
    PartitionsPerTopic,
    RebalanceProtocol,
    TopicPartition,
)


class RangeAssignor:
    """Cuts each topic's partitions into one range per subscriber; the first subscribers get one more.

    Topics with the same number of partitions and the same subscribers are co-partitioned: partition n of all of them
    goes to the same member. Where racks are known and differ, partitions go to members on a rack of a replica first, as
    far as the balance of each topic and co-partitioning allow. Previous owners are ignored.
    """

    name = "range"
    protocols = (RebalanceProtocol.EAGER,)

    def assign(
        self,
        partitions_per_topic: PartitionsPerTopic,
        subscriptions: Sequence[MemberSubscription],
        partition_racks: PartitionRacks | None = None,
    ) -> Assignment:
        """See `Assignor.assign`."""
        topics = [
            _Topic(topic, count, members, known_racks(members, {topic: count}, partition_racks))
            for topic, count, members in _with_subscribers(partitions_per_topic, subscriptions)
        ]
        _align_racks(topics)
        assigned: dict[str, list[TopicPartition]] = {member.member_id: [] for member in subscriptions}
        for topic in topics:
            topic.assign_ranges(lambda member_id, partition: True)
            for member_id, partitions in topic.assigned.items():
                assigned[member_id].extend((topic.name, partition) for partition in partitions)
        return grouped_by_topic(assigned)


def _with_subscribers(
    partitions_per_topic: PartitionsPerTopic, subscriptions: Sequence[MemberSubscription]
) -> list[tuple[str, int, list[MemberSubscription]]]:
    subscribers: dict[str, list[MemberSubscription]] = {}
    for member in static_first(subscriptions):
        for topic in dict.fromkeys(member.topics):
            subscribers.setdefault(topic, []).append(member)
    topics = subscribed_topics(partitions_per_topic, subscriptions)
    return [(topic, count, subscribers[topic]) for topic, count in topics.items()]


class _Topic:
    """One topic while it is being assigned. `assigned` lists the subscribers in the order they are served."""

    def __init__(self, name: str, count: int, members: Sequence[MemberSubscription], racks: Racks) -> None:
        self.name = name
        self.count = count
        self.racks_matter = racks.matter()
        self._racks = racks
        self.member_racks = tuple((member.member_id, member.rack_id or None) for member in members)
        self.assigned: dict[str, list[int]] = {member.member_id: [] for member in members}
        self._unassigned = dict.fromkeys(range(count))
        self._quota, self._extras = divmod(count, len(members))

    def capacity(self, member_id: str) -> int:
        """How many more partitions the member may get."""
        return max(0, self._quota + (self._extras > 0) - len(self.assigned[member_id]))

    def fits_rack(self, member_id: str, partition: int) -> bool:
        """The member has no known rack, or one that holds a replica."""
        return not self._racks.mismatch(member_id, (self.name, partition))

    def give(self, member_id: str, partitions: Sequence[int]) -> None:
        """Assign `partitions`, which are unassigned and within the member's capacity."""
        self.assigned[member_id].extend(partitions)
        if len(self.assigned[member_id]) > self._quota:
            self._extras -= 1
        for partition in partitions:
            del self._unassigned[partition]

    def assign_ranges(self, may_assign: Callable[[str, int], bool]) -> None:
        """Give each subscriber in turn the first unassigned partitions that it may get, up to its capacity."""
        for member_id in self.assigned:
            capacity = self.capacity(member_id)
            chosen: list[int] = []
            for partition in self._unassigned:
                if len(chosen) == capacity:
                    break
                if may_assign(member_id, partition):
                    chosen.append(partition)
            if chosen:
                self.give(member_id, chosen)


def _align_racks(topics: Sequence[_Topic]) -> None:
    """Assign what can be assigned to a rack of a replica. Co-partitioned topics are aligned together or not at all."""
    if not any(topic.racks_matter for topic in topics):
        return
    co_partitioned: dict[tuple[object, int], list[_Topic]] = {}
    for topic in topics:
        co_partitioned.setdefault((topic.member_racks, topic.count), []).append(topic)
    for alike in co_partitioned.values():
        if len(alike) > 1:
            _align_co_partitioned(alike)
        elif alike[0].racks_matter:
            alike[0].assign_ranges(alike[0].fits_rack)


def _align_co_partitioned(topics: Sequence[_Topic]) -> None:
    """Give partition n of all `topics` to the first member with room whose rack holds a replica of each of them."""
    members: Mapping[str, object] = topics[0].assigned
    for partition in range(topics[0].count):
        for member_id in members:
            if all(topic.capacity(member_id) and topic.fits_rack(member_id, partition) for topic in topics):
                for topic in topics:
                    topic.give(member_id, [partition])
                break
