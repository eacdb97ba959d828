"""The `roundrobin` assignor: all partitions in order, one to each subscriber in turn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from kcoord.assignors._partitions import all_partitions, grouped_by_topic, static_first, subscribed_topics
from kcoord.assignors.assignor import (
    Assignment,
    MemberSubscription,
    PartitionRacks,
    PartitionsPerTopic,
    RebalanceProtocol,
    TopicPartition,
)


class RoundRobinAssignor:
    """Orders the partitions of all topics by topic name and partition, the members with static ones first, and deals.

    With equal subscriptions the totals differ by at most one. A member that does not subscribe to the topic at hand
    is skipped, which may leave totals uneven. Racks and previous owners are ignored.
    """

    name = "roundrobin"
    protocols = (RebalanceProtocol.EAGER,)

    def assign(
        self,
        partitions_per_topic: PartitionsPerTopic,
        subscriptions: Sequence[MemberSubscription],
        partition_racks: PartitionRacks | None = None,
    ) -> Assignment:
        """See `Assignor.assign`."""
        assigned: dict[str, list[TopicPartition]] = {member.member_id: [] for member in subscriptions}
        topics = subscribed_topics(partitions_per_topic, subscriptions)
        turns = cycle([(member.member_id, frozenset(member.topics)) for member in static_first(subscriptions)])
        for partition in all_partitions(topics):
            # Terminates: every topic of `topics` has a subscriber.
            member_id = next(member_id for member_id, subscribed in turns if partition[0] in subscribed)
            assigned[member_id].append(partition)
        return grouped_by_topic(assigned)
