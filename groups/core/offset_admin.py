"""What operators may do to the offsets of a group, as far as its members are concerned.

Source: offsets.md 6 and 13.5; http-api.md 4 (plans).
"""

from __future__ import annotations

from groups.core.classic.subscription import CONSUMER
from groups.core.model.commands import DeleteOffsets, ResetOffsets
from groups.core.model.records import GroupCreated
from groups.core.model.replies import DeleteOffsetsReply, Done
from groups.core.model.turn import Turn
from groups.core.model.types import ClassicGroup, GroupState
from groups.core.operators import existing
from groups.core.subscription import subscribed_topics
from kcoord.protocol.errors import Error, ProtocolError


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
