"""A group as it is stored: its row, what was committed last, and the folded groups in the memory of a process.

A copy is current as long as the row has its key, its version and its version tag. The version alone is not enough:
after a failover to a standby that lags behind, or a restore, Postgres counts from an older number again and reaches the
same one with other content. The tag is random, drawn with each version.

Copies that are dropped are remembered by key, version and generation, so that a row that went back in time is detected.

Source: architecture.md 4.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from groups.core.model.consumer_group import EpochGroup
from groups.core.model.deadlines import wake_at
from groups.core.model.group import Group
from groups.core.model.types import Hold, Millis


class GroupRow(NamedTuple):
    """The columns of `lock_group`. What belongs to the other protocol has its default or is None."""

    id: int
    version: int
    type: str
    state: str
    previous_state: str
    state_since: Millis
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader_id: str | None
    new_member_added: bool
    join_deadline: Millis | None
    join_delay_ms: Millis | None
    join_remaining_ms: Millis | None
    sync_deadline: Millis | None
    wake_at: Millis | None
    assignment_epoch: int
    assignment_timestamp: Millis
    metadata_hash: str
    metadata_version: int
    has_resolution: bool
    jobs: dict[str, Any] | None
    held_until: Millis | None
    held_by: str | None
    hold_reason: str | None
    version_tag: UUID
    partition: int | None
    armed_gap: int

    @property
    def hold(self) -> Hold | None:
        """Who keeps members out, and until when."""
        if self.held_until is None:
            return None
        return Hold(self.held_until, self.held_by or "", self.hold_reason or "")


def hold_columns(hold: Hold | None) -> dict[str, Any]:
    """Parameters of a group's row that depend on its hold, for both protocols."""
    return {
        "held_until": hold.until if hold else None,
        "held_by": hold.by if hold else None,
        "hold_reason": hold.reason if hold else None,
    }


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who runs the timers of a coordinator partition, read under the lock of a group.

    `active`: it has an owner with enough left of its lease for the transaction to end, so something may expire.
    `owner`: the incarnation of a node, None for nobody. See `Env` for `gap` and `sessions_known_until`.
    """

    active: bool
    owner: int | None
    epoch: int
    gap: int
    sessions_known_until: Millis


class OwnerLapsed(Exception):
    """Something expired in a transaction that took so long that nobody ran the timers any longer: start it over."""


class GroupAppeared(Exception):
    """Another process created the group between our look and our insert: start the transaction over."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A group with the key, the version and the version tag of its row (None, 0, None: no row).

    `wake_at` is that of the row: never later than the earliest deadline of the group, and often earlier.
    """

    pk: int | None
    version: int
    version_tag: UUID | None
    wake_at: Millis | None
    group: Group | None

    @property
    def due(self) -> Millis | None:
        """The earliest deadline of the group."""
        return wake_at(self.group)


MISSING = Stored(pk=None, version=0, version_tag=None, wake_at=None, group=None)


@dataclass(slots=True)
class Copy:
    """What was committed last. `era`: that of the connections that it was read and written with.

    `current_at`: when it was last known to be current; `hinted_at`: when this process was last told that the group had
    changed, perhaps by a change that the copy has. In seconds of the monotonic clock. `weight`: see `weight_of`.
    """

    stored: Stored
    generation: int
    era: int
    current_at: float
    hinted_at: float
    weight: int

    @property
    def is_doubtful(self) -> bool:
        """The group may have changed since the copy was known to be current."""
        return self.hinted_at >= self.current_at


HINTS_SECONDS = 60.0
"""How long a hint about a group without a copy is kept: longer than a transaction takes that leads to one."""


PARTITIONS_PER_MEMBER = 10
"""The owned partitions of a consumer group that take as much memory as a member."""


class Copies:
    """At most `capacity` groups with `members` members altogether; the least recently used one is dropped first.

    The one that was used last stays, however large it is.
    """

    def __init__(self, capacity: int, members: int) -> None:
        self._capacity = capacity
        self._members = members
        self._weight = 0
        self._copies: OrderedDict[str, Copy] = OrderedDict()
        self._era = 0
        self._hints: OrderedDict[str, float] = OrderedDict()
        self._all_hinted_at = -math.inf

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

    def current(self, group_id: str) -> Copy | None:
        """The copy of a group, which may be out of date; None if it is missing or predates a lost connection."""
        copy = self._copies.get(group_id)
        if copy is None or copy.era != self._era:
            return None
        self._copies.move_to_end(group_id)
        return copy

    def has(self, group_id: str) -> bool:
        """Whether there is a copy, of whatever age."""
        return group_id in self._copies

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

    def hint(self, group_id: str | None) -> None:
        """A group has changed; None: any may have. The change may be one that the copy has."""
        now = time.monotonic()
        if group_id is None:
            for copy in self._copies.values():
                copy.hinted_at = now
            self._all_hinted_at = now
            return
        copy_of_it = self._copies.get(group_id)
        if copy_of_it is not None:
            copy_of_it.hinted_at = now
            return
        # Work may be under way after which there is a copy that is older than this change.
        self._keep_hint(group_id, now)

    def _keep_hint(self, group_id: str, now: float) -> None:
        self._hints[group_id] = now
        self._hints.move_to_end(group_id)
        while self._hints and next(iter(self._hints.values())) < now - HINTS_SECONDS:
            self._hints.popitem(last=False)

    def put(self, group_id: str, stored: Stored, current_at: float) -> None:
        """Keep what was committed; forget a deleted group. `current_at`: when its row was locked."""
        before = self._copies.pop(group_id, None)
        if before is not None:
            self._weight -= before.weight
        if stored.pk is None or stored.group is None:
            return
        hinted_at = before.hinted_at if before is not None else self._hints.pop(group_id, -math.inf)
        hinted_at = max(hinted_at, self._all_hinted_at)
        if time.monotonic() - current_at > HINTS_SECONDS:
            hinted_at = math.inf
        weight = weight_of(stored.group)
        self._copies[group_id] = Copy(stored, generation_of(stored.group), self._era, current_at, hinted_at, weight)
        self._weight += weight
        self._make_room()

    def _make_room(self) -> None:
        while len(self._copies) > self._capacity or (self._weight > self._members and len(self._copies) > 1):
            group_id, copy = self._copies.popitem(last=False)
            self._weight -= copy.weight
            # It may be loaded again by a snapshot that was taken before the change of the hint.
            now = time.monotonic()
            if copy.hinted_at > now - HINTS_SECONDS:
                self._keep_hint(group_id, now)

    def put_snapshot(self, group_id: str, row: GroupRow, stored: Stored, read_at: float, era: int) -> bool:
        """Keep a group that was read without a lock, unless more may be known of it. Whether it was kept.

        `read_at`: before the snapshot was taken, in seconds of the monotonic clock; `era`: that of then.
        """
        known = self._copies.get(group_id)
        if era != self._era or self.ahead_of(group_id, row) is not None:
            return False
        if known is not None and known.era == era and known.current_at >= read_at:
            return False
        self.put(group_id, stored, read_at)
        return group_id in self._copies

    @property
    def era(self) -> int:
        """Copies of an earlier one are older than the loss of a connection."""
        return self._era

    def drop(self, group_id: str) -> None:
        """Make the next use load the group; what is read of it meanwhile may be out of date."""
        copy = self._copies.get(group_id)
        if copy is not None:
            copy.era = -1
        self.hint(group_id)

    def drop_all(self) -> None:
        """Make the next use of every group load it."""
        self._era += 1


def weight_of(group: Group) -> int:
    """How many members take as much memory as the group."""
    if isinstance(group, EpochGroup):
        return 1 + len(group.members) + len(group.members.owners) // PARTITIONS_PER_MEMBER
    return 1 + len(group.members)


def generation_of(group: Group) -> int:
    """The generation of a classic group, else the group epoch."""
    return group.group_epoch if isinstance(group, EpochGroup) else group.generation_id
