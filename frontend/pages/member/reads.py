"""Reads the page of a member: bounded by the page, whatever the size of its group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from frontend.ui.members import NAMES_PER_MEMBER, Detail, member_rates
from frontend.ui.reads import header_with_members, named_events, require_members
from frontend.ui.rows import Event, GroupHeader, Member, Millis
from frontend.ui.viewer import Viewer
from kcoord.database.pool import Connection, Database
from kcoord.sql import queries

Q = queries("frontend")

PARTITIONS = 50
"""Partitions of one page."""
SUMMED = 10_000
"""Partitions whose lag is added up; a member that owns more says so."""
RATED = 2_000
"""Of a member that owns more partitions nobody says how fast it reads: each takes a look into the journal."""
EVENTS = 25
EVENTS_SEARCHED = 5_000
"""Events of the group among which those of the member are looked for."""
START = ("", -1)
"""Before the first partition."""


@dataclass(frozen=True, slots=True)
class MemberTotals:
    """Sums over the first `SUMMED` of its partitions; `lag` adds those whose watermark is known.

    `sampled_at` (ms): the oldest watermark. `target`: how many partitions it is meant to have; None: what it owns.
    """

    partitions: int
    committed: int
    measured: int
    lag: int | None
    sampled_at: Millis | None
    target: int | None


@dataclass(frozen=True, slots=True)
class MemberPartition:
    """A partition that a member owns (`held`) or is meant to have (`wanted`; None: it is meant to have what it owns).

    `pending`: it was told to give it up. Watermark and samples are complete or None.
    """

    topic: str
    partition: int
    pending: bool
    held: bool
    wanted: bool | None
    committed_offset: int | None
    commit_timestamp: Millis | None
    log_start_offset: Any
    log_end_offset: Any
    sampled_at: Any
    before_at: Any
    before_until: Any
    before_log_start_offset: Any
    before_log_end_offset: Any
    after_at: Any
    after_until: Any
    after_log_start_offset: Any
    after_log_end_offset: Any


@dataclass(frozen=True, slots=True)
class Described:
    """A member as it describes itself.

    `metadata`: what a classic member sent for the protocol of its group. `previous_epoch`: of the consumer protocol.
    """

    member: Member
    rebalance_timeout_ms: Millis
    previous_epoch: int | None
    protocol_names: Sequence[str]
    metadata: bytes | None


def _described(
    *,
    rebalance_timeout_ms: Millis,
    previous_epoch: int | None,
    protocol_names: Sequence[str],
    metadata: bytes | None,
    **member: Any,
) -> Described:
    return Described(Member(**member), rebalance_timeout_ms, previous_epoch, protocol_names, metadata)


@dataclass(frozen=True, slots=True)
class Present:
    """A member that its group has. `detail`: of the consumer protocol. `unknown_topics`: not in the catalogue.

    `more`: there are further partitions after `partitions`. `rate`: records that it reads in a minute; None: it owns
    nothing, has just begun, or owns more than `RATED` partitions.
    """

    described: Described
    detail: Detail | None
    unknown_topics: frozenset[str]
    totals: MemberTotals
    partitions: Sequence[MemberPartition]
    more: bool
    rate: int | None


@dataclass(frozen=True, slots=True)
class MemberPage:
    """A member, or what is known of one that is gone (`present` None).

    `header` None: the group does not exist either. `given_out` (ms): the id was given out and can be used until then.
    """

    now: Millis
    header: GroupHeader | None
    present: Present | None
    given_out: Millis | None
    events: Sequence[Event]


async def member_page(
    db: Database, viewer: Viewer, group_id: str, member_id: str, after: tuple[str, int] = START
) -> MemberPage:
    """The member, with its partitions after a topic and partition, as far as the viewer may describe them.

    Raises Forbidden as `frontend.pages.group.reads.group_page` does, ProtocolError COORDINATOR_NOT_AVAILABLE.
    """
    async with db.snapshot() as connection:
        now = await db.now_ms(connection)
        if not viewer.sees_group(group_id):
            return MemberPage(now, None, None, None, ())
        seen = viewer.parameters()
        searched = {"group_id": group_id, "member_id": member_id, "most": EVENTS_SEARCHED, "limit": EVENTS, **seen}
        found = await db.records(connection, viewer.event, Q.member_events, searched)
        events = await named_events(db, connection, viewer, group_id, found)
        header = await db.record(connection, GroupHeader, Q.group_header, {"group_id": group_id})
        if header is None:
            return MemberPage(now, None, None, None, events)
        await require_members(db, connection, viewer, header)
        named = {"pk": header.pk, "epoch": header.assignment_epoch, "member_id": member_id, **seen}
        parameters = {**named, "protocol": header.protocol_name}
        described = await db.record(connection, _described, Q.one_member, parameters)
        if described is None:
            given_out = await db.value(connection, Q.member_id_given_out, named)
            return MemberPage(now, header, None, given_out, events)
        named |= {"group_id": group_id}
        return MemberPage(now, header, await _present(db, connection, described, named, after, now), None, events)


async def _present(
    db: Database,
    connection: Connection,
    described: Described,
    named: dict[str, Any],
    after: tuple[str, int],
    now: Millis,
) -> Present:
    details = {**named, "member_ids": [named["member_id"]], "names": 4 * NAMES_PER_MEMBER}
    detail = await db.record(connection, Detail, Q.consumer_details, details)
    names = sorted(detail.topic_names) if detail else []
    known = await db.column(connection, Q.known_topics, {"names": names}) if names else []
    totals = await db.record(connection, MemberTotals, Q.member_totals, {**named, "most": SUMMED})
    found, more = await _partitions(db, connection, named, after, PARTITIONS)
    rates = await member_rates(db, connection, named, details["member_ids"], now, RATED)
    assert totals is not None
    rate = rates.get(named["member_id"])
    return Present(described, detail, frozenset(names).difference(known), totals, found, more, rate)


async def _partitions(
    db: Database, connection: Connection, named: dict[str, Any], after: tuple[str, int], limit: int
) -> tuple[Sequence[MemberPartition], bool]:
    page = {**named, "after_topic": after[0], "after_partition": after[1], "limit": limit + 1}
    found = await db.records(connection, MemberPartition, Q.member_partitions, page)
    return found[:limit], len(found) > limit


async def partitions_from(
    db: Database, viewer: Viewer, group_id: str, member_id: str, after: tuple[str, int], limit: int
) -> tuple[Millis, Sequence[MemberPartition], bool] | None:
    """The time, and partitions of a member after a topic and partition: at most `limit`, and whether there are more.

    None if the group has no such member. Raises as `member_page`.
    """
    async with db.snapshot() as connection:
        now = await db.now_ms(connection)
        header = await header_with_members(db, connection, viewer, group_id)
        if header is None:
            return None
        named = {"pk": header.pk, "epoch": header.assignment_epoch, "member_id": member_id, **viewer.parameters()}
        parameters = {**named, "protocol": header.protocol_name}
        if await db.record(connection, _described, Q.one_member, parameters) is None:
            return None
        return now, *await _partitions(db, connection, named, after, limit)
