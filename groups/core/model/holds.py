"""A hold: an operator keeps members out of a group for a while, so that its offsets can be reset.

A held group has no members, and no member can join until the hold expires or an operator ends it.
Source: http-api.md 4. Differs from Kafka: in Kafka only stopping every consumer makes a busy group resettable.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from groups.core.model.group import Group
from groups.core.model.records import HoldReleased
from groups.core.model.turn import Turn
from groups.core.model.types import Hold, Millis
from kcoord.protocol.errors import Error, ProtocolError

MOST_RETRY_AFTER_MS: Millis = 10_000
"""The longest time that a refused caller is told to stay away: an operator may end the hold early."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_SECOND = 253_402_300_799


def require_open(group: Group, now: Millis) -> None:
    """Raise `ProtocolError` COORDINATOR_LOAD_IN_PROGRESS while the group is held, saying by whom and until when.

    Differs from Kafka: it has no holds. Of the errors that its clients know, this is the one to which they respond, for
    a join, a consumer heartbeat and a commit, by sending the same request again later, for as long as it takes.
    """
    if group.hold is not None:
        raise ProtocolError(
            Error.COORDINATOR_LOAD_IN_PROGRESS,
            f"{_sentence(group.group_id, group.hold)}: no member can join until then. Send the same request "
            "again later",
            retry_after_ms=min(max(group.hold.until - now, 1), MOST_RETRY_AFTER_MS),
        )


def require_unheld_offsets(group: Group) -> None:
    """As `require_open`, for a commit without membership: it would overwrite what an operator is resetting."""
    if group.hold is not None:
        raise ProtocolError(
            Error.COORDINATOR_LOAD_IN_PROGRESS,
            f"{_sentence(group.group_id, group.hold)}: only operators can change its offsets until then. Retry "
            "after that if the commit is still right",
        )


def expire_hold(turn: Turn) -> None:
    """End a hold that has expired."""
    hold = turn.group.hold if turn.group is not None else None
    if hold is not None and hold.until <= turn.now:
        turn.emit(HoldReleased(None, turn.now))


def _sentence(group_id: str, hold: Hold) -> str:
    until = _EPOCH + timedelta(seconds=min(hold.until // 1000, _LAST_SECOND))
    reason = f" ({hold.reason})" if hold.reason else ""
    return f"group {group_id!r} is held by {hold.by!r} until {until:%Y-%m-%dT%H:%M:%SZ}{reason}"
