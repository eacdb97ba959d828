"""`range`: consecutive ranges of each topic, topics independent of each other. Not sticky.

With equal subscriptions and equal partition counts the same member gets the same partition numbers of every topic.
Source: consumer.md 5.4; Kafka's `RangeAssignor` of the group coordinator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groups.core.assignors.base import GroupSpec, Partitions


class RangeAssignor:
    """Static members come first, in the order of their instance ids, then the others in the order of their ids."""

    name = "range"

    def assign(self, spec: GroupSpec, topics: Mapping[str, int]) -> Mapping[str, Partitions]:
        """See `Assignor`."""
        ranges: dict[str, dict[str, frozenset[int]]] = {member_id: {} for member_id in spec.members}
        for topic_id, subscribers in _subscribers(spec, topics).items():
            _spread(topic_id, topics[topic_id], subscribers, ranges)
        return ranges


def _subscribers(spec: GroupSpec, topics: Mapping[str, int]) -> Mapping[str, Sequence[str]]:
    ordered = sorted(
        spec.members,
        key=lambda member_id: (
            (spec.members[member_id].instance_id is None),
            spec.members[member_id].instance_id,
            member_id,
        ),
    )
    if spec.homogeneous:
        return dict.fromkeys(topics, ordered)
    subscribers: dict[str, list[str]] = {}
    for member_id in ordered:
        for topic_id in spec.members[member_id].topics:
            subscribers.setdefault(topic_id, []).append(member_id)
    return subscribers


def _spread(
    topic_id: str, count: int, subscribers: Sequence[str], ranges: dict[str, dict[str, frozenset[int]]]
) -> None:
    least, extra = divmod(count, len(subscribers))
    start = 0
    for index, member_id in enumerate(subscribers[:count]):
        end = start + least + (index < extra)
        ranges[member_id][topic_id] = frozenset(range(start, end))
        start = end
