"""Read model of what only consumer groups have; part of the snapshot that `frontend.queries.group_page` takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
    counts = await db.row(connection, Q.consumer_counts, group)
    computation = await db.row(connection, Q.consumer_computation, group)
    votes = await db.rows(connection, Q.assignor_votes, group)
    found = await db.rows(connection, Q.consumer_details, {**shown, "names": NAMES_PER_MEMBER})
    assert counts is not None
    assert computation is not None
    details = [rows.Detail(*(*row[:2], tuple(row[2]), *row[3:])) for row in found]
    settled = counts[0] == 0
    only = {"only": list(drawn) if partial else None}
    differences = [] if settled else await db.rows(connection, Q.differences, {**shown, **only})
    moves = [] if settled else await db.rows(connection, Q.handovers, {**group, **only, "limit": handovers})
    places = {**group, "topics": list(drawn), "widths": list(drawn.values())}
    heirs = [] if settled else await db.rows(connection, Q.heirs, places)
    return ConsumerPart(
        counts=rows.Counts(*counts),
        computation=rows.Computation(*computation),
        votes={str(assignor): int(members) for assignor, members in votes},
        details={detail.member_id: detail for detail in details},
        differences=tuple(rows.Difference(*(*row[:3], tuple(row[3]))) for row in differences),
        handovers=tuple(rows.Handover(*(*row[:6], tuple(row[6]), *row[7:13])) for row in moves),
        handover_lines=int(moves[0][13]) if moves else 0,
        moving=int(moves[0][14]) if moves else 0,
        heirs=tuple(rows.Heir(*row) for row in heirs),
        partial=partial and not settled,
        unknown_topics=await _unknown(db, connection, details),
    )


async def _unknown(db: Database, connection: Connection, details: Iterable[rows.Detail]) -> frozenset[str]:
    names = {name for detail in details for name in detail.topic_names}
    if not names:
        return frozenset()
    return frozenset(names.difference(await db.column(connection, Q.known_topics, {"names": sorted(names)})))
