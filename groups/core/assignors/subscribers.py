"""Who subscribes to which topic, found once for all members with the same subscription.

Source: consumer.md 5.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain


@dataclass(frozen=True, slots=True)
class Subscribers:
    """The subscribers of topics: their places in a list of subscriptions, ascending.

    `number`: topic id -> which of `places` are its subscribers. Topics with the same subscribers have the same number.
    """

    number: Mapping[str, int]
    places: Sequence[Sequence[int]]

    def of(self, topic_id: str) -> Sequence[int]:
        """The subscribers of a topic."""
        return self.places[self.number[topic_id]]


def subscribers_of(subscriptions: Iterable[frozenset[str]], topics: Iterable[str]) -> Subscribers:
    """Who of `subscriptions` contains each of `topics`."""
    alike: dict[frozenset[str], list[int]] = {}
    for place, subscribed in enumerate(subscriptions):
        if subscribed in alike:
            alike[subscribed].append(place)
        else:
            alike[subscribed] = [place]
    subscribing: dict[str, list[int]] = {topic_id: [] for topic_id in topics}
    for number, subscribed in enumerate(alike):
        for topic_id in subscribed & subscribing.keys():
            subscribing[topic_id].append(number)
    places = list(alike.values())
    numbers: dict[tuple[int, ...], int] = {}
    by_topic = {topic_id: numbers.setdefault(tuple(found), len(numbers)) for topic_id, found in subscribing.items()}
    # The places of each subscription are ascending already: sorting them only merges.
    merged = [sorted(chain.from_iterable(places[number] for number in found)) for found in numbers]
    return Subscribers(by_topic, merged)
