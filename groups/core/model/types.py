"""Values of the core: a group, its members, its timers, why it changes, what a caller may know about topics, and what
`decide` knows about the world.

Everything is frozen. Instants and lengths are milliseconds (`Millis`) on the database's clock.
Source: classic.md 0.2 and 1; consumer.md 4.6 (a regular expression matches only what its member may describe).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, TypeVar, dataclass_transform
from typing import Protocol as TypingProtocol

from groups.core.assignors import BUILT_IN, Assignor
from groups.core.model.persistent import ArrivalMap, PersistentMap

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def message(kind: type[T]) -> type[T]:
    """A dataclass that is frozen for the type checker only, with a hash of its fields.

    To make a frozen one takes a call for each field: 1.9 µs for a consumer heartbeat with its 16 fields, 0.5 µs so.
    """
    return dataclass(slots=True, unsafe_hash=True)(kind)


def everything(name: str) -> bool:
    """Every topic may be described."""
    return True


@message
class TopicRights:
    """Which topics a caller may describe.

    `key` is opaque and equal for callers that may describe the same topics, existing and future ones; "" means all
    topics. `may_describe` answers for the name of one topic; it is not part of what is compared or stored.
    """

    key: str
    may_describe: Callable[[str], bool] = field(compare=False)


UNLIMITED = TopicRights("", everything)
"""The rights of callers that may describe every topic."""


class Cause(str, Enum):
    """What made a group change, in both protocols.

    Source: classic.md 1 (the rows that lead to PreparingRebalance) and 0.3 (REMOVE); consumer.md 3.5 and 4.1.
    """

    GROUP_CREATED = "group_created"
    MEMBER_JOINED = "member_joined"
    MEMBER_LEFT = "member_left"
    MEMBER_KICKED = "member_kicked"
    SESSION_EXPIRED = "session_expired"
    JOIN_TIMED_OUT = "join_timed_out"
    SYNC_TIMED_OUT = "sync_timed_out"
    REBALANCE_TIMED_OUT = "rebalance_timed_out"
    GROUP_FULL = "group_full"
    LEADER_REJOINED = "leader_rejoined"
    STATIC_MEMBER_REPLACED = "static_member_replaced"
    PROTOCOLS_CHANGED = "protocols_changed"
    SUBSCRIPTION_CHANGED = "subscription_changed"
    TOPICS_CHANGED = "topics_changed"
    REGEXES_RESOLVED = "regexes_resolved"


Millis = int


class GroupState(str, Enum):
    """States of a classic group as Kafka reports them (classic.md 1)."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class Protocol:
    """One entry of a member's protocol list: an assignor's name and the member's opaque metadata for it."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """A member of a classic group (classic.md 0.2).

    `join_parked_until` / `sync_parked_until`: a join (sync) waits for its barrier; the request itself is held at most
    until that instant, and the session of a member that is not new does not run out before. None: not waiting.
    `session_deadline`: when the session runs out.
    `last_heartbeat_at`: the last request that renewed the session, None before the first.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: Millis
    rebalance_timeout_ms: Millis
    protocol_type: str
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    is_new: bool = True
    join_parked_until: Millis | None = None
    sync_parked_until: Millis | None = None
    pending_sync: bool = False
    session_deadline: Millis | None = None
    last_heartbeat_at: Millis | None = None

    @property
    def awaiting_join(self) -> bool:
        """A join of this member counts towards the barrier."""
        return self.join_parked_until is not None

    @property
    def awaiting_sync(self) -> bool:
        """A sync of this member waits for the leader's."""
        return self.sync_parked_until is not None

    @property
    def protocol_names(self) -> frozenset[str]:
        """The names of the protocols that the member lists."""
        return frozenset(protocol.name for protocol in self.protocols)

    def metadata_of(self, protocol_name: str | None) -> bytes:
        """What the member sent for a protocol that it supports. Raises ValueError for another one."""
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise ValueError(f"member {self.member_id!r} does not support the protocol {protocol_name!r}")


