"""The sticky assignors: balance first, then leave partitions where they are.

Source: Kafka's `AbstractStickyAssignor`; KIP-54 (sticky), KIP-341, KIP-429 (cooperative), KIP-881 (racks).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kcoord.assignors._constrained import assign_constrained
from kcoord.assignors._general import assign_general
from kcoord.assignors._ownership import Ownership, settle
from kcoord.assignors._partitions import grouped_by_topic, subscribed_topics
from kcoord.assignors._racks import NO_RACKS, known_racks
from kcoord.assignors.assignor import (
    Assignment,
    MemberSubscription,
    PartitionRacks,
    PartitionsPerTopic,
    RebalanceProtocol,
    TopicPartition,
)


class StickyAssignor:
    """Totals as even as subscriptions allow; within that, members keep what they own.

    `owned_partitions` with `generation_id` of the subscriptions say who owns what. With equal subscriptions totals
    differ by at most one; otherwise no partition could move to a subscriber that has at least two fewer than its
    holder. Where racks are known and differ, partitions move to members on a rack of a replica, within the same totals.

    Differs from Kafka: what a member owned is read from the subscription (ConsumerProtocol v1 and later), not
    from user data.
    """

    name = "sticky"
    protocols: tuple[RebalanceProtocol, ...] = (RebalanceProtocol.EAGER,)

    def assign(
        self,
        partitions_per_topic: PartitionsPerTopic,
        subscriptions: Sequence[MemberSubscription],
        partition_racks: PartitionRacks | None = None,
    ) -> Assignment:
        """See `Assignor.assign`."""
        topics = subscribed_topics(partitions_per_topic, subscriptions)
        ownership = settle(topics, subscriptions)
        return grouped_by_topic(self._assign(topics, subscriptions, ownership, partition_racks))

    def _assign(
        self,
        topics: Mapping[str, int],
        subscriptions: Sequence[MemberSubscription],
        ownership: Ownership,
        partition_racks: PartitionRacks | None,
    ) -> dict[str, list[TopicPartition]]:
        if not topics:
            return {member_id: [] for member_id in ownership.owned}
        racks = known_racks(subscriptions, topics, partition_racks)
        if not racks.matter():
            racks = NO_RACKS
        if len({frozenset(member.topics) for member in subscriptions}) == 1:
            return assign_constrained(topics, ownership, racks)
        return assign_general(topics, subscriptions, ownership, racks)


class CooperativeStickyAssignor(StickyAssignor):
    """The sticky assignment, reached in two rebalances without stopping the members (KIP-429).

    A partition that somebody else may still be reading is given to nobody in the first rebalance. Its holder sees that
    it is no longer assigned, revokes it and joins again; the second rebalance assigns it.

    Differs from Kafka: a partition that moves only because of racks, or to a member that claims it from an older
    generation, is withheld too; Kafka assigns it at once, while the holder still reads it.
    """

    name = "cooperative-sticky"
    protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def _assign(
        self,
        topics: Mapping[str, int],
        subscriptions: Sequence[MemberSubscription],
        ownership: Ownership,
        partition_racks: PartitionRacks | None,
    ) -> dict[str, list[TopicPartition]]:
        target = super()._assign(topics, subscriptions, ownership, partition_racks)
        return {
            member_id: [tp for tp in partitions if not ownership.held_by_another(member_id, tp)]
            for member_id, partitions in target.items()
        }
