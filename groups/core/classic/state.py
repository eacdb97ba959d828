"""The classic protocol as tables: which state may follow which, and the answer of each API in each state.

`ANSWERS` holds for a member in good standing: it exists, its instance id is its own, its generation is the group's, its
protocols are what they were. Outside the table, because they depend on the caller and not on the state, are: the checks
of the request itself, the size gate, strangers, pending and fenced ids, stale generations (`checks`), the leader's own
join and sync, changed protocols, and static replacement (`join`, `sync`, `static`). Commits and joins that name no
member read only the row of Dead.
Source: classic.md 1, 2.4, 3.2, 4, 5, 6, 8.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from groups.core.model.types import GroupState
from kcoord.protocol.errors import Error

_EMPTY, _DEAD, _STABLE = GroupState.EMPTY, GroupState.DEAD, GroupState.STABLE
_PREPARING, _COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE


class Api(str, Enum):
    """The requests whose answer depends on the state."""

    JOIN = "JoinGroup"
    SYNC = "SyncGroup"
    HEARTBEAT = "Heartbeat"
    LEAVE = "LeaveGroup"
    COMMIT = "OffsetCommit"
    DELETE = "DeleteGroup"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a request.

    `parks`: it waits for a barrier. `renews`: the member's session starts again. `rebalances`: the group prepares a new
    generation because of it.
    """

    error: Error = Error.NONE
    parks: bool = False
    renews: bool = False
    rebalances: bool = False


_OK = Verdict()
_PARKS = Verdict(parks=True)
_RENEWS = Verdict(renews=True)
_REBALANCES = Verdict(rebalances=True)
_UNKNOWN = Verdict(Error.UNKNOWN_MEMBER_ID)
_REJOIN = Verdict(Error.REBALANCE_IN_PROGRESS)
_UNAVAILABLE = Verdict(Error.COORDINATOR_NOT_AVAILABLE)
_NON_EMPTY = Verdict(Error.NON_EMPTY_GROUP)
_NOT_FOUND = Verdict(Error.GROUP_ID_NOT_FOUND)

ANSWERS: Mapping[tuple[Api, GroupState], Verdict] = {
    (Api.JOIN, _EMPTY): _UNKNOWN,
    (Api.JOIN, _PREPARING): _PARKS,
    (Api.JOIN, _COMPLETING): _OK,
    (Api.JOIN, _STABLE): _OK,
    (Api.JOIN, _DEAD): _UNAVAILABLE,
    (Api.SYNC, _EMPTY): _UNKNOWN,
    (Api.SYNC, _PREPARING): _REJOIN,
    (Api.SYNC, _COMPLETING): _PARKS,
    (Api.SYNC, _STABLE): _OK,
    (Api.SYNC, _DEAD): _UNAVAILABLE,
    (Api.HEARTBEAT, _EMPTY): _UNKNOWN,
    (Api.HEARTBEAT, _PREPARING): Verdict(Error.REBALANCE_IN_PROGRESS, renews=True),
    (Api.HEARTBEAT, _COMPLETING): _RENEWS,
    (Api.HEARTBEAT, _STABLE): _RENEWS,
    (Api.HEARTBEAT, _DEAD): _UNAVAILABLE,
    (Api.LEAVE, _EMPTY): _OK,
    (Api.LEAVE, _PREPARING): _OK,
    (Api.LEAVE, _COMPLETING): _REBALANCES,
    (Api.LEAVE, _STABLE): _REBALANCES,
    (Api.LEAVE, _DEAD): _UNAVAILABLE,
    (Api.COMMIT, _EMPTY): _OK,
    (Api.COMMIT, _PREPARING): _RENEWS,
    (Api.COMMIT, _COMPLETING): _REJOIN,
    (Api.COMMIT, _STABLE): _RENEWS,
    (Api.COMMIT, _DEAD): _UNAVAILABLE,
    (Api.DELETE, _EMPTY): _OK,
    (Api.DELETE, _PREPARING): _NON_EMPTY,
    (Api.DELETE, _COMPLETING): _NON_EMPTY,
    (Api.DELETE, _STABLE): _NON_EMPTY,
    (Api.DELETE, _DEAD): _NOT_FOUND,
}
"""The answer of each API in each state."""
