"""What the audit says about the commands of operators."""

from __future__ import annotations

from typing import Any

from groups.core.model.commands import Command, DeleteGroup, HoldGroup, KickMember, ReleaseHold
from groups.core.model.group import Group
from groups.core.model.replies import HoldReply, Parked, Reply
from groups.core.model.types import Hold
from kcoord.access.audit.recording import Act
from kcoord.protocol.errors import Error

OF_OPERATORS = (DeleteGroup, HoldGroup, KickMember, ReleaseHold)


def act_of(command: Command, before: Group | None, reply: Reply | Parked, principal: str) -> Act | None:
    """The act of an operator's command; None if it did not succeed. `principal`: who deletes."""
    if isinstance(reply, Parked) or reply.error is not Error.NONE or before is None:
        return None
    name = command.group_id
    match command:
        case DeleteGroup():
            # The service itself deletes groups that have expired; nobody asked for that.
            return Act("group.delete", "group", name, before=_group(before), principal=principal) if principal else None
        case HoldGroup(principal=who, reason=reason):
            assert isinstance(reply, HoldReply)
            after = {"hold": _hold(reply.hold), "removed_members": reply.removed}
            was = {"hold": _hold(before.hold), "members": len(before.members)}
            return Act("group.hold", "group", name, was, after, reason, principal=who)
        case ReleaseHold(principal=who):
            was = {"hold": _hold(before.hold)}
            return Act("group.release", "group", name, was, {"hold": None}, principal=who)
        case KickMember(principal=who, reason=reason):
            return Act("member.remove", "group", name, _member(before, command.member_id), None, reason, principal=who)
    return None


def _group(group: Group) -> dict[str, Any]:
    return {"type": group.type, "members": len(group.members)}


def _hold(hold: Hold | None) -> dict[str, Any] | None:
    return None if hold is None else {"until": hold.until, "by": hold.by, "reason": hold.reason}


def _member(group: Group, member_id: str) -> dict[str, Any]:
    found = group.members.get(member_id)
    if found is None:
        return {"member_id": member_id}
    return {"member_id": member_id, "client_id": found.client_id, "client_host": found.client_host}
