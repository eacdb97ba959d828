"""`uniform` where all members subscribe to the same topics.

Totals differ by at most one. A partition moves only if its holder has more than its share, and a member with less
than its share loses nothing. Source: consumer.md 5.5.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from groups.core.assignors.base import GroupSpec, MemberSpec, Partitions

LEAST_BUCKETS = 16
"""The default of a `java.util.HashSet`."""


def assign(spec: GroupSpec, topics: Mapping[str, int]) -> Mapping[str, Partitions]:
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
