"""`uniform`: all members have about the same number of partitions, and keep theirs where possible.

Where all members subscribe to the same topics, totals differ by at most one. A partition moves only if its holder has
more than its share, and a member with less than its share loses nothing.

Where members subscribe to different topics, no move of a partition of a topic among its subscribers can reduce a
difference of two or more. If subscriptions only partly overlap, this need not be the best possible assignment. Among
members with the same number of partitions, the order follows Kafka's assignor wherever that is deterministic. Only the
order of the member ids and of the topic ids is free: there Kafka uses hash order.

Source: consumer.md 5.5 and 5.6; Kafka's `UniformAssignor`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from groups.core.assignors.base import GroupSpec, MemberSpec, Partitions, subscribers_of


class UniformAssignor:
    """Kafka's default. Racks are ignored."""

    name = "uniform"

    def assign(self, spec: GroupSpec, topics: Mapping[str, int]) -> Mapping[str, Partitions]:
        """See `Assignor`."""
        if not spec.members:
            return {}
        if spec.homogeneous:
            return homogeneous(spec, topics)
        return heterogeneous(spec, topics)


LEAST_BUCKETS = 16
"""The default of a `java.util.HashSet`."""


def homogeneous(spec: GroupSpec, topics: Mapping[str, int]) -> Mapping[str, Partitions]:
    """The target of each member. `spec` has members; `topics` as in `Assignor.assign`."""
    quotas = _quotas(spec, topics)
    unassigned = _unassigned(spec, topics)
    kept: dict[str, dict[str, frozenset[int]]] = {}
    unfilled: list[tuple[str, int]] = []
    for member_id, member in spec.members.items():
        kept[member_id], missing = _keep(member, topics, quotas[member_id], unassigned)
        if missing:
            unfilled.append((member_id, missing))
    start = 0
    for member_id, missing in unfilled:
        _fill(kept[member_id], unassigned[start : start + missing])
        start += missing
    return kept


def _quotas(spec: GroupSpec, topics: Mapping[str, int]) -> Mapping[str, int]:
    """How many partitions each member may have; the largest holders have the first claim to one more.

    Kafka gives it to the first it visits of those that hold more than the minimum, in hash order of the member ids. The
    same number of partitions moves (consumer.md 5.5; observed with 4.3.1).
    """
    least, extra = divmod(sum(topics.values()), len(spec.members))
    held = {
        member_id: sum(len(partitions) for topic_id, partitions in member.target.items() if topic_id in topics)
        for member_id, member in spec.members.items()
    }
    largest = sorted(held, key=lambda member_id: -held[member_id])
    return {member_id: least + (rank < extra) for rank, member_id in enumerate(largest)}


def _unassigned(spec: GroupSpec, topics: Mapping[str, int]) -> list[tuple[str, int]]:
    """The partitions that are in no member's target, topic by topic, ascending."""
    held: dict[str, set[int]] = {topic_id: set() for topic_id in topics}
    for member in spec.members.values():
        for topic_id, partitions in member.target.items():
            if topic_id in held:
                held[topic_id].update(partitions)
    return [(topic_id, p) for topic_id, count in topics.items() for p in range(count) if p not in held[topic_id]]


def _keep(
    member: MemberSpec, topics: Mapping[str, int], quota: int, unassigned: list[tuple[str, int]]
) -> tuple[dict[str, frozenset[int]], int]:
    """What the member keeps of its target, and how many it is short of its quota. The surplus joins `unassigned`."""
    kept: dict[str, frozenset[int]] = {}
    for topic_id in sorted(member.target):
        if topic_id not in topics:
            continue
        partitions = member.target[topic_id]
        if len(partitions) > quota:
            ordered = _in_set_order(partitions)
            partitions = frozenset(ordered[:quota])
            unassigned += [(topic_id, p) for p in ordered[quota:]]
        if partitions:
            kept[topic_id] = partitions
            quota -= len(partitions)
    return kept, quota


def _in_set_order(partitions: Collection[int]) -> list[int]:
    """As Kafka iterates a member's partitions of a topic; what comes last is given up first.

    That is the order of a `java.util.HashSet` of Java 19 or newer: ascending while the numbers are smaller than the
    number of buckets. Kafka resolves collisions by the order in which the partitions were added, here they are
    ascending.
    """
    buckets = LEAST_BUCKETS
    while buckets * 3 < len(partitions) * 4:
        buckets *= 2
    return sorted(partitions, key=lambda p: ((p ^ p >> 16) % buckets, p))


def _fill(kept: dict[str, frozenset[int]], partitions: list[tuple[str, int]]) -> None:
    added: dict[str, list[int]] = {}
    for topic_id, p in partitions:
        added.setdefault(topic_id, []).append(p)
    for topic_id, numbers in added.items():
        kept[topic_id] = kept.get(topic_id, frozenset()).union(numbers)


MOST_PASSES = 16
"""The number of passes over the topics after which the balance is left as it is."""


