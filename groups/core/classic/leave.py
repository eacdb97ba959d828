"""LeaveGroup (classic.md 5)."""

from __future__ import annotations

from groups.core.classic.members import refused, unknown_member, validated_member
from groups.core.classic.rebalance import maybe_complete, prepare, remove
from groups.core.classic.state import ANSWERS, Api
from groups.core.model.commands import LeaveGroup, LeavingMember
from groups.core.model.replies import LeaveReply, LeftMember
from groups.core.model.turn import Turn
from groups.core.model.types import Cause, ClassicGroup
from kcoord.protocol.errors import Error, ProtocolError


def leave_group(turn: Turn, command: LeaveGroup) -> LeaveReply:
    """Remove each entry in order; one rebalance for the batch. Raises `ProtocolError` for top-level errors.

    Entries echo the requested ids. An entry that only names a pending id rebalances a group too: Kafka's answer, kept
    (classic.md 13.1 item 12).
    """
    if turn.classic_or_none is None:
        return LeaveReply(
            Error.NONE,
            tuple(
                LeftMember(entry.member_id, entry.group_instance_id, Error.UNKNOWN_MEMBER_ID)
                for entry in command.members
            ),
        )
    verdict = ANSWERS[Api.LEAVE, turn.classic.state]
    if verdict.error is not Error.NONE:
        raise refused(verdict.error, Api.LEAVE, turn.classic)
    left: list[str] = []
    results = []
    for entry in command.members:
        error = Error.NONE
        try:
            left.append(_leave(turn, entry))
        except ProtocolError as refusal:
            error = refusal.error
        results.append(LeftMember(entry.member_id, entry.group_instance_id, error))
    if left:
        _rebalance(turn, left, verdict.rebalances)
    return LeaveReply(Error.NONE, tuple(results))


def _leave(turn: Turn, entry: LeavingMember) -> str:
    member_id = _leaving_id(turn.classic, entry)
    remove(turn, member_id, Cause.MEMBER_LEFT, entry.reason or "")
    return member_id


def _leaving_id(group: ClassicGroup, entry: LeavingMember) -> str:
    if not entry.member_id and entry.group_instance_id is not None:
        # By instance id alone, the way an operator removes a static member.
        holder = group.members.static.get(entry.group_instance_id)
        if holder is None:
            raise unknown_member(entry.member_id)
        return holder
    if entry.member_id in group.pending_join:
        return entry.member_id
    return validated_member(group, entry.member_id, entry.group_instance_id).member_id


def _rebalance(turn: Turn, left: list[str], rebalances: bool) -> None:
    if rebalances:
        prepare(turn, Cause.MEMBER_LEFT, left[0], f"{len(left)} members left" if len(left) > 1 else "")
    else:
        maybe_complete(turn)
