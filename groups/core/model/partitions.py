"""Sets of partitions of several topics, as maps from topic id. A topic without partitions is absent.

`Partitions` are plain sets; `Assigned` also says for each partition in which assignment epoch the member got it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from groups.core.assignors.base import Partitions

Assigned = Mapping[str, Mapping[int, int]]
"""Topic id -> partition -> assignment epoch (KIP-1251)."""

__all__ = ["Assigned", "Partitions", "flat", "intersects", "is_subset", "merged", "minus", "plain", "within"]


def plain(assigned: Assigned) -> Partitions:
    """The partitions alone."""
    return {topic_id: frozenset(partitions) for topic_id, partitions in assigned.items()}


def flat(partitions: Partitions | Assigned) -> Iterator[tuple[str, int]]:
    """Each partition as (topic id, number)."""
    return ((topic_id, p) for topic_id, numbers in partitions.items() for p in numbers)


def within(assigned: Assigned, limits: Partitions) -> Assigned:
    """The part of `assigned` that is also in `limits`."""
    kept = {
        topic_id: {p: epoch for p, epoch in partitions.items() if p in limits[topic_id]}
        for topic_id, partitions in assigned.items()
        if topic_id in limits
    }
    return {topic_id: partitions for topic_id, partitions in kept.items() if partitions}


def minus(assigned: Assigned, limits: Partitions) -> Assigned:
    """The part of `assigned` that is not in `limits`."""
    rest = {
        topic_id: {p: epoch for p, epoch in partitions.items() if p not in limits.get(topic_id, ())}
        for topic_id, partitions in assigned.items()
    }
    return {topic_id: partitions for topic_id, partitions in rest.items() if partitions}


def merged(assigned: Assigned, added: Assigned) -> Assigned:
    """Both together; they must have no partition in common."""
    if not added:
        return assigned
    both = {topic_id: dict(partitions) for topic_id, partitions in assigned.items()}
    for topic_id, partitions in added.items():
        both.setdefault(topic_id, {}).update(partitions)
    return both


def intersects(one: Partitions, other: Assigned) -> bool:
    """Is any partition in both?"""
    return any(not partitions.isdisjoint(other.get(topic_id, ())) for topic_id, partitions in one.items())


def is_subset(part: Partitions, whole: Assigned) -> bool:
    """Is every partition of `part` in `whole`?"""
    return all(partitions <= whole.get(topic_id, {}).keys() for topic_id, partitions in part.items())
