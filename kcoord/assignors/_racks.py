"""Which racks matter: the rack-aware part that range and the sticky assignors share (KIP-881).

All replicas count, in sync or not: members do not rebalance when a replica falls behind, so an assignment that
followed the in-sync set would be stale soon after.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from kcoord.assignors.assignor import MemberSubscription, PartitionRacks, TopicPartition


@dataclass(frozen=True, slots=True)
class Racks:
    """The racks of members (those that reported one) and of partitions (empty where unknown)."""

    of_member: Mapping[str, str] = field(default_factory=dict)
    of_partition: Mapping[TopicPartition, frozenset[str]] = field(default_factory=dict)

    def matter(self) -> bool:
        """Aligning racks can make an assignment more local."""
        return make_a_difference(self.of_member.values(), self.of_partition.values())

    def mismatch(self, member_id: str, partition: TopicPartition) -> bool:
        """The member's rack is known and holds no replica of `partition`."""
        rack = self.of_member.get(member_id)
        return rack is not None and rack not in self.of_partition[partition]

    def scarcest_first(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """`partitions`, those with the fewest members on their racks first; otherwise in the order given."""
        members_in = Counter(self.of_member.values())
        return sorted(partitions, key=lambda partition: sum(members_in[rack] for rack in self.of_partition[partition]))


NO_RACKS = Racks()


def make_a_difference(member_racks: Iterable[str], of_partitions: Collection[frozenset[str]]) -> bool:
    """Some assignments are more local than others.

    Not if members and partitions have no rack in common, nor if every partition is on every rack.
    """
    different = set(of_partitions)
    everywhere = frozenset[str]().union(*different)
    return not everywhere.isdisjoint(member_racks) and different != {everywhere}


def known_racks(
    members: Iterable[MemberSubscription], topics: Mapping[str, int], partition_racks: PartitionRacks | None
) -> Racks:
    """The racks of `members` and of all partitions of `topics`; `NO_RACKS` when no member or no partition has one."""
    of_member = {member.member_id: member.rack_id for member in members if member.rack_id}
    if not of_member or not partition_racks:
        return NO_RACKS
    return Racks(
        of_member,
        {
            (topic, partition): racks_of(partition_racks.get(topic, ()), partition)
            for topic, count in topics.items()
            for partition in range(count)
        },
    )


def racks_of(racks_by_partition: Sequence[Sequence[str]], partition: int) -> frozenset[str]:
    """The racks of a partition's replicas; empty where they are not known."""
    return _as_set(tuple(racks_by_partition[partition])) if partition < len(racks_by_partition) else frozenset()


@lru_cache(maxsize=1_000)
def _as_set(racks: tuple[str, ...]) -> frozenset[str]:
    """There are few different ones: a hundred thousand sets would keep the garbage collector busy."""
    return frozenset(racks)
