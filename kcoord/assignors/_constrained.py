"""Sticky assignment of members that all subscribe to the same topics: balanced to within one, in near-linear time.

Every member gets `quota` partitions and `extras` of them one more. Members keep what they own up to that; what is
left is dealt out to the members below their quota.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from operator import itemgetter

from kcoord.assignors._java_order import in_java_map_order
from kcoord.assignors._loads import Assigned
from kcoord.assignors._ownership import Ownership
from kcoord.assignors._partitions import all_partitions
from kcoord.assignors._racks import Racks
from kcoord.assignors.assignor import TopicPartition


def assign_constrained(topics: Mapping[str, int], ownership: Ownership, racks: Racks) -> Assigned:
    """Assign all partitions of `topics` to the members of `ownership`, whose `owned` partitions they may keep.

    Totals differ by at most one, and no member gives up a partition while it gets another. Free partitions
    are matched by rack first where `racks` has any, within the same totals.
    """
    round_ = _Round(sum(topics.values()), ownership, racks)
    round_.keep_owned()
    kept = frozenset[TopicPartition]().union(*round_.assigned.values())
    free = [partition for partition in all_partitions(topics) if partition not in kept]
    if racks.of_member:
        free = round_.match_racks(racks.scarcest_first(free))
    round_.deal(free)
    return round_.assigned


class _Round:
    """One assignment while it is being computed.

    `short`: members below `quota`. `at_quota`: members with exactly `quota` that may get one of the `extras` left.
    """

    def __init__(self, total: int, ownership: Ownership, racks: Racks) -> None:
        self._ownership = ownership
        self._racks = racks
        self.quota, self.extras = divmod(total, len(ownership.owned))
        self.assigned: Assigned = {member_id: [] for member_id in sorted(ownership.owned)}
        self.short: list[str] = []
        self.at_quota: list[str] = []

    def keep_owned(self) -> None:
        """Let members keep what they own, up to the quota and while extras last one more."""
        over = [member_id for member_id in self.assigned if len(self._ownership.owned[member_id]) > self.quota]
        if len(over) > self.extras:
            over = in_java_map_order(over, len(self.assigned))[: self.extras]
        keeping_one_more = frozenset(over)
        self.extras -= len(over)
        for member_id, assigned in self.assigned.items():
            owned = self._ownership.owned[member_id]
            if len(owned) < self.quota:
                assigned += owned
                self.short.append(member_id)
                continue
            limit = self.quota + (member_id in keeping_one_more)
            if len(owned) > limit:
                # By partition, then topic: a member gives up a few partitions of each topic, not all of the last topic.
                owned = sorted(owned, key=lambda tp: (tp[1], tp[0]))[:limit]
            assigned += owned
            if limit == self.quota:
                self.at_quota.append(member_id)

    def match_racks(self, free: list[TopicPartition]) -> list[TopicPartition]:
        """Give partitions of `free` to members on a rack of a replica, as far as that keeps the totals.

        Members below the quota come first, in turn. Returns the partitions that could not be placed.
        """
        short_on = self._by_rack(self.short)
        at_quota_on = {rack: deque(places) for rack, places in self._by_rack(self.at_quota).items()}
        unmatched = []
        raised: set[int] = set()
        turn = 0
        for partition in free:
            racks = self._racks.of_partition[partition]
            place = _next_place([short_on[rack] for rack in racks if rack in short_on], turn)
            if place is not None:
                turn = place + 1
                member_id = self.short[place]
                self.assigned[member_id].append(partition)
                if len(self.assigned[member_id]) == self.quota:
                    rack = self._racks.of_member[member_id]
                    del short_on[rack][bisect_left(short_on[rack], place)]
                    at_quota_on.setdefault(rack, deque()).append(len(self.at_quota))
                    self.at_quota.append(member_id)
            elif self.extras and (ready := [at_quota_on[rack] for rack in racks if at_quota_on.get(rack)]):
                place = min(ready, key=itemgetter(0)).popleft()
                raised.add(place)
                self.assigned[self.at_quota[place]].append(partition)
                self.extras -= 1
            else:
                unmatched.append(partition)
        self.short = [member_id for member_id in self.short if len(self.assigned[member_id]) < self.quota]
        self.at_quota = [member_id for place, member_id in enumerate(self.at_quota) if place not in raised]
        return unmatched

    def _by_rack(self, members: Sequence[str]) -> dict[str, list[int]]:
        """Rack -> the places in `members` of those on it, ascending; members on no known rack are left out."""
        on: dict[str, list[int]] = {}
        for place, member_id in enumerate(members):
            rack = self._racks.of_member.get(member_id)
            if rack is not None:
                on.setdefault(rack, []).append(place)
        return on

    def deal(self, free: list[TopicPartition]) -> None:
        """Hand out `free` in turn: to the members below the quota, then one each to those that have it."""
        short, at_quota = self.short, list(self.at_quota)
        start = 0
        while short:
            # As many rounds at once as all of them take part in.
            rounds = min(self.quota - len(self.assigned[member_id]) for member_id in short)
            end = start + rounds * len(short)
            for place, member_id in enumerate(short, start):
                self.assigned[member_id] += free[place : end : len(short)]
            at_quota += [member_id for member_id in short if len(self.assigned[member_id]) == self.quota]
            short = [member_id for member_id in short if len(self.assigned[member_id]) < self.quota]
            start = end
        for member_id, partition in zip(at_quota, free[start:], strict=False):
            self.assigned[member_id].append(partition)


def _next_place(queues: Sequence[Sequence[int]], first: int) -> int | None:
    """The smallest number from `first` on in the ascending `queues`, or else the smallest of all."""
    waiting = [queue for queue in queues if queue]
    if not waiting:
        return None
    later = [queue[index] for queue in waiting if (index := bisect_left(queue, first)) < len(queue)]
    return min(later) if later else min(queue[0] for queue in waiting)
