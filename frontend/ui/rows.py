"""Rows that several pages read, as the statements return them. Instants are milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from offsets.core.lag import position

Millis = int
Names = Mapping[str, str]
"""Member id -> `client@host`, for those members of which it is known."""


@dataclass(frozen=True, slots=True)
class GroupHeader:
    """The group itself. `held_until`: an operator keeps members out until then; may be in the past."""

    pk: int
    group_id: str
    type: str
    state: str
    previous_state: str
    state_since: Millis
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader_id: str | None
    join_deadline: Millis | None
    join_delay_ms: Millis | None
    sync_deadline: Millis | None
    assignment_epoch: int
    created_at: Millis
    updated_at: Millis
    held_until: Millis | None = None
    held_by: str | None = None
    hold_reason: str | None = None

    def is_held(self, now: Millis) -> bool:
        """An operator keeps members out at the moment."""
        return self.held_until is not None and self.held_until > now


@dataclass(frozen=True, slots=True)
class Member:
    """A member of either protocol, with the number of partitions it owns.

    For the consumer protocol only: `member_epoch` and `consumer_state` (0 has what it should have, 1 gives up, 2
    waits for others to give up). `software`: name and version of its client, if it named them (Kafka's protocol).
    """

    pk: int
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    awaiting_join: bool
    awaiting_sync: bool
    pending_sync: bool
    session_timeout_ms: Millis | None
    session_deadline: Millis | None
    last_heartbeat_at: Millis | None
    member_epoch: int | None
    consumer_state: int | None
    owned: int
    software: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionTotals:
    """Sums over the partitions that are owned or committed; `lag` adds those whose watermark is known.

    `topics`: the number of topics they cover.
    """

    partitions: int
    committed: int
    measured: int
    lag: int | None
    topics: int = 0


@dataclass(frozen=True, slots=True)
class PartitionOffset:
    """A partition with its owner and committed offset, either of which may be missing.

    `client_id`, `client_host`: of the owner, None if it is no longer a member.

    `expire_timestamp`: if the commit named a retention time. `pending`: a transaction is open on it.
    """

    topic: str
    partition: int
    owner: str | None
    committed_offset: int | None
    metadata: str | None
    commit_timestamp: Millis | None
    log_start_offset: int | None
    log_end_offset: int | None
    sampled_at: Millis | None
    expire_timestamp: Millis | None = None
    pending: bool = False
    client_id: str | None = None
    client_host: str | None = None

    @property
    def lag(self) -> int | None:
        """Records between the committed offset and the end of the log, from the start of the log at most."""
        if self.committed_offset is None or self.log_end_offset is None:
            return None
        return max(self.log_end_offset - position(self.committed_offset, self.log_start_offset or 0), 0)


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a group. `names`: of the members that it is about, as far as they are known."""

    id: int
    at: Millis
    kind: str
    generation_id: int
    member_id: str | None
    detail: Mapping[str, Any]
    names: Names = field(default_factory=dict)
