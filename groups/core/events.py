"""The timeline of a group for its operators: which records are worth a line, and what it says. Pure.

Mere renewals of sessions, parked requests and timers are not events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from groups.core.records import (
    AssignmentsStored,
    GenerationStarted,
    GroupCreated,
    GroupDeleted,
    GroupEmptied,
    GroupUnloaded,
    MemberAdded,
    MemberRemoved,
    MemberReplaced,
    RebalanceStarted,
    Record,
    RemovalReason,
)
from groups.core.types import ClassicGroup, GroupState, Millis


class EventKind(str, Enum):
    """What can happen to a group, in the order of its life."""

    GROUP_CREATED = "group_created"
    MEMBER_JOINED = "member_joined"
    MEMBER_LEFT = "member_left"
    MEMBER_EXPIRED = "member_expired"
    MEMBER_REMOVED = "member_removed"
    MEMBER_REPLACED = "member_replaced"
    REBALANCE_STARTED = "rebalance_started"
    REBALANCE_COMPLETED = "rebalance_completed"
    ASSIGNMENT_STORED = "assignment_stored"
    GROUP_EMPTIED = "group_emptied"
    GROUP_UNLOADED = "group_unloaded"
    GROUP_DELETED = "group_deleted"


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """One line of the timeline. `generation_id` is the group's at that point, `member_id` whom it is about, if anybody.

    `detail` by kind (keys without a value are left out):
    MEMBER_JOINED: instance_id, client_id, client_host. MEMBER_LEFT, MEMBER_EXPIRED, MEMBER_REMOVED: instance_id, cause
    (a `RemovalReason`), reason (the client's words). MEMBER_REPLACED: instance_id, old_member_id. REBALANCE_STARTED:
    cause (a `RebalanceCause`), reason. REBALANCE_COMPLETED: leader, protocol_name, members (how many), duration_ms
    (since the rebalance started). ASSIGNMENT_STORED: members (how many got one), duration_ms (since the join
    completed). GROUP_EMPTIED: duration_ms.
    """

    kind: EventKind
    generation_id: int
    member_id: str | None = None
    detail: Mapping[str, object] = field(default_factory=dict)


_REMOVALS: Mapping[RemovalReason, EventKind] = {
    RemovalReason.LEFT: EventKind.MEMBER_LEFT,
    RemovalReason.SESSION_EXPIRED: EventKind.MEMBER_EXPIRED,
    RemovalReason.DID_NOT_REJOIN: EventKind.MEMBER_REMOVED,
    RemovalReason.DID_NOT_SYNC: EventKind.MEMBER_REMOVED,
    RemovalReason.GROUP_FULL: EventKind.MEMBER_REMOVED,
}


def events_of(before: ClassicGroup | None, records: Iterable[Record]) -> tuple[GroupEvent, ...]:
    """The events of one decision: `records` on the group `before`."""
    timeline = _Timeline(before)
    return tuple(event for record in records if (event := timeline.event(record)) is not None)


class _Timeline:
    """What events tell beside their record: the generation, since when the group is in its state."""

    def __init__(self, before: ClassicGroup | None) -> None:
        self._generation = before.generation_id if before is not None else 0
        self._members = len(before.members) if before is not None else 0
        waits = before is not None and before.state in (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE)
        self._since: Millis | None = before.state_since if before is not None and waits else None

    def event(self, record: Record) -> GroupEvent | None:
        match record:
            case GroupCreated():
                return self._event(EventKind.GROUP_CREATED)
            case GroupDeleted():
                return self._event(EventKind.GROUP_DELETED)
            case GroupUnloaded():
                return self._event(EventKind.GROUP_UNLOADED)
            case MemberAdded() | MemberReplaced() | MemberRemoved():
                return self._membership(record)
            case RebalanceStarted():
                self._since = record.at
                return self._event(
                    EventKind.REBALANCE_STARTED,
                    record.member_id,
                    cause=record.cause.value,
                    reason=record.detail or None,
                )
            case GenerationStarted() | GroupEmptied() | AssignmentsStored():
                return self._progress(record)
            case _:
                return None

    def _membership(self, record: MemberAdded | MemberReplaced | MemberRemoved) -> GroupEvent:
        if isinstance(record, MemberRemoved):
            self._members -= 1
            return self._event(
                _REMOVALS[record.reason],
                record.member_id,
                instance_id=record.instance_id,
                cause=record.reason.value,
                reason=record.detail or None,
            )
        member = record.member
        if isinstance(record, MemberReplaced):
            return self._event(
                EventKind.MEMBER_REPLACED,
                member.member_id,
                instance_id=member.instance_id,
                old_member_id=record.old_member_id,
            )
        self._members += 1
        return self._event(
            EventKind.MEMBER_JOINED,
            member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
        )

    def _progress(self, record: GenerationStarted | GroupEmptied | AssignmentsStored) -> GroupEvent:
        duration = record.at - self._since if self._since is not None else None
        self._since = record.at
        match record:
            case GenerationStarted():
                self._generation = record.generation_id
                return self._event(
                    EventKind.REBALANCE_COMPLETED,
                    leader=record.leader_id,
                    protocol_name=record.protocol_name,
                    members=self._members,
                    duration_ms=duration,
                )
            case AssignmentsStored():
                return self._event(EventKind.ASSIGNMENT_STORED, members=len(record.assignments), duration_ms=duration)
            case GroupEmptied():
                self._generation = record.generation_id
                return self._event(EventKind.GROUP_EMPTIED, duration_ms=duration)

    def _event(self, kind: EventKind, member_id: str | None = None, **detail: object) -> GroupEvent:
        told = {key: value for key, value in detail.items() if value is not None}
        return GroupEvent(kind, self._generation, member_id, told)
