"""Heartbeats that wait: answered at once if there is something for their member, otherwise held for a while.

Whether there is something is read from the group alone, so that any process can compute it. What a member may have
changes only through its own heartbeats, so a waiting one is not answered but rerun.
Source: http-api.md "Waiting" and "consumer-heartbeat". Differs from Kafka: Kafka answers every heartbeat at once.
"""

from __future__ import annotations

from groups.core.consumer.reconcile import unreleased
from groups.core.consumer.target import deferred_ms
from groups.core.model.commands import AbandonWait, ConsumerHeartbeat, ParkKind
from groups.core.model.consumer_group import ConsumerGroup, EpochGroup
from groups.core.model.consumer_records import TimerArmed
from groups.core.model.consumer_state import ConsumerMember, MemberState, TimerKind
from groups.core.model.persistent import Timer
from groups.core.model.replies import ConsumerHeartbeatReply, Done, Parked
from groups.core.model.turn import Turn
from kcoord.protocol.errors import Error


def has_pending_answer(group: EpochGroup, member: ConsumerMember, *, target_deferred: bool) -> bool:
    """Would a heartbeat of this member that reports nothing change anything for it?

    `target_deferred`: a target that the group awaits may not be computed yet.
    """
    if group.awaits_target and not target_deferred:
        return True
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return False
        case MemberState.UNRELEASED_PARTITIONS if member.member_epoch == group.assignment_epoch:
            return any(group.members.owner_of(topic_id, p) is None for topic_id, p in unreleased(member))
        case _:
            return not member.reconciled_to(group.assignment_epoch)


def is_over(group: EpochGroup, parked: Parked) -> bool:
    """Is there a reason to rerun the heartbeat that parked as `parked` says?"""
    member = group.members.get(parked.member_id)
    return (
        member is None
        or member.member_epoch != parked.generation_id
        or is_displaced(group, parked)
        or has_pending_answer(group, member, target_deferred=parked.again_in_ms is not None)
    )


def is_displaced(group: EpochGroup, parked: Parked) -> bool:
    """Has the member that is still in the group sent another heartbeat since this one began to wait?"""
    session = group.timers.session.get(parked.member_id)
    return session is not None and session.deadline != parked.session_deadline


def park(
    turn: Turn, command: ConsumerHeartbeat, reply: ConsumerHeartbeatReply, session_before: Timer | None
) -> Parked | None:
    """Let the request wait if it asks to and `reply` has nothing new; None: answer it.

    The session ends one session timeout after the last instant at which the request may be held. `session_before`:
    the member's session timer before this request.
    """
    nothing_new = reply.assignment is None and reply.member_epoch == command.member_epoch
    member = turn.consumer.members[command.member_id]
    again_in_ms = deferred_ms(turn)
    has = has_pending_answer(turn.consumer, member, target_deferred=again_in_ms is not None)
    if command.max_wait_ms <= 0 or not nothing_new or has:
        return None
    until = turn.now + command.max_wait_ms
    deadline = until + turn.config.consumer_session_timeout_ms
    if session_before is not None and session_before.deadline == deadline:
        until, deadline = until + 1, deadline + 1  # two in the same millisecond must differ
    turn.emit(TimerArmed(TimerKind.SESSION, member.member_id, deadline, turn.now))
    return Parked(
        ParkKind.HEARTBEAT, member.member_id, member.instance_id, member.member_epoch, until, deadline, again_in_ms
    )


def displaced(turn: Turn, command: ConsumerHeartbeat) -> ConsumerHeartbeatReply | None:
    """The answer to a heartbeat that waited while its member sent another one; None: it is the member's latest.

    It says that nothing changed, and changes nothing: what it says about its member may be out of date.
    """
    parked = command.resumes
    if parked is None or not isinstance(turn.group, ConsumerGroup) or not is_displaced(turn.group, parked):
        return None
    return ConsumerHeartbeatReply(
        Error.NONE,
        member_id=command.member_id,
        member_epoch=parked.generation_id,
        heartbeat_interval_ms=turn.config.consumer_heartbeat_interval_ms,
    )


def abandon_wait(turn: Turn, command: AbandonWait) -> Done:
    """Restart the session, counting from now, of a member whose held heartbeat was abandoned. Never an error.

    A session that was armed since then, or by another request, is left alone: its deadline shows that.
    """
    session = turn.consumer.timers.session.get(command.member_id)
    timeout = turn.config.consumer_session_timeout_ms
    if session is None or command.kind is not ParkKind.HEARTBEAT or command.parked_until is None:
        return Done()
    if command.parked_until > turn.now and session.deadline == command.parked_until + timeout:
        turn.emit(TimerArmed(TimerKind.SESSION, command.member_id, turn.now + timeout, session.armed_at))
    return Done()
