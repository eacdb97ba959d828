"""ShareGroupHeartbeat: the one request of the membership of share groups (share.md 2)."""

from __future__ import annotations

from dataclasses import replace

from groups.core.consumer.checks import check_order, unknown_member
from groups.core.consumer.epochs import refresh_epoch
from groups.core.consumer.joining import is_new, require_room, store_member
from groups.core.consumer.leaving import remove_members
from groups.core.consumer.target import update_target
from groups.core.model.causes import Cause
from groups.core.model.commands import ShareHeartbeat
from groups.core.model.consumer_group import ShareGroup
from groups.core.model.consumer_records import MemberReconciled, ShareGroupCreated, TimerArmed
from groups.core.model.consumer_state import ConsumerMember, MemberState, TimerKind
from groups.core.model.effects import WakeMembers
from groups.core.model.holds import require_open
from groups.core.model.partitions import Assigned, plain
from groups.core.model.replies import ConsumerHeartbeatReply
from groups.core.model.turn import Turn
from groups.core.share.checks import check_epoch, check_request, member_of, require_share_group
from kcoord.protocol.errors import Error


def share_heartbeat(turn: Turn, command: ShareHeartbeat) -> ConsumerHeartbeatReply:
    """Join, stay, or leave, and take the target (share.md 2.3). Raises `ProtocolError`.

    Differs from Kafka: partitions are assigned as soon as their topic exists and is named, because nothing has to be
    initialised first; the epoch of a new group is 1, as in a consumer group.
    """
    check_request(command)
    if turn.group is not None or command.member_epoch != 0:
        require_share_group(turn.group, command.group_id)
    if isinstance(turn.group, ShareGroup):
        check_order(turn.group, command.member_id, command.age_ms, turn.now)
    if command.member_epoch < 0:
        return _leave(turn, command)
    if turn.group is None:
        turn.emit(ShareGroupCreated(command.group_id, turn.now, turn.env.gap))
    elif command.member_epoch == 0:
        require_open(turn.group, turn.now)
    require_room(turn, command.member_id)
    before = _member(turn, command)
    _advance(turn, before, command)
    deadline = turn.now + turn.limits.session_timeout_ms
    turn.emit(TimerArmed(TimerKind.SESSION, command.member_id, deadline, turn.now))
    return _reply(turn, command, before, deadline)


def _leave(turn: Turn, command: ShareHeartbeat) -> ConsumerHeartbeatReply:
    """Row 11, then: the member is gone at once, and the group epoch is one higher."""
    member_of(turn.share, command.member_id)
    remove_members(turn, [command.member_id], Cause.MEMBER_LEFT)
    return ConsumerHeartbeatReply(Error.NONE, member_id=command.member_id, member_epoch=command.member_epoch)


def _member(turn: Turn, command: ShareHeartbeat) -> ConsumerMember:
    """The member as it was before this heartbeat; one that joins is returned without being stored. Rows 15 to 18."""
    member = turn.share.members.get(command.member_id)
    if member is not None:
        check_epoch(member, command.member_epoch)
        return member
    if command.member_epoch != 0:
        raise unknown_member(command.member_id)
    return ConsumerMember(command.member_id)


def _advance(turn: Turn, before: ConsumerMember, command: ShareHeartbeat) -> None:
    """Steps 1 to 6: what the member says, the group epoch, the target, and the member's step to it."""
    names = command.subscribed_topic_names
    updated = replace(
        before,
        rack_id=command.rack_id if command.rack_id is not None else before.rack_id,
        client_id=command.client_id or before.client_id,
        client_host=command.client_host,
        subscribed_topic_names=names if names is not None else before.subscribed_topic_names,
    )
    joins = is_new(turn.share, before)
    store_member(turn, before, updated)
    cause = None
    if turn.share.group_epoch == 0:
        cause = Cause.GROUP_CREATED
    elif updated.subscribed_topic_names != before.subscribed_topic_names:
        cause = Cause.MEMBER_JOINED if joins else Cause.SUBSCRIPTION_CHANGED
    refresh_epoch(turn, cause, command.member_id)
    update_target(turn)
    _take_target(turn, command.member_id)


def _take_target(turn: Turn, member_id: str) -> None:
    """Step 6: the member has its target at once, and nobody has to give up anything for that."""
    group = turn.share
    member, epoch = group.members[member_id], group.assignment_epoch
    assigned: Assigned = {
        topic_id: {p: member.assigned.get(topic_id, {}).get(p, epoch) for p in partitions}
        for topic_id, partitions in member.target.items()
        if _names(turn, member, topic_id)
    }
    if member.member_epoch == epoch and member.assigned == assigned:
        return
    previous = member.previous_member_epoch if member.member_epoch == epoch else member.member_epoch
    step = MemberReconciled(member_id, epoch, previous, MemberState.STABLE, assigned, {}, False, turn.now)
    turn.emit(step)
    turn.ask(WakeMembers(group.group_id))  # a request of the member may wait for items of other partitions


def _names(turn: Turn, member: ConsumerMember, topic_id: str) -> bool:
    topic = turn.env.topics.by_id.get(topic_id)
    return topic is not None and topic.name in member.subscribed_topic_names


def _reply(
    turn: Turn, command: ShareHeartbeat, before: ConsumerMember, session_deadline: int
) -> ConsumerHeartbeatReply:
    """`assignment` if the member joins, names its topics, or has another set than before; else None."""
    member = turn.share.members[command.member_id]
    tells = command.member_epoch == 0 or command.subscribed_topic_names is not None
    changed = plain(before.assigned) != plain(member.assigned)
    return ConsumerHeartbeatReply(
        Error.NONE,
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=turn.limits.heartbeat_interval_ms,
        assignment=plain(member.assigned) if tells or changed else None,
        session_deadline=session_deadline,
    )
