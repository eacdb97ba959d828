"""Helpers that the built-in assignors share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from kcoord.assignors._subscribers import alike
from kcoord.assignors.assignor import MemberSubscription, PartitionsPerTopic, TopicPartition


def subscribed_topics(
    partitions_per_topic: PartitionsPerTopic, subscriptions: Iterable[MemberSubscription]
) -> dict[str, int]:
    """Topic -> partition count, in name order, of the topics that exist and have a subscriber."""
    wanted = frozenset[str]().union(*alike(subscriptions))
    return {topic: partitions_per_topic[topic] for topic in sorted(wanted) if partitions_per_topic.get(topic, 0) > 0}


def all_partitions(topics: Mapping[str, int]) -> list[TopicPartition]:
    """Every partition of `topics`, in the order of the mapping, ascending within a topic."""
    return [(topic, partition) for topic, count in topics.items() for partition in range(count)]


def static_first(subscriptions: Iterable[MemberSubscription]) -> list[MemberSubscription]:
    """Static members by instance id, then dynamic members by member id.

    A static member that restarts has a new member id but keeps its place, and so its partitions (KIP-345).
    """
    by_id = sorted(subscriptions, key=attrgetter("member_id"))
    static = [member for member in by_id if member.group_instance_id is not None]
    if not static:
        return by_id
    static.sort(key=lambda member: member.group_instance_id or "")
    return static + [member for member in by_id if member.group_instance_id is None]


def in_id_order(
    members: Sequence[MemberSubscription], assigned: Iterable[dict[str, list[int]]]
) -> dict[str, dict[str, list[int]]]:
    """The result of an assignor from what each of `members` is assigned: members in id order.

    `members`: in the order of `static_first`.
    """
    by_id = dict(zip([member.member_id for member in members], assigned, strict=True))
    if not members or members[0].group_instance_id is None:
        return by_id  # without static members they were served in that order
    return {member_id: by_id[member_id] for member_id in sorted(by_id)}


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Topic -> ascending partitions, topics in name order."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in partitions:
        if topic in grouped:
            grouped[topic].append(partition)
        else:
            grouped[topic] = [partition]
    return {topic: sorted(grouped[topic]) for topic in sorted(grouped)}


def grouped_by_topic(assigned: Mapping[str, Sequence[TopicPartition]]) -> dict[str, dict[str, list[int]]]:
    """The result of an assignor: member id -> topic -> ascending partitions, members in id order."""
    return {member_id: by_topic(assigned[member_id]) for member_id in sorted(assigned)}
