"""Who subscribes to what, found once for all members that subscribe to the same topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from kcoord.assignors.assignor import MemberSubscription, PartitionsPerTopic


@dataclass(frozen=True, slots=True)
class Topics:
    """Topics that have the same subscribers.

    Parameters: `names` with their partition counts, in name order, those that exist and have partitions only;
    `subscribers` the places of their subscribers among the members, ascending.
    """

    names: dict[str, int]
    subscribers: Sequence[int]


def alike(members: Iterable[MemberSubscription]) -> dict[frozenset[str], list[int]]:
    """The members by what they subscribe to: topics -> the places of the members among `members`, ascending."""
    listed = [member.topics for member in members]
    # Mostly all members list the same topics in the same order, and to compare is cheaper than to hash.
    if listed and listed.count(listed[0]) == len(listed):
        return {frozenset(listed[0]): list(range(len(listed)))}
    found: dict[frozenset[str], list[int]] = {}
    by_list: dict[tuple[str, ...], list[int]] = {}
    for place, topics in enumerate(map(tuple, listed)):
        if topics not in by_list:
            by_list[topics] = found.setdefault(frozenset(topics), [])
        by_list[topics].append(place)
    return found


def by_subscribers(partitions_per_topic: PartitionsPerTopic, members: Iterable[MemberSubscription]) -> list[Topics]:
    """All topics that exist and have a subscriber and a partition, those with the same subscribers together."""
    classes = alike(members)
    subscribing: dict[str, list[int]] = {}
    for number, topics in enumerate(classes):
        for topic in topics:
            subscribing.setdefault(topic, []).append(number)
    together: dict[tuple[int, ...], dict[str, int]] = {}
    for topic in sorted(subscribing):
        count = partitions_per_topic.get(topic, 0)
        if count > 0:
            together.setdefault(tuple(subscribing[topic]), {})[topic] = count
    places = list(classes.values())
    return [
        # The places of each class are ascending already: sorting them only merges.
        Topics(
            names,
            places[numbers[0]]
            if len(numbers) == 1
            else sorted(chain.from_iterable(places[number] for number in numbers)),
        )
        for numbers, names in together.items()
    ]


def in_name_order(topics: Iterable[Topics]) -> Iterator[tuple[str, int, Sequence[int]]]:
    """Yields (topic, partitions, subscribers) of all of `topics`."""
    every = ((name, count, group.subscribers) for group in topics for name, count in group.names.items())
    return iter(sorted(every, key=lambda entry: entry[0]))
