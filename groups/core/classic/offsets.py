"""Who may commit offsets to a classic group (classic.md 6, "OffsetCommit validation")."""

from __future__ import annotations

from dataclasses import replace

from groups.core.classic.members import (
    refused,
    renew,
    require_alive,
    require_generation,
    require_group_id,
    validated_member,
)
from groups.core.classic.state import ANSWERS, Api
from groups.core.model.commands import CommitOffsets
from groups.core.model.group import require_unheld_offsets
from groups.core.model.records import GroupCreated
from groups.core.model.replies import CommitReply
from groups.core.model.turn import Turn
from groups.core.model.types import ClassicGroup, ClassicMember, GroupState
from kcoord.protocol.errors import Error, ProtocolError


def commit_offsets(turn: Turn, command: CommitOffsets) -> CommitReply:
    """Whether the caller may commit now; a member that may is kept alive. Raises `ProtocolError`.

    A negative generation is a "simple" consumer without membership: it may commit to an Empty group, and creates the
    group if it is missing.
    """
    if command.transactional:
        require_group_id(command.group_id)
    if turn.classic_or_none is None:
        _create_simple_group(turn, command)
    group = turn.classic
    require_alive(group, command.member_id)
    accepted = CommitReply(Error.NONE, generation_id=command.generation_id)
    if command.generation_id < 0 and group.state is GroupState.EMPTY:
        require_unheld_offsets(group)
        return accepted
    if command.transactional and _names_nobody(command):
        return accepted
    member = _committing_member(group, command)
    if command.transactional:
        return accepted
    verdict = ANSWERS[Api.COMMIT, group.state]
    if verdict.error is not Error.NONE:
        raise refused(verdict.error, Api.COMMIT, group)
    return replace(accepted, session_deadline=renew(turn, member) if verdict.renews else None)


def _create_simple_group(turn: Turn, command: CommitOffsets) -> None:
    if command.generation_id >= 0:
        detail = f"there is no group {command.group_id!r}: join it, or commit without member and generation"
        raise ProtocolError(Error.GROUP_ID_NOT_FOUND, detail)
    turn.emit(GroupCreated(command.group_id, turn.now, turn.env.gap))


def _names_nobody(command: CommitOffsets) -> bool:
    return command.generation_id < 0 and not command.member_id and command.group_instance_id is None


def _committing_member(group: ClassicGroup, command: CommitOffsets) -> ClassicMember:
    if _names_nobody(command):
        raise ProtocolError(
            Error.UNKNOWN_MEMBER_ID,
            f"group {command.group_id!r} has members: commit with the member_id and generation_id of one of them",
        )
    member = validated_member(group, command.member_id, command.group_instance_id)
    require_generation(group, command.member_id, command.generation_id)
    return member
