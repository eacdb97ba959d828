"""The entry point of the core: `decide(group, command, env)`.

Expire, then handle: first everything overdue becomes records, then the command is handled on that group, so a group is
always up to date as of now, however late a timer runs. Errors are replies; only bugs raise.

Deadlines that could not be counted start over first. While a coordinator partition has no live owner, members may not
be able to renew their sessions. Its next owner raises the gap of the partition (`Env.gap`), and a group whose deadlines
were armed under a smaller one gives everybody the full time again as soon as somebody looks at it. So the cost of an
outage does not grow with the number of groups, and a member that was a millisecond from expiry gets its full session.

The answer to a parked request is here, too, whatever the protocol of its group is by now (`answer_for`).

Source: offsets.md 9.3 (becoming ACTIVE); classic.md 0.3, 2.6, 3.2, 7.2, 8.3, 8.5 and 8.6; consumer.md 9.5.

Differs from Kafka: a rebalance that was in progress goes on, with the full time for its join or sync; Kafka returns to
the previous generation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import assert_never

from groups.core import share
from groups.core.classic import offsets as classic_offsets
from groups.core.classic import rebalance as classic
from groups.core.classic.join import check_join, join_group
from groups.core.classic.leave import leave_group
from groups.core.classic.maintenance import abandon_wait, delete_group, force_state
from groups.core.classic.members import full_session, heartbeat, require_group_id, restarted_sessions
from groups.core.classic.rebalance import expire, prepare
from groups.core.classic.sync import sync_group
from groups.core.consumer import classic_members
from groups.core.consumer import leaving as consumer_deletion
from groups.core.consumer import offsets as consumer_offsets
from groups.core.consumer.heartbeat import abandon_wait as abandon_held
from groups.core.consumer.heartbeat import consumer_heartbeat, is_over
from groups.core.consumer.leaving import Remove
from groups.core.consumer.leaving import leave_group as leave_members
from groups.core.consumer.leaving import remove_members as remove_without_conversion
from groups.core.consumer.members import check_heartbeat
from groups.core.consumer.target import apply_resolution, apply_target
from groups.core.convert import join_consumer_group, remove_members, upgrade
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
    ParkKind,
    ReleaseHold,
    ResetOffsets,
    ResetShare,
    ShareHeartbeat,
    SyncGroup,
    Tick,
)
from groups.core.model.consumer_group import ConsumerGroup, EpochGroup, ShareGroup, TimerKind, Timers
from groups.core.model.consumer_records import (
    ConsumerMemberRemoved,
    ConsumerMemberReplaced,
    GroupEpochBumped,
    MemberReconciled,
    StaticMemberDeparted,
    TargetComputed,
    TimersRearmed,
)
from groups.core.model.group import Group
from groups.core.model.persistent import DeadlineMap, Timer
from groups.core.model.records import DeadlinesRearmed, GroupConverted, HoldReleased, Record
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
    Rerun,
    SyncReply,
)
from groups.core.model.turn import Decision, Turn, WakeMembers
from groups.core.model.types import Cause, ClassicGroup, Env, GroupConfig, GroupState, JoinTimer, Millis, TopicView
from groups.core.operators import delete_offsets, hold_group, kick_member, release_hold, reset_offsets
from groups.core.share import reset_share, share_heartbeat
from kcoord.protocol.errors import ProtocolError


def rearm(turn: Turn) -> None:
    """Start the deadlines of the group over if they were armed before the last gap, and somebody counts now."""
    group, env = turn.group, turn.env
    if group is None or not env.may_expire or group.armed_gap >= env.gap:
        return
    if isinstance(group, EpochGroup):
        turn.emit(TimersRearmed(env.gap, _timers(turn, group), turn.now))
        return
    turn.emit(_classic(turn, group))
    # As in Kafka, a group that is larger than allowed when it is loaded rebalances (classic.md 8.3).
    running = group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE)
    if running and len(group.members) > env.config.max_size:
        prepare(turn, Cause.GROUP_FULL, "")


def _classic(turn: Turn, group: ClassicGroup) -> DeadlinesRearmed:
    now = turn.now
    return DeadlinesRearmed(
        turn.env.gap,
        restarted_sessions(group, now),
        # Differs from Kafka: ids that were handed out and have not joined yet (pending members) outlive a change of the
        # coordinator; there they are in no log, and are forgotten.
        {
            member_id: max(deadline, full_session(now, turn.config.min_session_timeout_ms))
            for member_id, deadline in group.pending_join.items()
        },
        _join_timer(group, now),
        None if group.sync_deadline is None else max(group.sync_deadline, now + group.rebalance_timeout_ms),
        now,
    )


def _join_timer(group: ClassicGroup, now: Millis) -> JoinTimer | None:
    timer = group.join_timer
    if timer is None:
        return None
    window = group.rebalance_timeout_ms if timer.initial is None else timer.initial[0]
    return JoinTimer(max(timer.deadline, now + window), timer.initial)


def _timers(turn: Turn, group: EpochGroup) -> Timers:
    def restarted(kind: TimerKind) -> DeadlineMap:
        timers: dict[str, Timer] = {}
        for member_id, timer in group.timers.of(kind).items():
            session = turn.limits.session_timeout_ms
            full = session if kind is TimerKind.SESSION else group.members[member_id].rebalance_timeout_ms
            timers[member_id] = Timer(max(timer.deadline, turn.now + full), timer.armed_at)
        return DeadlineMap(timers)

    return Timers(**{kind.value: restarted(kind) for kind in TimerKind})


def answer_for(group: Group | None, parked: Parked) -> JoinReply | SyncReply | Rerun | None:
    """The answer to a request that parked as `parked` says; None: it still waits.

    A join or sync of a group that was converted to the consumer protocol must be sent again as a join. A waiting
    heartbeat is never answered from here: `Rerun` says that deciding it again will.
    """
    if parked.kind is ParkKind.HEARTBEAT:
        return None if isinstance(group, ConsumerGroup) and not is_over(group, parked) else Rerun()
    if isinstance(group, EpochGroup):
        return classic.converted(parked)
    return classic.answer_for(group, parked)


FEW_NAMES = 100
"""`size_of_decision` counts the partitions of up to this number of topics; of more it counts the topics."""


def check_request(command: Command, config: GroupConfig, assignors: Collection[str]) -> None:
    """The checks before it matters which node coordinates the group, and of which type that is.

    Source: classic.md 2.1, 3.1, 4 and 5; consumer.md 2.2; share.md 2.2. Raises `ProtocolError`.
    """
    match command:
        case JoinGroup():
            check_join(command, config)
        case SyncGroup() | Heartbeat() | LeaveGroup():
            require_group_id(command.group_id)
        case ConsumerHeartbeat():
            check_heartbeat(command, assignors)
        case ShareHeartbeat():
            share.check_heartbeat(command)


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
    check_request(command, turn.config, turn.env.assignors)
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
            return share.refuse(command)


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


def expire_hold(turn: Turn) -> None:
    """End a hold that has expired."""
    hold = turn.group.hold if turn.group is not None else None
    if hold is not None and hold.until <= turn.now:
        turn.emit(HoldReleased(None, turn.now))
