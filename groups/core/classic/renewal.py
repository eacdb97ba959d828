"""Heartbeats of classic groups that would only extend a session, told without deciding them.

They can be answered from memory: `decide` looks at every member first, which costs more than all the rest. The licence
is a property test: what is accepted here is what `decide` answers with NONE and one `SessionRenewed`.

Source: classic.md 4; architecture.md 4, "Fast lanes".
"""

from __future__ import annotations

from groups.core.classic.checks import validated_member
from groups.core.classic.sessions import full
from groups.core.model.commands import Heartbeat
from groups.core.model.types import ClassicGroup, GroupState, Millis
from kcoord.protocol.errors import ProtocolError


def renewal(group: ClassicGroup, command: Heartbeat, now: Millis) -> Millis | None:
    """The deadline (ms) to which it extends the session of its member; None: it has to be decided.

    Only if nothing is overdue in the group.
    """
    if group.state is not GroupState.STABLE or group.generation_id != command.generation_id:
        return None
    try:
        member = validated_member(group, command.member_id, command.group_instance_id)
    except ProtocolError:
        return None
    if member.is_new or member.awaiting_join or member.awaiting_sync:
        return None
    deadline = full(now, member.session_timeout_ms)
    before = member.session_deadline
    return deadline if before is not None and before <= deadline else None
