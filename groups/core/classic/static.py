"""Replacement of a static member: JoinGroup without a member id and with an instance id that the group knows.

Source: classic.md 7.2; KIP-345.
"""

from __future__ import annotations

from dataclasses import replace

from groups.core.classic import sessions
from groups.core.classic.rebalance import maybe_complete, prepare, release, select_protocol
from groups.core.classic.responses import joined
from groups.core.model.causes import Cause
from groups.core.model.commands import JoinGroup, ParkKind
from groups.core.model.records import MemberReplaced, MemberUpdated
from groups.core.model.replies import JoinReply, Parked
from groups.core.model.turn import Turn
from groups.core.model.types import ClassicGroup, ClassicMember, GroupState


def replace_static_member(turn: Turn, command: JoinGroup, member_id: str) -> JoinReply | Parked:
    """Continue under `member_id` with everything the old member had; only a change of protocol needs a rebalance."""
    assert command.group_instance_id is not None
    before = turn.classic
    old = before.members[before.members.static[command.group_instance_id]]
    _take_over(turn, command, old, member_id)
    group = turn.classic
    if group.state is GroupState.STABLE and _keeps_protocol(group):
        answer = joined(
            group,
            group.members[member_id],
            session_deadline=group.members[member_id].session_deadline,
            skip_assignment=group.leader_id == member_id,
        )
        return replace(answer, replaced_id=old.member_id)
    parked = _park(turn, command, member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        maybe_complete(turn)
    else:
        prepare(turn, Cause.STATIC_MEMBER_REPLACED, member_id, command.reason or "")
    return parked


def _take_over(turn: Turn, command: JoinGroup, old: ClassicMember, member_id: str) -> None:
    """Steps 1 to 3. The first session has the OLD timeout.

    Differs from Kafka: a sync that the old id owes is owed by the new one; Kafka leaves it with the old id, whose
    absence then starts a needless rebalance (classic.md 13.1 item 6).
    """
    group = turn.classic
    member = replace(
        old,
        member_id=member_id,
        protocols=command.protocols,
        session_timeout_ms=command.session_timeout_ms,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        is_new=False,
        sync_parked_until=None,
        session_deadline=sessions.full(turn.now, old.session_timeout_ms),
    )
    leads = group.leader_id == old.member_id
    turn.emit(MemberReplaced(old.member_id, member, leader_id=member_id if leads else group.leader_id))
    if old.awaiting_join:
        release(turn, ParkKind.JOIN, [old], group.generation_id)
    if old.awaiting_sync:
        release(turn, ParkKind.SYNC, [old], group.generation_id)


def _park(turn: Turn, command: JoinGroup, member_id: str) -> Parked:
    group = turn.classic
    member = group.members[member_id]
    parked_until = turn.now + command.max_wait_ms
    turn.emit(
        MemberUpdated(
            member_id,
            protocols=member.protocols,
            session_timeout_ms=member.session_timeout_ms,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            join_parked_until=parked_until,
            session_deadline=sessions.while_parked(member, parked_until, member.session_timeout_ms),
        )
    )
    return Parked(ParkKind.JOIN, member_id, member.instance_id, group.generation_id, parked_until)


def _keeps_protocol(group: ClassicGroup) -> bool:
    assert group.leader_id is not None
    return select_protocol(group, group.members[group.leader_id]) == group.protocol_name
