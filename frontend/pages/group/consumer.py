"""What only groups of the consumer protocol have: rows, and how they are read. Instants are milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from frontend.ui.members import AWAY_EPOCH, NAMES_PER_MEMBER, Detail
from frontend.ui.rows import Millis
from kcoord.database.pool import Connection, Database
from kcoord.sql import queries


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


Q = queries("frontend")


async def consumer_part(
    db: Database,
    connection: Connection,
    shown: Mapping[str, object],
    drawn: Mapping[str, int],
    handovers: int,
    *,
    partial: bool,
) -> ConsumerPart:
    """The part specific to a consumer group.

    `shown`: the parameters `pk`, `epoch` of its target, `member_ids` shown on the page, how many `topics` of each.
    `drawn`: how many partitions are drawn per topic. `handovers`: the maximum number of their lines.
    `partial`: changes of ownership are looked for in those topics only, because the group has many partitions.
    """
    group = {name: shown[name] for name in ("pk", "epoch")}
    counts = await db.record(connection, Counts, Q.consumer_counts, group)
    computation = await db.record(connection, Computation, Q.consumer_computation, group)
    votes = await db.rows(connection, Q.assignor_votes, group)
    details = await db.records(connection, Detail, Q.consumer_details, {**shown, "names": NAMES_PER_MEMBER})
    assert counts is not None
    assert computation is not None
    settled = counts.unsettled == 0
    only = {"only": list(drawn) if partial else None}
    differences = [] if settled else await db.records(connection, Difference, Q.differences, {**shown, **only})
    limited = {**group, **only, "limit": handovers}
    moves = [] if settled else await db.records(connection, _move, Q.handovers, limited)
    places = {**group, "topics": list(drawn), "widths": list(drawn.values())}
    heirs = [] if settled else await db.records(connection, Heir, Q.heirs, places)
    return ConsumerPart(
        counts=counts,
        computation=computation,
        votes={str(assignor): int(members) for assignor, members in votes},
        details={detail.member_id: detail for detail in details},
        differences=tuple(differences),
        handovers=tuple(move.handover for move in moves),
        handover_lines=moves[0].lines if moves else 0,
        moving=moves[0].moving if moves else 0,
        heirs=tuple(heirs),
        partial=partial and not settled,
        unknown_topics=await _unknown(db, connection, details),
    )


async def changing_hands(db: Database, connection: Connection, wanted: Mapping[str, object]) -> Sequence[Handover]:
    """Partitions on their way from one member to another. `wanted`: the parameters of the statement."""
    return [move.handover for move in await db.records(connection, _move, Q.handovers, dict(wanted))]


class _Move(NamedTuple):
    """A row of `handovers`, each of which says how many `lines` there are, with `moving` partitions in total."""

    handover: Handover
    lines: int
    moving: int


def _move(*, lines: int, moving: int, **handover: Any) -> _Move:
    return _Move(Handover(**handover), lines, moving)


async def _unknown(db: Database, connection: Connection, details: Iterable[Detail]) -> frozenset[str]:
    names = {name for detail in details for name in detail.topic_names}
    if not names:
        return frozenset()
    return frozenset(names.difference(await db.column(connection, Q.known_topics, {"names": sorted(names)})))
