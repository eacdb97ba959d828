"""How members leave, for good or for a while, or are removed; and how a consumer group is deleted (consumer.md 9.1).

Source: consumer.md 3.4, 3.5 and 9.7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from groups.core.consumer.members import holder_of, unknown_group, unknown_member
from groups.core.consumer.target import refresh_epoch
from groups.core.model.commands import ConsumerHeartbeat, DeleteGroup, LeaveGroup, LeavingMember
from groups.core.model.consumer_group import DEPARTED_EPOCH, ConsumerMember, EpochGroup
from groups.core.model.consumer_records import ConsumerMemberRemoved, StaticMemberDeparted
from groups.core.model.records import GroupDeleted
from groups.core.model.replies import ConsumerHeartbeatReply, Done, LeaveReply, LeftMember
from groups.core.model.turn import Turn
from groups.core.model.types import Cause, Millis
from kcoord.protocol.errors import Error, ProtocolError

Remove = Callable[[Turn, Sequence[str], Cause], None]
"""How members are removed; a group with only classic members left after it may change its protocol instead."""


def leave(turn: Turn, command: ConsumerHeartbeat, remove: Remove) -> ConsumerHeartbeatReply:
    """consumer.md 3.4: epochs -1 and -2. Only the ids are checked. Raises `ProtocolError`."""
    if turn.group is None:
        raise unknown_group(command.group_id)
    member = _leaving_member(turn.consumer, command.member_id, command.instance_id)
    if command.member_epoch == DEPARTED_EPOCH:
        turn.emit(StaticMemberDeparted(member.member_id, turn.now))
    else:
        remove(turn, [member.member_id], Cause.MEMBER_LEFT)
    return ConsumerHeartbeatReply(Error.NONE, member_id=command.member_id, member_epoch=command.member_epoch)


def leave_group(turn: Turn, command: LeaveGroup, remove: Remove) -> LeaveReply:
    """LeaveGroup (consumer.md 9.7): members of either protocol leave, and the group epoch is bumped once for all.

    Each entry is checked against the group as it was before the request, so a member that is named twice leaves twice.
    Entries echo the requested ids, "" for a member that is named by its instance id alone (classic.md 9).
    """
    left: dict[str, None] = {}
    results = []
    for entry in command.members:
        error = Error.NONE
        try:
            left[_named_member(turn.consumer, entry).member_id] = None
        except ProtocolError as refusal:
            error = refusal.error
        results.append(LeftMember(entry.member_id, entry.group_instance_id, error))
    if left:
        remove(turn, list(left), Cause.MEMBER_LEFT)
    return LeaveReply(Error.NONE, tuple(results))


def _named_member(group: EpochGroup, entry: LeavingMember) -> ConsumerMember:
    """The member of an entry. An operator removes a static member by its instance id alone."""
    member_id, instance_id = entry.member_id, entry.group_instance_id
    if not member_id and instance_id is not None:
        member_id = group.members.static.get(instance_id, "")
    return _leaving_member(group, member_id, instance_id)


def _leaving_member(group: EpochGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is not None:
        return holder_of(group, instance_id, member_id)
    member = group.members.get(member_id)
    if member is None:
        raise unknown_member(member_id)
    return member


def drop_members(turn: Turn, member_ids: Sequence[str], cause: Cause, *, by: str, detail: str) -> None:
    """Delete the members and everything they have. `by`: the principal that kicks them; `detail`: its reason."""
    for member_id in member_ids:
        member = turn.consumer.members[member_id]
        ended = _session_timeout(turn, member) if cause is Cause.SESSION_EXPIRED else None
        turn.emit(ConsumerMemberRemoved(member_id, member.instance_id, cause, turn.now, detail, by, ended))


def _session_timeout(turn: Turn, member: ConsumerMember) -> Millis:
    classic = member.classic
    return turn.limits.session_timeout_ms if classic is None else classic.session_timeout_ms


def remove_members(turn: Turn, member_ids: Sequence[str], cause: Cause, *, by: str = "", detail: str = "") -> None:
    """consumer.md 3.5, step 2: delete the members and bump the group epoch once. The target waits for a heartbeat."""
    drop_members(turn, member_ids, cause, by=by, detail=detail)
    refresh_epoch(turn, cause, member_ids[0])


def delete_group(turn: Turn, command: DeleteGroup) -> Done:
    """Delete a group without members; a departed static member counts as one. Raises `ProtocolError`."""
    size = len(turn.consumer.members)
    if size:
        raise ProtocolError(Error.NON_EMPTY_GROUP, f"group {command.group_id!r} has {size} members: stop them first")
    turn.emit(GroupDeleted(command.group_id))
    return Done()