class Members(ArrivalMap[ClassicMember]):
    """The members of a group by id, in order of arrival: immutable, with the counts that every request needs.

    Kafka keeps the same counts alongside its member map; without them a join storm of thousands would be quadratic.

    `awaiting_join`: members with a parked join. `pending_sync`: members that owe a sync. `static`: instance id ->
    member id. `support`: protocol name -> number of members that list it.
    """

    __slots__ = ("awaiting_join", "pending_sync", "static", "support")

    def __init__(self, members: Iterable[ClassicMember] = ()) -> None:
        by_id = {member.member_id: member for member in members}
        super().__init__(by_id)
        self.static: PersistentMap[str, str] = PersistentMap(
            {member.instance_id: member.member_id for member in by_id.values() if member.instance_id is not None}
        )
        self.support: Mapping[str, int] = Counter(name for member in by_id.values() for name in member.protocol_names)
        self._count()

    @staticmethod
    def due(value: Any) -> Millis | None:
        """When the session of a member runs out."""
        return value.session_deadline  # type: ignore[no-any-return]

    def put(self, member: ClassicMember) -> Members:
        """A copy with `member` in its old position, or at the end when its id is new."""
        before = self.get(member.member_id)
        after = self._put(member.member_id, member)
        after.awaiting_join += member.awaiting_join - (before is not None and before.awaiting_join)
        after.pending_sync += member.pending_sync - (before is not None and before.pending_sync)
        after._replace(before, member)
        return after

    def drop(self, member_id: str) -> Members:
        """A copy without that member. KeyError if it does not exist."""
        before = self[member_id]
        after = self._drop(member_id)
        after.awaiting_join -= before.awaiting_join
        after.pending_sync -= before.pending_sync
        after._replace(before, None)
        return after

    def each(self, change: Callable[[ClassicMember], ClassicMember]) -> Members:
        """A copy with what `change` makes of each member, whose ids and protocols must stay as they are."""
        after = self._each(change)
        after._count()
        return after

    def _copy(self) -> Members:
        after = super()._copy()
        after.awaiting_join = self.awaiting_join
        after.pending_sync = self.pending_sync
        after.static = self.static
        after.support = self.support
        return after

    def _count(self) -> None:
        self.awaiting_join = sum(member.awaiting_join for member in self.values())
        self.pending_sync = sum(member.pending_sync for member in self.values())

    def _replace(self, before: ClassicMember | None, after: ClassicMember | None) -> None:
        """What a member lists and is called; of most changes it is the same."""
        if before is None or after is None or before.protocols is not after.protocols:
            support = Counter(self.support)
            support.subtract(before.protocol_names if before else ())
            support.update(after.protocol_names if after else ())
            self.support = +support
        was, called = before.instance_id if before else None, after.instance_id if after else None
        if was is not None and was != called:
            self.static = self.static.drop(was)
        if called is not None and called != was and after is not None:
            self.static = self.static.put(called, after.member_id)

    def __repr__(self) -> str:
        return f"Members({list(self.values())!r})"


class PendingIds(ArrivalMap[Millis]):
    """Member ids that were handed out and not used yet, and when each is forgotten, in order of arrival."""

    __slots__ = ()

    def __init__(self, deadlines: Mapping[str, Millis] | None = None) -> None:
        super().__init__(deadlines if deadlines is not None else {})

    @staticmethod
    def due(value: Any) -> Millis | None:
        """When an id is forgotten."""
        return value  # type: ignore[no-any-return]

    def put(self, member_id: str, deadline: Millis) -> PendingIds:
        """A copy with that id."""
        return self._put(member_id, deadline)

    def drop(self, member_id: str) -> PendingIds:
        """A copy without that id. KeyError if it is not among them."""
        return self._drop(member_id)


