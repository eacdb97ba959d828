"""What happens when a timer of a consumer group runs out (consumer.md 8)."""

from __future__ import annotations

from groups.core.consumer.leaving import Remove
from groups.core.model.causes import Cause
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.consumer_state import TimerKind
from groups.core.model.turn import Turn

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
    while isinstance(turn.group, ConsumerGroup):
        first = turn.group.timers.first()
        if first is None or first[0] > turn.now:
            return
        kind = first[1]
        member_id = turn.group.timers.of(kind).first()
        assert member_id is not None, "there is a timer that fires first"
        remove(turn, [member_id], _CAUSES[kind])
