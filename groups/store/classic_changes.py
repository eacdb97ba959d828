"""The difference between two folded classic groups, as the store writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from groups.core.model.types import ClassicGroup, ClassicMember, Members, Millis, PendingIds
from groups.store.stored import hold_columns


def group_columns(group: ClassicGroup) -> dict[str, Any]:
    """Parameters of `insert_group` and `update_group` that depend on the group itself."""
    timer = group.join_timer
    delay, remaining = (timer.initial or (None, None)) if timer else (None, None)
    return {
        "group_id": group.group_id,
        "state": group.state.value,
        "previous_state": group.previous_state.value,
        "state_since": group.state_since,
        "generation_id": group.generation_id,
        "protocol_type": group.protocol_type,
        "protocol_name": group.protocol_name,
        "leader_id": group.leader_id,
        "new_member_added": group.new_member_added,
        "join_deadline": timer.deadline if timer else None,
        "join_delay_ms": delay,
        "join_remaining_ms": remaining,
        "sync_deadline": group.sync_deadline,
        "armed_gap": group.armed_gap,
        **hold_columns(group.hold),
    }


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference between two folded groups, as the store writes it."""

    header: bool
    removed: tuple[str, ...]
    upserted: tuple[ClassicMember, ...]
    progressed: tuple[ClassicMember, ...]
    pending_removed: tuple[str, ...]
    pending_set: Mapping[str, Millis]
    reassigned: tuple[ClassicMember, ...]
    """Members with an assignment whose bytes changed."""
    renewed: frozenset[str]
    """Ids of the members whose session changed."""
    only_renewed: bool
    """Nothing but sessions changed."""
    topics: bool
    """Whether the topics of the generation changed."""

    @property
    def nothing(self) -> bool:
        """The two groups are the same."""
        return not (
            self.header
            or self.removed
            or self.upserted
            or self.progressed
            or self.pending_removed
            or self.pending_set
            or self.topics
        )

    @property
    def only_deadlines(self) -> bool:
        """Nothing in the group's own row changed except, at most, the next wake-up."""
        return not (self.header or self.removed or self.upserted or self.topics)


def is_other_state(before: ClassicGroup | None, after: ClassicGroup) -> bool:
    """A barrier fell, or a rebalance began: all members may have changed."""
    return before is not None and (before.state, before.generation_id) != (after.state, after.generation_id)


def changes(before: ClassicGroup | None, after: ClassicGroup) -> Changes:
    """What must be written to make the rows of `before` those of `after`.

    Members keep their order of arrival because a member whose place changed has a new id (static replacement) and
    is written as a removal and an insertion.
    """
    members = before.members if before else Members()
    removed, changed = after.members.changes_since(members)
    pending_removed, pending_set = after.pending_join.changes_since(before.pending_join if before else PendingIds())
    upserted, progressed, reassigned, renewed = [], [], [], set()
    only_renewed = True
    for member in changed.values():
        old = members.get(member.member_id)
        if old is None or _session(old) != _session(member):
            renewed.add(member.member_id)
        if old is None or _identity(old) != _identity(member):
            upserted.append(member)
        else:
            progressed.append(member)
            only_renewed = only_renewed and _waits(old) == _waits(member)
        if member.assignment != (old.assignment if old else b""):
            reassigned.append(member)
    header = before is None or group_columns(before) != group_columns(after)
    others = header or removed or upserted or pending_removed or pending_set
    topics = (before.generation_topics if before else None) != after.generation_topics
    return Changes(
        header=header,
        removed=tuple(removed),
        upserted=tuple(upserted),
        progressed=tuple(progressed),
        pending_removed=tuple(pending_removed),
        pending_set=pending_set,
        reassigned=tuple(reassigned),
        renewed=frozenset(renewed),
        only_renewed=only_renewed and not (others or topics),
        topics=topics,
    )


def _session(member: ClassicMember) -> tuple[object, ...]:
    return member.session_deadline, member.last_heartbeat_at


def _waits(member: ClassicMember) -> tuple[object, ...]:
    return (
        member.is_new,
        member.join_parked_until,
        member.sync_parked_until,
        member.pending_sync,
        member.assignment,
    )


def _identity(member: ClassicMember) -> tuple[object, ...]:
    return (
        member.instance_id,
        member.client_id,
        member.client_host,
        member.session_timeout_ms,
        member.rebalance_timeout_ms,
        member.protocol_type,
        member.protocols,
    )
