"""What happens when a timer of a consumer group runs out (consumer.md 8)."""

from __future__ import annotations

from dataclasses import replace

from groups.core.consumer.leaving import Remove
from groups.core.model.causes import Cause
from groups.core.model.consumer_group import EpochGroup
from groups.core.model.consumer_state import TimerKind, Timers
from groups.core.model.persistent import DeadlineMap
from groups.core.model.turn import Turn
from groups.core.model.types import Millis

_CAUSES = {
    TimerKind.SESSION: Cause.SESSION_EXPIRED,
    TimerKind.REBALANCE: Cause.REBALANCE_TIMED_OUT,
    TimerKind.JOIN: Cause.JOIN_TIMED_OUT,
    TimerKind.SYNC: Cause.SYNC_TIMED_OUT,
}


def expire(turn: Turn, remove: Remove) -> None:
    """Fire everything overdue at `turn.now`, in deadline order: every timer that fires removes its member.

    Each removal bumps the group epoch, as in Kafka. Stops when the group is no longer a consumer group.
    """
    while isinstance(turn.group, EpochGroup):
        kind = _due(turn.group.timers, turn.now, turn.env.sessions_end)
        if kind is None:
            return
        member_id = turn.group.timers.of(kind).first()
        assert member_id is not None, "there is a timer that fires first"
        remove(turn, [member_id], _CAUSES[kind])


def _due(timers: Timers, now: Millis, sessions_end: Millis) -> TimerKind | None:
    """The kind of the earliest overdue timer; sessions only up to `sessions_end`."""
    first = timers.first()
    if first is None or first[0] > now:
        return None
    if first[1] is not TimerKind.SESSION or first[0] <= sessions_end:
        return first[1]
    first = replace(timers, session=DeadlineMap()).first()
    return first[1] if first is not None and first[0] <= now else None
