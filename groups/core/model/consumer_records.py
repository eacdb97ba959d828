"""Records of the consumer protocol: facts, folded by `fold.apply`.

`at` is the instant of the decision in milliseconds. The store writes the difference between the group before and after,
so a record says what happened and not which rows change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from groups.core.assignors import Partitions
from groups.core.model.consumer_group import Assigned, ConsumerMember, MemberState, TimerKind, Timers
from groups.core.model.types import Cause, Millis


@dataclass(frozen=True, slots=True)
class ConsumerGroupCreated:
    """The group is created, at epoch 0. `gap`: as that of `GroupCreated`."""

    group_id: str
    at: Millis
    gap: int = 0


@dataclass(frozen=True, slots=True)
class ShareGroupCreated:
    """A share group is created, at epoch 0. `gap`: as that of `GroupCreated`."""

    group_id: str
    at: Millis
    gap: int = 0


@dataclass(frozen=True, slots=True)
class ConsumerMemberJoined:
    """A member that was not there before (consumer.md 3.1)."""

    member: ConsumerMember
    at: Millis


@dataclass(frozen=True, slots=True)
class ConsumerMemberUpdated:
    """What a member said about itself changed: anything but epochs, state, partitions and target (consumer.md 2.5)."""

    member: ConsumerMember
    at: Millis


@dataclass(frozen=True, slots=True)
class ConsumerMemberReplaced:
    """A static member came back, with the same id or another: `member` replaces the old one (consumer.md 3.3).

    The timers of the old id end with it, and a target that is being computed for the old id is not waited for.
    """

    old_member_id: str
    member: ConsumerMember
    at: Millis


@dataclass(frozen=True, slots=True)
class StaticMemberDeparted:
    """A static member left temporarily: what it had to give up is free, the rest remains its own."""

    member_id: str
    at: Millis


@dataclass(frozen=True, slots=True)
class ConsumerMemberRemoved:
    """A member was removed, with its partitions, its target and its timers (consumer.md 3.5).

    `by` and `detail`: the principal that kicked it, and its reason. `session_timeout_ms`: of a session that ended.
    """

    member_id: str
    instance_id: str | None
    cause: Cause
    at: Millis
    detail: str
    by: str
    session_timeout_ms: Millis | None = None


@dataclass(frozen=True, slots=True)
class GroupEpochBumped:
    """A new target must be computed. The digest is that of the subscribed topics as of this epoch."""

    group_epoch: int
    cause: Cause
    member_id: str | None
    metadata_hash: str
    metadata_version: int
    at: Millis


@dataclass(frozen=True, slots=True)
class MetadataChecked:
    """The catalogue changed, but not the subscribed topics (consumer.md 4.4)."""

    metadata_version: int
    at: Millis


@dataclass(frozen=True, slots=True)
class TargetRequested:
    """The computation of a target was started; it counts as lost from `deadline` on."""

    group_epoch: int
    assignor: str
    deadline: Millis
    at: Millis


@dataclass(frozen=True, slots=True)
class TargetComputed:
    """A target as of `group_epoch`. `targets` holds only the members whose target changed."""

    group_epoch: int
    assignor: str
    targets: Mapping[str, Partitions]
    at: Millis


@dataclass(frozen=True, slots=True)
class TargetFailed:
    """An assignor that ran in the background failed; the group keeps its target and retries from `retry_at` on."""

    group_epoch: int
    assignor: str
    detail: str
    retry_at: Millis
    at: Millis


@dataclass(frozen=True, slots=True)
class MemberReconciled:
    """A member took a step towards its target (consumer.md 6). `releases`: other members may now have what it had."""

    member_id: str
    member_epoch: int
    previous_member_epoch: int
    state: MemberState
    assigned: Assigned
    pending_revocation: Assigned
    releases: bool
    at: Millis


@dataclass(frozen=True, slots=True)
class TimerArmed:
    """A timer of a member was armed, replacing an earlier one of its kind (consumer.md 8)."""

    kind: TimerKind
    member_id: str
    deadline: Millis
    at: Millis


@dataclass(frozen=True, slots=True)
class TimerCancelled:
    """A timer of a member was cancelled."""

    kind: TimerKind
    member_id: str
    at: Millis


@dataclass(frozen=True, slots=True)
class RegexesRequested:
    """A resolution of regular expressions was started; it counts as lost from `deadline` on.

    `rights`: the key of the rights of the members that use them.
    """

    rights: str
    deadline: Millis
    at: Millis


@dataclass(frozen=True, slots=True)
class RegexesResolved:
    """What the regular expressions in use match with some rights, by a job that began at `started_at` (consumer.md
    4.6).
    """

    rights: str
    topics: Mapping[str, frozenset[str]]
    topics_version: int
    started_at: Millis
    at: Millis


@dataclass(frozen=True, slots=True)
class RegexInherited:
    """A member's rights changed: until its expression is resolved with them, it matches what is left of before."""

    rights: str
    regex: str
    topics: frozenset[str]
    at: Millis


@dataclass(frozen=True, slots=True)
class TimersRearmed:
    """The timers of all members count from now: they could not be counted for a while (`core.rearming`)."""

    gap: int
    timers: Timers
    at: Millis


ConsumerChange = (
    ConsumerMemberJoined
    | ConsumerMemberUpdated
    | ConsumerMemberReplaced
    | StaticMemberDeparted
    | ConsumerMemberRemoved
    | GroupEpochBumped
    | MetadataChecked
    | TargetRequested
    | TargetComputed
    | TargetFailed
    | MemberReconciled
    | TimerCancelled
    | RegexesRequested
    | RegexesResolved
    | RegexInherited
    | TimersRearmed
)
"""What may change the state of a group (consumer.md 1.4)."""

ConsumerRecord = ConsumerGroupCreated | ShareGroupCreated | TimerArmed | ConsumerChange
