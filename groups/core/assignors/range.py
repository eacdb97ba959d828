"""`range`: consecutive ranges of each topic, topics independent of each other. Not sticky.

With equal subscriptions and equal partition counts the same member gets the same partition numbers of every topic.
Source: consumer.md 5.4; Kafka's `RangeAssignor` of the group coordinator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groups.core.assignors.base import GroupSpec, Partitions, subscribers_of


class RangeAssignor:
    """Static members come first, in the order of their instance ids, then the others in the order of their ids."""

    name = "range"

    def assign(self, spec: GroupSpec, topics: Mapping[str, int]) -> Mapping[str, Partitions]:
        """See `Assignor`."""
        ordered = _static_first(spec)
        ranges: list[dict[str, frozenset[int]]] = [{} for _ in ordered]
        alike: dict[tuple[int, int], Sequence[frozenset[int]]] = {}
        subscribers = subscribers_of((spec.members[member_id].topics for member_id in ordered), topics)
        for topic_id in topics:
            places = subscribers.of(topic_id)
            if not places:
                continue
            size = topics[topic_id], len(places)
            if size not in alike:
                alike[size] = _ranges(*size)
            for place, partitions in zip(places, alike[size], strict=False):
                ranges[place][topic_id] = partitions
        assigned = dict(zip(ordered, ranges, strict=True))
        return {member_id: assigned[member_id] for member_id in spec.members}


def _static_first(spec: GroupSpec) -> Sequence[str]:
    return sorted(
        spec.members,
        key=lambda member_id: (
            (spec.members[member_id].instance_id is None),
            spec.members[member_id].instance_id,
            member_id,
        ),
    )


def _ranges(count: int, subscribers: int) -> Sequence[frozenset[int]]:
    """Consecutive ranges of the partitions of a topic, none of them empty: of the first of its subscribers."""
    least, extra = divmod(count, subscribers)
    found = []
    start = 0
    for place in range(min(count, subscribers)):
        end = start + least + (place < extra)
        found.append(frozenset(range(start, end)))
        start = end
    return found
