"""The `range` assignor: each topic separately, cut into consecutive ranges.

Source: Kafka's client `RangeAssignor`; KIP-881 for racks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kcoord.assignors._partitions import in_id_order, static_first
from kcoord.assignors._range_racks import Replicas, aligned
from kcoord.assignors._subscribers import by_subscribers
from kcoord.assignors.assignor import (
    Assignment,
    MemberSubscription,
    PartitionRacks,
    PartitionsPerTopic,
    RebalanceProtocol,
)

SHORT = 8
"""Ranges up to this long are made faster one partition after the other than by slicing."""

PARTITIONS = tuple(range(4_096))
"""Partitions that all answers share: to make the numbers is half of making short ranges."""


class RangeAssignor:
    """Cuts each topic's partitions into one range per subscriber; the first subscribers get one more.

    Topics with the same number of partitions and the same subscribers are co-partitioned: partition n of all of them
    goes to the same member. Where racks are known and differ, partitions go to members on a rack of a replica first, as
    far as the balance of each topic and co-partitioning allow. Previous owners are ignored.
    """

    name = "range"
    protocols = (RebalanceProtocol.EAGER,)

    def assign(
        self,
        partitions_per_topic: PartitionsPerTopic,
        subscriptions: Sequence[MemberSubscription],
        partition_racks: PartitionRacks | None = None,
    ) -> Assignment:
        """See `Assignor.assign`."""
        if not partition_racks:
            topic, member_ids = _dynamic_of_one_topic(subscriptions)
            if topic is not None and partitions_per_topic.get(topic, 0) > 0:
                return _of_one_topic(topic, partitions_per_topic[topic], member_ids)
        served = static_first(subscriptions)
        alike = _co_partitioned(partitions_per_topic, served)
        assigned: list[dict[str, list[int]]] = [{} for _ in served]
        shares = _shares(alike, served, partition_racks)
        takers = [[assigned[place] for place in group.subscribers] for group in alike]
        # A member's topics are in name order, as they are in what the other assignors return.
        for topic, number in sorted((topic, number) for number, group in enumerate(alike) for topic in group.topics):
            alone = len(alike[number].topics) == 1
            for taker, share in zip(takers[number], shares[number], strict=False):
                if share:
                    taker[topic] = share if alone else share.copy()
        return in_id_order(served, assigned)


@dataclass(frozen=True, slots=True)
class _CoPartitioned:
    """Topics of `count` partitions with the same subscribers, which are places in the order of service, ascending."""

    topics: Sequence[str]
    count: int
    subscribers: Sequence[int]


def _dynamic_of_one_topic(subscriptions: Sequence[MemberSubscription]) -> tuple[str | None, list[str]]:
    """The topic to which all members subscribe, if there is only one, and the ids of the members, which are dynamic.

    The usual case, in which nothing but the ids of the members matters.
    """
    topics = subscriptions[0].topics if subscriptions else ()
    if len(topics) != 1:
        return None, []
    ids = [one.member_id for one in subscriptions if one.topics == topics and one.group_instance_id is None]
    return (topics[0], ids) if len(ids) == len(subscriptions) else (None, [])


def _of_one_topic(topic: str, count: int, member_ids: list[str]) -> Assignment:
    """`count` partitions of a topic for dynamic members, whose ids may be sorted in place."""
    member_ids.sort()
    assigned: list[dict[str, list[int]]] = [{topic: share} for share in _ranges(count, len(member_ids))]
    assigned += [{} for _ in range(len(member_ids) - len(assigned))]
    return dict(zip(member_ids, assigned, strict=True))


def _co_partitioned(
    partitions_per_topic: PartitionsPerTopic, served: Iterable[MemberSubscription]
) -> list[_CoPartitioned]:
    found = []
    for group in by_subscribers(partitions_per_topic, served):
        by_count: dict[int, list[str]] = {}
        for topic, count in group.names.items():
            by_count.setdefault(count, []).append(topic)
        found += [_CoPartitioned(topics, count, group.subscribers) for count, topics in by_count.items()]
    return found


def _shares(
    alike: Sequence[_CoPartitioned], served: Sequence[MemberSubscription], partition_racks: PartitionRacks | None
) -> list[list[list[int]]]:
    """For each of `alike` what its subscribers get of each of its topics; the last of them may be left out."""
    racks = [member.rack_id or None for member in served] if partition_racks else []
    if not partition_racks or not any(racks):
        return [_ranges(group.count, len(group.subscribers)) for group in alike]
    replicas = [Replicas(group.topics, group.count, partition_racks) for group in alike]
    of_subscribers = [[racks[place] for place in group.subscribers] for group in alike]
    matter = [held.matter(of) for held, of in zip(replicas, of_subscribers, strict=True)]
    return [
        # Topics that are co-partitioned stay so: they are aligned together, or not at all.
        aligned(group.count, of, held.common(), together=len(group.topics) > 1)
        if matters or (len(group.topics) > 1 and any(matter))
        else _ranges(group.count, len(group.subscribers))
        for group, held, of, matters in zip(alike, replicas, of_subscribers, matter, strict=True)
    ]


def _ranges(count: int, subscribers: int) -> list[list[int]]:
    """Consecutive ranges, none of them empty: of the subscribers that get one."""
    least, extra = divmod(count, subscribers)
    middle = extra * (least + 1)
    return _cut(range(middle), least + 1) + (_cut(range(middle, count), least) if least else [])


def _cut(partitions: range, size: int) -> list[list[int]]:
    """`partitions`, whose number is a multiple of `size`, in pieces of that size."""
    known = partitions.stop <= len(PARTITIONS)
    numbers = PARTITIONS[partitions.start : partitions.stop] if known else partitions
    if size <= SHORT:
        return [[*piece] for piece in zip(*[iter(numbers)] * size, strict=True)]
    listed = list(numbers)
    return [listed[start : start + size] for start in range(0, len(listed), size)]
