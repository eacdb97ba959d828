"""Commands about a consumer group that none of its members sends (consumer.md 9.1)."""

from __future__ import annotations

from groups.core.model.commands import DeleteGroup
from groups.core.model.records import GroupDeleted
from groups.core.model.replies import Done
from groups.core.model.turn import Turn
from kcoord.protocol.errors import Error, ProtocolError


def delete_group(turn: Turn, command: DeleteGroup) -> Done:
    """Delete a group without members; a departed static member counts as one. Raises `ProtocolError`."""
    size = len(turn.consumer.members)
    if size:
        raise ProtocolError(Error.NON_EMPTY_GROUP, f"group {command.group_id!r} has {size} members: stop them first")
    turn.emit(GroupDeleted(command.group_id))
    return Done()
