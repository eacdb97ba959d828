"""Who holds what while the general sticky assignment is computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kcoord.assignors.assignor import MemberSubscription, TopicPartition

Assigned = dict[str, list[TopicPartition]]


class Loads:
    """Who holds what, and how much.

    Members are numbered in id order. `load[n]` is total * members + n, so that comparing loads compares totals first
    and member ids second, and the minimum over plain integers stays in C.
    """

    def __init__(self, topics: Mapping[str, int], subscriptions: Iterable[MemberSubscription]) -> None:
        members = sorted(subscriptions, key=lambda member: member.member_id)
        self.member_ids = [member.member_id for member in members]
        self.number = {member_id: number for number, member_id in enumerate(self.member_ids)}
        self.load = list(range(len(members)))
        self.holder: dict[TopicPartition, int] = {}
        self.subscribers: dict[str, list[int]] = {topic: [] for topic in topics}
        for number, member in enumerate(members):
            for topic in set(member.topics) & topics.keys():
                self.subscribers[topic].append(number)

    def total(self, member: int) -> int:
        """How many partitions the member holds."""
        return self.load[member] // len(self.load)

    def least_loaded(self, candidates: Iterable[int]) -> int:
        """The one of `candidates` with the smallest total, by member id among equals."""
        return min(map(self.load.__getitem__, candidates)) % len(self.load)

    def give(self, partition: TopicPartition, member: int) -> None:
        """Let `member` hold `partition`; its holder so far, if any, loses it."""
        before = self.holder.get(partition)
        if before is not None:
            self.load[before] -= len(self.load)
        self.holder[partition] = member
        self.load[member] += len(self.load)

    def assigned(self) -> Assigned:
        """Member id -> what it holds."""
        assigned: Assigned = {member_id: [] for member_id in self.member_ids}
        for partition, member in self.holder.items():
            assigned[self.member_ids[member]].append(partition)
        return assigned
