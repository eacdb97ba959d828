"""The entry point of the core: `decide(group, command, env)`.

Expire, then handle: first everything overdue becomes records, then the command is handled on that group, so a group is
always up to date as of now, however late a timer runs. Errors are replies; only bugs raise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import assert_never

from groups.core.classic import offsets as classic_offsets
from groups.core.classic.heartbeat import heartbeat
from groups.core.classic.join import join_group
from groups.core.classic.leave import leave_group
from groups.core.classic.maintenance import abandon_wait, delete_group, force_state
from groups.core.classic.rebalance import expire
from groups.core.classic.sync import sync_group
from groups.core.consumer import classic_members
from groups.core.consumer import deletion as consumer_deletion
from groups.core.consumer import offsets as consumer_offsets
from groups.core.consumer.heartbeat import abandon_wait as abandon_held
from groups.core.consumer.heartbeat import consumer_heartbeat
from groups.core.consumer.leaving import Remove
from groups.core.consumer.leaving import leave_group as leave_members
from groups.core.consumer.leaving import remove_members as remove_without_conversion
from groups.core.consumer.regexes import apply_resolution
from groups.core.consumer.target import apply_target
from groups.core.convert import join_consumer_group, remove_members, upgrade
from groups.core.model.causes import Cause
from groups.core.model.commands import (
    AbandonWait,
    ApplyRegexResolution,
    ApplyTarget,
    ClassicCommand,
    Command,
    CommitOffsets,
    ConsumerHeartbeat,
    DeleteGroup,
    DeleteOffsets,
    ForceState,
    Heartbeat,
    HoldGroup,
    JoinGroup,
    KickMember,
    LeaveGroup,
    ReleaseHold,
    ResetOffsets,
    ResetShare,
    ShareHeartbeat,
    SyncGroup,
    Tick,
)
from groups.core.model.consumer_group import ConsumerGroup, EpochGroup, ShareGroup
from groups.core.model.consumer_records import (
    ConsumerMemberRemoved,
    ConsumerMemberReplaced,
    GroupEpochBumped,
    MemberReconciled,
    StaticMemberDeparted,
    TargetComputed,
)
from groups.core.model.consumer_state import TimerKind
from groups.core.model.decision import Decision
from groups.core.model.effects import WakeMembers
from groups.core.model.group import Group
from groups.core.model.holds import expire_hold
from groups.core.model.records import GroupConverted, Record
from groups.core.model.replies import (
    Answer,
    CommitReply,
    ConsumerHeartbeatReply,
    DeleteOffsetsReply,
    Done,
    HeartbeatReply,
    HoldReply,
    JoinReply,
    LeaveReply,
    Parked,
    Reply,
    SyncReply,
)
from groups.core.model.turn import Turn
from groups.core.model.types import ClassicGroup, Env, TopicView
from groups.core.offset_admin import delete_offsets, reset_offsets
from groups.core.operators import hold_group, kick_member, release_hold
from groups.core.rearming import rearm
from groups.core.share import others
from groups.core.share.heartbeat import share_heartbeat
from groups.core.share.resetting import reset_share
from kcoord.protocol.errors import ProtocolError

FEW_NAMES = 100
"""`size_of_decision` counts the partitions of up to this number of topics; of more it counts the topics."""


def decide(group: Group | None, command: Command, env: Env) -> Decision:
    """Decide `command` on `group` (None: it does not exist) at `env.now` (ms).

    Never raises for bad input: the error is the reply, and what expired or was refused persists as records. After it no
    deadline of the group lies at or before `env.now`, if `env.may_expire`.
    """
    turn = Turn(group, env)
    if group is not None:
        expire_hold(turn)
        rearm(turn)
        _expire(turn)
    answered = len(turn.answers)
    try:
        reply = _handle(turn, command)
    except ProtocolError as refusal:
        reply = _refusal(command, refusal)
    _expire(turn)
    if isinstance(reply, Parked):
        reply = _own_answer(reply, turn.answers[answered:])
    if any(map(_is_news, turn.records)):
        turn.ask(WakeMembers(command.group_id))
    return Decision(turn.group, tuple(turn.records), tuple(turn.answers), reply, tuple(turn.effects))


def _expire(turn: Turn) -> None:
    """Fire what is overdue, if anything may expire now.

    The last members of the consumer protocol may leave and the group become a classic one.
    """
    if not turn.env.may_expire:
        return
    if isinstance(turn.group, ShareGroup):
        _expire_members(turn, remove_without_conversion)
    elif isinstance(turn.group, ConsumerGroup):
        _expire_members(turn, remove_members)
    if isinstance(turn.group, ClassicGroup):
        expire(turn)


_CAUSES = {
    TimerKind.SESSION: Cause.SESSION_EXPIRED,
    TimerKind.REBALANCE: Cause.REBALANCE_TIMED_OUT,
    TimerKind.JOIN: Cause.JOIN_TIMED_OUT,
    TimerKind.SYNC: Cause.SYNC_TIMED_OUT,
}


def _expire_members(turn: Turn, remove: Remove) -> None:
    """Fire every overdue timer of members by epochs, in the order of deadlines: it removes its member (consumer.md 8).

    Each removal bumps the group epoch, as in Kafka. Stops when the group is no longer a consumer group.
    """
    while isinstance(turn.group, EpochGroup):
        kind = turn.group.timers.due(turn.now, turn.env.sessions_end)
        if kind is None:
            return
        member_id = turn.group.timers.of(kind).first()
        assert member_id is not None, "there is a timer that fires first"
        remove(turn, [member_id], _CAUSES[kind])


def _is_news(record: Record) -> bool:
    """May a member whose heartbeat waits have something to do now?"""
    match record:
        case MemberReconciled():
            return record.releases
        case ConsumerMemberRemoved() | ConsumerMemberReplaced() | StaticMemberDeparted():
            return True
        case GroupEpochBumped() | TargetComputed() | GroupConverted():
            return True
        case _:
            return False


def _own_answer(parked: Parked, answers: list[Answer]) -> Reply | Parked:
    """The answer of the request that parked, if its barrier fell in the same decision."""
    for answer in answers:
        if answer.kind is parked.kind and answer.member_id == parked.member_id:
            return answer.reply
    return parked


def _handle(turn: Turn, command: Command) -> Reply | Parked:
    """Dispatch the command to the group's type. A refused request to a consumer or share group leaves no trace."""
    epochs = isinstance(turn.group, EpochGroup)
    if not epochs and not isinstance(command, ConsumerHeartbeat | ShareHeartbeat | ResetShare):
        return _handle_classic(turn, command)
    savepoint = turn.save()
    try:
        if isinstance(command, ShareHeartbeat):
            return share_heartbeat(turn, command)
        if isinstance(command, ResetShare):
            return reset_share(turn, command)
        if isinstance(turn.group, ShareGroup):
            return _handle_share(turn, command)
        return _handle_consumer(turn, command)
    except ProtocolError:
        turn.restore(savepoint)
        raise


