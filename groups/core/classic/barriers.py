"""How many members a decision may change or answer at once: all of them, where a barrier falls."""

from __future__ import annotations

from collections.abc import Sequence

from groups.core.model.commands import Command, SyncGroup
from groups.core.model.deadlines import wake_at
from groups.core.model.types import ClassicGroup, GroupState, Millis


def members_at_once(group: ClassicGroup, commands: Sequence[Command], now: Millis) -> int:
    """The members that a single one of `commands`, decided in this order at `now` (ms), may involve; 0: few.

    It may say too many, and too few only for what costs little for each member.
    """
    due = wake_at(group)
    if due is not None and due <= now:
        return len(group.members)
    match group.state:
        case GroupState.PREPARING_REBALANCE:
            missing = len(group.members) - group.members.awaiting_join + len(group.pending_join)
            return len(group.members) if missing <= len(commands) else 0
        case GroupState.COMPLETING_REBALANCE:
            leads = any(isinstance(command, SyncGroup) and command.member_id == group.leader_id for command in commands)
            return len(group.members) if leads else 0
        case _:
            return 0
