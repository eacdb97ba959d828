"""The events of a group for its operators: which records become an event, and what it says. Pure.

Mere renewals of sessions, parked requests and timers are not events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from groups.core.model.consumer_group import ConsumerMember, MemberState
from groups.core.model.consumer_records import (
    ConsumerGroupCreated,
    ConsumerMemberJoined,
    ConsumerMemberRemoved,
    ConsumerMemberReplaced,
    ConsumerRecord,
    GroupEpochBumped,
    MemberReconciled,
    RegexesResolved,
    ShareGroupCreated,
    StaticMemberDeparted,
    TargetComputed,
    TargetFailed,
    TimersRearmed,
)
from groups.core.model.group import Group
from groups.core.model.records import (
    AssignmentsStored,
    DeadlinesRearmed,
    GenerationStarted,
    GroupConverted,
    GroupCreated,
    GroupDeleted,
    GroupEmptied,
    GroupHeld,
    GroupUnloaded,
    HoldReleased,
    MemberAdded,
    MemberRemoved,
    MemberReplaced,
    PendingForgotten,
    RebalanceStarted,
    Record,
)
from groups.core.model.types import Cause, ClassicGroup, ClassicMember, Millis

LONGEST_TEXT = 500
"""Longest text in the detail of an event, in characters."""


class EventKind(str, Enum):
    """What can happen to a group, in the order of its life cycle."""

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
    GROUP_CONVERTED = "group_converted"
    MEMBER_DEPARTED = "member_departed"
    GROUP_EPOCH_BUMPED = "group_epoch_bumped"
    TARGET_COMPUTED = "target_computed"
    TARGET_FAILED = "target_failed"
    MEMBER_RECONCILED = "member_reconciled"
    REGEXES_RESOLVED = "regexes_resolved"
    OFFSETS_RESET = "offsets_reset"
    OFFSETS_RESTORED = "offsets_restored"
    OFFSETS_DELETED = "offsets_deleted"
    OFFSETS_EXPIRED = "offsets_expired"
    RETENTION_PINNED = "retention_pinned"
    RETENTION_UNPINNED = "retention_unpinned"
    GROUP_HELD = "group_held"
    HOLD_RELEASED = "hold_released"
    CONFIG_CHANGED = "config_changed"
    LABELS_CHANGED = "labels_changed"
    TRANSACTION_ABORTED = "transaction_aborted"
    DEADLINES_REARMED = "deadlines_rearmed"


MOST_TOPICS = 10
"""The number of topic names that one event lists."""


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """One event. `generation_id` is the group's at that point, for a consumer group its epoch;
    `member_id` the member it is about, if any.

    `detail` by kind (keys without a value are left out):
    MEMBER_JOINED: instance_id, client_id, client_host. MEMBER_LEFT, MEMBER_EXPIRED, MEMBER_REMOVED: instance_id, cause
    (a `Cause`), reason (given by the client, or by the principal that kicked it), principal
    (who kicked it), session_timeout_ms (of a session that ended). MEMBER_REPLACED: instance_id, old_member_id.
    REBALANCE_STARTED: cause (a `Cause`), reason. REBALANCE_COMPLETED: leader, protocol_name, members (number),
    duration_ms (since the rebalance started). ASSIGNMENT_STORED: members (number that got one), duration_ms (since the
    join completed). GROUP_EMPTIED: duration_ms.
    GROUP_CONVERTED: protocol ("classic" or "consumer"). GROUP_EPOCH_BUMPED: cause (a `Cause`). TARGET_COMPUTED:
    assignor, assignment_epoch, members (how many got another target). TARGET_FAILED: assignor, reason.
    MEMBER_RECONCILED: member_epoch, partitions (how many it has). REGEXES_RESOLVED (only if others match than before):
    topics (how many match).
    OFFSETS_RESET, OFFSETS_RESTORED, OFFSETS_DELETED, OFFSETS_EXPIRED: partitions (how many), topics (their names,
    ten at most), principal (who did it), plan_id, reason. RETENTION_PINNED, RETENTION_UNPINNED: topic (of one topic
    only), principal, reason.
    GROUP_HELD: principal, until (ms), members (how many were removed), reason. HOLD_RELEASED: principal; without one
    the hold expired. CONFIG_CHANGED: settings (name -> [what was in force, what is]), principal.
    LABELS_CHANGED: labels (name -> [what it was, what it is], None for none), principal.
    TRANSACTION_ABORTED, for a transaction that its producer did not end: transactional_id, cause ("fenced" by another
    producer or "abandoned"), partitions (how many had an offset pending), topics (their names, ten at most).
    DEADLINES_REARMED: members (how many got a full session, because sessions could not be counted for a while).
    """

    kind: EventKind
    generation_id: int
    member_id: str | None = None
    detail: Mapping[str, object] = field(default_factory=dict)


_REMOVALS: Mapping[Cause, EventKind] = {
    Cause.MEMBER_LEFT: EventKind.MEMBER_LEFT,
    Cause.SESSION_EXPIRED: EventKind.MEMBER_EXPIRED,
}
"""The kind of event that reports a removal; for any other cause MEMBER_REMOVED."""


def events_of(before: Group | None, records: Iterable[Record]) -> tuple[GroupEvent, ...]:
    """The events of one decision: `records` on the group `before`."""
    timeline = _Timeline(before)
    return tuple(event for record in records if (event := timeline.event(record)) is not None)


def _bounded(value: object) -> object:
    """Text from outside, such as an assignor's failure, must not make an entry of arbitrary length."""
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"{value[: LONGEST_TEXT - 1]}…"
    return value


