"""Helpers that the built-in assignors share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kcoord.assignors.assignor import MemberSubscription, PartitionsPerTopic, TopicPartition


def subscribed_topics(
    partitions_per_topic: PartitionsPerTopic, subscriptions: Iterable[MemberSubscription]
) -> dict[str, int]:
    """Topic -> partition count, in name order, of the topics that exist and have a subscriber."""
    wanted = {topic for member in subscriptions for topic in member.topics}
    return {topic: partitions_per_topic[topic] for topic in sorted(wanted) if partitions_per_topic.get(topic, 0) > 0}


def all_partitions(topics: Mapping[str, int]) -> list[TopicPartition]:
    """Every partition of `topics`, in the order of the mapping, ascending within a topic."""
    return [(topic, partition) for topic, count in topics.items() for partition in range(count)]


def static_first(subscriptions: Iterable[MemberSubscription]) -> list[MemberSubscription]:
    """Static members by instance id, then dynamic members by member id.

    A static member that restarts has a new member id but keeps its place, and so its partitions (KIP-345).
    """
    return sorted(
        subscriptions,
        key=lambda member: (member.group_instance_id is None, member.group_instance_id or "", member.member_id),
    )


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Topic -> ascending partitions, topics in name order."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        grouped.setdefault(topic, []).append(partition)
    return grouped


def grouped_by_topic(assigned: Mapping[str, Sequence[TopicPartition]]) -> dict[str, dict[str, list[int]]]:
    """The result of an assignor: member id -> topic -> ascending partitions, members in id order."""
    return {member_id: by_topic(assigned[member_id]) for member_id in sorted(assigned)}
