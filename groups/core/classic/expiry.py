"""What happens when a timer of a group runs out (classic.md 0.3 and 6)."""

from __future__ import annotations

from groups.core.classic.rebalance import complete_if_all_joined, complete_join, initial_tick, prepare, remove
from groups.core.model.causes import Cause
from groups.core.model.deadlines import Deadline, TimerKind, due
from groups.core.model.turn import Turn
from groups.core.model.types import GroupState

MOST_TIMERS = 8
"""How many timers may fire for each member, each pending id and the group itself before that counts as a bug."""


def expire(turn: Turn) -> None:
    """Fire everything overdue at `turn.now`, in deadline order, until nothing is.

    Deadlines armed on the way count from now, not from when their cause was due: if a group is looked at late, all
    members get the full time again.
    """
    group = turn.classic_or_none
    if group is None:
        return
    most = MOST_TIMERS * (1 + len(group.members) + len(group.pending_join))
    for _ in range(most):
        deadline = due(turn.classic_or_none, turn.now, turn.env.sessions_end)
        if deadline is None:
            return
        _fire(turn, deadline)
    # Every timer that fires removes a member or a pending id, ends a window or starts a generation: a bug, otherwise.
    raise AssertionError(f"the timers of group {group.group_id!r} do not come to rest: {most} fired at {turn.now}")


def _fire(turn: Turn, deadline: Deadline) -> None:
    match deadline.kind:
        case TimerKind.PENDING:
            remove(turn, deadline.member_id, Cause.SESSION_EXPIRED)
            complete_if_all_joined(turn)
        case TimerKind.SESSION:
            _expire_session(turn, deadline.member_id)
        case TimerKind.JOIN:
            timer = turn.classic.join_timer
            assert timer is not None
            if timer.initial is not None:
                initial_tick(turn)
            else:
                complete_join(turn)
        case TimerKind.SYNC:
            _expire_sync(turn)


def _expire_session(turn: Turn, member_id: str) -> None:
    """EXPIRE_SESSION, row 5.

    Row 4 (a member that is not new and waits is left alone) is the deadline itself: it is put off while a request is
    held. Also in the initial rebalance the expiry of the last missing member completes the join, unlike a leave.
    """
    remove(turn, member_id, Cause.SESSION_EXPIRED)
    if turn.classic.state is GroupState.PREPARING_REBALANCE:
        complete_if_all_joined(turn)
    else:
        prepare(turn, Cause.SESSION_EXPIRED, member_id)


def _expire_sync(turn: Turn) -> None:
    """EXPIRE_SYNC. A generation that has ended has no sync timer: preparing the next one cleared it."""
    missing = [member.member_id for member in turn.classic.members.values() if member.pending_sync]
    assert missing, "the sync timer is cleared with the last sync"
    for member_id in missing:
        remove(turn, member_id, Cause.SYNC_TIMED_OUT)
    prepare(
        turn,
        Cause.SYNC_TIMED_OUT,
        missing[0],
        f"{len(missing)} members did not sync" if len(missing) > 1 else "",
    )
