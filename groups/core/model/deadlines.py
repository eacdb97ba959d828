"""When a group must be looked at again, and what is overdue. The only place that knows all deadlines of a group.

Source: classic.md 6; consumer.md 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import chain

from groups.core.model.consumer_group import EpochGroup
from groups.core.model.consumer_state import TimerKind as ConsumerTimerKind
from groups.core.model.group import Group
from groups.core.model.types import ClassicGroup, Millis

EARLY_MARGIN = 1 / 3
"""A stored wake-up is moved ahead when only this fraction of the time until the earliest deadline is left before it."""


class TimerKind(Enum):
    """The timers of a classic group, in the order in which timers of the same instant fire."""

    PENDING = "pending"
    SESSION = "session"
    JOIN = "join"
    SYNC = "sync"


@dataclass(frozen=True, slots=True)
class Deadline:
    """A timer that is armed. `member_id` is "" for the timers of the group itself."""

    at: Millis
    kind: TimerKind
    member_id: str = ""


def wake_at(group: Group | None) -> Millis | None:
    """The earliest deadline of the group in milliseconds, None if it has none. Looking earlier is harmless."""
    if group is not None and group.hold is not None:
        return group.hold.until  # a held group has no members, so no timer is armed
    if isinstance(group, EpochGroup):
        first = group.timers.first()
        return first[0] if first is not None else None
    if group is None:
        return None
    return min(_instants(group), default=None)


def wake_at_extended(group: Group, sessions: Mapping[str, Millis]) -> Millis | None:
    """As `wake_at`, of a group of which sessions have been extended: `sessions` has their ends (ms) by member id.

    It looks at every member, but makes no other group, which would take ten times as long.
    """
    if group.hold is not None:
        return group.hold.until
    if isinstance(group, EpochGroup):
        armed = {member_id: timer.deadline for member_id, timer in group.timers.session.items()}
        others: Iterable[Millis] = (
            least.deadline
            for kind in ConsumerTimerKind
            if kind is not ConsumerTimerKind.SESSION and (least := group.timers.of(kind).least) is not None
        )
    else:
        armed = {
            member.member_id: member.session_deadline
            for member in group.members.values()
            if member.session_deadline is not None
        }
        others = _other_instants(group)
    latest = (max(deadline, sessions.get(member_id, deadline)) for member_id, deadline in armed.items())
    return min(chain(latest, others), default=None)


def wake_at_to_store(stored: Millis | None, due: Millis | None, now: Millis) -> Millis | None:
    """The wake-up time to keep on the row of a group in which only deadlines moved; all in milliseconds.

    `stored` is the stored value, `due` the earliest deadline. The column is indexed, so an update that leaves it alone
    can be a HOT update. A wake-up that comes too early costs a transaction that finds nothing due, and one that comes
    too late is forbidden. So an earlier `due` is stored at once, a later one when no more than EARLY_MARGIN of the time
    until then would be left: members that send heartbeats at least three times in their session move the wake-up ahead
    before it comes. A wake-up that finds nothing due stores `due` itself, so the next cannot come before that.
    """
    if stored is None or due is None or due <= stored:
        return due
    return due if stored - now <= (due - now) * EARLY_MARGIN else stored


def due(group: ClassicGroup | None, now: Millis, sessions_end: Millis) -> Deadline | None:
    """The earliest timer of a classic group with a deadline at or before `now`, None if nothing is overdue.

    `sessions_end`: the latest deadline of sessions that may expire, at most `now`.
    """
    at = wake_at(group)
    if group is None or at is None or at > now:
        return None
    if at > sessions_end:
        at = min((instant for instant in _other_instants(group) if instant <= now), default=None)
        if at is None:
            return None
    if group.pending_join.least == at:
        return Deadline(at, TimerKind.PENDING, group.pending_join.first_due())
    if at <= sessions_end and group.members.least == at:
        return Deadline(at, TimerKind.SESSION, group.members.first_due())
    joins = group.join_timer is not None and group.join_timer.deadline == at
    return Deadline(at, TimerKind.JOIN if joins else TimerKind.SYNC)


def _instants(group: ClassicGroup) -> Iterator[Millis]:
    if group.members.least is not None:
        yield group.members.least
    yield from _other_instants(group)


def _other_instants(group: ClassicGroup) -> Iterator[Millis]:
    """The deadlines of everything but sessions."""
    if group.pending_join.least is not None:
        yield group.pending_join.least
    if group.join_timer is not None:
        yield group.join_timer.deadline
    if group.sync_deadline is not None:
        yield group.sync_deadline
