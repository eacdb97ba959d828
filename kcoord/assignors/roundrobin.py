"""The `roundrobin` assignor: all partitions in order, one to each subscriber in turn."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from kcoord.assignors._partitions import in_id_order, static_first
from kcoord.assignors._subscribers import by_subscribers, in_name_order
from kcoord.assignors.assignor import (
    Assignment,
    MemberSubscription,
    PartitionRacks,
    PartitionsPerTopic,
    RebalanceProtocol,
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
        members = static_first(subscriptions)
        assigned: list[dict[str, list[int]]] = [{} for _ in members]
        turn = 0
        for topic, count, subscribers in in_name_order(by_subscribers(partitions_per_topic, members)):
            # Partition 0 goes to the next subscriber whose place is `turn` or later, the others to those after it.
            first = bisect_left(subscribers, turn)
            partitions = list(range(count))
            taking = min(count, len(subscribers))
            for number in range(taking):
                place = subscribers[(first + number) % len(subscribers)]
                assigned[place][topic] = partitions[number::taking]
            turn = subscribers[(first + count - 1) % len(subscribers)] + 1
        return in_id_order(members, assigned)
