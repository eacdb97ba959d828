"""Read model of what only consumer groups have; part of the snapshot that `frontend.queries.group_page` takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from frontend.consumer import rows
from frontend.consumer.rows import ConsumerPart
from kcoord.database.pool import Connection, Database
from kcoord.sql import queries

Q = queries("frontend")

NAMES_PER_MEMBER = 12
"""Subscribed topic names read per member; the rest are counted."""


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
    counts = await db.record(connection, rows.Counts, Q.consumer_counts, group)
    computation = await db.record(connection, rows.Computation, Q.consumer_computation, group)
    votes = await db.rows(connection, Q.assignor_votes, group)
    details = await db.records(connection, rows.Detail, Q.consumer_details, {**shown, "names": NAMES_PER_MEMBER})
    assert counts is not None
    assert computation is not None
    settled = counts.unsettled == 0
    only = {"only": list(drawn) if partial else None}
    differences = [] if settled else await db.records(connection, rows.Difference, Q.differences, {**shown, **only})
    limited = {**group, **only, "limit": handovers}
    moves = [] if settled else await db.records(connection, _move, Q.handovers, limited)
    places = {**group, "topics": list(drawn), "widths": list(drawn.values())}
    heirs = [] if settled else await db.records(connection, rows.Heir, Q.heirs, places)
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


async def changing_hands(db: Database, connection: Connection, wanted: Mapping[str, object]) -> Sequence[rows.Handover]:
    """Partitions on their way from one member to another. `wanted`: the parameters of the statement."""
    return [move.handover for move in await db.records(connection, _move, Q.handovers, dict(wanted))]


class _Move(NamedTuple):
    """A row of `handovers`, each of which says how many `lines` there are, with `moving` partitions in total."""

    handover: rows.Handover
    lines: int
    moving: int


def _move(*, lines: int, moving: int, **handover: Any) -> _Move:
    return _Move(rows.Handover(**handover), lines, moving)


async def _unknown(db: Database, connection: Connection, details: Iterable[rows.Detail]) -> frozenset[str]:
    names = {name for detail in details for name in detail.topic_names}
    if not names:
        return frozenset()
    return frozenset(names.difference(await db.column(connection, Q.known_topics, {"names": sorted(names)})))
