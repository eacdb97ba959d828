"""The states of a member and the transitions between them, as data. Source: consumer.md 11.1."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from kcoord.client.types import MemberState


class State(Enum):
    """The state of a member."""

    UNSUBSCRIBED = "not in the group"
    JOINING = "the next heartbeat joins"
    RECONCILING = "has an assignment to put in place"
    ACKNOWLEDGING = "put an assignment in place, must tell the service"
    STABLE = "put its assignment in place and said so"
    FENCED = "dropped by the service; its partitions must be reported lost"
    PREPARE_LEAVING = "the user leaves; the listener runs"
    LEAVING = "the next heartbeat is the leave"
    STALE = "left because the user did not poll"
    FATAL = "cannot go on"


S = State

ENTERED_FROM: Mapping[State, frozenset[State]] = {
    S.UNSUBSCRIBED: frozenset({S.PREPARE_LEAVING, S.LEAVING, S.FENCED}),
    S.JOINING: frozenset({S.UNSUBSCRIBED, S.FENCED, S.STALE}),
    S.RECONCILING: frozenset({S.STABLE, S.JOINING, S.ACKNOWLEDGING, S.RECONCILING}),
    S.ACKNOWLEDGING: frozenset({S.RECONCILING}),
    S.STABLE: frozenset({S.JOINING, S.ACKNOWLEDGING, S.RECONCILING}),
    S.FENCED: frozenset({S.JOINING, S.STABLE, S.RECONCILING, S.ACKNOWLEDGING, S.PREPARE_LEAVING, S.LEAVING}),
    S.PREPARE_LEAVING: frozenset({S.JOINING, S.STABLE, S.RECONCILING, S.ACKNOWLEDGING, S.UNSUBSCRIBED}),
    S.LEAVING: frozenset({S.PREPARE_LEAVING}),
    S.STALE: frozenset({S.LEAVING}),
    S.FATAL: frozenset(
        {S.JOINING, S.STABLE, S.RECONCILING, S.ACKNOWLEDGING, S.PREPARE_LEAVING, S.LEAVING, S.UNSUBSCRIBED}
    ),
}
"""State -> the states from which it may be entered."""

MEMBERS = frozenset({S.JOINING, S.RECONCILING, S.ACKNOWLEDGING, S.STABLE})
"""States of a member that takes part in the group, or is about to."""

HEARTBEATING = MEMBERS | {S.PREPARE_LEAVING}
"""States in which heartbeats are sent."""

AT_ONCE = frozenset({S.JOINING, S.ACKNOWLEDGING})
"""States in which it does not wait for the interval."""

SHOWN: Mapping[State, MemberState] = {
    S.UNSUBSCRIBED: MemberState.UNJOINED,
    S.JOINING: MemberState.REBALANCING,
    S.RECONCILING: MemberState.REBALANCING,
    S.ACKNOWLEDGING: MemberState.REBALANCING,
    S.STABLE: MemberState.STABLE,
    S.FENCED: MemberState.UNJOINED,
    S.PREPARE_LEAVING: MemberState.UNJOINED,
    S.LEAVING: MemberState.UNJOINED,
    S.STALE: MemberState.UNJOINED,
    S.FATAL: MemberState.UNJOINED,
}
"""The states reported to users."""


class IllegalTransition(Exception):
    """A transition that is not in the table: an error of the client, not of the user or the service."""

    def __init__(self, before: State, after: State) -> None:
        super().__init__(f"a member that is {before.name} cannot become {after.name}")
        self.before = before
        self.after = after


def check(before: State, after: State) -> State:
    """`after`. Raises IllegalTransition."""
    if before not in ENTERED_FROM[after]:
        raise IllegalTransition(before, after)
    return after
