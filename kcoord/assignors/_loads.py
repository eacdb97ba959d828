"""Who holds what while the general sticky assignment is computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import groupby

from kcoord.assignors._subscribers import by_subscribers
from kcoord.assignors.assignor import MemberSubscription, TopicPartition

Assigned = dict[str, list[TopicPartition]]


class Loads:
    """Who holds what, and how much.

    Members are numbered in id order. `load[n]` is total * members + n, so that comparing loads compares totals first
    and member ids second, and the minimum over plain integers stays in C. Topics with the same subscribers share
    the objects in `subscribers` and `subscribing`, which have the same members. `moves` counts changes of `load`.
    """

    def __init__(self, topics: Mapping[str, int], subscriptions: Iterable[MemberSubscription]) -> None:
        members = sorted(subscriptions, key=lambda member: member.member_id)
        self.member_ids = [member.member_id for member in members]
        self.number = {member_id: number for number, member_id in enumerate(self.member_ids)}
        self.load = list(range(len(members)))
        self.moves = 0
        self.holder: dict[TopicPartition, int] = {}
        self.subscribers: dict[str, Sequence[int]] = dict.fromkeys(topics, ())
        self.subscribing: dict[str, frozenset[int]] = dict.fromkeys(topics, frozenset())
        for group in by_subscribers(topics, members):
            self.subscribers.update(dict.fromkeys(group.names, group.subscribers))
            self.subscribing.update(dict.fromkeys(group.names, frozenset(group.subscribers)))

    def total(self, member: int) -> int:
        """How many partitions the member holds."""
        return self.load[member] // len(self.load)

    def give(self, partition: TopicPartition, member: int) -> None:
        """Let `member` hold `partition`; its holder so far, if any, loses it."""
        before = self.holder.get(partition)
        if before is not None:
            self.load[before] -= len(self.load)
        self.holder[partition] = member
        self.load[member] += len(self.load)
        self.moves += 1

    def runs(self, partitions: Iterable[TopicPartition]) -> list[tuple[Sequence[int], list[TopicPartition]]]:
        """`partitions` in the order given, cut where the subscribers change: (subscribers, partitions)."""
        cut = groupby(partitions, key=lambda partition: id(self.subscribers[partition[0]]))
        runs = [list(run) for _, run in cut]
        return [(self.subscribers[run[0][0]], run) for run in runs]

    def queue(self, members: Iterable[int]) -> list[int]:
        """The loads of `members`, as a heap."""
        heap = [self.load[member] for member in members]
        heapify(heap)
        return heap

    def give_first(self, partition: TopicPartition, queue: list[int]) -> None:
        """Let the least loaded of `queue`, by member id among equals, hold `partition`, which nobody holds."""
        member = queue[0] % len(self.load)
        self.give(partition, member)
        heapreplace(queue, self.load[member])

    def assigned(self) -> Assigned:
        """Member id -> what it holds."""
        assigned: Assigned = {member_id: [] for member_id in self.member_ids}
        for partition, member in self.holder.items():
            assigned[self.member_ids[member]].append(partition)
        return assigned


class Least:
    """The least loaded of some members. It is searched for again only if loads were changed elsewhere since.

    Entries of the heap are loads; one that is no longer its member's load is stale. `moves`: the changes of loads that
    this has seen.
    """

    def __init__(self, loads: Loads, members: Sequence[int]) -> None:
        self._loads = loads
        self._members = members
        self._heap: list[int] = []
        self._moves = -1
        self._load = 0
        self._uneven = False

    def member(self) -> int:
        """The one with the smallest total, by member id among equals."""
        self._look()
        return self._load % len(self._loads.load)

    def uneven(self) -> bool:
        """One of the members has at least two partitions more than another."""
        self._look()
        return self._uneven

    def _look(self) -> None:
        loads = self._loads
        if self._moves == loads.moves:
            return
        self._heap = []
        found = [loads.load[member] for member in self._members]
        self._load = min(found)
        self._uneven = max(found) // len(loads.load) - self._load // len(loads.load) >= 2
        self._moves = loads.moves

    def move(self, partition: TopicPartition, target: int) -> None:
        """Let `target` hold `partition`. It is one of these members, and so is the holder so far."""
        loads = self._loads
        if self._moves != loads.moves or not self._heap:
            self._heap = loads.queue(self._members)
        source = loads.holder[partition]
        loads.give(partition, target)
        heappush(self._heap, loads.load[source])
        heappush(self._heap, loads.load[target])
        while loads.load[self._heap[0] % len(loads.load)] != self._heap[0]:
            heappop(self._heap)
        self._load = self._heap[0]
        # Who has most now is not known. It does not matter before the next look.
        self._uneven = True
        self._moves = loads.moves