class _Timeline:
    """What events say besides their record: the generation, since when the state lasts, what patterns match."""

    def __init__(self, before: Group | None) -> None:
        self._generation = 0
        self._members = 0
        self._since: Millis | None = None
        self._matched: Mapping[str, Mapping[str, frozenset[str]]] = {}
        if before is not None:
            self._look_at(before)

    def _look_at(self, group: Group) -> None:
        self._members = len(group.members)
        if not isinstance(group, ClassicGroup):
            self._generation = group.group_epoch
            self._matched = {rights: found.topics for rights, found in group.resolutions.items()}
            return
        self._generation = group.generation_id
        self._since = group.state_since

    def event(self, record: Record) -> GroupEvent | None:
        if isinstance(record, ConsumerRecord):
            return self._consumer_event(record)
        match record:
            case GroupCreated():
                return self._event(EventKind.GROUP_CREATED)
            case GroupConverted():
                self._look_at(record.group)
                classic = isinstance(record.group, ClassicGroup)
                return self._event(EventKind.GROUP_CONVERTED, protocol="classic" if classic else "consumer")
            case GroupDeleted():
                return self._event(EventKind.GROUP_DELETED)
            case GroupUnloaded():
                return self._event(EventKind.GROUP_UNLOADED)
            case MemberAdded() | MemberReplaced() | MemberRemoved():
                return self._membership(record)
            case PendingForgotten(cause=Cause.MEMBER_KICKED):
                return self._event(
                    EventKind.MEMBER_REMOVED,
                    record.member_id,
                    cause=record.cause.value,
                    reason=record.detail or None,
                    principal=record.by or None,
                )
            case GroupHeld() | HoldReleased():
                return self._holding(record)
            case DeadlinesRearmed():
                return self._event(EventKind.DEADLINES_REARMED, members=len(record.sessions))
            case RebalanceStarted():
                self._since = record.at
                return self._event(
                    EventKind.REBALANCE_STARTED,
                    record.member_id or None,
                    cause=record.cause.value,
                    reason=record.detail or None,
                )
            case GenerationStarted() | GroupEmptied() | AssignmentsStored():
                return self._progress(record)
        return None

    def _consumer_event(self, record: ConsumerRecord) -> GroupEvent | None:
        match record:
            case ConsumerGroupCreated() | ShareGroupCreated():
                return self._event(EventKind.GROUP_CREATED)
            case ConsumerMemberJoined() | ConsumerMemberReplaced() | ConsumerMemberRemoved():
                return self._consumer_membership(record)
            case StaticMemberDeparted():
                return self._event(EventKind.MEMBER_DEPARTED, record.member_id)
            case GroupEpochBumped():
                self._generation = record.group_epoch
                return self._event(EventKind.GROUP_EPOCH_BUMPED, record.member_id, cause=record.cause.value)
            case TargetComputed():
                return self._event(
                    EventKind.TARGET_COMPUTED,
                    assignor=record.assignor,
                    assignment_epoch=record.group_epoch,
                    members=len(record.targets),
                )
            case TargetFailed():
                return self._event(EventKind.TARGET_FAILED, assignor=record.assignor, reason=record.detail)
            case MemberReconciled(state=MemberState.STABLE):
                partitions = sum(map(len, record.assigned.values()))
                return self._event(
                    EventKind.MEMBER_RECONCILED,
                    record.member_id,
                    member_epoch=record.member_epoch,
                    partitions=partitions,
                )
            case TimersRearmed():
                return self._event(EventKind.DEADLINES_REARMED, members=len(record.timers.session))
            # They are matched again and again (KIP-848), mostly with the same result.
            case RegexesResolved() if record.topics != self._matched.get(record.rights):
                return self._event(EventKind.REGEXES_RESOLVED, topics=len(frozenset().union(*record.topics.values())))
        return None

    def _consumer_membership(
        self, record: ConsumerMemberJoined | ConsumerMemberReplaced | ConsumerMemberRemoved
    ) -> GroupEvent:
        match record:
            case ConsumerMemberRemoved():
                return self._removed(record)
            case ConsumerMemberReplaced():
                return self._replaced(record.member, record.old_member_id)
            case ConsumerMemberJoined():
                return self._joined(record.member)

    def _membership(self, record: MemberAdded | MemberReplaced | MemberRemoved) -> GroupEvent:
        match record:
            case MemberRemoved():
                self._members -= 1
                return self._removed(record)
            case MemberReplaced():
                return self._replaced(record.member, record.old_member_id)
            case MemberAdded():
                self._members += 1
                return self._joined(record.member)

    def _removed(self, record: MemberRemoved | ConsumerMemberRemoved) -> GroupEvent:
        return self._event(
            _REMOVALS.get(record.cause, EventKind.MEMBER_REMOVED),
            record.member_id,
            instance_id=record.instance_id,
            cause=record.cause.value,
            reason=record.detail or None,
            principal=record.by or None,
            session_timeout_ms=record.session_timeout_ms,
        )

    def _replaced(self, member: ClassicMember | ConsumerMember, old_member_id: str) -> GroupEvent:
        return self._event(
            EventKind.MEMBER_REPLACED, member.member_id, instance_id=member.instance_id, old_member_id=old_member_id
        )

    def _joined(self, member: ClassicMember | ConsumerMember) -> GroupEvent:
        return self._event(
            EventKind.MEMBER_JOINED,
            member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
        )

    def _holding(self, record: GroupHeld | HoldReleased) -> GroupEvent:
        match record:
            case GroupHeld(hold=hold):
                return self._event(
                    EventKind.GROUP_HELD,
                    principal=hold.by or None,
                    until=hold.until,
                    members=record.removed,
                    reason=hold.reason or None,
                )
            case HoldReleased():
                return self._event(EventKind.HOLD_RELEASED, principal=record.by or None)

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
        told = {key: _bounded(value) for key, value in detail.items() if value is not None}
        return GroupEvent(kind, self._generation, member_id, told)
