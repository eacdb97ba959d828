"""Who owns what, as far as the members' own reports can be trusted: the memory of the sticky assignors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kcoord.assignors.assignor import MemberSubscription, TopicPartition

_UNKNOWN_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Ownership:
    """The members' claims of ownership, with conflicts resolved.

    Parameters: `owned` member id -> the partitions that it owns, ascending; every member is a key. `owner` is the
    inverse. `contested`: the partitions that several members claim. `previous` partition -> who claims it in the latest
    generation before the newest that any member reports.
    """

    owned: Mapping[str, Sequence[TopicPartition]]
    owner: Mapping[TopicPartition, str]
    contested: Collection[TopicPartition]
    previous: Mapping[TopicPartition, str]

    def not_held_by_others(self, member_id: str, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """`partitions` without those that another member than `member_id` may still be reading.

        For a partition that the member owns, the other claims are older: those members have lost it in a rebalance.
        """
        free = [partition for partition in partitions if self.owner.get(partition, member_id) == member_id]
        if not self.contested:
            return free
        return [partition for partition in free if partition in self.owner or partition not in self.contested]

    def without(self, give_up: Callable[[str, TopicPartition], bool]) -> Ownership:
        """The same claims, after every owner gave up the partitions for which `give_up(owner, partition)` holds."""
        owned = {
            member_id: [partition for partition in partitions if not give_up(member_id, partition)]
            for member_id, partitions in self.owned.items()
        }
        owner = {partition: member_id for member_id, partitions in owned.items() for partition in partitions}
        return replace(self, owned=owned, owner=owner)


def settle(topics: Mapping[str, int], subscriptions: Iterable[MemberSubscription]) -> Ownership:
    """Resolve the claims of `subscriptions` to partitions of `topics`; claims to others are dropped.

    A partition is owned by the member that claims it in the highest generation. If two claim it in that generation it
    has no owner: at least one of the reports is wrong, and nothing shows which.

    Differs from Kafka: the eager `sticky` gives such a partition to whichever claimant it happens to visit last.
    """
    members = sorted(subscriptions, key=lambda member: member.member_id)
    generation = {member.member_id: max(member.generation_id, _UNKNOWN_GENERATION) for member in members}
    owned = {member.member_id: _existing(topics, member) for member in members}
    owner: dict[TopicPartition, str] = {}
    rivals: dict[TopicPartition, list[str]] = {}
    for member_id, claimed in owned.items():
        if not owner.keys().isdisjoint(claimed):
            for partition in claimed:
                if partition in owner:
                    rivals.setdefault(partition, [owner[partition]]).append(member_id)
        # Of contested partitions the owner is found below.
        owner.update(dict.fromkeys(claimed, member_id))

    newest = max(generation.values(), default=_UNKNOWN_GENERATION)
    previous = {
        partition: member_id
        for member_id, claimed in owned.items()
        if generation[member_id] < newest
        for partition in claimed
    }
    for partition, claimants in rivals.items():
        latest = max(map(generation.__getitem__, claimants))
        soles = [member_id for member_id in claimants if generation[member_id] == latest]
        if len(soles) == 1:
            owner[partition] = soles[0]
        else:
            del owner[partition]
        stale = [member_id for member_id in claimants if generation[member_id] < newest]
        if stale:
            previous[partition] = max(stale, key=generation.__getitem__)
    for member_id in {member_id for claimants in rivals.values() for member_id in claimants}:
        owned[member_id] = [partition for partition in owned[member_id] if owner.get(partition) == member_id]
    return Ownership(owned, owner, rivals.keys(), previous)


def _existing(topics: Mapping[str, int], member: MemberSubscription) -> list[TopicPartition]:
    """The partitions of `topics` that the member claims, ascending."""
    return [
        (topic, partition)
        for topic in sorted(topics.keys() & member.owned_partitions.keys())
        for partition in sorted(set(member.owned_partitions[topic]))
        if 0 <= partition < topics[topic]
    ]
