"""Rows that only groups of the consumer protocol have. Instants are milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frontend.rows import Millis

AWAY_EPOCH = -2
"""The epoch of a static member that left temporarily."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Members by what they are doing. One that is not settled gives up, waits, is behind or away.

    `behind`: the member has not received the target yet.
    """

    unsettled: int
    giving_up: int
    waiting: int
    behind: int
    away: int


@dataclass(frozen=True, slots=True)
class Computation:
    """The state of the target. `started_at`: since when one is being computed; `failed`: the last attempt failed."""

    computed_at: Millis | None
    started_at: Millis | None
    deadline: Millis | None
    failed: bool


@dataclass(frozen=True, slots=True)
class Detail:
    """What a member reports about itself, and its timers besides the session.

    `topic_names` ends after `frontend.consumer.queries.NAMES_PER_MEMBER` of its `topic_count` names. `matched`: how
    many topics its regular expression matches, None before it is resolved.
    """

    member_id: str
    rack_id: str | None
    topic_names: Sequence[str]
    topic_count: int
    regex: str
    matched: int | None
    assignor: str | None
    classic: bool
    rebalance_deadline: Millis | None
    rejoin_deadline: Millis | None


@dataclass(frozen=True, slots=True)
class Difference:
    """Partitions of a topic that a member should have but does not (`gains`), or the reverse."""

    member_id: str
    topic: str
    gains: bool
    partitions: Sequence[int]


@dataclass(frozen=True, slots=True)
class Handover:
    """Partitions of a topic on their way from one member to another.

    No holder: they are free, and the heir gets them with its next heartbeat. No heir: no member should have them.
    `told`: the holder was asked to give them up. `deadline`: when the holder is removed if it has not.
    """

    holder_pk: int | None
    holder: str | None
    told: bool
    heir_pk: int | None
    heir: str | None
    topic: str
    partitions: Sequence[int]
    deadline: Millis | None
    holder_epoch: int | None
    holder_heartbeat_at: Millis | None
    holder_session: Millis | None
    heir_epoch: int | None
    heir_heartbeat_at: Millis | None

    @property
    def holder_is_away(self) -> bool:
        """The holder left temporarily, and keeps what it was not asked to give up."""
        return self.holder_epoch == AWAY_EPOCH

    @property
    def heir_is_away(self) -> bool:
        """The heir left temporarily; its share is kept for it."""
        return self.heir_epoch == AWAY_EPOCH


@dataclass(frozen=True, slots=True)
class Heir:
    """Who should have a partition that it does not have."""

    topic: str
    partition: int
    member_id: str
    member_pk: int


@dataclass(frozen=True, slots=True)
class ConsumerPart:
    """Everything that only the page of a consumer group shows.

    `handovers` are the first of `handover_lines`, with `moving` partitions in total. `votes`: how many members ask for
    an assignor. `unknown_topics`: subscribed names, among those shown, that are not in the catalogue. `partial`:
    the group has too many partitions, so changes of ownership were looked for only in the topics shown.
    """

    counts: Counts
    computation: Computation
    votes: Mapping[str, int]
    details: Mapping[str, Detail]
    differences: tuple[Difference, ...]
    handovers: tuple[Handover, ...]
    handover_lines: int
    moving: int
    heirs: tuple[Heir, ...]
    unknown_topics: frozenset[str]
    partial: bool = False
