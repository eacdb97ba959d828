"""Which node should own which coordinator partition: evenly, and with as few moves as possible."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

from kcoord.assignors.assignor import MemberSubscription
from kcoord.assignors.sticky import StickyAssignor

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
