"""May an operator set where a share group begins? (share.md 7.8)"""

from __future__ import annotations

from groups.core.model.commands import ResetShare
from groups.core.model.consumer_records import ShareGroupCreated
from groups.core.model.replies import Done
from groups.core.model.turn import Turn
from groups.core.share.checks import require_share_group
from kcoord.protocol.errors import Error, ProtocolError


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
