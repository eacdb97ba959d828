"""`uniform` where members subscribe to different topics.

Among the subscribers of each topic, no move of one of its partitions can lessen a difference of two or more. Where
subscriptions overlap only in part that need not be the best of all assignments.
Source: consumer specification, section 5.6.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from groups.core.assignors.base import GroupSpec, Partitions

MOST_PASSES = 16
"""Passes over the topics after which the balance is left as it is."""


def assign(spec: GroupSpec, topics: Mapping[str, int]) -> Mapping[str, Partitions]:
    """The target of each member; `topics` as `Assignor.assign` has them."""
    plan = _Plan(spec, topics)
    order = plan.hardest_first()
    for topic_id in order:
        plan.hand_out(topic_id)
    for _ in range(MOST_PASSES):
        moved = [plan.balance(topic_id) for topic_id in order]
        if not any(moved):
            break
    return plan.result()


class _Plan:
    """An assignment in the making. Members are numbered in the order of their ids."""

    def __init__(self, spec: GroupSpec, topics: Mapping[str, int]) -> None:
        self._topics = topics
        self._member_ids = list(spec.members)
        self._subscribers: dict[str, list[int]] = {topic_id: [] for topic_id in topics}
        self._owners: dict[str, dict[int, list[int]]] = {topic_id: {} for topic_id in topics}
        """Topic id -> member -> its partitions, ascending once all are handed out."""
        self._load = [0] * len(self._member_ids)
        for index, member in enumerate(spec.members.values()):
            for topic_id in member.topics & topics.keys():
                self._subscribers[topic_id].append(index)
                kept = member.target.get(topic_id)
                if kept:
                    self._owners[topic_id][index] = sorted(kept)
                    self._load[index] += len(kept)

    def hardest_first(self) -> Sequence[str]:
        """Topics with many partitions for each subscriber first, then those with few subscribers."""
        subscribed = [topic_id for topic_id, subscribers in self._subscribers.items() if subscribers]
        return sorted(
            subscribed,
            key=lambda topic_id: (
                -self._topics[topic_id] / len(self._subscribers[topic_id]),
                len(self._subscribers[topic_id]),
                topic_id,
            ),
        )

    def hand_out(self, topic_id: str) -> None:
        """Give each partition that nobody has to the subscriber with the least partitions of all topics."""
        owners = self._owners[topic_id]
        taken = {p for partitions in owners.values() for p in partitions}
        free = [p for p in range(self._topics[topic_id]) if p not in taken]
        if not free:
            return
        levels = [(self._load[index], index) for index in self._subscribers[topic_id]]
        heapq.heapify(levels)
        touched = set()
        for p in free:
            load, index = levels[0]
            heapq.heapreplace(levels, (load + 1, index))
            owners.setdefault(index, []).append(p)
            self._load[index] = load + 1
            touched.add(index)
        for index in touched:
            owners[index].sort()

    def balance(self, topic_id: str) -> bool:
        """Move partitions of the topic from the most to the least loaded until no move helps; whether any moved."""
        owners, load = self._owners[topic_id], self._load
        if (
            not owners
            or max(load[index] for index in owners) - min(load[index] for index in self._subscribers[topic_id]) < 2
        ):
            return False
        most = [(-load[index], index) for index in owners]
        least = [(load[index], index) for index in self._subscribers[topic_id]]
        heapq.heapify(most)
        heapq.heapify(least)
        while True:
            giver, taker = _top(most, load, owners, -1), least[0][1]
            if load[taker] != least[0][0]:
                heapq.heapreplace(least, (load[taker], taker))
                continue
            if giver is None or load[giver] - load[taker] < 2:
                return True
            _move(owners, giver, taker)
            load[giver] -= 1
            load[taker] += 1
            heapq.heapreplace(least, (load[taker], taker))
            heapq.heappush(least, (load[giver], giver))
            heapq.heappush(most, (-load[giver], giver))
            heapq.heappush(most, (-load[taker], taker))

    def result(self) -> Mapping[str, Partitions]:
        """The assignment, by member id."""
        assigned: dict[str, dict[str, frozenset[int]]] = {member_id: {} for member_id in self._member_ids}
        for topic_id, owners in self._owners.items():
            for index, partitions in owners.items():
                assigned[self._member_ids[index]][topic_id] = frozenset(partitions)
        return assigned


def _top(heap: list[tuple[int, int]], load: Sequence[int], owners: Mapping[int, list[int]], sign: int) -> int | None:
    """The first member of the heap whose entry is still true; entries that are not are dropped."""
    while heap:
        key, index = heap[0]
        if index in owners and key == sign * load[index]:
            return index
        heapq.heappop(heap)
    return None


def _move(owners: dict[int, list[int]], giver: int, taker: int) -> None:
    """The giver's highest partition changes hands."""
    p = owners[giver].pop()
    if not owners[giver]:
        del owners[giver]
    taken = owners.setdefault(taker, [])
    taken.append(p)
    taken.sort()
