"""The rack-aware part of `range` (KIP-881): partitions go to members on a rack of a replica first.

The order in which members are served, and room that only ever shrinks, keep this near-linear: nothing is looked at
again that was found taken or full once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from kcoord.assignors._racks import make_a_difference, racks_of
from kcoord.assignors.assignor import PartitionRacks


class Replicas:
    """The racks of the replicas of co-partitioned topics of `count` partitions each."""

    def __init__(self, topics: Iterable[str], count: int, partition_racks: PartitionRacks) -> None:
        self._of_topics = [[racks_of(partition_racks.get(topic, ()), p) for p in range(count)] for topic in topics]

    def matter(self, member_racks: Iterable[str | None]) -> bool:
        """Aligning racks can make the assignment of one of the topics more local."""
        on = {rack for rack in member_racks if rack is not None}
        return any(make_a_difference(on, of_partition) for of_partition in self._of_topics)

    def common(self) -> list[frozenset[str]]:
        """For each partition the racks that hold a replica of it for every topic."""
        if len(self._of_topics) == 1:
            return self._of_topics[0]
        return [frozenset.intersection(*set(held)) for held in zip(*self._of_topics, strict=True)]


def aligned(
    count: int, member_racks: Sequence[str | None], replicas: Sequence[frozenset[str]], *, together: bool
) -> list[list[int]]:
    """What each member gets, ascending, where the members in the order of service are on `member_racks`.

    Members on no known rack fit any partition. `together`: each partition in turn goes to the first member
    with room that fits it, as co-partitioned topics need; otherwise each member in turn takes the first that fit it.
    """
    shares = _Shares(count, len(member_racks))
    if together:
        _partition_by_partition(shares, member_racks, replicas)
    else:
        _member_by_member(shares, member_racks, replicas)
    rest = iter(shares.unassigned())
    for place in range(len(member_racks)):
        shares.give(place, islice(rest, shares.room(place)))
    return [sorted(partitions) for partitions in shares.of]


class _Shares:
    """What each member has, by its place in the order of service: as many as any other, or one more."""

    def __init__(self, count: int, members: int) -> None:
        self.of: list[list[int]] = [[] for _ in range(members)]
        self.taken = bytearray(count)
        self._quota, self._extras = divmod(count, members)

    def room(self, place: int) -> int:
        """How many more partitions the member may get. It never grows."""
        return max(0, self._quota + (self._extras > 0) - len(self.of[place]))

    def give(self, place: int, partitions: Iterable[int]) -> None:
        """Assign `partitions`, which nobody has and the member has room for."""
        before = len(self.of[place])
        self.of[place].extend(partitions)
        for partition in self.of[place][before:]:
            self.taken[partition] = True
        if before <= self._quota < len(self.of[place]):
            self._extras -= 1

    def unassigned(self) -> list[int]:
        """The partitions that nobody has."""
        return [partition for partition, taken in enumerate(self.taken) if not taken]


def _member_by_member(shares: _Shares, member_racks: Sequence[str | None], replicas: Sequence[frozenset[str]]) -> None:
    on: dict[str | None, list[int]] = {None: list(range(len(replicas)))}
    for partition, held in enumerate(replicas):
        for holding in held:
            on.setdefault(holding, []).append(partition)
    # What an iterator has passed was taken then, so members on the same rack share it.
    left = {rack: iter(partitions) for rack, partitions in on.items()}
    for place, rack in enumerate(member_racks):
        if rack in left:
            shares.give(place, islice(_untaken(shares, left[rack]), shares.room(place)))


def _untaken(shares: _Shares, partitions: Iterator[int]) -> Iterator[int]:
    return (partition for partition in partitions if not shares.taken[partition])


def _partition_by_partition(
    shares: _Shares, member_racks: Sequence[str | None], replicas: Sequence[frozenset[str]]
) -> None:
    """Per rack, the first member with room is known; that of each partition is the first of those of its racks."""
    on: dict[str | None, list[int]] = {None: []}
    for place in reversed(range(len(member_racks))):
        on.setdefault(member_racks[place], []).append(place)
    for partition, held in enumerate(replicas):
        candidates = [on[rack] for rack in (None, *held) if rack in on]
        for places in candidates:
            while places and not shares.room(places[-1]):
                places.pop()
        with_room = [places[-1] for places in candidates if places]
        if with_room:
            shares.give(min(with_room), (partition,))
