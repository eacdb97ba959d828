"""Who subscribes to which topic, found once for all members with the same subscription.

Source: consumer.md 5.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain


def subscribers_by_topic(subscriptions: Iterable[frozenset[str]], topics: Iterable[str]) -> Mapping[str, Sequence[int]]:
    """Topic id -> the places in `subscriptions` of those that contain it, ascending, for each of `topics`.

    Topics with the same subscribers share one object.
    """
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
    # The places of each subscription are ascending already: sorting them only merges.
    merged = {
        numbers: sorted(chain.from_iterable(places[number] for number in numbers))
        for numbers in set(map(tuple, subscribing.values()))
    }
    return {topic_id: merged[tuple(numbers)] for topic_id, numbers in subscribing.items()}
