"""Values of the core: a group, its members, its timers, and what `decide` is told about the world.

Everything is frozen. Instants and lengths are milliseconds (`Millis`) on the database's clock.
Source: classic specification, section 0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, ValuesView
from dataclasses import dataclass, field
from enum import Enum

Millis = int

NEW_MEMBER_JOIN_TIMEOUT_MS: Millis = 300_000
"""How long a member that never completed a join may stay parked (classic specification 10.1, a constant)."""


class GroupState(str, Enum):
    """States of a classic group as Kafka reports them (section 1)."""

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
    """A member of a classic group (section 0.2).

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


class Members(Mapping[str, ClassicMember]):
    """The members of a group by id, in order of arrival: immutable, with the counts that every request asks for.

    Kafka keeps the same counts beside its member map; a join storm of thousands would be quadratic without them.

    `awaiting_join`: members with a parked join. `pending_sync`: members that owe a sync. `static`: instance id ->
    member id. `support`: protocol name -> how many members list it.
    """

    __slots__ = ("_by_id", "awaiting_join", "pending_sync", "static", "support")

    def __init__(self, members: Iterable[ClassicMember] = ()) -> None:
        self._by_id: dict[str, ClassicMember] = {}
        self.awaiting_join = 0
        self.pending_sync = 0
        self.static: dict[str, str] = {}
        self.support: dict[str, int] = {}
        for member in members:
            self._by_id[member.member_id] = member
            self._count(member, 1)

    def put(self, member: ClassicMember) -> Members:
        """A copy with `member` in its old place, or at the end when its id is new."""
        after = self._copy()
        before = self._by_id.get(member.member_id)
        if before is not None:
            after._count(before, -1)
        after._by_id[member.member_id] = member
        after._count(member, 1)
        return after

    def drop(self, member_id: str) -> Members:
        """A copy without that member. KeyError if there is none."""
        after = self._copy()
        after._count(after._by_id.pop(member_id), -1)
        return after

    def _copy(self) -> Members:
        after = Members()
        after._by_id = self._by_id.copy()
        after.awaiting_join = self.awaiting_join
        after.pending_sync = self.pending_sync
        after.static = self.static.copy()
        after.support = self.support.copy()
        return after

    def _count(self, member: ClassicMember, sign: int) -> None:
        self.awaiting_join += sign * member.awaiting_join
        self.pending_sync += sign * member.pending_sync
        for name in {protocol.name for protocol in member.protocols}:
            self.support[name] = self.support.get(name, 0) + sign
        if member.instance_id is not None:
            if sign > 0:
                self.static[member.instance_id] = member.member_id
            else:
                del self.static[member.instance_id]

    def __getitem__(self, member_id: str) -> ClassicMember:
        return self._by_id[member_id]

    def __contains__(self, member_id: object) -> bool:
        return member_id in self._by_id

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    def values(self) -> ValuesView[ClassicMember]:
        """The members, in order of arrival."""
        return self._by_id.values()

    def __repr__(self) -> str:
        return f"Members({list(self._by_id.values())!r})"


@dataclass(frozen=True, slots=True)
class JoinTimer:
    """The armed join timer. `initial` is (delay, remaining) of an initial rebalance's window, else None
    (section 0.3).
    """

    deadline: Millis
    initial: tuple[Millis, Millis] | None = None


@dataclass(frozen=True, slots=True)
class ClassicGroup:
    """A classic group (section 0.2). `members` and `pending_join` keep the order of arrival."""

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
    pending_join: Mapping[str, Millis] = field(default_factory=dict)
    """Pending member id -> when it is forgotten."""

    @property
    def all_joined(self) -> bool:
        """Every member has a parked join and no handed out id is still unused."""
        return self.members.awaiting_join == len(self.members) and not self.pending_join

    @property
    def rebalance_timeout_ms(self) -> Millis:
        """The longest rebalance timeout of the members, 0 without members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """The settings that rules of the core read (section 10.1)."""

    min_session_timeout_ms: Millis = 6_000
    max_session_timeout_ms: Millis = 1_800_000
    initial_rebalance_delay_ms: Millis = 3_000
    max_size: int = 2_147_483_647


@dataclass(frozen=True, slots=True)
class Env:
    """The world as `decide` sees it: the time, fresh member ids, the settings.

    `fresh_id(prefix)` returns `<prefix>-<uuid4>`; tests pass a counter.
    """

    now: Millis
    fresh_id: Callable[[str], str]
    config: GroupConfig = GroupConfig()
