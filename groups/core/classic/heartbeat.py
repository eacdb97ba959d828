"""Heartbeat.

Source: classic.md 4 and 6.
"""

from __future__ import annotations

from groups.core.classic import sessions
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
from groups.core.model.types import ClassicMember, Millis
from kcoord.protocol.errors import Error


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
    deadline = sessions.renewed(member, turn.now)
    turn.emit(SessionRenewed(member.member_id, deadline, turn.now))
    return deadline
