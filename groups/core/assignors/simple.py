"""`simple`: the assignor of share groups. Every partition has about as many members as any other, and every member
about as many partitions; what can stay stays.

Source: share.md 3; Kafka's `SimpleAssignor`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from groups.core.assignors.base import GroupSpec, Partitions, subscribers_of

TopicPartition = tuple[str, int]


class SimpleAssignor:
    """With equal subscriptions all topics are balanced together, else each topic among the members that name it.

    Members are taken in the order of their ids. Differs from Kafka: there in the order of a hash map.
    """

    name = "simple"

    def assign(self, spec: GroupSpec, topics: Mapping[str, int]) -> Mapping[str, Partitions]:
        """See `Assignor`. A partition may be assigned to several members."""
        members = list(spec.members)
        given: list[set[TopicPartition]] = [set() for _ in members]
        subscribers = subscribers_of((spec.members[member_id].topics for member_id in members), topics)
        together = [list(topics)] if spec.homogeneous else [[topic_id] for topic_id in topics]
        for topic_ids in together:
            places = subscribers.of(topic_ids[0]) if topic_ids else ()
            wanted = [(topic_id, p) for topic_id in topic_ids for p in range(topics[topic_id])]
            had = [_had(spec.members[members[place]].target, topic_ids, topics) for place in places]
            for place, partitions in zip(places, share_out(wanted, had), strict=True):
                given[place] |= partitions
        return {member_id: _by_topic(given[place]) for place, member_id in enumerate(members)}


def share_out(wanted: Sequence[TopicPartition], had: Sequence[set[TopicPartition]]) -> list[set[TopicPartition]]:
    """What each member gets of the partitions `wanted`, of which it has had a part (share.md 3).

    Each partition goes to ceil(members / partitions) members.
    """
    count = len(had)
    if not wanted:
        return [set() for _ in had]
    sharing = -(-count // len(wanted))
    total = sharing * len(wanted)
    quotas = [-(-total * (place + 1) // count) - -(-total * place // count) for place in range(count)]
    users = dict.fromkeys(wanted, 0)
    given: list[set[TopicPartition]] = []
    for quota, before in zip(quotas, had, strict=True):
        kept: set[TopicPartition] = set()
        for partition in sorted(before):
            if len(kept) < quota and users[partition] < sharing:
                kept.add(partition)
                users[partition] += 1
        given.append(kept)
    _fill(wanted, users, sharing, quotas, given)
    return given


def _fill(
    wanted: Sequence[TopicPartition],
    users: Mapping[TopicPartition, int],
    sharing: int,
    quotas: Sequence[int],
    given: Sequence[set[TopicPartition]],
) -> None:
    """Give partitions with too few members to those below their quota, in turns."""
    below = deque(place for place, quota in enumerate(quotas) if len(given[place]) < quota)
    for partition in wanted:
        for _ in range(sharing - users[partition]):
            passed = []
            while below and partition in given[below[0]]:
                passed.append(below.popleft())
            if below:  # else everybody who is below its quota has it already
                place = below.popleft()
                given[place].add(partition)
                if len(given[place]) < quotas[place]:
                    below.append(place)
            below.extendleft(reversed(passed))


def _had(target: Partitions, topic_ids: Sequence[str], topics: Mapping[str, int]) -> set[TopicPartition]:
    return {(topic_id, p) for topic_id in topic_ids for p in target.get(topic_id, ()) if p < topics[topic_id]}


def _by_topic(given: set[TopicPartition]) -> Partitions:
    found: dict[str, set[int]] = {}
    for topic_id, p in given:
        found.setdefault(topic_id, set()).add(p)
    return {topic_id: frozenset(partitions) for topic_id, partitions in found.items()}
