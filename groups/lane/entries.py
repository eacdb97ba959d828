"""What is known of one group for answers from memory: the copy of the store, and the sessions renewed since."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.deadlines import wake_at
from groups.core.model.group import Group
from groups.core.model.sessions import Session, with_sessions
from groups.core.model.types import Millis
from groups.store.stored import Copy

RECOUNT_AFTER_MS = 100
"""How long a group in which somebody seems overdue is left to the store before its deadlines are counted again."""


class Renewal(NamedTuple):
    """A session that was renewed at `at` (ms), for `timeout_ms`."""

    at: Millis
    timeout_ms: Millis


class Unstored(NamedTuple):
    """A renewed session that is not stored yet. `first`: its earliest renewal that is not; `renewal`: its latest.

    `again`: it was skipped before. The group may have changed its protocol since.
    """

    entry: Entry
    member_id: str
    first: Millis
    renewal: Renewal
    again: bool


class Entry:
    """One group. `due`: nothing in it is overdue before this instant (ms)."""

    __slots__ = (
        "_again",
        "_recount_at",
        "_renewed",
        "_unstored",
        "copy",
        "due",
        "group",
        "group_id",
        "is_consumer",
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
        self._again: frozenset[str] = frozenset()
        self._recount_at: Millis = 0
        self.adopt(copy)

    def adopt(self, copy: Copy) -> None:
        """The store has another copy of the group, in the same row."""
        assert copy.stored.group is not None
        self.copy = copy
        self.group: Group = copy.stored.group
        self.is_consumer = isinstance(self.group, ConsumerGroup)
        self._count()

    def nothing_is_overdue(self, now: Millis) -> bool:
        """Whether all members are in time, as far as is known here: those heard from elsewhere may seem late."""
        if now < self.due:
            return True
        if now < self._recount_at:
            return False
        for member_id in self._renewed.keys() - self.group.members.keys() - self._unstored.keys():
            del self._renewed[member_id]
        self.group = with_sessions(self.group, dict(self._later()))
        self._count()
        self._recount_at = now + RECOUNT_AFTER_MS
        return now < self.due

    def _later(self) -> Iterator[tuple[str, Session]]:
        """The sessions that were renewed here since the copy was made."""
        for member_id, renewal in self._renewed.items():
            deadline = renewal.at + renewal.timeout_ms
            if member_id in self.group.members and deadline > self._deadline_of(member_id):
                yield member_id, Session(deadline, renewal.at)

    def _deadline_of(self, member_id: str) -> Millis:
        if isinstance(self.group, ConsumerGroup):
            timer = self.group.timers.session.get(member_id)
            return timer.deadline if timer is not None else 0
        return self.group.members[member_id].session_deadline or 0

    def _count(self) -> None:
        at = wake_at(self.group)
        self.due: float = math.inf if at is None else at
        self._recount_at = 0

    def renew(self, member_id: str, renewal: Renewal) -> bool:
        """A session was renewed. Whether it is the first that is not stored."""
        first = not self._unstored
        self._renewed[member_id] = renewal
        self._unstored.setdefault(member_id, renewal.at)
        return first

    def take_unstored(self) -> Iterator[Unstored]:
        """The sessions to store; they count as stored until `put_back`."""
        unstored, self._unstored = self._unstored, {}
        again, self._again = self._again, frozenset()
        for member_id, first in unstored.items():
            yield Unstored(self, member_id, first, self._renewed[member_id], member_id in again)

    def put_back(self, unstored: Unstored) -> None:
        """It could not be stored."""
        self._unstored[unstored.member_id] = unstored.first
        self._again |= {unstored.member_id}
        self._renewed.setdefault(unstored.member_id, unstored.renewal)

    def forget(self, member_id: str) -> None:
        """The member is gone."""
        self._renewed.pop(member_id, None)
        self._unstored.pop(member_id, None)

    @property
    def has_unstored(self) -> bool:
        """Some renewed sessions are not stored yet."""
        return bool(self._unstored)
