"""What an assignor is given and what it returns.

Source: consumer.md 5.3; Kafka's `ConsumerGroupPartitionAssignor`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

Partitions = Mapping[str, frozenset[int]]
"""Topic id -> partitions. A topic without partitions is absent."""


class AssignorFailed(Exception):
    """An assignor cannot compute an assignment; the text says why. The group keeps the target it has."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member as an assignor sees it: `topics` are the ids it subscribes to, `target` is what it should have now."""

    topics: frozenset[str]
    target: Partitions = field(default_factory=dict)
    instance_id: str | None = None
    rack_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """All members by id, in ascending order of id. `homogeneous`: all of them subscribe to the same topics."""

    members: Mapping[str, MemberSpec]
    homogeneous: bool


class Assignor(Protocol):
    """Decides which member should have which partitions."""

    @property
    def name(self) -> str:
        """The name that members request it by (`server_assignor`)."""
        ...

    def assign(self, spec: GroupSpec, topics: Mapping[str, int]) -> Mapping[str, Partitions]:
        """The target of each member; a member that is left out gets nothing.

        Parameters: `spec` the members; `topics` the number of partitions of each subscribed topic by id, in the order
        of the topics' names. The same arguments give the same result. Raises `AssignorFailed`.
        """
        ...


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
