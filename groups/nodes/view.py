"""Nodes and the partitions they own, as one transaction saw them, and what follows: who should own which.

Partitions are spread evenly, and with as few moves as possible, over nodes whose releases may run side by side.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from groups.core.model.types import Millis
from kcoord.assignors.assignor import MemberSubscription
from kcoord.assignors.sticky import StickyAssignor


class Node(NamedTuple):
    """One run of a server process. `id` is its incarnation; `url` "" if it does not know its address.

    `ended_at` None: it is registered, and may still be declared dead because its lease has run out.
    `broker_id` is what Kafka clients call it, `kafka_port` 0 if it does not listen for them.
    """

    id: int
    node_id: str
    url: str
    version: str
    started_at: Millis
    renewed_at: Millis
    expires_at: Millis
    ended_at: Millis | None
    end_reason: str | None
    broker_id: int = 0
    kafka_host: str = ""
    kafka_port: int = 0

    def is_live(self, now: Millis) -> bool:
        """It is registered, and its lease has not run out."""
        return self.ended_at is None and self.expires_at > now


class Partition(NamedTuple):
    """A coordinator partition. `state`: LOADING, ACTIVE or CLOSED; `load_ms`: how long its last loading took."""

    partition: int
    owner: int | None
    epoch: int
    gap: int
    state: str
    state_since: Millis
    active_since: Millis | None
    load_ms: Millis | None


@dataclass(frozen=True)
class View:
    """Registered nodes, and partitions, at the instant `now` of the database's clock; both in order of their keys."""

    now: Millis
    nodes: Sequence[Node]
    partitions: Sequence[Partition]

    @cached_property
    def live(self) -> Mapping[int, Node]:
        """The nodes whose leases have not run out, by incarnation."""
        return {node.id: node for node in self.nodes if node.is_live(self.now)}

    @cached_property
    def by_partition(self) -> Mapping[int, Partition]:
        """The partitions by number."""
        return {found.partition: found for found in self.partitions}

    @property
    def needs_care(self) -> bool:
        """A lease has run out, or a partition has no live owner."""
        return len(self.live) < len(self.nodes) or any(found.owner not in self.live for found in self.partitions)

    def owned_by(self, incarnation: int) -> list[Partition]:
        """The partitions of a node."""
        return [found for found in self.partitions if found.owner == incarnation]

    def owner_of(self, partition: int) -> Node | None:
        """The live node that owns a partition; None: no live node does."""
        found = self.by_partition.get(partition)
        return None if found is None or found.owner is None else self.live.get(found.owner)


_TOPIC = "partitions"


def plan(nodes: Collection[int], owners: Mapping[int, int | None]) -> Mapping[int, int]:
    """Partition -> node (an incarnation), for every key of `owners`, which says who owns it now.

    The same arguments give the same plan in every process. Without nodes the plan is empty.
    """
    return _planned(tuple(sorted(nodes)), tuple(sorted(owners.items()))) if nodes else {}


@lru_cache(maxsize=16)
def _planned(nodes: tuple[int, ...], owners: tuple[tuple[int, int | None], ...]) -> Mapping[int, int]:
    """Each renewal asks, and mostly nothing has changed."""
    # The assignor counts partitions from 0: they are numbered by their order.
    owned: dict[int | None, list[int]] = {node: [] for node in nodes}
    for place, (_, owner) in enumerate(owners):
        if owner in owned:
            owned[owner].append(place)
    # Incarnations are ordered as numbers, the assignor orders members as texts.
    subscriptions = [
        MemberSubscription(f"{node:020}", None, [_TOPIC], {_TOPIC: owned[node]}, generation_id=1) for node in nodes
    ]
    assignment = StickyAssignor().assign({_TOPIC: len(owners)}, subscriptions)
    return {
        owners[place][0]: int(member_id)
        for member_id, by_topic in assignment.items()
        for place in by_topic.get(_TOPIC, ())
    }


_NUMBERS = re.compile(r"(\d+)\.(\d+)")


def works_beside(one: str, other: str) -> bool:
    """Whether nodes of these releases share partitions. Releases that are not numbered are trusted."""
    first, second = _NUMBERS.match(one), _NUMBERS.match(other)
    if first is None or second is None:
        return True
    return first[1] == second[1] and abs(int(first[2]) - int(second[2])) <= 1
