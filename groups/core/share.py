"""Share groups: workers that share the partitions of the topics they name (KIP-932). Here is their membership.

A group of this type reuses the model of the consumer protocol (members with epochs, a target that the coordinator
computes, sessions), and lacks what that needs only because a partition has one owner: reconciliation, owned partitions,
static members, regular expressions. Which items a worker has is not known here.
Source: share.md; KIP-932.
"""

from __future__ import annotations

from dataclasses import replace

from groups.core.consumer.leaving import remove_members
from groups.core.consumer.members import (
    check_order,
    fenced,
    is_new,
    require_room,
    require_text,
    store_member,
    unknown_member,
)
from groups.core.consumer.target import refresh_epoch, update_target
from groups.core.model.commands import (
    CommitOffsets,
    ConsumerHeartbeat,
    DeleteOffsets,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ResetOffsets,
    ResetShare,
    ShareHeartbeat,
    SyncGroup,
)
from groups.core.model.consumer_group import Assigned, ConsumerMember, MemberState, ShareGroup, TimerKind, plain
from groups.core.model.consumer_records import MemberReconciled, ShareGroupCreated, TimerArmed
from groups.core.model.group import Group, require_open
from groups.core.model.replies import ConsumerHeartbeatReply, Done, LeaveReply, LeftMember
from groups.core.model.turn import Turn, WakeMembers
from groups.core.model.types import Cause
from kcoord.protocol.errors import Error, ProtocolError

LEAVE_EPOCH = -1
LONGEST_MEMBER_ID = 36
"""Characters of a member id, as many as a UUID has; any text is fine."""


def check_member_id(member_id: str) -> None:
    """share.md 2.2, row 3, which comes before the rights to topics. Raises INVALID_REQUEST."""
    if not 1 <= len(member_id) <= LONGEST_MEMBER_ID:
        raise _invalid(f"member_id must have 1 to {LONGEST_MEMBER_ID} characters, not {len(member_id)}")


def check_heartbeat(command: ShareHeartbeat) -> None:
    """share.md 2.2, rows 3 and 6 to 8. Raises INVALID_REQUEST naming the field."""
    check_member_id(command.member_id)
    require_text("member_id", command.member_id)
    require_text("group_id", command.group_id)
    require_text("rack_id", command.rack_id)
    if command.member_epoch == 0 and not command.subscribed_topic_names:
        raise _invalid("subscribed_topic_names must name a topic when a member joins (epoch 0)")
    if command.member_epoch < LEAVE_EPOCH:
        raise _invalid(f"member_epoch must be at least {LEAVE_EPOCH}, not {command.member_epoch}")


def check_epoch(member: ConsumerMember, member_epoch: int) -> None:
    """share.md 2.2, rows 16 to 18: the current epoch, the one before it, or 0. Raises FENCED_MEMBER_EPOCH."""
    missed_response = 0 < member_epoch == member.previous_member_epoch
    if member_epoch not in (0, member.member_epoch) and not missed_response:
        raise fenced(member, member_epoch)


def require_share_group(group: Group | None, group_id: str) -> None:
    """share.md 2.2, rows 10, 12 and 13. Raises GROUP_ID_NOT_FOUND, which says of which type the group is."""
    if not isinstance(group, ShareGroup):
        raise no_share_group(group_id, exists=group is not None)


def no_share_group(group_id: str, *, exists: bool) -> ProtocolError:
    """GROUP_ID_NOT_FOUND. `exists`: there is a group of another type."""
    detail = f"there is no share group {group_id!r}: join it with member_epoch 0"
    if exists:
        detail = (
            f"group {group_id!r} exists and is no share group: use another group id, or delete that group once it is "
            "empty"
        )
    return ProtocolError(Error.GROUP_ID_NOT_FOUND, detail)


def member_of(group: ShareGroup, member_id: str) -> ConsumerMember:
    """The member. Raises UNKNOWN_MEMBER_ID."""
    member = group.members.get(member_id)
    if member is None:
        raise unknown_member(member_id)
    return member


def _invalid(detail: str) -> ProtocolError:
    return ProtocolError(Error.INVALID_REQUEST, detail)


def reset_share(turn: Turn, command: ResetShare) -> Done:
    """Only while no member works on it. A group that is missing is created if the command says so.

    Raises `ProtocolError` GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
    """
    if turn.group is None and command.create:
        turn.emit(ShareGroupCreated(command.group_id, turn.now, turn.env.gap))
        return Done()
    require_share_group(turn.group, command.group_id)
    if turn.share.members:
        raise ProtocolError(
            Error.NON_EMPTY_GROUP,
            f"share group {command.group_id!r} has {len(turn.share.members)} members: stop them, or hold the group, "
            "first",
        )
    return Done()


def share_heartbeat(turn: Turn, command: ShareHeartbeat) -> ConsumerHeartbeatReply:
    """Join, stay, or leave, and take the target (share.md 2.3). Raises `ProtocolError`.

    Differs from Kafka: partitions are assigned as soon as their topic exists and is named, because nothing has to be
    initialised first; the epoch of a new group is 1, as in a consumer group.
    """
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


Foreign = (
    JoinGroup | SyncGroup | Heartbeat | LeaveGroup | CommitOffsets | DeleteOffsets | ResetOffsets | ConsumerHeartbeat
)


def refuse(command: Foreign) -> LeaveReply:
    """The answer, an error for each entry of a LeaveGroup; any other request raises its `ProtocolError`.

    Differs from Kafka: the message names the type of the group.
    """
    group_id = command.group_id
    match command:
        case JoinGroup():
            detail = f"group {group_id!r} is a share group: join it with share-heartbeat, or use another group id"
            raise ProtocolError(Error.INCONSISTENT_GROUP_PROTOCOL, detail, fields={"member_id": ""})
        case SyncGroup() | Heartbeat():
            raise unknown_member(command.member_id)
        case LeaveGroup():
            return LeaveReply(
                Error.NONE,
                tuple(
                    LeftMember(entry.member_id, entry.group_instance_id, Error.UNKNOWN_MEMBER_ID)
                    for entry in command.members
                ),
            )
        case ConsumerHeartbeat():
            detail = f"group {group_id!r} is a share group, not a consumer group: use another group id"
            raise ProtocolError(Error.GROUP_ID_NOT_FOUND, detail)
        case CommitOffsets() | DeleteOffsets() | ResetOffsets():
            raise without_offsets(group_id)


def without_offsets(group_id: str) -> ProtocolError:
    """GROUP_ID_NOT_FOUND for what only groups with committed offsets have."""
    detail = f"group {group_id!r} is a share group: it has no committed offsets. Use another group id"
    return ProtocolError(Error.GROUP_ID_NOT_FOUND, detail)
