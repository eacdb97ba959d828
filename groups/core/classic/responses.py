"""Successful answers, and the wording of errors that are raised in more than one place.

Source: classic.md 2.6 and 3.2.
"""

from __future__ import annotations

from groups.core.model.replies import JoinedMember, JoinReply, SyncReply
from groups.core.model.types import ClassicGroup, ClassicMember, Millis
from kcoord.protocol.errors import Error


def joined(
    group: ClassicGroup,
    member: ClassicMember,
    *,
    session_deadline: Millis | None = None,
    skip_assignment: bool = False,
) -> JoinReply:
    """The success answer of a join for the group's current generation; the leader gets all members (classic.md 2.6)."""
    assert group.leader_id is not None, "a group with a generation and members has a leader"
    return JoinReply(
        Error.NONE,
        member_id=member.member_id,
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id,
        skip_assignment=skip_assignment,
        members=_members(group) if group.leader_id == member.member_id else (),
        session_deadline=session_deadline,
    )


def synced(group: ClassicGroup, member: ClassicMember, *, session_deadline: Millis | None = None) -> SyncReply:
    """The success answer of a sync: the stored assignment of `member`."""
    return SyncReply(
        Error.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
        session_deadline=session_deadline,
    )


def unknown_detail(member_id: str) -> str:
    """Explains UNKNOWN_MEMBER_ID, and what to do."""
    return f"the group has no member {member_id!r} (any more): join with an empty member id"


def fenced_detail(instance_id: str) -> str:
    """Explains FENCED_INSTANCE_ID, and what to do."""
    return (
        f"another member joined with group instance id {instance_id!r}: stop this one, "
        "or give each running member its own instance id"
    )


def _members(group: ClassicGroup) -> tuple[JoinedMember, ...]:
    return tuple(
        JoinedMember(member.member_id, member.instance_id, member.metadata_of(group.protocol_name))
        for member in group.members.values()
    )
