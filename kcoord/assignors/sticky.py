"""The sticky assignors: balance first, then leave partitions where they are.

Source: Kafka's `AbstractStickyAssignor`; KIP-54 (sticky), KIP-341, KIP-429 (cooperative), KIP-881 (racks).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kcoord.assignors._constrained import assign_constrained
from kcoord.assignors._general import assign_general
from kcoord.assignors._loads import Assigned
from kcoord.assignors._ownership import Ownership, settle
from kcoord.assignors._partitions import by_topic, grouped_by_topic, subscribed_topics
from kcoord.assignors._racks import NO_RACKS, known_racks
from kcoord.assignors._subscribers import alike
from kcoord.assignors.assignor import (
    Assignment,
    MemberSubscription,
    PartitionRacks,
    PartitionsPerTopic,
    RebalanceProtocol,
)


class StickyAssignor:
    """Totals as even as subscriptions allow; within that, members keep what they own.

    `owned_partitions` with `generation_id` of the subscriptions say who owns what. With equal subscriptions totals
    differ by at most one; otherwise no partition could move to a subscriber that has at least two fewer than its
    holder. Where racks are known and differ, partitions move to members on a rack of a replica, within the same totals.

    Differs from Kafka: what a member owned is read from the subscription (ConsumerProtocol v1 and later), not from user
    data. Members give up partitions on foreign racks only if that makes fewer of them: Kafka lets them go in any
    case, and may pass them around forever while nothing changes.
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
        problem = _Problem(partitions_per_topic, subscriptions, partition_racks)
        return grouped_by_topic(problem.solve(realign_racks=True))


class CooperativeStickyAssignor:
    """The sticky assignment, reached in two rebalances without stopping the members (KIP-429).

    A partition that another member may still be reading is not assigned in the first rebalance. Its holder sees that
    it is no longer assigned, revokes it and joins again; the second rebalance assigns it, and moves nothing else.

    Differs from Kafka:
    - A partition that moves only because of racks, or to a member that claims it from an older generation, is withheld
      too; Kafka assigns it at once, while its holder still reads it.
    - No member gives up a partition because of racks while others are free: the free ones may be in transit since the
      previous rebalance, which would then never finish.
    - Where Kafka's second rebalance would find that more must move, and need a third, the first targets that directly.
    """

    name = "cooperative-sticky"
    protocols: tuple[RebalanceProtocol, ...] = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def assign(
        self,
        partitions_per_topic: PartitionsPerTopic,
        subscriptions: Sequence[MemberSubscription],
        partition_racks: PartitionRacks | None = None,
    ) -> Assignment:
        """See `Assignor.assign`."""
        problem = _Problem(partitions_per_topic, subscriptions, partition_racks)
        target = problem.solve(realign_racks=problem.nothing_is_free())
        while True:
            now = problem.without_those_held_by_others(target)
            if all(len(now[member_id]) == len(target[member_id]) for member_id in target):
                break
            owning_now = [
                replace(member, owned_partitions=by_topic(now[member.member_id]), generation_id=0)
                for member in subscriptions
            ]
            then = _Problem(partitions_per_topic, owning_now, partition_racks).solve(realign_racks=False)
            if all(set(now[member_id]) <= set(then[member_id]) for member_id in now):
                break
            # More even than `target` (see `_general`), so this ends.
            target = then
        return grouped_by_topic(now)


class _Problem:
    """The input of an assignment, resolved once for both assignors."""

    def __init__(
        self,
        partitions_per_topic: PartitionsPerTopic,
        subscriptions: Sequence[MemberSubscription],
        partition_racks: PartitionRacks | None,
    ) -> None:
        self._subscriptions = subscriptions
        self._topics = subscribed_topics(partitions_per_topic, subscriptions)
        self._ownership = settle(self._topics, subscriptions)
        racks = known_racks(subscriptions, self._topics, partition_racks)
        self._racks = racks if racks.matter() else NO_RACKS

    def nothing_is_free(self) -> bool:
        """Every partition has an owner."""
        return len(self._ownership.owner) == sum(self._topics.values())

    def without_those_held_by_others(self, assigned: Assigned) -> Assigned:
        """`assigned` without the partitions that a member other than the new owner may still be reading."""
        return {
            member_id: self._ownership.not_held_by_others(member_id, partitions)
            for member_id, partitions in assigned.items()
        }

    def solve(self, *, realign_racks: bool) -> Assigned:
        """The sticky assignment. `realign_racks`: members may give up partitions whose replicas are on other racks."""
        kept = self._assign(self._ownership, revoking=False)
        if not realign_racks or not self._racks.of_member:
            return kept
        aligned = self._ownership.without(self._racks.mismatch)
        if len(aligned.owner) == len(self._ownership.owner):
            return kept
        realigned = self._assign(aligned, revoking=True)
        return realigned if self._cost(realigned) < self._cost(kept) else kept

    def _assign(self, ownership: Ownership, *, revoking: bool) -> Assigned:
        if not self._topics:
            return {member_id: [] for member_id in ownership.owned}
        if len(alike(self._subscriptions)) == 1:
            return assign_constrained(self._topics, ownership, self._racks)
        return assign_general(self._topics, self._subscriptions, ownership, self._racks, revoking)

    def _cost(self, assigned: Assigned) -> tuple[int, int]:
        """(How uneven, how many partitions are read from another rack): balance comes first."""
        uneven = sum(len(partitions) ** 2 for partitions in assigned.values())
        foreign = sum(self._racks.mismatch(member_id, tp) for member_id, tps in assigned.items() for tp in tps)
        return uneven, foreign
