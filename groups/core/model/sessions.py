"""Sessions as the rows have them, put into a folded group.

Heartbeats that only extend a session do not count as changes of the group (`version`), so the deadlines of a copy in
memory may be earlier than those of the rows, never later.

Source: architecture.md 4, "Fast lanes".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from groups.core.model.consumer_group import EpochGroup
from groups.core.model.group import Group
from groups.core.model.persistent import Timer
from groups.core.model.types import ClassicGroup, ClassicMember, Millis


class Session(NamedTuple):
    """When a session ends, and when its member was last heard from (ms); None: it has no session."""

    deadline: Millis | None
    heard_at: Millis | None


def with_sessions(group: Group, stored: Mapping[str, Session]) -> Group:
    """The group with the sessions of `stored`, by member id; other members keep theirs."""
    if not isinstance(group, ClassicGroup):
        return _consumer(group, stored)
    return _classic(group, stored)


def _classic(group: ClassicGroup, stored: Mapping[str, Session]) -> ClassicGroup:
    def renewed(member: ClassicMember) -> ClassicMember:
        session = stored.get(member.member_id)
        if session is None or session == (member.session_deadline, member.last_heartbeat_at):
            return member
        return replace(member, session_deadline=session.deadline, last_heartbeat_at=session.heard_at)

    if all(renewed(member) is member for member in group.members.values()):
        return group
    return replace(group, members=group.members.each(renewed))


def _consumer(group: EpochGroup, stored: Mapping[str, Session]) -> EpochGroup:
    sessions = group.timers.session
    later = {}
    for member_id, session in stored.items():
        if session.deadline is None or session.heard_at is None or member_id not in group.members:
            continue
        timer = Timer(session.deadline, session.heard_at)
        if sessions.get(member_id) != timer:
            later[member_id] = timer
    if not later:
        return group
    return replace(group, timers=replace(group.timers, session=sessions.update(later)))
