"""When a group must be looked at again, and what is overdue. The only place that knows all deadlines of a group.

Source: classic specification, section 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from groups.core.types import ClassicGroup, GroupState, Millis


class TimerKind(IntEnum):
    """The timers of a group; of equal deadlines the lower value fires first."""

    PENDING = 0
    SESSION = 1
    JOIN = 2
    SYNC = 3


@dataclass(frozen=True, slots=True, order=True)
class Deadline:
    """A timer that is armed. `member_id` is "" for the timers of the group itself."""

    at: Millis
    kind: TimerKind
    member_id: str = ""


def wake_at(group: ClassicGroup | None) -> Millis | None:
    """The earliest deadline of the group in milliseconds, None if it has none. Looking earlier is harmless."""
    if group is None or group.state is GroupState.DEAD:
        return None
    return min(_instants(group), default=None)


def due(group: ClassicGroup | None, now: Millis) -> Deadline | None:
    """The earliest timer with a deadline at or before `now`, None if nothing is overdue."""
    earliest = wake_at(group)
    if group is None or earliest is None or earliest > now:
        return None
    return min(_deadlines(group))


def _instants(group: ClassicGroup) -> Iterator[Millis]:
    # A plain loop over the members: this runs twice for every command, and a group may have thousands.
    for member in group.members.values():
        if member.session_deadline is not None:
            yield member.session_deadline
    yield from group.pending_join.values()
    if group.join_timer is not None:
        yield group.join_timer.deadline
    if group.sync_deadline is not None:
        yield group.sync_deadline


def _deadlines(group: ClassicGroup) -> Iterator[Deadline]:
    for member in group.members.values():
        if member.session_deadline is not None:
            yield Deadline(member.session_deadline, TimerKind.SESSION, member.member_id)
    for member_id, deadline in group.pending_join.items():
        yield Deadline(deadline, TimerKind.PENDING, member_id)
    if group.join_timer is not None:
        yield Deadline(group.join_timer.deadline, TimerKind.JOIN)
    if group.sync_deadline is not None:
        yield Deadline(group.sync_deadline, TimerKind.SYNC)