@dataclass(frozen=True, slots=True)
class JoinTimer:
    """The armed join timer. `initial` is (delay, remaining) of an initial rebalance's window, else None
    (classic.md 0.3).
    """

    deadline: Millis
    initial: tuple[Millis, Millis] | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """An operator keeps members out of a group (http-api.md 4). A held group has no members.

    `until`: when it ends by itself. `by`: the principal that placed it. `reason`: its explanation, may be empty.
    """

    until: Millis
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class ClassicGroup:
    """A classic group (classic.md 0.2). `members` and `pending_join` keep the order of arrival.

    `generation_topics`: what the members of the last generation subscribed to when it began, whatever they have said
    since then; None: unknown (offsets.md 6.1).
    """

    type: ClassVar[str] = "classic"
    """As Kafka's ListGroups has it."""
    group_id: str
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.DEAD
    state_since: Millis = 0
    generation_id: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    new_member_added: bool = False
    join_timer: JoinTimer | None = None
    sync_deadline: Millis | None = None
    members: Members = field(default_factory=Members)
    pending_join: PendingIds = field(default_factory=PendingIds)
    generation_topics: frozenset[str] | None = None
    hold: Hold | None = None
    armed_gap: int = 0
    """The gap of the coordinator partition under which the deadlines count, see `Env`."""

    @property
    def all_joined(self) -> bool:
        """Every member has a parked join and no handed-out id is still unused."""
        return self.members.awaiting_join == len(self.members) and not self.pending_join

    @property
    def rebalance_timeout_ms(self) -> Millis:
        """The longest rebalance timeout of the members, 0 without members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)


class MigrationPolicy(str, Enum):
    """Whether a group with members may change its protocol (consumer.md 9.4)."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def upgrades(self) -> bool:
        """A classic group may become a consumer group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def downgrades(self) -> bool:
        """A consumer group may become a classic group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


