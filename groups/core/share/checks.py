"""Checks of a ShareGroupHeartbeat. Each raises the `ProtocolError` that answers it.

Source: share.md 2.2.
"""

from __future__ import annotations

from groups.core.consumer.checks import fenced, require_text, unknown_member
from groups.core.model.commands import ShareHeartbeat
from groups.core.model.consumer_group import ShareGroup
from groups.core.model.consumer_state import ConsumerMember
from groups.core.model.group import Group
from kcoord.protocol.errors import Error, ProtocolError

LEAVE_EPOCH = -1
LONGEST_MEMBER_ID = 36
"""Characters of a member id, as many as a UUID has; any text is fine."""


def check_request(command: ShareHeartbeat) -> None:
    """share.md 2.2, rows 3 and 6 to 8. Raises INVALID_REQUEST naming the field."""
    require_text("member_id", command.member_id)
    if len(command.member_id) > LONGEST_MEMBER_ID:
        raise _invalid(f"member_id must have at most {LONGEST_MEMBER_ID} characters, not {len(command.member_id)}")
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