def _handle_classic(turn: Turn, command: ClassicCommand) -> Reply | Parked:
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
            return classic_offsets.commit_offsets(turn, command)
        case DeleteOffsets():
            return delete_offsets(turn, command)
        case ResetOffsets():
            return reset_offsets(turn, command)
        case DeleteGroup():
            return delete_group(turn, command)
        case HoldGroup() | ReleaseHold() | KickMember():
            return _handle_operator(turn, command)
        case AbandonWait():
            return abandon_wait(turn, command)
        case ForceState():
            return force_state(turn, command)
        case Tick() | ApplyTarget() | ApplyRegexResolution():
            return Done()
        case _:
            assert_never(command)


def _handle_share(turn: Turn, command: ClassicCommand | ConsumerHeartbeat) -> Reply:
    """Everything but the group's own heartbeat (share.md 4)."""
    match command:
        case DeleteGroup():
            return consumer_deletion.delete_group(turn, command)
        case HoldGroup() | ReleaseHold() | KickMember():
            return _handle_operator(turn, command)
        case ApplyTarget():
            return apply_target(turn, command)
        case Tick() | AbandonWait() | ApplyRegexResolution():
            return Done()
        case ForceState():
            raise ValueError(f"ForceState unloads classic groups, {command.group_id!r} is a share group")
        case _:
            return others.refuse(command)


