"""Converts rows of the group tables to values of the core and back. No I/O, no rules.

`load . persist = fold` (architecture.md invariant 5) rests on this module and is tested on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from groups.core.model.types import ClassicGroup, ClassicMember, GroupState, Hold, JoinTimer, Members, Millis, Protocol

Row = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Header:
    """The columns of a locked group row that do not belong to the protocol."""

    pk: int
    version: int
    version_tag: UUID
    generation_id: int
    type: str
    wake_at: Millis | None


def header(row: Row) -> Header:
    """What decides whether the copy of the group is still current, from a row of `lock_group`."""
    return Header(pk=row[0], version=row[1], version_tag=row[25], generation_id=row[6], type=row[2], wake_at=row[15])


def with_header(row: Row, header: Header) -> Row:
    """The row with another version, version tag and generation."""
    changed = list(row)
    changed[1], changed[6], changed[25] = header.version, header.generation_id, header.version_tag
    return changed


def hold_from_row(row: Row) -> Hold | None:
    """The hold that a row of `lock_group` describes."""
    until, by, reason = row[22:25]
    return None if until is None else Hold(until, by, reason)


def hold_columns(hold: Hold | None) -> dict[str, Any]:
    """Parameters of a group's header that depend on its hold, for both protocols."""
    return {
        "held_until": hold.until if hold else None,
        "held_by": hold.by if hold else None,
        "hold_reason": hold.reason if hold else None,
    }


def group_from_rows(
    group_id: str, row: Row, members: Iterable[Row], pending: Iterable[Row], topics: Iterable[str] | None
) -> ClassicGroup:
    """The group that a row of `lock_group` and its children describe. `topics`: those of its generation."""
    (_, _, _, state, previous, since, generation, protocol_type, protocol_name, leader) = row[:10]
    new_member_added, join_deadline, delay, remaining, sync_deadline = row[10:15]
    timer = None
    if join_deadline is not None:
        timer = JoinTimer(join_deadline, None if delay is None else (delay, remaining))
    return ClassicGroup(
        group_id=group_id,
        state=GroupState(state),
        previous_state=GroupState(previous),
        state_since=since,
        generation_id=generation,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        leader_id=leader,
        new_member_added=new_member_added,
        join_timer=timer,
        sync_deadline=sync_deadline,
        members=Members(member_from_row(member) for member in members),
        pending_join={row[0]: row[1] for row in pending},
        generation_topics=None if topics is None else frozenset(topics),
        hold=hold_from_row(row),
    )


def member_from_row(row: Row) -> ClassicMember:
    """The member that a row of `load_members` describes."""
    names, metadata = row[7], row[8]
    return ClassicMember(
        member_id=row[0],
        instance_id=row[1],
        client_id=row[2],
        client_host=row[3],
        session_timeout_ms=row[4],
        rebalance_timeout_ms=row[5],
        protocol_type=row[6],
        protocols=tuple(Protocol(name, bytes(data)) for name, data in zip(names, metadata, strict=True)),
        assignment=bytes(row[9]),
        is_new=row[10],
        join_parked_until=row[11],
        sync_parked_until=row[12],
        pending_sync=row[13],
        session_deadline=row[14],
        last_heartbeat_at=row[15],
    )


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
        **hold_columns(group.hold),
    }


def member_columns(pk: int, member: ClassicMember) -> dict[str, Any]:
    """Parameters of `upsert_member`."""
    return {
        "id": pk,
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "protocol_type": member.protocol_type,
        "protocol_names": [protocol.name for protocol in member.protocols],
        "protocol_metadata": [protocol.metadata for protocol in member.protocols],
        **progress_columns(member),
    }


def progress_columns(member: ClassicMember) -> dict[str, Any]:
    """The columns that change while a member only joins, syncs and heartbeats (`update_member_progress`)."""
    return {
        "assignment": member.assignment,
        "is_new": member.is_new,
        "join_parked_until": member.join_parked_until,
        "sync_parked_until": member.sync_parked_until,
        "pending_sync": member.pending_sync,
        "session_deadline": member.session_deadline,
        "last_heartbeat_at": member.last_heartbeat_at,
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


def changes(before: ClassicGroup | None, after: ClassicGroup) -> Changes:
    """What must be written to make the rows of `before` those of `after`.

    Members keep their order of arrival because a member whose place changed has a new id (static replacement) and
    is written as a removal and an insertion.
    """
    old_members = before.members if before else Members()
    old_pending = before.pending_join if before else {}
    upserted, progressed, reassigned = [], [], []
    for member in after.members.values():
        old = old_members.get(member.member_id)
        if old is member:
            continue
        if old is None or _identity(old) != _identity(member):
            upserted.append(member)
        elif old != member:
            progressed.append(member)
        if member.assignment != (old.assignment if old else b""):
            reassigned.append(member)
    return Changes(
        header=before is None or group_columns(before) != group_columns(after),
        removed=tuple(member_id for member_id in old_members if member_id not in after.members),
        upserted=tuple(upserted),
        progressed=tuple(progressed),
        pending_removed=tuple(member_id for member_id in old_pending if member_id not in after.pending_join),
        pending_set={key: value for key, value in after.pending_join.items() if old_pending.get(key) != value},
        reassigned=tuple(reassigned),
        topics=(before.generation_topics if before else None) != after.generation_topics,
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