@dataclass(frozen=True, slots=True)
class Limits:
    """What settings say of members with epochs; those of each type of group have names of their own."""

    session_timeout_ms: Millis
    heartbeat_interval_ms: Millis
    assignment_interval_ms: Millis
    max_size: int


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """The settings that rules of the core read (classic.md 10.1, consumer.md 10), with the group's overrides applied.

    `consumer_assignment_inline_limit`: a target with a larger product of members and partitions is computed in the
    background; None: never. `share`: those of share groups.
    """

    min_session_timeout_ms: Millis = 6_000
    max_session_timeout_ms: Millis = 1_800_000
    initial_rebalance_delay_ms: Millis = 3_000
    max_size: int = 2_147_483_647
    consumer_session_timeout_ms: Millis = 45_000
    consumer_heartbeat_interval_ms: Millis = 5_000
    consumer_max_size: int = 2_147_483_647
    consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    consumer_regex_refresh_interval_ms: Millis = 600_000
    consumer_assignment_interval_ms: Millis = 0
    consumer_assignment_inline_limit: int | None = 200_000
    share: Limits = Limits(45_000, 5_000, 1_000, 200)

    @property
    def consumer(self) -> Limits:
        """Those of groups of the consumer protocol."""
        return Limits(
            self.consumer_session_timeout_ms,
            self.consumer_heartbeat_interval_ms,
            self.consumer_assignment_interval_ms,
            self.consumer_max_size,
        )


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that exists. `topic_id` tells it from an earlier topic of the same name."""

    topic_id: str
    name: str
    partitions: int


@dataclass(frozen=True, slots=True)
class TopicView:
    """The catalogue of topics at one instant. `version` grows with every change."""

    version: int = 0
    by_name: Mapping[str, Topic] = field(default_factory=dict)
    by_id: Mapping[str, Topic] = field(default_factory=dict)


class Subscription(TypingProtocol):
    """What a ConsumerProtocol subscription says."""

    @property
    def topics(self) -> tuple[str, ...]: ...
    @property
    def owned_partitions(self) -> Mapping[str, tuple[int, ...]]: ...
    @property
    def rack_id(self) -> str | None: ...
    @property
    def version(self) -> int: ...


class Assignment(TypingProtocol):
    """What a ConsumerProtocol assignment says."""

    @property
    def partitions(self) -> Mapping[str, tuple[int, ...]]: ...
    @property
    def user_data(self) -> bytes | None: ...


@dataclass(frozen=True, slots=True)
class ConsumerProtocol:
    """Reads and writes the bytes that members of protocol type "consumer" exchange.

    The decoders return None for bytes that are not such a message. `encode_assignment(partitions, version)` takes
    partitions by topic name.
    """

    decode_subscription: Callable[[bytes], Subscription | None]
    decode_assignment: Callable[[bytes], Assignment | None]
    encode_assignment: Callable[[Mapping[str, tuple[int, ...]], int], bytes]


def _no_regexes(pattern: str) -> str | None:
    return f"this server does not support regular expressions: subscribe to topics by name instead of {pattern!r}"


@dataclass(frozen=True, slots=True)
class Env:
    """The world as `decide` sees it: the time, fresh member ids, the settings, the topics.

    `fresh_id(prefix)` returns `<prefix>-<uuid4>`; tests pass a counter. `assignors`: those that members may request,
    the first is the default. `regex_error(pattern)`: what is wrong with a pattern, None if it is valid.
    `consumer_protocol`: None if groups cannot change their protocol, because the bytes of their members cannot be read.
    `may_expire`: the coordinator partition of the group has a live owner; without one nothing expires, because members
    may not have been able to renew their sessions. `gap`: grows whenever sessions of the partition could not be counted
    for a while; the deadlines of a group with a smaller `armed_gap` start over (architecture.md 6).
    `sessions_known_until`: sessions that end later than this instant may have been renewed without this being stored
    yet (None: all are stored), so none of them expires, even if it has ended (docs/models, rule 16).
    """

    now: Millis
    fresh_id: Callable[[str], str]
    config: GroupConfig = GroupConfig()
    topics: TopicView = TopicView()
    assignors: Mapping[str, Assignor] = field(default_factory=lambda: BUILT_IN)
    regex_error: Callable[[str], str | None] = _no_regexes
    consumer_protocol: ConsumerProtocol | None = None
    may_expire: bool = True
    gap: int = 0
    sessions_known_until: Millis | None = None

    @property
    def sessions_end(self) -> Millis:
        """The latest deadline (ms) of sessions that may expire now."""
        return self.now if self.sessions_known_until is None else min(self.now, self.sessions_known_until)


CONSUMER = "consumer"
"""The protocol type whose members say which topics they read."""


_EMPTY, _DEAD, _STABLE = GroupState.EMPTY, GroupState.DEAD, GroupState.STABLE
_PREPARING, _COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE

TRANSITIONS: Mapping[GroupState, frozenset[GroupState]] = {
    _EMPTY: frozenset({_PREPARING, _DEAD}),
    _PREPARING: frozenset({_COMPLETING, _EMPTY, _DEAD}),
    _COMPLETING: frozenset({_STABLE, _PREPARING, _DEAD}),
    _STABLE: frozenset({_PREPARING, _DEAD}),
    _DEAD: frozenset({_DEAD}),
}
"""Anything else is a bug, never a reply."""


class VerdictKind(str, Enum):
    """What can be wrong with a group; the worst comes first."""

    UNCOVERED = "uncovered"
    UNATTENDED = "unattended"
    STALLED = "stalled"
    UNSETTLED = "unsettled"
    STUCK = "stuck"
    LATE = "late"
    EXPIRING = "expiring"
    DEAD_LETTERS = "dead-letters"
    FLAPPING = "flapping"
    DISPUTED = "disputed"
    STALE = "stale"


RANKS = {kind: rank for rank, kind in enumerate(VerdictKind)}
"""0 is the worst."""
