"""Heartbeat, and all arithmetic of session deadlines in classic groups. Instants and lengths are in milliseconds.

Each function about deadlines returns one; the caller puts it into a record. Source: classic.md 0.3, 2.3, 2.5, 4 and 6;
architecture.md 4, "Fast lanes".

Differs from Kafka: in Kafka the session of a member cannot expire while one of its requests is parked. Here it ends one
session timeout after the last instant at which the request may be held, so that a member whose server process was
killed is detected too.
"""

from __future__ import annotations

from collections.abc import Mapping

from groups.core.classic.checks import (
    refused,
    require_alive,
    require_generation,
    require_group_id,
    unknown_member,
    validated_member,
)
from groups.core.classic.state import ANSWERS, Api
from groups.core.model.commands import Heartbeat
from groups.core.model.records import SessionRenewed
from groups.core.model.replies import HeartbeatReply
from groups.core.model.turn import Turn
from groups.core.model.types import ClassicGroup, ClassicMember, GroupState, Millis
from kcoord.protocol.errors import Error, ProtocolError

NEW_MEMBER_JOIN_TIMEOUT_MS: Millis = 300_000
"""How long a member that never completed a join may stay parked (classic.md 10.1, a constant)."""


def full(now: Millis, session_timeout_ms: Millis) -> Millis:
    """A whole session from now. A member id that was handed out may wait as long before it joins (classic.md 2.3)."""
    return now + session_timeout_ms


def renewed(member: ClassicMember, now: Millis) -> Millis:
    """After a heartbeat or a commit.

    A parked request keeps the later deadline that it has; for a new member the session replaces its limit.
    """
    deadline = full(now, member.session_timeout_ms)
    parked = member.awaiting_join or member.awaiting_sync
    return max(deadline, _present(member)) if parked and not member.is_new else deadline


def of_new_member(now: Millis) -> Millis:
    """While the first join of a member is parked."""
    return now + NEW_MEMBER_JOIN_TIMEOUT_MS


def while_parked(member: ClassicMember, parked_until: Millis, session_timeout_ms: Millis) -> Millis:
    """While a request of a member that is not new is held until `parked_until`."""
    return max(_present(member), parked_until + session_timeout_ms)


def while_joining_again(
    group: ClassicGroup, member: ClassicMember, parked_until: Millis, session_timeout_ms: Millis
) -> Millis:
    """While another join of a member is held until `parked_until`; `session_timeout_ms` is what this join requests.

    A new member's join is not held beyond its fixed limit, and sending it again does not renew the limit. It does
    restore what an abandoned wait took away; the rebalance began no later than the limit.
    """
    held = while_parked(member, parked_until, session_timeout_ms)
    if not member.is_new:
        return held
    return max(_present(member), min(held, group.state_since + NEW_MEMBER_JOIN_TIMEOUT_MS))


def abandoned(member: ClassicMember, now: Millis) -> Millis:
    """After the connection of a parked request is gone: a whole session, but never later than before."""
    return min(full(now, member.session_timeout_ms), _present(member))


def of_all(group: ClassicGroup, now: Millis) -> Mapping[str, Millis]:
    """Whole sessions for all members, by member id: a generation starts."""
    return {member.member_id: full(now, member.session_timeout_ms) for member in group.members.values()}


def restarted(group: ClassicGroup, now: Millis) -> Mapping[str, Millis]:
    """Whole sessions at least for all members that have one, by member id: sessions could not be counted before."""
    return {
        member.member_id: max(member.session_deadline, full(now, member.session_timeout_ms))
        for member in group.members.values()
        if member.session_deadline is not None
    }


def of_waiting(group: ClassicGroup, now: Millis) -> Mapping[str, Millis]:
    """Whole sessions for the members whose parked sync is answered now, by member id."""
    return {
        member.member_id: full(now, member.session_timeout_ms)
        for member in group.members.values()
        if member.awaiting_sync
    }


def _present(member: ClassicMember) -> Millis:
    assert member.session_deadline is not None, "only the members of a Dead group have no session"
    return member.session_deadline


def renewal(group: ClassicGroup, command: Heartbeat, now: Millis) -> Millis | None:
    """The deadline (ms) to which it extends the session of its member; None: it has to be decided.

    Only if nothing is overdue in the group.
    """
    if group.state is not GroupState.STABLE or group.generation_id != command.generation_id:
        return None
    try:
        member = validated_member(group, command.member_id, command.group_instance_id)
    except ProtocolError:
        return None
    if member.is_new or member.awaiting_join or member.awaiting_sync:
        return None
    deadline = full(now, member.session_timeout_ms)
    before = member.session_deadline
    return deadline if before is not None and before <= deadline else None


def heartbeat(turn: Turn, command: Heartbeat) -> HeartbeatReply:
    """Renew the session, also while the group rebalances (classic.md 4). Raises `ProtocolError`."""
    require_group_id(command.group_id)
    if turn.classic_or_none is None:
        raise unknown_member(command.member_id)
    group = turn.classic_or_none
    require_alive(group, command.member_id)
    member = validated_member(group, command.member_id, command.group_instance_id)
    require_generation(group, command.member_id, command.generation_id)
    verdict = ANSWERS[Api.HEARTBEAT, group.state]
    deadline = renew(turn, member) if verdict.renews else None
    if verdict.error is not Error.NONE:
        refusal = refused(verdict.error, Api.HEARTBEAT, group)
        return HeartbeatReply(verdict.error, session_deadline=deadline, detail=refusal.detail)
    return HeartbeatReply(Error.NONE, session_deadline=deadline)


def renew(turn: Turn, member: ClassicMember) -> Millis:
    """Start the session of a member again; returns its deadline in milliseconds."""
    deadline = renewed(member, turn.now)
    turn.emit(SessionRenewed(member.member_id, deadline, turn.now))
    return deadline
