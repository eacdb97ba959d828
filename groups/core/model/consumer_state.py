"""Values of the consumer protocol: a group, its members, its timers.

Source: consumer.md 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from groups.core.model.partitions import Assigned, Partitions
from groups.core.model.persistent import DeadlineMap, Timer
from groups.core.model.types import Millis, Protocol

RegexKey = tuple[str, str]
"""A regular expression, and the key of the rights with which it is matched."""

DEPARTED_EPOCH = -2
"""The epoch in the heartbeat of a static member that leaves temporarily, and of the member from then on."""


class ConsumerGroupState(str, Enum):
    """States of a consumer group as Kafka reports them (consumer.md 1.4)."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MemberState(Enum):
    """Where a member stands on the way to its target; the values are Kafka's stored numbers (consumer.md 1.2)."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def _missing_(cls, value: object) -> MemberState:
        return cls.UNKNOWN


class TimerKind(str, Enum):
    """The timers of a member, in the order in which timers of the same instant fire (consumer.md 8)."""

    SESSION = "session"
    REBALANCE = "rebalance"
    JOIN = "join"
    SYNC = "sync"


@dataclass(frozen=True, slots=True)
class ClassicMetadata:
    """What a member brought with its JoinGroup; only members that use the classic protocol have it (consumer.md
    9.7).
    """

    session_timeout_ms: Millis
    protocols: tuple[Protocol, ...]


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """A member of a consumer group (consumer.md 1.2).

    `target` is what it should have, `assigned` what it may use now; `pending_revocation` is what it was told to give up
    and no other member may have yet. `subscribed_topic_regex` "": none. `topic_rights`: the key of what the caller of
    its last heartbeat may describe (`groups.core.model.rights`), "" also without a regular expression.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: Millis = -1
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str = ""
    topic_rights: str = ""
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Assigned = field(default_factory=dict)
    pending_revocation: Assigned = field(default_factory=dict)
    target: Partitions = field(default_factory=dict)

    @property
    def regex_key(self) -> RegexKey | None:
        """The key under which its regular expression is resolved; None: it has no regular expression."""
        return (self.subscribed_topic_regex, self.topic_rights) if self.subscribed_topic_regex else None

    def reconciled_to(self, epoch: int) -> bool:
        """Does the member have exactly what it should have as of `epoch`?"""
        return self.state is MemberState.STABLE and self.member_epoch == epoch


@dataclass(frozen=True, slots=True)
class Timers:
    """The timers of all members. Arming one again replaces the earlier one of its kind."""

    session: DeadlineMap = field(default_factory=DeadlineMap)
    rebalance: DeadlineMap = field(default_factory=DeadlineMap)
    join: DeadlineMap = field(default_factory=DeadlineMap)
    sync: DeadlineMap = field(default_factory=DeadlineMap)

    def of(self, kind: TimerKind) -> DeadlineMap:
        """The timers of one kind, by member id."""
        match kind:
            case TimerKind.SESSION:
                return self.session
            case TimerKind.REBALANCE:
                return self.rebalance
            case TimerKind.JOIN:
                return self.join
            case TimerKind.SYNC:
                return self.sync

    def arm(self, kind: TimerKind, member_id: str, timer: Timer) -> Timers:
        """A copy with that timer armed."""
        return replace(self, **{kind.value: self.of(kind).put(member_id, timer)})

    def cancel(self, kind: TimerKind, member_id: str) -> Timers:
        """A copy without that timer, if it was armed."""
        timers = self.of(kind)
        return replace(self, **{kind.value: timers.drop(member_id)}) if member_id in timers else self

    def forget(self, member_id: str) -> Timers:
        """A copy without the timers of that member."""
        timers = self
        for kind in TimerKind:
            timers = timers.cancel(kind, member_id)
        return timers

    def first(self) -> tuple[Millis, TimerKind] | None:
        """When the earliest timer fires, and its kind."""
        armed = [(timer.deadline, kind) for kind in TimerKind if (timer := self.of(kind).least) is not None]
        return min(armed, key=lambda timer: timer[0], default=None)

    def due(self, now: Millis, sessions_end: Millis) -> TimerKind | None:
        """The kind of the earliest overdue timer; sessions only up to `sessions_end`."""
        first = self.first()
        if first is None or first[0] > now:
            return None
        if first[1] is not TimerKind.SESSION or first[0] <= sessions_end:
            return first[1]
        first = replace(self, session=DeadlineMap()).first()
        return first[1] if first is not None and first[0] <= now else None


@dataclass(frozen=True, slots=True)
class RegexResolution:
    """What regular expressions matched among the topics that some rights allow describing: regex -> topic names.

    Those of members with the same rights are resolved together, from `topics_version` of the catalogue, in a job that
    began at `started_at`. Version -1: to be resolved as soon as possible; some of it is only what is left of a
    resolution with other rights. `started_at` None: with these rights nothing was resolved yet.
    """

    topics: Mapping[str, frozenset[str]]
    topics_version: int
    started_at: Millis | None


@dataclass(frozen=True, slots=True)
class Job:
    """Work in progress. From `deadline` on it counts as lost.

    `epoch`: the group epoch for which a target is computed; 0 for other work.
    """

    started_at: Millis
    deadline: Millis
    epoch: int = 0
