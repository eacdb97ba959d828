"""Sticky assignment of members that all subscribe to the same topics: balanced to within one, in near-linear time.

Every member gets `quota` partitions and `extras` of them one more. Members keep what they own up to that; what is
left is dealt out to the members below their quota.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

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
    kept = {partition for partitions in round_.assigned.values() for partition in partitions}
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
        for member_id in in_java_map_order(self.assigned):
            assigned = self.assigned[member_id]
            # By partition, then topic: a member gives up a few partitions of each topic, not all of the last topic.
            owned = sorted(self._ownership.owned[member_id], key=lambda tp: (tp[1], tp[0]))
            if len(owned) < self.quota:
                assigned += owned
                self.short.append(member_id)
            elif len(owned) > self.quota and self.extras:
                assigned += owned[: self.quota + 1]
                self.extras -= 1
            else:
                assigned += owned[: self.quota]
                self.at_quota.append(member_id)
        self.at_quota.sort()
        self.short.sort()

    def match_racks(self, free: list[TopicPartition]) -> list[TopicPartition]:
        """Give partitions of `free` to members on a rack of a replica, as far as that keeps the totals.

        Members below the quota come first, in turn. Returns the partitions that could not be placed.
        """
        unmatched = []
        turn = 0
        for partition in free:
            if (place := self._next_on_rack(partition, self.short, turn)) is not None:
                member_id = self.short[place]
                self.assigned[member_id].append(partition)
                if len(self.assigned[member_id]) == self.quota:
                    del self.short[place]
                    self.at_quota.append(member_id)
                    turn = place
                else:
                    turn = place + 1
            elif self.extras and (place := self._next_on_rack(partition, self.at_quota, 0)) is not None:
                self.assigned[self.at_quota.pop(place)].append(partition)
                self.extras -= 1
            else:
                unmatched.append(partition)
        return unmatched

    def _next_on_rack(self, partition: TopicPartition, members: list[str], first: int) -> int | None:
        """The index in `members`, searched cyclically from `first`, of one on a rack of `partition`."""
        for step in range(len(members)):
            place = (first + step) % len(members)
            if self._racks.holds(members[place], partition):
                return place
        return None

    def deal(self, free: list[TopicPartition]) -> None:
        """Hand out `free` in turn: to the members below the quota, then one each to those that have it."""
        short, at_quota = deque(self.short), deque(self.at_quota)
        for partition in free:
            member_id = short.popleft() if short else at_quota.popleft()
            self.assigned[member_id].append(partition)
            if len(self.assigned[member_id]) == self.quota:
                at_quota.append(member_id)
            elif len(self.assigned[member_id]) < self.quota:
                short.append(member_id)
