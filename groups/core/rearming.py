"""Deadlines that could not be counted start over.

While a coordinator partition has no live owner, members may not be able to renew their sessions. Its next owner raises
the gap of the partition (`Env.gap`), and a group whose deadlines were armed under a smaller one gives everybody the
full time again as soon as somebody looks at it. So the cost of an outage does not grow with the number of groups, and
a member that was a millisecond from expiry gets its full session.

Source: offsets.md 9.3 (becoming ACTIVE); classic.md 8.3 and 8.5. Differs from Kafka: a rebalance that was in progress
goes on, with the full time for its join or sync; Kafka returns to the previous generation.
"""

from __future__ import annotations

from groups.core.classic import sessions
from groups.core.classic.rebalance import prepare
from groups.core.model.causes import Cause
from groups.core.model.consumer_group import EpochGroup
from groups.core.model.consumer_records import TimersRearmed
from groups.core.model.consumer_state import TimerKind, Timers
from groups.core.model.persistent import DeadlineMap, Timer
from groups.core.model.records import DeadlinesRearmed
from groups.core.model.turn import Turn
from groups.core.model.types import ClassicGroup, GroupState, JoinTimer, Millis


def rearm(turn: Turn) -> None:
    """Start the deadlines of the group over if they were armed before the last gap, and somebody counts now."""
    group, env = turn.group, turn.env
    if group is None or not env.may_expire or group.armed_gap >= env.gap:
        return
    if isinstance(group, EpochGroup):
        turn.emit(TimersRearmed(env.gap, _timers(turn, group), turn.now))
        return
    turn.emit(_classic(turn, group))
    # As in Kafka, a group that is larger than allowed when it is loaded rebalances (classic.md 8.3).
    running = group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE)
    if running and len(group.members) > env.config.max_size:
        prepare(turn, Cause.GROUP_FULL, "")


def _classic(turn: Turn, group: ClassicGroup) -> DeadlinesRearmed:
    now = turn.now
    return DeadlinesRearmed(
        turn.env.gap,
        sessions.restarted(group, now),
        # Differs from Kafka: ids that were handed out and have not joined yet (pending members) outlive a change of the
        # coordinator; there they are in no log, and are forgotten.
        {
            member_id: max(deadline, sessions.full(now, turn.config.min_session_timeout_ms))
            for member_id, deadline in group.pending_join.items()
        },
        _join_timer(group, now),
        None if group.sync_deadline is None else max(group.sync_deadline, now + group.rebalance_timeout_ms),
        now,
    )


def _join_timer(group: ClassicGroup, now: Millis) -> JoinTimer | None:
    timer = group.join_timer
    if timer is None:
        return None
    window = group.rebalance_timeout_ms if timer.initial is None else timer.initial[0]
    return JoinTimer(max(timer.deadline, now + window), timer.initial)


def _timers(turn: Turn, group: EpochGroup) -> Timers:
    def restarted(kind: TimerKind) -> DeadlineMap:
        timers: dict[str, Timer] = {}
        for member_id, timer in group.timers.of(kind).items():
            session = turn.limits.session_timeout_ms
            full = session if kind is TimerKind.SESSION else group.members[member_id].rebalance_timeout_ms
            timers[member_id] = Timer(max(timer.deadline, turn.now + full), timer.armed_at)
        return DeadlineMap(timers)

    return Timers(**{kind.value: restarted(kind) for kind in TimerKind})
