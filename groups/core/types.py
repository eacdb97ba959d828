"""Values of the core: a group, its members, its timers, and what `decide` is told about the world.

Everything is frozen. Instants and lengths are milliseconds (`Millis`) on the database's clock.
Source: classic specification, section 0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


@dataclass(frozen=True, slots=True)
class JoinTimer:
    """The armed join timer. `initial` is (delay, remaining) of an initial rebalance's window, else None (section 0.3)."""

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
    members: Mapping[str, ClassicMember] = field(default_factory=dict)
    pending_join: Mapping[str, Millis] = field(default_factory=dict)
    """Pending member id -> when it is forgotten."""


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
