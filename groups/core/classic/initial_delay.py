"""The initial rebalance of a group that was Empty: it waits for more members in windows (classic.md 0.3 and 2.7).

It ends when its timer runs out, not when all members have joined: the first of them alone would complete it.
"""

from __future__ import annotations

from groups.core.model.types import ClassicGroup, GroupConfig, GroupState, JoinTimer, Millis


def is_running(group: ClassicGroup) -> bool:
    """Whether the group is in an initial rebalance."""
    return group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY


def first_window(group: ClassicGroup, now: Millis, config: GroupConfig) -> JoinTimer:
    """The timer with which an initial rebalance starts."""
    delay = config.initial_rebalance_delay_ms
    return JoinTimer(now + delay, (delay, max(group.rebalance_timeout_ms - delay, 0)))


def next_window(group: ClassicGroup, now: Millis, config: GroupConfig) -> JoinTimer | None:
    """INITIAL_TICK: the timer that prolongs the rebalance because a new member joined; None: it is over."""
    assert group.join_timer is not None
    assert group.join_timer.initial is not None, "an ordinary join timer has no windows"
    delay, remaining = group.join_timer.initial
    if not group.new_member_added or remaining == 0:
        return None
    window = min(config.initial_rebalance_delay_ms, remaining)
    return JoinTimer(now + window, (window, max(remaining - delay, 0)))