def heterogeneous(spec: GroupSpec, topics: Mapping[str, int]) -> Mapping[str, Partitions]:
    """The target of each member; `topics` as in `Assignor.assign`."""
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
    """An assignment under construction. Members are numbered in the order of their ids."""

    def __init__(self, spec: GroupSpec, topics: Mapping[str, int]) -> None:
        self._topics = topics
        self._member_ids = list(spec.members)
        self._subscribers = subscribers_of((member.topics for member in spec.members.values()), topics)
        self._owners: dict[str, dict[int, list[int]]] = {topic_id: {} for topic_id in topics}
        """Topic id -> member -> its partitions, ascending; members without any are absent."""
        self._load = [0] * len(self._member_ids)
        self._least: dict[int, int] = {}
        """Number of subscribers -> the smallest of their loads, as long as no load changes."""
        for index, member in enumerate(spec.members.values()):
            for topic_id, kept in member.target.items():
                if kept and topic_id in member.topics and topic_id in topics:
                    self._owners[topic_id][index] = sorted(kept)
                    self._load[index] += len(kept)

    def hardest_first(self) -> Sequence[str]:
        """Topics with many partitions for each subscriber first, then those with few subscribers."""
        subscribed = [topic_id for topic_id in self._topics if self._subscribers.of(topic_id)]
        return sorted(
            subscribed,
            key=lambda topic_id: (
                -self._topics[topic_id] / len(self._subscribers.of(topic_id)),
                len(self._subscribers.of(topic_id)),
                topic_id,
            ),
        )

    def hand_out(self, topic_id: str) -> None:
        """Give each unassigned partition to the subscriber with the fewest partitions across all topics."""
        owners = self._owners[topic_id]
        taken = {p for partitions in owners.values() for p in partitions}
        free = [p for p in range(self._topics[topic_id]) if p not in taken]
        if not free:
            return
        takers = _takers(self._least_loaded_first(topic_id), self._load)
        given: dict[int, list[int]] = {}
        for p, (taker, _) in zip(free, takers, strict=False):
            given.setdefault(taker, []).append(p)
        self._give(topic_id, given)

    def balance(self, topic_id: str) -> bool:
        """Move partitions of the topic from the most to the least loaded until no move helps; whether any was moved."""
        owners, load = self._owners[topic_id], self._load
        if not owners or max(map(load.__getitem__, owners)) - self._least_load(topic_id) < 2:
            return False
        members = self._least_loaded_first(topic_id)
        givers, takers = _givers(members, load, owners), _takers(members, load)
        given: dict[int, list[int]] = {}
        taken: Counter[int] = Counter()
        for (giver, high), (taker, low) in zip(givers, takers, strict=False):
            if high - low < 2:
                break
            given.setdefault(taker, []).append(owners[giver].pop())
            taken[giver] += 1
        for giver, count in taken.items():
            load[giver] -= count
            if not owners[giver]:
                del owners[giver]
        self._give(topic_id, given)
        return True

    def _least_load(self, topic_id: str) -> int:
        number = self._subscribers.number[topic_id]
        if number not in self._least:
            self._least[number] = min(map(self._load.__getitem__, self._subscribers.places[number]))
        return self._least[number]

    def _least_loaded_first(self, topic_id: str) -> Sequence[int]:
        """The topic's subscribers; those with the same number of partitions in ascending order."""
        return sorted(self._subscribers.of(topic_id), key=self._load.__getitem__)

    def _give(self, topic_id: str, given: Mapping[int, Sequence[int]]) -> None:
        owners = self._owners[topic_id]
        self._least.clear()
        for taker, partitions in given.items():
            owners[taker] = sorted([*owners.get(taker, ()), *partitions])
            self._load[taker] += len(partitions)

    def result(self) -> Mapping[str, Partitions]:
        """The assignment, by member id."""
        assigned: dict[str, dict[str, frozenset[int]]] = {member_id: {} for member_id in self._member_ids}
        for topic_id, owners in self._owners.items():
            for index, partitions in owners.items():
                assigned[self._member_ids[index]][topic_id] = frozenset(partitions)
        return assigned


def _takers(members: Sequence[int], load: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yields the member that gets the next partition, and how many it has before that; never ends.

    `members` are in ascending order of `load`, which must not change in the meantime. All members at the lowest level
    get one each, those that reached it earlier before those that began on it; then all of them are one level higher.
    """
    reached, level = 0, load[members[0]]
    while True:
        while reached < len(members) and load[members[reached]] == level:
            reached += 1
        for member in islice(members, reached):
            yield member, level
        level += 1


def _givers(
    members: Sequence[int], load: Sequence[int], owners: Mapping[int, Sequence[int]]
) -> Iterator[tuple[int, int]]:
    """Yields the member that gives up the next partition, and how many it has before; ends when no owner has any left.

    The mirror image of `_takers`, with the same `members` and `load`. A member at the highest level that has nothing to
    give leaves the queue, and the head of the queue moves to its place, so that its turn in the next round is later.
    """
    line = list(reversed(members))
    head, reached, level = 0, 0, load[line[0]]
    while True:
        while reached < len(line) and load[line[reached]] == level:
            reached += 1
        for place in range(head, reached):
            member = line[place]
            if owners.get(member):
                yield member, level
            else:
                line[place] = line[head]
                head += 1
        if head < reached:
            level -= 1
        elif reached < len(line):
            level = load[line[reached]]
        else:
            return
