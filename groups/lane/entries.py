"""What is known of one group for answers from memory: the copy of the store, and the sessions renewed since."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from groups.core.model.consumer_group import EpochGroup
from groups.core.model.deadlines import wake_at, wake_at_extended
from groups.core.model.group import Group
from groups.core.model.types import Millis
from groups.store.stored import Copy

RECOUNT_AFTER_MS = 100
"""How long a group in which somebody seems overdue is left to the store before its deadlines are counted again."""

STORED_PARTS = 10
"""A session that is renewed is stored if this part of it has passed since it was stored before."""

LAST_PARTS = 5
"""And if nothing more is heard of its member, after this part: what rows say of members is not older than that."""


class Renewal(NamedTuple):
    """A session that was renewed at `at` (ms), for `timeout_ms`."""

    at: Millis
    timeout_ms: Millis


class Unstored(NamedTuple):
    """A renewed session that is to be stored.

    `known_until`: until then its member does not expire by what is stored of it, or was not renewed since (ms).
    `again`: it was skipped before. The group may have changed its protocol since.
    """

    entry: Entry
    member_id: str
    renewal: Renewal
    known_until: Millis
    again: bool


class Entry:
    """One group. `due`: nothing in it is overdue before this instant (ms).

    A renewed session is stored when a tenth of it has passed since it was stored before, so that one heartbeat of each
    three seconds in 45 is written out of two. Until then its member cannot expire by what is stored, so nobody has to
    wait for the others. `look_at`: no session of those that are stored later has to be stored before this instant (ms).
    """

    __slots__ = (
        "__weakref__",
        "_again",
        "_later",
        "_recount_at",
        "_renewed",
        "_stored_at",
        "_unstored",
        "copy",
        "due",
        "group",
        "group_id",
        "is_consumer",
        "look_at",
        "pk",
    )

    def __init__(self, group_id: str, copy: Copy) -> None:
        stored = copy.stored
        assert stored.pk is not None
        assert stored.group is not None
        self.group_id = group_id
        self.pk = stored.pk
        self._renewed: dict[str, Renewal] = {}
        self._unstored: dict[str, Millis] = {}
        """By member id: a lower bound of when it was first renewed after it was last stored."""
        self._stored_at: dict[str, Millis] = {}
        self._later: set[str] = set()
        self.look_at: float = math.inf
        self._again: frozenset[str] = frozenset()
        self._recount_at: Millis
        self.adopt(copy)

    def adopt(self, copy: Copy) -> None:
        """The store has another copy of the group, in the same row."""
        assert copy.stored.group is not None
        self.copy = copy
        self.group: Group = copy.stored.group
        self.is_consumer = isinstance(self.group, EpochGroup)
        self.due: float = _or_never(wake_at(self.group))
        self._recount_at = 0

    def nothing_is_overdue(self, now: Millis) -> bool:
        """Whether all members are in time, as far as is known here: those heard from elsewhere may seem late."""
        if now < self.due:
            return True
        if now < self._recount_at:
            return False
        for member_id in self._renewed.keys() - self.group.members.keys() - self._unstored.keys() - self._later:
            self.forget(member_id)
        ends = {member_id: renewal.at + renewal.timeout_ms for member_id, renewal in self._renewed.items()}
        self.due = _or_never(wake_at_extended(self.group, ends))
        self._recount_at = now + RECOUNT_AFTER_MS
        return now < self.due

    def renew(self, member_id: str, renewal: Renewal) -> None:
        """A session was renewed."""
        self._renewed[member_id] = renewal
        stored_at = self._stored_at.get(member_id)
        if stored_at is None or renewal.at - stored_at >= renewal.timeout_ms // STORED_PARTS:
            self._unstored.setdefault(member_id, renewal.at)
        elif member_id not in self._later:
            self._later.add(member_id)
            self.look_at = min(self.look_at, stored_at + renewal.timeout_ms // LAST_PARTS)

    def take_unstored(self, now: Millis, *, every: bool = False) -> Iterator[Unstored]:
        """The sessions to store now, or `every` one that was renewed since; they count as stored until `put_back`."""
        if every or now >= self.look_at:
            self._look_at_later(now, every)
        unstored, self._unstored = self._unstored, {}
        again, self._again = self._again, frozenset()
        self._later -= unstored.keys()
        for member_id, first in unstored.items():
            renewal, stored_at = self._renewed[member_id], self._stored_at.get(member_id)
            known_until = first if stored_at is None else stored_at + renewal.timeout_ms - 1
            self._stored_at[member_id] = renewal.at
            yield Unstored(self, member_id, renewal, known_until, member_id in again)

    def _look_at_later(self, now: Millis, every: bool) -> None:
        self.look_at = math.inf
        for member_id in self._later:
            renewal = self._renewed[member_id]
            last_at = self._stored_at.get(member_id, 0) + renewal.timeout_ms // LAST_PARTS
            if every or now >= last_at:
                self._unstored.setdefault(member_id, renewal.at)
            else:
                self.look_at = min(self.look_at, last_at)

    def put_back(self, unstored: Unstored) -> None:
        """It could not be stored, or perhaps it was not."""
        member_id = unstored.member_id
        self._stored_at.pop(member_id, None)
        self._unstored[member_id] = min(unstored.known_until, unstored.renewal.at)
        self._again |= {member_id}
        self._renewed.setdefault(member_id, unstored.renewal)

    def drop(self) -> None:
        """What was renewed and not stored is lost, and nothing is known of what is stored."""
        self._stored_at.clear()
        self._later.clear()
        self.look_at = math.inf
        self._unstored.clear()

    def distrust(self) -> None:
        """What was stored may be lost: store it all again."""
        self._stored_at.clear()
        self._later.clear()
        self.look_at = math.inf
        self._unstored = dict.fromkeys(self._renewed, 0)

    def forget(self, member_id: str) -> None:
        """The member is gone."""
        self._later.discard(member_id)
        for known in (self._renewed, self._unstored, self._stored_at):
            known.pop(member_id, None)

    @property
    def has_due(self) -> bool:
        """Some renewed sessions are stored with the next flush."""
        return bool(self._unstored)

    @property
    def has_unstored(self) -> bool:
        """Some renewed sessions are not stored yet."""
        return bool(self._unstored or self._later)


def _or_never(at: Millis | None) -> float:
    return math.inf if at is None else at
