"""Records: the facts a decision consists of. `fold.apply` gives each its effect; nothing else changes a group.

A record says what happened and why, in the words of classic.md; instants (`at`, deadlines) are in
milliseconds. Where one fact touches every member (`GenerationStarted`, `RebalanceStarted`, `AssignmentsStored`) it is
one record: the store persists the difference between the group before and after, not the records.

The records of the consumer protocol are in `consumer.records`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from groups.core.model.commands import ParkKind
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.consumer_records import ConsumerRecord
from groups.core.model.types import Cause, ClassicGroup, ClassicMember, Hold, JoinTimer, Millis, Protocol


@dataclass(frozen=True, slots=True)
class GroupCreated:
    """The group is created: Empty, generation 0. `gap`: of its partition, under which its deadlines will count."""

    group_id: str
    at: Millis
    gap: int = 0


@dataclass(frozen=True, slots=True)
class GroupDeleted:
    """The group is deleted with everything in it."""

    group_id: str


@dataclass(frozen=True, slots=True)
class GroupUnloaded:
    """The group is Dead: its timers are dropped, no request waits any longer (classic.md 8.6)."""

    at: Millis


@dataclass(frozen=True, slots=True)
class MemberPending:
    """An id was handed out with MEMBER_ID_REQUIRED; it is forgotten at `deadline` if it never joins."""

    member_id: str
    deadline: Millis


@dataclass(frozen=True, slots=True)
class PendingForgotten:
    """A pending id was not used in time, left, was refused, or was kicked by `by` for the reason `detail`."""

    member_id: str
    cause: Cause
    detail: str
    by: str


@dataclass(frozen=True, slots=True)
class MemberAdded:
    """ADD (classic.md 0.3): a new member with a parked join.

    It is no longer pending. The rest says what the group has from now on: the first member leads and sets the protocol
    type, and `new_member_added` prolongs an initial rebalance.
    """

    member: ClassicMember
    leader_id: str
    protocol_type: str
    new_member_added: bool


@dataclass(frozen=True, slots=True)
class MemberUpdated:
    """UPDATE (classic.md 0.3): a member joined again; the request's protocols and timeouts apply and its join is
    parked.
    """

    member_id: str
    protocols: tuple[Protocol, ...]
    session_timeout_ms: Millis
    rebalance_timeout_ms: Millis
    join_parked_until: Millis
    session_deadline: Millis


@dataclass(frozen=True, slots=True)
class MemberReplaced:
    """A static member came back without its id (classic.md 7.2): `member` replaces the old id.

    `leader_id`: of the group from now on.
    """

    old_member_id: str
    member: ClassicMember
    leader_id: str | None


@dataclass(frozen=True, slots=True)
class MemberRemoved:
    """REMOVE (classic.md 0.3).

    `leader_id`: of the group from now on. `detail`: the reason given. `by`: the principal that kicked the member.
    `session_timeout_ms`: of a session that ended.
    """

    member_id: str
    instance_id: str | None
    leader_id: str | None
    cause: Cause
    detail: str
    by: str
    session_timeout_ms: Millis | None = None


@dataclass(frozen=True, slots=True)
class SyncParked:
    """A sync waits for the leader's; the member no longer owes one."""

    member_id: str
    until: Millis
    session_deadline: Millis


@dataclass(frozen=True, slots=True)
class MemberSynced:
    """A member fetched its stored assignment; it no longer owes a sync."""

    member_id: str


@dataclass(frozen=True, slots=True)
class WaitAbandoned:
    """The connection of a parked request is gone: the request is held until `at`, the session to `session_deadline`."""

    member_id: str
    kind: ParkKind
    at: Millis
    session_deadline: Millis


@dataclass(frozen=True, slots=True)
class SessionRenewed:
    """A heartbeat or commit kept the member alive."""

    member_id: str
    deadline: Millis
    at: Millis


@dataclass(frozen=True, slots=True)
class RebalanceStarted:
    """PREPARE, steps 1, 2 and 4 (classic.md 0.3).

    No member owes a sync any longer, and no sync is parked. `discards_assignments`: what was handed out in a generation
    that never became Stable is taken back. `session_deadlines`: of the members whose sync was parked.
    """

    at: Millis
    cause: Cause
    member_id: str
    detail: str
    discards_assignments: bool
    session_deadlines: Mapping[str, Millis] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JoinTimerArmed:
    """The join timer was armed. No new member has come since then (classic.md 2.7).

    Differs from Kafka: every window starts with the flag `new_member_added` cleared, including the first of an initial
    rebalance, so that a leftover from an earlier one cannot prolong it (classic.md 13.1 item 1).
    """

    timer: JoinTimer


@dataclass(frozen=True, slots=True)
class GenerationStarted:
    """COMPLETE_JOIN, steps 5 to 9: the join barrier fell; every member owes a sync.

    `session_deadlines`: of all members. `topics`: what the members subscribe to, None if unknown.
    """

    generation_id: int
    leader_id: str
    protocol_name: str
    sync_deadline: Millis
    session_deadlines: Mapping[str, Millis]
    at: Millis
    topics: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class GroupEmptied:
    """COMPLETE_JOIN, step 6: a rebalance ended without members. `topics`: as of `GenerationStarted`."""

    generation_id: int
    at: Millis
    topics: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class SyncTimerCleared:
    """No member owes a sync any longer."""


@dataclass(frozen=True, slots=True)
class AssignmentsStored:
    """The leader's sync: the sync barrier fell, the group is Stable. A member that is not listed gets zero bytes
    (classic.md 3.2). `session_deadlines`: of the members whose sync was parked.
    """

    assignments: Mapping[str, bytes]
    session_deadlines: Mapping[str, Millis]
    at: Millis


@dataclass(frozen=True, slots=True)
class GroupConverted:
    """The group continues in the other protocol, as `group` (consumer.md 2.3 and 9.5 to 9.7)."""

    group: ClassicGroup | ConsumerGroup
    at: Millis


@dataclass(frozen=True, slots=True)
class GroupHeld:
    """From now on no member can join. The group has no members and no pending ids: `removed` members were removed."""

    hold: Hold
    removed: int
    at: Millis


@dataclass(frozen=True, slots=True)
class DeadlinesRearmed:
    """The deadlines of a classic group count from now: they could not be counted for a while (`core.rearming`).

    `sessions`: by member id. `pending`: of the handed-out ids.
    """

    gap: int
    sessions: Mapping[str, Millis]
    pending: Mapping[str, Millis]
    join_timer: JoinTimer | None
    sync_deadline: Millis | None
    at: Millis


@dataclass(frozen=True, slots=True)
class HoldReleased:
    """Members may join again. `by`: the principal that ended the hold, None: it expired."""

    by: str | None
    at: Millis


ClassicChange = (
    GroupUnloaded
    | MemberPending
    | PendingForgotten
    | MemberAdded
    | MemberUpdated
    | MemberReplaced
    | MemberRemoved
    | SyncParked
    | MemberSynced
    | WaitAbandoned
    | SessionRenewed
    | RebalanceStarted
    | JoinTimerArmed
    | GenerationStarted
    | GroupEmptied
    | SyncTimerCleared
    | AssignmentsStored
    | DeadlinesRearmed
)
"""What changes a classic group that exists, and leaves one."""

Record = GroupCreated | GroupDeleted | ClassicChange | ConsumerRecord | GroupConverted | GroupHeld | HoldReleased