def _handle_consumer(turn: Turn, command: ClassicCommand | ConsumerHeartbeat) -> Reply | Parked:
    match command:
        case ConsumerHeartbeat():
            if isinstance(turn.group, ClassicGroup):
                upgrade(turn, command)
            return consumer_heartbeat(turn, command, remove_members)
        case JoinGroup():
            return join_consumer_group(turn, command)
        case SyncGroup():
            return classic_members.sync_member(turn, command)
        case Heartbeat():
            return classic_members.heartbeat_member(turn, command)
        case LeaveGroup():
            return leave_members(turn, command, remove_members)
        case CommitOffsets():
            return consumer_offsets.commit_offsets(turn, command)
        case DeleteOffsets():
            return delete_offsets(turn, command)
        case ResetOffsets():
            return reset_offsets(turn, command)
        case DeleteGroup():
            return consumer_deletion.delete_group(turn, command)
        case HoldGroup() | ReleaseHold() | KickMember():
            return _handle_operator(turn, command)
        case AbandonWait():
            return abandon_held(turn, command)
        case ApplyTarget():
            return apply_target(turn, command)
        case ApplyRegexResolution():
            return apply_resolution(turn, command)
        case Tick():
            return Done()
        case ForceState():
            raise ValueError(f"ForceState unloads classic groups, {command.group_id!r} is a consumer group")
        case _:
            assert_never(command)


def _handle_operator(turn: Turn, command: HoldGroup | ReleaseHold | KickMember) -> Reply:
    match command:
        case HoldGroup():
            return hold_group(turn, command)
        case ReleaseHold():
            return release_hold(turn, command)
        case KickMember():
            return kick_member(turn, command)


def _refusal(command: Command, refusal: ProtocolError) -> Reply:
    error, detail, retry_after_ms = refusal.error, refusal.detail, refusal.retry_after_ms
    match command:
        case JoinGroup():
            member_id = str(refusal.fields.get("member_id", ""))
            return JoinReply(error, member_id=member_id, detail=detail, retry_after_ms=retry_after_ms)
        case SyncGroup():
            return SyncReply(error, detail=detail)
        case Heartbeat():
            return HeartbeatReply(error, detail=detail)
        case LeaveGroup():
            return LeaveReply(error, detail=detail)
        case CommitOffsets():
            return CommitReply(error, detail=detail)
        case DeleteOffsets():
            return DeleteOffsetsReply(error, detail=detail)
        case ConsumerHeartbeat() | ShareHeartbeat():
            return ConsumerHeartbeatReply(error, detail=detail, retry_after_ms=retry_after_ms)
        case HoldGroup():
            return HoldReply(error, detail=detail)
        case ResetOffsets() | ResetShare() | DeleteGroup() | Tick() | AbandonWait() | ForceState():
            return Done(error, detail)
        case ApplyTarget() | ApplyRegexResolution() | ReleaseHold() | KickMember():
            return Done(error, detail)
        case _:
            assert_never(command)


def size_of(group: Group | None) -> int:
    """How many partitions, or topic names, a look at the whole of a consumer or share group involves."""
    if not isinstance(group, EpochGroup):
        return 0
    resolved = (names for found in group.resolutions.values() for names in found.topics.values())
    return len(group.members.owners) + len(group.members.names) + sum(map(len, resolved))


def size_of_decision(group: Group | None, commands: Iterable[Command], topics: TopicView) -> int:
    """The same for everything that `commands` may lead to."""
    size = size_of(group)
    if isinstance(group, EpochGroup):
        size += _partitions(group.members.names, topics)
    for command in commands:
        match command:
            case ConsumerHeartbeat():
                size += _partitions(command.subscribed_topic_names or (), topics) + len(command.topic_partitions or ())
            case ShareHeartbeat():
                size += _partitions(command.subscribed_topic_names or (), topics)
            case ApplyTarget():
                size += sum(len(target) for target in (command.targets or {}).values())
            case ApplyRegexResolution():
                size += sum(map(len, command.topics.values()))
            case _:
                pass
    return size


def _partitions(names: Collection[str], topics: TopicView) -> int:
    if len(names) > FEW_NAMES:
        return len(names)
    return sum(topics.by_name[name].partitions for name in names if name in topics.by_name)
