"""Who owns what, as far as the members' own reports can be trusted: the memory of the sticky assignors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kcoord.assignors.assignor import MemberSubscription, TopicPartition

_UNKNOWN_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Ownership:
    """The members' claims of ownership, with conflicts resolved.

    Parameters: `owned` member id -> the partitions that it owns, ascending; every member is a key. `owner` is the
    inverse. `claimants` partition -> all members that claim it. `previous` partition -> who claims it
    in the latest generation before the newest that any member reports.
    """

    owned: Mapping[str, Sequence[TopicPartition]]
    owner: Mapping[TopicPartition, str]
    claimants: Mapping[TopicPartition, Sequence[str]]
    previous: Mapping[TopicPartition, str]

    def held_by_another(self, member_id: str, partition: TopicPartition) -> bool:
        """Another member than `member_id` may still be reading `partition`.

        For a partition that the member owns, the other claims are older: those members have lost it in a rebalance.
        """
        if self.owner.get(partition) == member_id:
            return False
        return any(claimant != member_id for claimant in self.claimants.get(partition, ()))

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
    claims: dict[TopicPartition, list[tuple[int, str]]] = {}
    owned: dict[str, list[TopicPartition]] = {}
    newest = _UNKNOWN_GENERATION
    for member in sorted(subscriptions, key=lambda member: member.member_id):
        owned[member.member_id] = []
        generation = max(member.generation_id, _UNKNOWN_GENERATION)
        newest = max(newest, generation)
        for partition in _existing(topics, member):
            claims.setdefault(partition, []).append((generation, member.member_id))

    owner = {partition: sole for partition, rivals in claims.items() if (sole := _sole_newest(rivals)) is not None}
    for partition in sorted(owner):
        owned[owner[partition]].append(partition)
    claimants = {partition: [member_id for _, member_id in rivals] for partition, rivals in claims.items()}
    previous: dict[TopicPartition, str] = {}
    for partition, rivals in claims.items():
        stale = [claim for claim in rivals if claim[0] < newest]
        if stale:
            previous[partition] = max(stale, key=lambda claim: claim[0])[1]
    return Ownership(owned, owner, claimants, previous)


def _existing(topics: Mapping[str, int], member: MemberSubscription) -> Iterator[TopicPartition]:
    for topic, partitions in member.owned_partitions.items():
        for partition in set(partitions):
            if 0 <= partition < topics.get(topic, 0):
                yield topic, partition


def _sole_newest(rivals: Sequence[tuple[int, str]]) -> str | None:
    newest = max(generation for generation, _ in rivals)
    owners = [member_id for generation, member_id in rivals if generation == newest]
    return owners[0] if len(owners) == 1 else None
