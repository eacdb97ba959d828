"""What operators do to the members of a group, and may do to its offsets as far as its members are concerned.

They hold a group, end the hold, and kick one member. Source: http-api.md 4; offsets.md 6 and 13.5. Kafka has none of
the three; a kick is what RemoveMembersFromConsumerGroup does for classic members, here for members of groups of every
type.
"""

from __future__ import annotations

from groups.core.classic.rebalance import complete_if_all_joined, maybe_complete, prepare, remove
from groups.core.classic.state import ANSWERS, Api
from groups.core.consumer.leaving import remove_members as remove_without_conversion
from groups.core.convert import remove_members
from groups.core.model.commands import DeleteOffsets, HoldGroup, KickMember, ReleaseHold, ResetOffsets
from groups.core.model.consumer_group import EpochGroup, ShareGroup
from groups.core.model.group import Group
from groups.core.model.records import GroupCreated, GroupHeld, HoldReleased
from groups.core.model.replies import DeleteOffsetsReply, Done, HoldReply
from groups.core.model.turn import Turn
from groups.core.model.types import CONSUMER, Cause, ClassicGroup, GroupState, Hold
from groups.core.subscription import subscribed_topics
from kcoord.protocol.errors import Error, ProtocolError


def hold_group(turn: Turn, command: HoldGroup) -> HoldReply:
    """Remove all members and pending ids, and refuse joins until the hold ends. Raises `ProtocolError`.

    A removed member gets UNKNOWN_MEMBER_ID, joins again, and is refused until then (`holds.require_open`). If the group
    is already held, the new hold replaces the old one.
    """
    group = existing(turn, command.group_id)
    removed = len(group.members)
    if isinstance(group, EpochGroup):
        if group.members:
            remove_without_conversion(
                turn, list(group.members), Cause.MEMBER_KICKED, by=command.principal, detail=command.reason
            )
    else:
        _empty(turn, group, command)
    hold = Hold(turn.now + command.duration_ms, command.principal, command.reason)
    turn.emit(GroupHeld(hold, removed, turn.now))
    return HoldReply(Error.NONE, hold, removed)


def _empty(turn: Turn, group: ClassicGroup, command: HoldGroup) -> None:
    """Remove all members, and complete the rebalance that follows without members."""
    gone = [*group.pending_join, *group.members]
    for member_id in gone:
        remove(turn, member_id, Cause.MEMBER_KICKED, command.reason, by=command.principal)
    if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        prepare(turn, Cause.MEMBER_KICKED, gone[-1], command.reason)
    else:
        complete_if_all_joined(turn)


def release_hold(turn: Turn, command: ReleaseHold) -> Done:
    """Admit members again. A group that is not held is unchanged. Raises `ProtocolError`."""
    if existing(turn, command.group_id).hold is not None:
        turn.emit(HoldReleased(command.principal, turn.now))
    return Done()


def kick_member(turn: Turn, command: KickMember) -> Done:
    """Remove a member exactly as its leaving would, or forget a pending id. Raises `ProtocolError`.

    Its next request gets UNKNOWN_MEMBER_ID, and it may come back. A temporarily departed static member is removed too.
    """
    group = existing(turn, command.group_id)
    if isinstance(group, ClassicGroup):
        _kick_classic(turn, group, command)
    elif command.member_id in group.members:
        remove = remove_without_conversion if isinstance(group, ShareGroup) else remove_members
        remove(turn, [command.member_id], Cause.MEMBER_KICKED, by=command.principal, detail=command.reason)
    else:
        raise _no_such_member(command)
    return Done()


def _kick_classic(turn: Turn, group: ClassicGroup, command: KickMember) -> None:
    pending = command.member_id in group.pending_join
    if not pending and command.member_id not in group.members:
        raise _no_such_member(command)
    remove(turn, command.member_id, Cause.MEMBER_KICKED, command.reason, by=command.principal)
    if not pending and ANSWERS[Api.LEAVE, group.state].rebalances:
        prepare(turn, Cause.MEMBER_KICKED, command.member_id, command.reason)
    else:
        maybe_complete(turn)


def _no_such_member(command: KickMember) -> ProtocolError:
    """UNKNOWN_MEMBER_ID in words for an operator; the advice given to members does not apply to operators."""
    return ProtocolError(
        Error.UNKNOWN_MEMBER_ID, f"group {command.group_id!r} has no member {command.member_id!r} (any more)"
    )


def existing(turn: Turn, group_id: str) -> Group:
    """The group. Raises GROUP_ID_NOT_FOUND; a group that is being unloaded does not exist."""
    group = turn.group
    if group is None or group.state is GroupState.DEAD:
        raise ProtocolError(Error.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")
    return group


def delete_offsets(turn: Turn, command: DeleteOffsets) -> DeleteOffsetsReply:
    """OffsetDelete, offsets.md 6 rows 3 and 5 to 8: whether, and for which topics not. Raises `ProtocolError`."""
    if not command.group_id:
        raise ProtocolError(Error.INVALID_GROUP_ID, "group_id must not be empty")
    group = existing(turn, command.group_id)
    if isinstance(group, ClassicGroup) and group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER:
        raise ProtocolError(
            Error.NON_EMPTY_GROUP,
            f"group {group.group_id!r} is {group.state.value} and its members do not declare which topics they read: "
            "stop them first",
        )
    subscribed = subscribed_topics(group)
    return DeleteOffsetsReply(Error.NONE, frozenset(topic for topic in command.topics if topic in subscribed))


def reset_offsets(turn: Turn, command: ResetOffsets) -> Done:
    """May the group's offsets be set? Only while no member uses them. Raises `ProtocolError`.

    `create`: a missing group is created, as by the first commit of a simple consumer.
    """
    if turn.group is None and command.create:
        turn.emit(GroupCreated(command.group_id, turn.now, turn.env.gap))
        return Done()
    group = existing(turn, command.group_id)
    if group.members:
        raise ProtocolError(
            Error.NON_EMPTY_GROUP,
            f"group {group.group_id!r} is {group.state.value} with {len(group.members)} members: stop them, or hold "
            "the group, first",
        )
    return Done()
