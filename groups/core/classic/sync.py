"""SyncGroup (classic.md 3)."""

from __future__ import annotations

from groups.core.classic.members import (
    refused,
    require_alive,
    require_generation,
    session_while_parked,
    sessions_of_waiting,
    synced,
    unknown_member,
    validated_member,
)
from groups.core.classic.rebalance import clear_sync_timer_if_done, release
from groups.core.classic.state import ANSWERS, Api
from groups.core.model.commands import ParkKind, SyncGroup
from groups.core.model.records import AssignmentsStored, MemberSynced, SyncParked
from groups.core.model.replies import Parked, SyncReply
from groups.core.model.turn import Turn
from groups.core.model.types import ClassicGroup, ClassicMember
from kcoord.protocol.errors import Error, ProtocolError


def sync_group(turn: Turn, command: SyncGroup) -> SyncReply | Parked:
    """Hand the member its assignment, or park it until the leader's sync. Raises `ProtocolError`."""
    if turn.classic_or_none is None:
        raise unknown_member(command.member_id)
    group = turn.classic_or_none
    require_alive(group, command.member_id)
    member = validated_member(group, command.member_id, command.group_instance_id)
    require_generation(group, command.member_id, command.generation_id)
    _require_same_protocol(group, command)
    verdict = ANSWERS[Api.SYNC, group.state]
    if verdict.error is not Error.NONE:
        raise refused(verdict.error, Api.SYNC, group)
    if not verdict.parks:
        return _fetch(turn, member)
    parked = _park(turn, command, member)
    if group.leader_id == member.member_id:
        _store(turn, command)
    return parked


def _require_same_protocol(group: ClassicGroup, command: SyncGroup) -> None:
    for field, asked, current in (
        ("protocol_type", command.protocol_type, group.protocol_type),
        ("protocol_name", command.protocol_name, group.protocol_name),
    ):
        if asked is not None and current is not None and asked != current:
            raise ProtocolError(
                Error.INCONSISTENT_GROUP_PROTOCOL, f"{field} is {asked!r}, the group's generation uses {current!r}"
            )


def _fetch(turn: Turn, member: ClassicMember) -> SyncReply:
    """The group is Stable: the stored assignment, at once. The session is not renewed (classic.md 3.2)."""
    if member.pending_sync:
        turn.emit(MemberSynced(member.member_id))
        clear_sync_timer_if_done(turn)
    return synced(turn.classic, member)


def _park(turn: Turn, command: SyncGroup, member: ClassicMember) -> Parked:
    parked_until = turn.now + command.max_wait_ms
    deadline = session_while_parked(member, parked_until, member.session_timeout_ms)
    turn.emit(SyncParked(member.member_id, parked_until, deadline))
    clear_sync_timer_if_done(turn)
    return Parked(ParkKind.SYNC, member.member_id, member.instance_id, turn.classic.generation_id, parked_until)


def _store(turn: Turn, command: SyncGroup) -> None:
    """The leader's sync: the barrier falls for all waiting members, including the leader."""
    group = turn.classic
    known = {
        member_id: assignment for member_id, assignment in command.assignments.items() if member_id in group.members
    }
    turn.emit(AssignmentsStored(known, sessions_of_waiting(group, turn.now), turn.now))
    waiting = [member for member in group.members.values() if member.awaiting_sync]
    release(turn, ParkKind.SYNC, waiting, group.generation_id)
