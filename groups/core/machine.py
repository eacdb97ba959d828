"""The door of the core: `decide(group, command, env)`.

Expire, then handle: first everything overdue becomes records, then the command is handled on that group, so a group is
always right as of now, however late a timer runs. Errors are replies; only bugs raise.
"""

from __future__ import annotations

from typing import assert_never

from groups.core.classic.expiry import expire
from groups.core.classic.heartbeat import commit_offsets, heartbeat
from groups.core.classic.join import join_group
from groups.core.classic.leave import leave_group
from groups.core.classic.sync import sync_group
from groups.core.classic.upkeep import abandon_wait, delete_group, force_state
from groups.core.commands import (
    AbandonWait,
    Command,
    CommitOffsets,
    DeleteGroup,
    ForceState,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
    Tick,
)
from groups.core.decision import Decision
from groups.core.replies import (
    Answer,
    CommitReply,
    Done,
    HeartbeatReply,
    JoinReply,
    LeaveReply,
    Parked,
    Reply,
    SyncReply,
)
from groups.core.turn import Turn
from groups.core.types import ClassicGroup, Env
from kcoord.errors import ProtocolError


def decide(group: ClassicGroup | None, command: Command, env: Env) -> Decision:
    """Decide `command` on `group` (None: it does not exist) at `env.now` (ms).

    Never raises for bad input: the error is the reply, and what expired or was refused persists as records. After it no
    deadline of the group lies at or before `env.now`.
    """
    turn = Turn(group, env)
    expire(turn)
    answered = len(turn.answers)
    try:
        reply = _handle(turn, command)
    except ProtocolError as refusal:
        reply = _refusal(command, refusal)
    expire(turn)
    if isinstance(reply, Parked):
        reply = _own_answer(reply, turn.answers[answered:])
    return Decision(turn.group, tuple(turn.records), tuple(turn.answers), reply)


def _own_answer(parked: Parked, answers: list[Answer]) -> Reply | Parked:
    """The answer of the request that parked, if its barrier fell in the same decision."""
    for answer in answers:
        if answer.kind is parked.kind and answer.member_id == parked.member_id:
            return answer.reply
    return parked


def _handle(turn: Turn, command: Command) -> Reply | Parked:
    match command:
        case JoinGroup():
            return join_group(turn, command)
        case SyncGroup():
            return sync_group(turn, command)
        case Heartbeat():
            return heartbeat(turn, command)
        case LeaveGroup():
            return leave_group(turn, command)
        case CommitOffsets():
            return commit_offsets(turn, command)
        case DeleteGroup():
            return delete_group(turn, command)
        case AbandonWait():
            return abandon_wait(turn, command)
        case ForceState():
            return force_state(turn, command)
        case Tick():
            return Done()
        case _:
            assert_never(command)


def _refusal(command: Command, refusal: ProtocolError) -> Reply:
    error, detail = refusal.error, refusal.detail
    match command:
        case JoinGroup():
            return JoinReply(error, member_id=str(refusal.fields.get("member_id", "")), detail=detail)
        case SyncGroup():
            return SyncReply(error, detail=detail)
        case Heartbeat():
            return HeartbeatReply(error, detail=detail)
        case LeaveGroup():
            return LeaveReply(error, detail=detail)
        case CommitOffsets():
            return CommitReply(error, detail=detail)
        case DeleteGroup() | Tick() | AbandonWait() | ForceState():
            return Done(error, detail)
        case _:
            assert_never(command)
