"""Folded groups in the memory of a process, each with the contents of its row when it was committed.

A copy is current as long as the row has its key, its version and its version tag. The version alone is not enough:
after a failover to a standby that lags behind, or a restore, Postgres counts from an older number again and reaches the
same one with other content. The tag is random, drawn with each version.

Copies that are dropped are remembered by key, version and generation, so that a row that went back in time is detected.

Source: architecture.md 4.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.group import Group
from groups.store.header import GroupRow
from groups.store.stored import Stored


@dataclass(slots=True)
class Copy:
    """What was committed last. `era`: that of the connections that it was read and written with."""

    stored: Stored
    generation: int
    era: int


class Copies:
    """At most `capacity` groups; the least recently used one is dropped first."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._copies: OrderedDict[str, Copy] = OrderedDict()
        self._era = 0

    def find(self, group_id: str, row: GroupRow) -> Group | None:
        """The group that the row describes, None if it must be loaded."""
        copy = self._copies.get(group_id)
        if copy is None or copy.era != self._era:
            return None
        stored = copy.stored
        if (stored.pk, stored.version, stored.version_tag) != (row.id, row.version, row.version_tag):
            return None
        self._copies.move_to_end(group_id)
        return stored.group

    def ahead_of(self, group_id: str, row: GroupRow) -> Copy | None:
        """What this process saw committed but the row, locked now, does not have: Postgres went back. Else None.

        Not detected if other processes have raised the row above the version that this process knows.
        """
        copy = self._copies.get(group_id)
        if copy is None or copy.stored.pk != row.id:
            return None
        # The generation is not enough: that of an empty group restarts when the group changes its protocol.
        stored = copy.stored
        other_content = stored.version == row.version and stored.version_tag != row.version_tag
        return copy if stored.version > row.version or other_content else None

    def put(self, group_id: str, stored: Stored) -> None:
        """Keep what was committed; forget a deleted group."""
        if stored.pk is None or stored.group is None:
            self._copies.pop(group_id, None)
            return
        self._copies[group_id] = Copy(stored, generation_of(stored.group), self._era)
        self._copies.move_to_end(group_id)
        while len(self._copies) > self._capacity:
            self._copies.popitem(last=False)

    def drop(self, group_id: str) -> None:
        """Make the next use load the group."""
        copy = self._copies.get(group_id)
        if copy is not None:
            copy.era = -1

    def drop_all(self) -> None:
        """Make the next use of every group load it."""
        self._era += 1


def generation_of(group: Group) -> int:
    """The generation of a classic group, the epoch of a consumer group."""
    return group.group_epoch if isinstance(group, ConsumerGroup) else group.generation_id
