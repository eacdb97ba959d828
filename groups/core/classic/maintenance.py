"""Commands outside of member coordination: deletion, abandoned waits, and the fixture that unloads a group.

Source: classic.md 8.1 and 8.6; http-api.md "Waiting".
"""

from __future__ import annotations

from groups.core.classic.members import abandoned_session, refused
from groups.core.classic.rebalance import release
from groups.core.classic.state import ANSWERS, Api
from groups.core.model.commands import AbandonWait, DeleteGroup, ForceState, ParkKind
from groups.core.model.records import GroupDeleted, GroupUnloaded, WaitAbandoned
from groups.core.model.replies import Done
from groups.core.model.turn import Turn
from groups.core.model.types import GroupState
from kcoord.protocol.errors import Error, ProtocolError


def delete_group(turn: Turn, command: DeleteGroup) -> Done:
    """Delete an Empty group; pending ids do not matter and are lost (classic.md 8.1). Raises `ProtocolError`."""
    if turn.classic_or_none is None:
        raise ProtocolError(Error.GROUP_ID_NOT_FOUND, f"there is no group {command.group_id!r}")
    verdict = ANSWERS[Api.DELETE, turn.classic_or_none.state]
    if verdict.error is not Error.NONE:
        raise refused(verdict.error, Api.DELETE, turn.classic_or_none)
    turn.emit(GroupDeleted(command.group_id))
    return Done()


def abandon_wait(turn: Turn, command: AbandonWait) -> Done:
    """Restart the session, counting from now, of a member whose held request was abandoned. Never an error.

    Differs from Kafka: Kafka does not notice that the connection of a parked request is gone.
    """
    member = turn.classic_or_none.members.get(command.member_id) if turn.classic_or_none is not None else None
    if member is None:
        return Done()
    until = member.join_parked_until if command.kind is ParkKind.JOIN else member.sync_parked_until
    if until is None or until <= turn.now or command.parked_until not in (None, until):
        return Done()
    turn.emit(WaitAbandoned(member.member_id, command.kind, turn.now, abandoned_session(member, turn.now)))
    return Done()


def force_state(turn: Turn, command: ForceState) -> Done:
    """Unload a group: Dead, and every waiter is sent to another coordinator (classic.md 8.6). A test fixture."""
    group = turn.classic_or_none
    if group is None or command.state is not GroupState.DEAD:
        raise ValueError(f"ForceState makes an existing group Dead, not {command.group_id!r} {command.state.value}")
    turn.emit(GroupUnloaded(turn.now))
    members = group.members.values()
    release(turn, ParkKind.JOIN, [member for member in members if member.awaiting_join], group.generation_id)
    release(turn, ParkKind.SYNC, [member for member in members if member.awaiting_sync], group.generation_id)
    return Done()
