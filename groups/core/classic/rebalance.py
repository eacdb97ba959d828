"""The procedures that every request and timer of the classic protocol is composed of, what timers do, and answers.

Each has the name it has in classic.md 0.3, and follows its steps; timers: classic.md 0.3 and 6. What the members
subscribe to comes from their ConsumerProtocol metadata (offsets.md 6.1).

The answer to a request that waits is read from the group alone, so that any process can compute it. `release` answers
the waiters of a decision with the same function, so the process that completed a barrier and one that reads the rows
afterwards give the same answer. Source: classic.md 0.3, 2.6, 3.2, 5, 7.2, 8.6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from groups.core.classic.members import (
    fenced_detail,
    joined,
    sessions_of_all,
    sessions_of_waiting,
    synced,
    unknown_detail,
)
from groups.core.model.commands import Command, ParkKind, SyncGroup
from groups.core.model.group import Deadline, TimerKind, due, wake_at
from groups.core.model.records import (
    GenerationStarted,
    GroupEmptied,
    JoinTimerArmed,
    MemberRemoved,
    PendingForgotten,
    RebalanceStarted,
    SyncTimerCleared,
)
from groups.core.model.replies import Answer, JoinReply, Parked, SyncReply
from groups.core.model.turn import Turn
from groups.core.model.types import (
    CONSUMER,
    Cause,
    ClassicGroup,
    ClassicMember,
    ConsumerProtocol,
    GroupConfig,
    GroupState,
    JoinTimer,
    Millis,
)
from kcoord.protocol.errors import Error


def members_at_once(group: ClassicGroup, commands: Sequence[Command], now: Millis) -> int:
    """The members that a single one of `commands`, decided in this order at `now` (ms), may involve; 0: few.

    It may say too many, and too few only for what costs little for each member.
    """
    due = wake_at(group)
    if due is not None and due <= now:
        return len(group.members)
    match group.state:
        case GroupState.PREPARING_REBALANCE:
            missing = len(group.members) - group.members.awaiting_join + len(group.pending_join)
            return len(group.members) if missing <= len(commands) else 0
        case GroupState.COMPLETING_REBALANCE:
            leads = any(isinstance(command, SyncGroup) and command.member_id == group.leader_id for command in commands)
            return len(group.members) if leads else 0
        case _:
            return 0


def topics_of_generation(
    group: ClassicGroup, protocol_name: str | None, protocol: ConsumerProtocol | None
) -> frozenset[str] | None:
    """The topics that the members name for the protocol they agreed on; None: unknown.

    `protocol` reads their metadata; None: it cannot be read.
    """
    if group.protocol_type != CONSUMER:
        return None
    names: set[str] = set()
    for metadata in {member.metadata_of(protocol_name) for member in group.members.values()}:
        subscription = protocol.decode_subscription(metadata) if protocol is not None else None
        if subscription is None:
            return None
        names.update(subscription.topics)
    return frozenset(names)


def release(turn: Turn, kind: ParkKind, waiting: Iterable[ClassicMember], generation_id: int) -> None:
    """Answer the requests that `waiting` had parked on `kind` in that generation; their barrier is complete."""
    for member in waiting:
        reply = answer_for(turn.classic_or_none, Parked(kind, member.member_id, member.instance_id, generation_id))
        assert reply is not None, f"{member.member_id} is released but still waits"
        turn.answers.append(Answer(kind, member.member_id, reply))


def release_converted(turn: Turn, group: ClassicGroup) -> None:
    """Answer all requests that were parked in `group`, which has just become a consumer group."""
    members = group.members.values()
    waiting = [(ParkKind.JOIN, member) for member in members if member.awaiting_join]
    waiting += [(ParkKind.SYNC, member) for member in members if member.awaiting_sync]
    for kind, member in waiting:
        reply = converted(Parked(kind, member.member_id, member.instance_id, group.generation_id))
        turn.answers.append(Answer(kind, member.member_id, reply))


def answer_for(group: ClassicGroup | None, parked: Parked) -> JoinReply | SyncReply | None:
    """The answer to a join or sync that parked as `parked` says; None: it still waits.

    A group that has since moved past the barrier and is preparing again answers REBALANCE_IN_PROGRESS: the client sends
    its join again and loses nothing.
    """
    if group is None:
        return _gone(parked, None)
    if group.state is GroupState.DEAD:
        return _refusal(parked, Error.NOT_COORDINATOR, "this node stopped coordinating the group: find its coordinator")
    member = group.members.get(parked.member_id)
    if member is None:
        return _gone(parked, group)
    if parked.kind is ParkKind.JOIN:
        return _join_answer(group, member)
    return _sync_answer(group, member, parked)


def _join_answer(group: ClassicGroup, member: ClassicMember) -> JoinReply | None:
    if member.awaiting_join:
        return None
    if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return joined(group, member, session_deadline=member.session_deadline)
    return JoinReply(
        Error.REBALANCE_IN_PROGRESS,
        member_id=member.member_id,
        session_deadline=member.session_deadline,
        detail=f"the group completed generation {group.generation_id} and is rebalancing again: join again",
    )


def _sync_answer(group: ClassicGroup, member: ClassicMember, parked: Parked) -> SyncReply | None:
    if group.generation_id == parked.generation_id:
        if group.state is GroupState.COMPLETING_REBALANCE:
            return None
        if group.state is GroupState.STABLE:
            return synced(group, member, session_deadline=member.session_deadline)
    return SyncReply(
        Error.REBALANCE_IN_PROGRESS,
        session_deadline=member.session_deadline,
        detail="the group began a new rebalance before the leader's assignment arrived: join again",
    )


def converted(parked: Parked) -> JoinReply | SyncReply:
    detail = "the group now uses the consumer protocol: join again"
    if parked.kind is ParkKind.SYNC:
        return SyncReply(Error.REBALANCE_IN_PROGRESS, detail=detail)
    return JoinReply(Error.REBALANCE_IN_PROGRESS, member_id=parked.member_id, detail=detail)


def _gone(parked: Parked, group: ClassicGroup | None) -> JoinReply | SyncReply:
    instance_id = parked.group_instance_id
    if group is not None and instance_id is not None and instance_id in group.members.static:
        return _refusal(parked, Error.FENCED_INSTANCE_ID, fenced_detail(instance_id))
    return _refusal(parked, Error.UNKNOWN_MEMBER_ID, unknown_detail(parked.member_id))


def _refusal(parked: Parked, error: Error, detail: str) -> JoinReply | SyncReply:
    if parked.kind is ParkKind.SYNC:
        return SyncReply(error, detail=detail)
    # A removed member must not join with its old id again (classic.md 0.3, EXPIRE_SESSION; classic.md 5).
    member_id = "" if error is Error.UNKNOWN_MEMBER_ID else parked.member_id
    return JoinReply(error, member_id=member_id, detail=detail)


RETRY_JOIN_MS: Millis = 1_000
"""How soon a join that was not answered is completed again where all members ask for a rebalance timeout of 0 ms."""


def remove(turn: Turn, member_id: str, cause: Cause, detail: str = "", *, by: str = "") -> None:
    """REMOVE a member or a pending id, and answer its parked requests. `by`: the principal that kicks it.

    Differs from Kafka: a parked sync of the removed member is answered too, UNKNOWN_MEMBER_ID (classic.md 13.1 item 7).
    """
    group = turn.classic
    if member_id in group.pending_join:
        turn.emit(PendingForgotten(member_id, cause, detail, by))
    member = group.members.get(member_id)
    if member is None:
        return
    # A new member's limit is a constant, not the session timeout it requested.
    ended = member.session_timeout_ms if cause is Cause.SESSION_EXPIRED and not member.is_new else None
    turn.emit(MemberRemoved(member_id, member.instance_id, _leader_without(group, member_id), cause, detail, by, ended))
    if member.awaiting_join:
        release(turn, ParkKind.JOIN, [member], group.generation_id)
    if member.awaiting_sync:
        release(turn, ParkKind.SYNC, [member], group.generation_id)


def rebalance(turn: Turn, cause: Cause, member_id: str, detail: str) -> None:
    """REBALANCE: prepare a generation, or complete the one in preparation if this was the last missing join."""
    if turn.classic.state is GroupState.PREPARING_REBALANCE:
        maybe_complete(turn)
    else:
        prepare(turn, cause, member_id, detail)


def prepare(turn: Turn, cause: Cause, member_id: str, detail: str = "") -> None:
    """PREPARE: all members must join again. `cause`, `member_id` and `detail` say why, for the operators."""
    before = turn.classic
    ends_early = before.state is GroupState.COMPLETING_REBALANCE
    deadlines = sessions_of_waiting(before, turn.now)
    turn.emit(RebalanceStarted(turn.now, cause, member_id, detail, ends_early, deadlines))
    waiting = [member for member in before.members.values() if member.awaiting_sync]
    release(turn, ParkKind.SYNC, waiting, before.generation_id)
    group = turn.classic
    if in_initial_rebalance(group):
        _arm_join_timer(turn, _first_window(group, turn.now, turn.config))
    elif group.all_joined:
        complete_join(turn)
    else:
        _arm_join_timer(turn, JoinTimer(turn.now + group.rebalance_timeout_ms))


def maybe_complete(turn: Turn) -> None:
    """MAYBE_COMPLETE. An initial rebalance never completes here, only when its timer fires."""
    if not in_initial_rebalance(turn.classic):
        complete_if_all_joined(turn)


def complete_if_all_joined(turn: Turn) -> None:
    """COMPLETE_JOIN of a prepared rebalance that no member is missing from, an initial one included (classic.md 6)."""
    if turn.classic.state is GroupState.PREPARING_REBALANCE and turn.classic.all_joined:
        complete_join(turn)


def initial_tick(turn: Turn) -> None:
    """INITIAL_TICK: a window of an initial rebalance ended; prolong it if a new member joined, else complete."""
    window = _next_window(turn.classic, turn.now, turn.config)
    if window is not None:
        _arm_join_timer(turn, window)
    else:
        complete_join(turn)


def complete_join(turn: Turn) -> None:
    """COMPLETE_JOIN: drop members that did not rejoin, and start the next generation with the rest."""
    for member in turn.classic.members.values():
        if not member.awaiting_join and member.instance_id is None:
            remove(turn, member.member_id, Cause.JOIN_TIMED_OUT)
    group = turn.classic
    generation_id = group.generation_id + 1
    if not group.members:
        topics = topics_of_generation(group, None, turn.env.consumer_protocol)
        turn.emit(GroupEmptied(generation_id, turn.now, topics))
        return
    leader = _leader(group)
    if leader is None:
        timeout = group.rebalance_timeout_ms
        # Differs from Kafka: with a timeout of 0 its timer would fire again and again without a pause.
        _arm_join_timer(turn, JoinTimer(turn.now + (timeout if timeout > 0 else RETRY_JOIN_MS)))
        return
    protocol_name = select_protocol(group, leader)
    turn.emit(
        GenerationStarted(
            generation_id,
            leader_id=leader.member_id,
            protocol_name=protocol_name,
            sync_deadline=turn.now + group.rebalance_timeout_ms,
            session_deadlines=sessions_of_all(group, turn.now),
            at=turn.now,
            topics=topics_of_generation(group, protocol_name, turn.env.consumer_protocol),
        )
    )
    waiting = [member for member in group.members.values() if member.awaiting_join]
    release(turn, ParkKind.JOIN, waiting, group.generation_id)


def clear_sync_timer_if_done(turn: Turn) -> None:
    """The sync timer is cancelled as soon as no member owes a sync (classic.md 3.3)."""
    if not turn.classic.members.pending_sync:
        turn.emit(SyncTimerCleared())


def select_protocol(group: ClassicGroup, leader: ClassicMember) -> str:
    """SELECT_PROTOCOL: each member votes for the first of its protocols that all support.

    Kafka breaks ties by hash order; here the current protocol wins a tie, else the leader's preference.
    """
    size = len(group.members)
    candidates = {name for name, count in group.members.support.items() if count == size}
    assert candidates, "SUPPORTS lets no member in that leaves the group without a common protocol"
    votes = Counter(
        next(protocol.name for protocol in member.protocols if protocol.name in candidates)
        for member in group.members.values()
    )
    most = max(votes.values())
    winners = {name for name, count in votes.items() if count == most}
    if group.protocol_name in winners:
        return group.protocol_name
    return next(protocol.name for protocol in leader.protocols if protocol.name in winners)


def _leader(group: ClassicGroup) -> ClassicMember | None:
    assert group.leader_id is not None, "a group with members has a leader"
    current = group.members[group.leader_id]
    if current.awaiting_join:
        return current
    return next((member for member in group.members.values() if member.awaiting_join), None)


def _leader_without(group: ClassicGroup, member_id: str) -> str | None:
    """The leader once that member is removed: the longest-standing of the others takes the place of a leader."""
    if group.leader_id != member_id:
        return group.leader_id
    return next((other for other in group.members if other != member_id), None)


def _arm_join_timer(turn: Turn, timer: JoinTimer) -> None:
    turn.emit(JoinTimerArmed(timer))


def in_initial_rebalance(group: ClassicGroup) -> bool:
    """Whether the group, which was Empty, waits for more members in windows (classic.md 0.3 and 2.7).

    It ends when its timer runs out, not when all members have joined: the first of them alone would complete it.
    """
    return group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY


def _first_window(group: ClassicGroup, now: Millis, config: GroupConfig) -> JoinTimer:
    """The timer with which an initial rebalance starts."""
    delay = config.initial_rebalance_delay_ms
    return JoinTimer(now + delay, (delay, max(group.rebalance_timeout_ms - delay, 0)))


def _next_window(group: ClassicGroup, now: Millis, config: GroupConfig) -> JoinTimer | None:
    """INITIAL_TICK: the timer that prolongs the rebalance because a new member joined; None: it is over."""
    assert group.join_timer is not None
    assert group.join_timer.initial is not None, "an ordinary join timer has no windows"
    delay, remaining = group.join_timer.initial
    if not group.new_member_added or remaining == 0:
        return None
    window = min(config.initial_rebalance_delay_ms, remaining)
    return JoinTimer(now + window, (window, max(remaining - delay, 0)))


MOST_TIMERS = 8
"""How many timers may fire for each member, each pending id and the group itself before that counts as a bug."""


def expire(turn: Turn) -> None:
    """Fire everything overdue at `turn.now`, in deadline order, until nothing is.

    Deadlines armed on the way count from now, not from when their cause was due: if a group is looked at late, all
    members get the full time again.
    """
    group = turn.classic_or_none
    if group is None:
        return
    most = MOST_TIMERS * (1 + len(group.members) + len(group.pending_join))
    for _ in range(most):
        deadline = due(turn.classic_or_none, turn.now, turn.env.sessions_end)
        if deadline is None:
            return
        _fire(turn, deadline)
    # Every timer that fires removes a member or a pending id, ends a window or starts a generation: a bug, otherwise.
    raise AssertionError(f"the timers of group {group.group_id!r} do not come to rest: {most} fired at {turn.now}")


def _fire(turn: Turn, deadline: Deadline) -> None:
    match deadline.kind:
        case TimerKind.PENDING:
            remove(turn, deadline.member_id, Cause.SESSION_EXPIRED)
            complete_if_all_joined(turn)
        case TimerKind.SESSION:
            _expire_session(turn, deadline.member_id)
        case TimerKind.JOIN:
            timer = turn.classic.join_timer
            assert timer is not None
            if timer.initial is not None:
                initial_tick(turn)
            else:
                complete_join(turn)
        case TimerKind.SYNC:
            _expire_sync(turn)


def _expire_session(turn: Turn, member_id: str) -> None:
    """EXPIRE_SESSION, row 5.

    Row 4 (a member that is not new and waits is left alone) is the deadline itself: it is put off while a request is
    held. Also in the initial rebalance the expiry of the last missing member completes the join, unlike a leave.
    """
    remove(turn, member_id, Cause.SESSION_EXPIRED)
    if turn.classic.state is GroupState.PREPARING_REBALANCE:
        complete_if_all_joined(turn)
    else:
        prepare(turn, Cause.SESSION_EXPIRED, member_id)


def _expire_sync(turn: Turn) -> None:
    """EXPIRE_SYNC. A generation that has ended has no sync timer: preparing the next one cleared it."""
    missing = [member.member_id for member in turn.classic.members.values() if member.pending_sync]
    assert missing, "the sync timer is cleared with the last sync"
    for member_id in missing:
        remove(turn, member_id, Cause.SYNC_TIMED_OUT)
    prepare(
        turn,
        Cause.SYNC_TIMED_OUT,
        missing[0],
        f"{len(missing)} members did not sync" if len(missing) > 1 else "",
    )
