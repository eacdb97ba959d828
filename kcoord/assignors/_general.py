"""Sticky assignment of members whose subscriptions differ: as balanced as single moves allow.

Members keep what they may, free partitions go to the least loaded subscriber, then partitions move from a
holder to a subscriber that has at least two fewer, until none can. Each move makes the totals strictly more even
(their sum of squares falls), so the process terminates.

Why a cooperative rebalance terminates, too: its next round starts from the target totals, less the partitions withheld.
These are placed as evenly as possible without touching anything else (`spread`), so at least as evenly as they were
meant to be; partitions that have a holder move again only if that evens out the totals even further.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from kcoord.assignors._loads import Assigned, Least, Loads
from kcoord.assignors._ownership import Ownership
from kcoord.assignors._partitions import all_partitions
from kcoord.assignors._racks import Racks
from kcoord.assignors._spread import spread
from kcoord.assignors.assignor import MemberSubscription, TopicPartition


def assign_general(
    topics: Mapping[str, int],
    subscriptions: Sequence[MemberSubscription],
    ownership: Ownership,
    racks: Racks,
    revoking: bool = False,
) -> Assigned:
    """Assign all partitions of `topics`, each of which has a subscriber in `subscriptions`.

    Parameters: `ownership` whose `owned` partitions the members may keep where they still subscribe; `revoking` means
    that some must be revoked already. Afterwards no partition could move to a subscriber that has at least two fewer
    than its holder.
    """
    loads = Loads(topics, subscriptions)
    # Topics with the fewest possible takers come first: those with a choice even out what they leave uneven.
    order = sorted(topics, key=lambda topic: (len(loads.subscribers[topic]), topic))
    partitions = all_partitions({topic: topics[topic] for topic in order})

    revoking = not _keep_owned(loads, ownership) or revoking
    free = [partition for partition in partitions if partition not in loads.holder]
    _place(loads, free, racks)
    moves = _Moves(loads, ownership.previous)
    if not revoking:
        # No member has to give up anything yet: try to even out with free partitions alone.
        moves.even_out(free)
        if moves.possible(partitions):
            spread(loads, free)
    moves.even_out(partitions)
    return loads.assigned()


def _keep_owned(loads: Loads, ownership: Ownership) -> bool:
    """Let members keep what they own and still subscribe to. Returns whether that was everything."""
    everything = True
    for member_id, partitions in ownership.owned.items():
        member = loads.number[member_id]
        for partition in partitions:
            if member in loads.subscribing[partition[0]]:
                loads.give(partition, member)
            else:
                everything = False
    return everything


def _place(loads: Loads, free: Sequence[TopicPartition], racks: Racks) -> None:
    """Give each of `free` to its least loaded subscriber; first those that fit a subscriber's rack, then the others."""
    rest = _place_by_rack(loads, free, racks) if racks.of_member else free
    for subscribers, partitions in loads.runs(rest):
        queue = loads.queue(subscribers)
        for partition in partitions:
            loads.give_first(partition, queue)


def _place_by_rack(loads: Loads, free: Sequence[TopicPartition], racks: Racks) -> list[TopicPartition]:
    """Give each of `free` to the least loaded subscriber on a rack of a replica, or on no known rack.

    Returns the partitions that have none.
    """
    rest = []
    for subscribers, partitions in loads.runs(free):
        on: dict[str | None, list[int]] = {}
        for member in subscribers:
            on.setdefault(racks.of_member.get(loads.member_ids[member]), []).append(member)
        queues = {rack: loads.queue(members) for rack, members in on.items()}
        for partition in partitions:
            fitting = [queues[rack] for rack in (None, *racks.of_partition[partition]) if rack in queues]
            if fitting:
                loads.give_first(partition, min(fitting, key=itemgetter(0)))
            else:
                rest.append(partition)
    return rest


class _Moves:
    """Evens out totals by moving single partitions, and undoes moves rather than making opposite ones."""

    def __init__(self, loads: Loads, previous: Mapping[TopicPartition, str]) -> None:
        self._loads = loads
        self._previous = previous
        self._origin: dict[TopicPartition, int] = {}
        self._moved: dict[tuple[str, int, int], dict[TopicPartition, None]] = {}

    def possible(self, partitions: Iterable[TopicPartition]) -> bool:
        """Some partition of `partitions` has a better holder."""
        return any(
            least.uneven() and any(self._better_holder(partition, least) is not None for partition in run)
            for least, run in self._runs(partitions)
        )

    def even_out(self, partitions: Iterable[TopicPartition]) -> None:
        """Move partitions of `partitions` to subscribers with at least two fewer, until none can move."""
        runs = self._runs(partitions)
        moving = True
        while moving:
            moving = False
            for least, run in runs:
                for partition in run if least.uneven() else ():
                    target = self._better_holder(partition, least)
                    if target is not None:
                        self._move(partition, target, least)
                        moving = True

    def _runs(self, partitions: Iterable[TopicPartition]) -> list[tuple[Least, list[TopicPartition]]]:
        """`partitions`, those with the same subscribers together as far as they follow each other."""
        shared: dict[int, Least] = {}
        return [
            (shared.setdefault(id(subscribers), Least(self._loads, subscribers)), run)
            for subscribers, run in self._loads.runs(partitions)
        ]

    def _better_holder(self, partition: TopicPartition, least: Least) -> int | None:
        """Who should hold `partition` instead: its previous owner if that evens out, else the least loaded."""
        loads = self._loads
        enough = loads.total(loads.holder[partition]) - 2
        member = least.member()
        if loads.total(member) > enough:
            return None
        previous = self._previous.get(partition)
        if previous is not None:
            number = loads.number[previous]
            if number in loads.subscribing[partition[0]] and loads.total(number) <= enough:
                return number
        return member

    def _move(self, partition: TopicPartition, target: int, least: Least) -> None:
        source = self._loads.holder[partition]
        # A partition of the topic that came from `target` goes back in place of this one: the totals are the same,
        # and one fewer partition changes hands.
        returning = next(iter(self._moved.get((partition[0], target, source), ())), None)
        chosen = partition if returning is None else returning
        origin = self._origin.pop(chosen, source)
        self._moved.get((chosen[0], origin, source), {}).pop(chosen, None)
        if origin != target:
            self._origin[chosen] = origin
            self._moved.setdefault((chosen[0], origin, target), {})[chosen] = None
        least.move(chosen, target)
