"""Sticky assignment of members whose subscriptions differ: as balanced as single moves can make it.

Members keep what they may keep, free partitions go to the least loaded subscriber, then partitions move from a
subscriber to another that has at least two fewer until none does. Each move makes the totals strictly more even, so
the moving ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kcoord.assignors._ownership import Ownership
from kcoord.assignors._partitions import all_partitions
from kcoord.assignors._racks import Racks
from kcoord.assignors.assignor import MemberSubscription, TopicPartition

Assigned = dict[str, list[TopicPartition]]


def assign_general(
    topics: Mapping[str, int], subscriptions: Sequence[MemberSubscription], ownership: Ownership, racks: Racks
) -> Assigned:
    """Assign all partitions of `topics`, each of which has a subscriber in `subscriptions`.

    Afterwards no partition could move to a subscriber that has at least two fewer than its holder.
    """
    loads = _Loads(topics, subscriptions)
    # Topics that the fewest can take come first: those with a choice even out what they leave uneven.
    order = sorted(topics, key=lambda topic: (len(loads.subscribers[topic]), topic))
    partitions = all_partitions({topic: topics[topic] for topic in order})

    gave_up = _keep_owned(loads, ownership, racks)
    free = [partition for partition in partitions if partition not in loads.holder]
    _place(loads, free, racks)
    moves = _Moves(loads, ownership.previous)
    if not gave_up:
        # Nobody has to revoke anything yet: try to even out with new partitions alone.
        moves.even_out(free)
    moves.even_out(partitions)
    return loads.assigned()


class _Loads:
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


def _keep_owned(loads: _Loads, ownership: Ownership, racks: Racks) -> bool:
    """Let members keep what they own. Returns whether somebody must give up something that still exists."""
    gave_up = False
    subscribed = {topic: frozenset(members) for topic, members in loads.subscribers.items()}
    for member_id, partitions in ownership.owned.items():
        member = loads.number[member_id]
        for partition in partitions:
            if member in subscribed[partition[0]] and not racks.mismatch(member_id, partition):
                loads.give(partition, member)
            else:
                gave_up = True
    return gave_up


def _place(loads: _Loads, free: Sequence[TopicPartition], racks: Racks) -> None:
    """Give each of `free` to its least loaded subscriber; first those that fit a subscriber's rack, then the others."""
    rest = []
    for partition in free:
        candidates = loads.subscribers[partition[0]]
        if racks.of_member:
            candidates = [member for member in candidates if not racks.mismatch(loads.member_ids[member], partition)]
        if candidates:
            loads.give(partition, loads.least_loaded(candidates))
        else:
            rest.append(partition)
    for partition in rest:
        loads.give(partition, loads.least_loaded(loads.subscribers[partition[0]]))


class _Moves:
    """Evens out totals by moving partitions, and undoes moves rather than making opposite ones."""

    def __init__(self, loads: _Loads, previous: Mapping[TopicPartition, str]) -> None:
        self._loads = loads
        self._previous = previous
        self._origin: dict[TopicPartition, int] = {}
        self._moved: dict[tuple[str, int, int], dict[TopicPartition, None]] = {}

    def even_out(self, partitions: Sequence[TopicPartition]) -> None:
        """Move partitions of `partitions` to subscribers with at least two fewer, until there is nothing to move."""
        movable = [partition for partition in partitions if len(self._loads.subscribers[partition[0]]) > 1]
        moving = True
        while moving:
            moving = False
            for partition in movable:
                target = self._better_holder(partition)
                if target is not None:
                    self._move(partition, target)
                    moving = True

    def _better_holder(self, partition: TopicPartition) -> int | None:
        """Who should hold `partition` instead: its previous owner if that evens out, else the least loaded."""
        loads = self._loads
        subscribers = loads.subscribers[partition[0]]
        enough = loads.total(loads.holder[partition]) - 2
        least = loads.least_loaded(subscribers)
        if loads.total(least) > enough:
            return None
        previous = self._previous.get(partition)
        if previous is not None:
            number = loads.number[previous]
            if number in subscribers and loads.total(number) <= enough:
                return number
        return least

    def _move(self, partition: TopicPartition, target: int) -> None:
        source = self._loads.holder[partition]
        # A partition of the topic that came from `target` goes back in place of this one: the totals are the same,
        # and one partition less changes hands.
        returning = next(iter(self._moved.get((partition[0], target, source), ())), None)
        chosen = partition if returning is None else returning
        origin = self._origin.pop(chosen, source)
        self._moved.get((chosen[0], origin, source), {}).pop(chosen, None)
        if origin != target:
            self._origin[chosen] = origin
            self._moved.setdefault((chosen[0], origin, target), {})[chosen] = None
        self._loads.give(chosen, target)
