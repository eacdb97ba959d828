"""Running an assignor without trusting it.

A custom assignor is third-party code. Whatever it returns, it must not make two members read one partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kcoord.assignors.assignor import (
    Assignment,
    Assignor,
    MemberSubscription,
    PartitionRacks,
    PartitionsPerTopic,
    TopicPartition,
)


class FaultyAssignmentError(Exception):
    """An assignor returned an assignment that must not be used. The message names the assignor and the fault."""


def checked_assign(
    assignor: Assignor,
    partitions_per_topic: PartitionsPerTopic,
    subscriptions: Sequence[MemberSubscription],
    partition_racks: PartitionRacks | None = None,
) -> Assignment:
    """`assignor.assign(...)`, with an entry for every member and partitions in ascending order.

    Raises `FaultyAssignmentError` when it names an unknown member or partition, gives a member a topic it
    does not subscribe to, or gives a partition twice. An unassigned partition is not a fault: a
    cooperative assignor withholds those that change hands.
    """
    assignment = assignor.assign(partitions_per_topic, subscriptions, partition_racks)
    subscribed = {member.member_id: member.topics for member in subscriptions}
    if not _faultless(assignment, partitions_per_topic, subscribed):
        fault = _fault(assignment, partitions_per_topic, subscribed)
        if fault is not None:
            raise FaultyAssignmentError(f"the assignor {assignor.name!r} {fault}")
    return {
        member_id: {topic: sorted(partitions) for topic, partitions in assignment.get(member_id, {}).items()}
        for member_id in subscribed
    }


def _faultless(
    assignment: Assignment, partitions_per_topic: PartitionsPerTopic, subscribed: Mapping[str, Sequence[str]]
) -> bool:
    """No fault is in sight. In doubt it is False: this looks at all partitions of a topic at once, `_fault` at each."""
    if not assignment.keys() <= subscribed.keys():
        return False
    given: dict[str, list[int]] = {}
    latest: Sequence[str] | None = None
    topics: frozenset[str] = frozenset()
    for member_id, assigned in assignment.items():
        if not assigned:
            continue
        # Mostly all members subscribe to the same topics.
        if latest is None or subscribed[member_id] != latest:
            latest = subscribed[member_id]
            topics = frozenset(latest)
        if not assigned.keys() <= topics:
            return False
        for topic, partitions in assigned.items():
            if topic in given:
                given[topic] += partitions
            else:
                given[topic] = [*partitions]
    return all(_distinct(given[topic], partitions_per_topic.get(topic, 0)) for topic in given)


def _distinct(partitions: Sequence[int], count: int) -> bool:
    """Each of `partitions` occurs once, and all are numbers from 0 to below `count`."""
    different = set(partitions)
    return len(different) == len(partitions) and different.issubset(range(count))


def _fault(
    assignment: Assignment, partitions_per_topic: PartitionsPerTopic, subscribed: Mapping[str, Sequence[str]]
) -> str | None:
    holder: dict[TopicPartition, str] = {}
    for member_id, topics in assignment.items():
        if member_id not in subscribed:
            return f"assigns to {member_id!r}, which is not a member"
        for topic, partitions in topics.items():
            if topic not in subscribed[member_id]:
                return f"assigns {topic!r} to {member_id!r}, which does not subscribe to it"
            for partition in partitions:
                if not 0 <= partition < partitions_per_topic.get(topic, 0):
                    return f"assigns {topic}-{partition}, which does not exist"
                if (topic, partition) in holder:
                    return f"assigns {topic}-{partition} to {holder[topic, partition]!r} and again to {member_id!r}"
                holder[topic, partition] = member_id
    return None
