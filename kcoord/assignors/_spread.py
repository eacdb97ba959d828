"""Placing free partitions as evenly as possible without moving any others."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from kcoord.assignors._loads import Loads
from kcoord.assignors.assignor import TopicPartition


def spread(loads: Loads, free: Iterable[TopicPartition]) -> None:
    """Place the partitions of `free`, which have holders, as evenly as possible while all others stay.

    When single moves are exhausted, a chain may still help: x hands one to y, which hands another to z. As long as such
    a chain leads to a member with at least two fewer, follow it. Without one the sum of squares is minimal
    (Harvey et al., "Semi-matchings for bipartite graphs and load balancing").
    """
    held: dict[int, dict[str, list[TopicPartition]]] = {}
    for partition in free:
        held.setdefault(loads.holder[partition], {}).setdefault(partition[0], []).append(partition)
    # Member -> a total that leads nowhere: no chain from the member ends at one that has this total or a smaller one.
    hopeless: dict[int, int] = {}
    starts = deque(sorted(held))
    while starts:
        start = starts.popleft()
        if loads.total(start) - 2 <= hopeless.get(start, -1):
            continue
        chain = _chain(loads, held, start, hopeless)
        if not chain:
            continue
        hopeless.clear()
        for giver, topic, taker in chain:
            partition = held[giver][topic].pop()
            if not held[giver][topic]:
                del held[giver][topic]
            held.setdefault(taker, {}).setdefault(topic, []).append(partition)
            loads.give(partition, taker)
        # The chain may have opened another one to any member.
        starts = deque(sorted(member for member, topics in held.items() if topics))


def _chain(
    loads: Loads, held: Mapping[int, Mapping[str, object]], start: int, hopeless: dict[int, int]
) -> list[tuple[int, str, int]]:
    """The shortest chain of (giver, topic, taker) from `start` to a member with at least two fewer, last link first.

    If there is none, it is noted in `hopeless`, for every member that the search reached: whatever can be reached from
    those was reached as well.
    """
    enough = loads.total(start) - 2
    came_by: dict[int, tuple[int, str]] = {}
    asked: set[str] = set()
    waiting = deque([start])
    while waiting:
        giver = waiting.popleft()
        for topic in sorted(held.get(giver, {}).keys() - asked):
            asked.add(topic)
            for taker in loads.subscribers[topic]:
                if taker in came_by:
                    continue
                came_by[taker] = (giver, topic)
                if loads.total(taker) <= enough:
                    return _links(came_by, start, taker)
                waiting.append(taker)
    for member in came_by:
        hopeless[member] = max(enough, hopeless.get(member, -1))
    return []


def _links(came_by: Mapping[int, tuple[int, str]], start: int, end: int) -> list[tuple[int, str, int]]:
    links = []
    taker = end
    while taker != start:
        giver, topic = came_by[taker]
        links.append((giver, topic, taker))
        taker = giver
    return links
