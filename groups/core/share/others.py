"""What requests of other protocols get from a share group. A group id belongs to one type until it is deleted.

Source: share.md 4.
"""

from __future__ import annotations

from groups.core.consumer.checks import unknown_member
from groups.core.model.commands import (
    CommitOffsets,
    ConsumerHeartbeat,
    DeleteOffsets,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ResetOffsets,
    SyncGroup,
)
from groups.core.model.replies import LeaveReply, LeftMember
from kcoord.protocol.errors import Error, ProtocolError

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
            raise ProtocolError(Error.INCONSISTENT_GROUP_PROTOCOL, detail)
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
