"""ConsumerGroupHeartbeat: the one request of the protocol, answered at once or held for a while.

One that waits is held if there is nothing for its member. Whether there is something is read from the group alone, so
that any process can compute it. What a member may have changes only through its own heartbeats, so a waiting one is not
answered but rerun. Each is one step of its member towards its target: what it gives up first, then what it gets.
Nothing is handed out that another member has or was told to give up.
Source: consumer.md 2 and 6; http-api.md "Waiting" and "consumer-heartbeat". Differs from Kafka: Kafka answers every
heartbeat at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from groups.core.assignors import Partitions
from groups.core.consumer.leaving import Remove, leave
from groups.core.consumer.members import (
    check_order,
    fenced,
    find_group,
    find_member,
    is_new,
    update_member,
)
from groups.core.consumer.target import (
    RegexChange,
    change_regex,
    deferred_ms,
    refresh_epoch,
    refresh_regexes,
    update_target,
)
from groups.core.model.commands import AbandonWait, ConsumerHeartbeat, ParkKind
from groups.core.model.consumer_group import (
    Assigned,
    ConsumerGroup,
    ConsumerMember,
    EpochGroup,
    MemberState,
    TimerKind,
    flat,
    intersects,
    merged,
    minus,
    plain,
    within,
)
from groups.core.model.consumer_records import MemberReconciled, TimerArmed, TimerCancelled
from groups.core.model.persistent import Timer
from groups.core.model.replies import ConsumerHeartbeatReply, Done, Parked
from groups.core.model.turn import Turn
from groups.core.model.types import UNLIMITED, Cause, Millis, TopicRights, TopicView
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


def consumer_heartbeat(turn: Turn, command: ConsumerHeartbeat, remove: Remove) -> ConsumerHeartbeatReply | Parked:
    """Join, stay, move towards the target, or leave. `remove` removes members that leave. Raises `ProtocolError`."""
    if isinstance(turn.group, ConsumerGroup) and command.resumes is None:
        check_order(turn.group, command.member_id, command.age_ms, turn.now)
    if command.member_epoch < 0:
        return leave(turn, command, remove)
    answered = displaced(turn, command)
    if answered is not None:
        return answered
    find_group(turn, command)
    session_before = turn.consumer.timers.session.get(command.member_id)
    before = find_member(turn, command)
    joins = is_new(turn.consumer, before)
    change = change_regex(turn, before, command)
    update_member(turn, before, command)
    advance(turn, command.member_id, before, change, command.topic_partitions, joins=joins, rights=command.rights)
    deadline = turn.now + turn.config.consumer_session_timeout_ms
    turn.emit(TimerArmed(TimerKind.SESSION, command.member_id, deadline, turn.now))
    reply = _reply(turn, command, before.assigned, deadline)
    return park(turn, command, reply, session_before) or reply


def advance(
    turn: Turn,
    member_id: str,
    before: ConsumerMember,
    change: RegexChange,
    owned: Partitions | None,
    *,
    joins: bool,
    rights: TopicRights = UNLIMITED,
) -> None:
    """consumer.md 2.5, steps 2 to 6: bump the group epoch if necessary, compute the target, and reconcile this member.

    `before` is the member as it was, `owned` what it reports as owned (None: not reported), `joins`: it is new.
    `rights`: those of the caller.
    Differs from Kafka: the first epoch of a new group is 1, as before KAFKA-20268 (consumer.md 0.1).
    Differs from Kafka: a vote that makes another assignor win is heard at the next epoch, as before 4.4, and is no
    reason for one.
    Raises `ProtocolError`.
    """
    names_changed = before.subscribed_topic_names != turn.consumer.members[member_id].subscribed_topic_names
    refresh_regexes(turn, rights)
    cause = None
    if turn.consumer.group_epoch == 0:
        cause = Cause.GROUP_CREATED
    elif names_changed or change is RegexChange.UPDATED_AND_RESOLVED:
        cause = Cause.MEMBER_JOINED if joins else Cause.SUBSCRIPTION_CHANGED
    refresh_epoch(turn, cause, member_id)
    update_target(turn)
    changed = names_changed or change is not RegexChange.NO_CHANGE
    reconcile_member(turn, member_id, owned, subscription_changed=changed)


def reconcile_member(turn: Turn, member_id: str, owned: Partitions | None, *, subscription_changed: bool) -> None:
    """consumer.md 6 and 6.5: one step of the member, and its rebalance timer. Raises `ProtocolError`."""
    group = turn.consumer
    member = group.members[member_id]
    step = reconcile(group, member, owned, turn.env.topics, turn.now, subscription_changed=subscription_changed)
    if step is None:
        return
    turn.emit(step)
    if step.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
        deadline = turn.now + max(member.rebalance_timeout_ms, 0)
        turn.emit(TimerArmed(TimerKind.REBALANCE, member_id, deadline, turn.now))
    elif member_id in group.timers.rebalance:
        turn.emit(TimerCancelled(TimerKind.REBALANCE, member_id, turn.now))


def _reply(
    turn: Turn, command: ConsumerHeartbeat, assigned_before: Assigned, session_deadline: int
) -> ConsumerHeartbeatReply:
    """consumer.md 2.6."""
    member = turn.consumer.members[command.member_id]
    full = (
        command.rebalance_timeout_ms != -1
        and (command.subscribed_topic_names is not None or command.subscribed_topic_regex is not None)
        and command.topic_partitions is not None
    )
    tells = command.member_epoch == 0 or full or not _same_partitions(assigned_before, member.assigned)
    return ConsumerHeartbeatReply(
        Error.NONE,
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=turn.config.consumer_heartbeat_interval_ms,
        assignment=plain(member.assigned) if tells else None,
        session_deadline=session_deadline,
    )


def _same_partitions(before: Assigned, after: Assigned) -> bool:
    return before is after or plain(before) == plain(after)


def reconcile(
    group: EpochGroup,
    member: ConsumerMember,
    owned: Partitions | None,
    topics: TopicView,
    now: Millis,
    *,
    subscription_changed: bool,
) -> MemberReconciled | None:
    """The step that `member` takes with this heartbeat, None if it stays as it is (consumer.md 6.1).

    `owned`: what it reports as owned, None if it does not report. Raises `ProtocolError` FENCED_MEMBER_EPOCH for a
    member in an unknown state that still owns something.
    """
    step = _Step(group, member, owned, topics, now)
    match member.state:
        case MemberState.STABLE if member.member_epoch != group.assignment_epoch:
            return step.next()
        case MemberState.STABLE:
            return step.shrink() if subscription_changed else None
        case MemberState.UNREVOKED_PARTITIONS if step.still_owns(member.pending_revocation):
            return step.shrink() if subscription_changed else None
        case MemberState.UNKNOWN if owned is None or owned:
            raise fenced(member, member.member_epoch)
        case _:
            return step.next()


def unreleased(member: ConsumerMember) -> Iterator[tuple[str, int]]:
    """The partitions, by topic id and number, that the member should have but does not have yet."""
    return (
        (topic_id, p)
        for topic_id, partitions in member.target.items()
        for p in partitions
        if p not in member.assigned.get(topic_id, ())
    )


class _Step:
    """The inputs of a step, and the two ways to take it."""

    def __init__(
        self, group: EpochGroup, member: ConsumerMember, owned: Partitions | None, topics: TopicView, now: Millis
    ) -> None:
        self._group = group
        self._member = member
        self._owned = owned
        self._topics = topics
        self._subscription = group.subscription_of(member)
        self._now = now

    def still_owns(self, partitions: Assigned) -> bool:
        """Not reporting is never an acknowledgement."""
        return self._owned is None or intersects(self._owned, partitions)

    def next(self) -> MemberReconciled | None:
        """consumer.md 6.2: revoke first, then assign."""
        member, epoch = self._member, self._group.assignment_epoch
        target = {topic_id: partitions for topic_id, partitions in member.target.items() if self._subscribes(topic_id)}
        keep, revoke = within(member.assigned, target), minus(member.assigned, target)
        if revoke and self.still_owns(revoke):
            return self._to(MemberState.UNREVOKED_PARTITIONS, member.member_epoch, keep, revoke)
        add, unreleased = self._free(target, keep)
        state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
        return self._to(state, epoch, merged(keep, add), {})

    def shrink(self) -> MemberReconciled | None:
        """consumer.md 6.3: partitions of topics no longer subscribed are revoked, whatever the target still says."""
        member = self._member
        kept = {topic_id: partitions for topic_id, partitions in member.assigned.items() if self._subscribes(topic_id)}
        if len(kept) == len(member.assigned):
            return None
        dropped = {topic_id: partitions for topic_id, partitions in member.assigned.items() if topic_id not in kept}
        pending = merged(member.pending_revocation, dropped)
        state, previous = member.state, member.previous_member_epoch
        if self.still_owns(pending):
            state = MemberState.UNREVOKED_PARTITIONS
        else:
            pending = member.pending_revocation
        return self._to(state, member.member_epoch, kept, pending, previous_epoch=previous)

    def _subscribes(self, topic_id: str) -> bool:
        topic = self._topics.by_id.get(topic_id)
        return topic is not None and topic.name in self._subscription

    def _free(self, target: Partitions, keep: Assigned) -> tuple[Assigned, bool]:
        """What can be added to `keep`, and whether any of the target is still missing afterwards.

        Partitions that the member itself was told to give up are returned to it at once.
        """
        members, epoch = self._group.members, self._group.assignment_epoch
        add: dict[str, dict[int, int]] = {}
        unreleased = False
        for topic_id, partitions in target.items():
            for p in partitions:
                if p in keep.get(topic_id, ()):
                    continue
                if members.owner_of(topic_id, p) in (None, self._member.member_id):
                    add.setdefault(topic_id, {})[p] = epoch
                else:
                    unreleased = True
        return add, unreleased

    def _to(
        self,
        state: MemberState,
        epoch: int,
        assigned: Assigned,
        pending: Assigned,
        *,
        previous_epoch: int | None = None,
    ) -> MemberReconciled | None:
        member = self._member
        if previous_epoch is None:
            previous_epoch = member.member_epoch
        before = member.member_epoch, member.previous_member_epoch, member.state
        partitions = member.assigned, member.pending_revocation
        if before == (epoch, previous_epoch, state) and partitions == (assigned, pending):
            return None
        had = {*flat(member.assigned), *flat(member.pending_revocation)}
        releases = not had <= {*flat(assigned), *flat(pending)}
        return MemberReconciled(member.member_id, epoch, previous_epoch, state, assigned, pending, releases, self._now)
