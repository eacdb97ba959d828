"""Read models of the pages: one function per page, one database snapshot per call.

Nothing here writes or decides. The size of a result is bounded by the arguments, never by the contents of the
tables: lists are paged by key, panels carry a total beside the rows that fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from frontend import rows
from frontend.allowed import Forbidden
from frontend.consumer import rows as consumer_rows
from frontend.consumer.queries import changing_hands, consumer_part
from frontend.consumer.rows import ConsumerPart
from frontend.group.queries import member_rows, offset_rows
from frontend.group.rows import FIRST_PAGE, NO_MEMBERS, NO_OFFSETS, MemberRows, OffsetRows, Table
from frontend.names import members_in, named_events, names_of, with_names
from frontend.offsets.queries import DEFAULT_RANGE, Range, lag_part
from frontend.offsets.rows import NO_LAG, LagPart
from frontend.rows import Millis
from frontend.viewer import Viewer
from kcoord.database.pool import Connection, Database
from kcoord.sql import queries

Q = queries("frontend")

PAGE_SIZE = 50
MOST_CELLS = 2_400
"""The maximum number of partitions that the map of a group shows."""
TOPICS_PER_LINE = 21
"""Topic names read per line of the list: a few are shown, the others are counted."""
COMPARED = 10_000
"""In a group with more partitions, changes of ownership are looked for in the drawn topics only."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The maximum number of rows that each panel of a group's page reads."""

    members: int = 25
    topics: int = 12
    cells: int = 960
    """Partitions drawn, divided evenly among the topics."""
    offsets: int = 50
    events: int = 25
    handovers: int = 25
    lag: Range = DEFAULT_RANGE
    """How much lag history is drawn."""
    q: str = ""
    """Partitions, lag and offsets are shown for topics whose names contain this."""
    member_topics: int = 12
    """Topics named beside each member."""
    member_table: Table = FIRST_PAGE
    offset_table: Table = FIRST_PAGE


@dataclass(frozen=True, slots=True)
class MarkTotals:
    """How many partitions of a group have a mark of the map: nobody owns them, or they have records to read."""

    unowned: int
    behind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPage:
    """Everything that the page of a group shows."""

    now: Millis
    header: rows.GroupHeader
    counts: rows.GroupCounts
    earliest_timer: rows.MemberTimer | None = None
    members: tuple[rows.Member, ...] = ()
    owned: tuple[rows.OwnedPartitions, ...] = ()
    topics: tuple[rows.GroupTopic, ...] = ()
    more_topics: bool = False
    widths: Mapping[str, int] = field(default_factory=dict)
    """Topic -> how many of its partitions `owners` covers."""
    owners: tuple[rows.PartitionOwner, ...] = ()
    drawn: tuple[rows.DrawnOffset, ...] = ()
    """What is committed on the partitions that `widths` covers."""
    totals: rows.PartitionTotals
    offsets: tuple[rows.PartitionOffset, ...]
    events: tuple[rows.Event, ...]
    more_events: bool
    lag: LagPart = NO_LAG
    consumer: ConsumerPart | None = None
    """What only groups of the consumer protocol have."""
    late: frozenset[str] = frozenset()
    """Ids of the shown members that miss heartbeats."""
    stalled: frozenset[tuple[str, int]] = frozenset()
    marks: MarkTotals | None = None
    """Of all partitions, if not all of them are drawn."""
    stalled_in_all: int = 0
    """Partitions that stall, also of those that are not drawn."""
    members_hidden: bool = False
    """The viewer may not see the members, nor what they own; `members`, `owners` and the like are empty then."""
    """Partitions (topic, number) whose owners make no progress, as far as the verdicts name them."""
    member_table: MemberRows = NO_MEMBERS
    offset_table: OffsetRows = NO_OFFSETS
    names: rows.Names = field(default_factory=dict)
    """Of members that are named outside the tables."""


@dataclass(frozen=True, slots=True)
class GroupBrief:
    """What an action on a group has to know about it. `lag` in records; None if it was never sampled."""

    now: Millis
    group_id: str
    type: str
    state: str
    members: int
    offsets: int
    topics: int
    held_until: Millis | None
    lag: int | None
    lag_sampled_at: Millis | None

    @property
    def held(self) -> bool:
        """An operator is keeping members out at the moment."""
        return self.held_until is not None and self.held_until > self.now


async def group_page(db: Database, viewer: Viewer, group_id: str, limits: Limits) -> GroupPage | None:
    """Everything about one group, None if there is no such group for the viewer.

    Without the members of a consumer group that use a topic which the viewer may not describe (`members_hidden`), as
    `/v1` does not describe them either. Raises Forbidden for a search by these members.
    """
    async with db.snapshot() as connection:
        header = await _header(db, connection, viewer, group_id)
        if header is None:
            return None
        if await hides_members(db, connection, viewer, header):
            return await _page_without_members(db, connection, viewer, header, limits)
        group = {"pk": header.pk, "group_id": group_id, "epoch": header.assignment_epoch, **viewer.parameters()}
        counts = await db.record(connection, rows.GroupCounts, Q.group_counts, group)
        timer = await db.record(connection, rows.MemberTimer, Q.earliest_timer, group)
        now = await db.now_ms(connection)
        lag = await lag_part(db, connection, viewer, header.pk, group_id, now, limits.lag, limits.topics, limits.q)
        offsets = await offset_rows(
            db, connection, viewer, header.pk, limits.q, limits.offset_table, limits.offsets, now
        )
        events = await _events(db, connection, viewer, group_id, None, limits.events + 1)
        assert counts is not None
        picture = await _picture(db, connection, group, limits)
        members = await member_rows(db, connection, group, limits.member_table, limits.members, counts.members, now)
        member_ids = [member.member_id for member in members.members]
        shown = {**group, "member_ids": member_ids, "topics": limits.member_topics}
        owned = await db.records(connection, rows.OwnedPartitions, Q.owned_partitions, shown)
        consumer = None
        if header.type == "consumer":
            consumer = await consumer_part(
                db, connection, shown, picture.widths, limits.handovers, partial=lag.totals.partitions > COMPARED
            )
        mentioned = {header.leader_id, timer.member_id if timer else None, *members_in(events)}
        mentioned |= {who for move in consumer.handovers for who in (move.holder, move.heir)} if consumer else set()
        names = await names_of(db, connection, viewer, group_id, mentioned)
        return GroupPage(
            now=now,
            header=header,
            counts=counts,
            earliest_timer=timer,
            members=members.members,
            owned=tuple(owned),
            topics=picture.topics,
            more_topics=picture.more,
            widths=picture.widths,
            owners=picture.owners,
            drawn=picture.offsets,
            totals=lag.totals,
            offsets=tuple(offsets.offsets),
            events=tuple(with_names(events[: limits.events], names)),
            more_events=len(events) > limits.events,
            lag=lag,
            consumer=consumer,
            member_table=members,
            offset_table=offsets,
            names=names,
            marks=picture.marks,
        )


async def _page_without_members(
    db: Database, connection: Connection, viewer: Viewer, header: rows.GroupHeader, limits: Limits
) -> GroupPage:
    """Offsets, lag and events, on the topics that the viewer may describe."""
    if limits.offset_table.member_id or limits.offset_table.only == "unowned":
        raise members_are_hidden(header.group_id)
    pk, group_id = header.pk, header.group_id
    counts = await db.record(connection, rows.GroupCounts, Q.group_counts, {"pk": pk})
    now = await db.now_ms(connection)
    lag = await lag_part(db, connection, viewer, pk, group_id, now, limits.lag, limits.topics, limits.q)
    table = limits.offset_table
    offsets = await offset_rows(db, connection, viewer, pk, limits.q, table, limits.offsets, now)
    events = await _events(db, connection, viewer, group_id, None, limits.events + 1)
    named = await named_events(db, connection, viewer, group_id, events[: limits.events])
    assert counts is not None
    return GroupPage(
        now=now,
        header=header,
        counts=counts,
        totals=lag.totals,
        offsets=tuple(replace(row, owner=None, client_id=None, client_host=None) for row in offsets.offsets),
        events=tuple(named),
        more_events=len(events) > limits.events,
        lag=lag,
        offset_table=offsets,
        members_hidden=True,
    )


class _Picture(NamedTuple):
    topics: tuple[rows.GroupTopic, ...]
    more: bool
    widths: Mapping[str, int]
    owners: tuple[rows.PartitionOwner, ...]
    offsets: tuple[rows.DrawnOffset, ...]
    marks: MarkTotals | None


async def _picture(db: Database, connection: Connection, group: dict[str, Any], limits: Limits) -> _Picture:
    searched = {**group, "q": limits.q, "limit": limits.topics + 1}
    found = await db.records(connection, rows.GroupTopic, Q.group_topics, searched)
    topics = tuple(found[: limits.topics])
    widths = shares({topic.topic: topic.size for topic in topics}, limits.cells)
    drawn = {**group, "topics": list(widths), "widths": list(widths.values())}
    owners = await db.records(connection, rows.PartitionOwner, Q.partition_owners, drawn)
    offsets = await db.records(connection, rows.DrawnOffset, Q.drawn_offsets, drawn)
    more = len(found) > limits.topics
    marks = None
    if limits.cells > 1 and (more or any(topic.size > widths[topic.topic] for topic in topics)):
        marks = await db.record(connection, MarkTotals, Q.mark_totals, searched)
    return _Picture(topics, more, widths, tuple(owners), tuple(offsets), marks)


def shares(sizes: Mapping[str, int], most: int) -> dict[str, int]:
    """How many of each are shown when only `most` fit in total: small ones in full, large ones in equal shares."""
    given: dict[str, int] = {}
    left = most
    for name, size in sorted(sizes.items(), key=lambda item: item[1]):
        given[name] = min(size, left // (len(sizes) - len(given)))
        left -= given[name]
    return given


async def handovers_of(
    db: Database, viewer: Viewer, group_id: str, limit: int
) -> Sequence[consumer_rows.Handover] | None:
    """What is changing hands in a group, at most `limit` lines; None if there is no such group for the viewer.

    Raises Forbidden as `group_page` does.
    """
    async with db.snapshot() as connection:
        header = await header_with_members(db, connection, viewer, group_id)
        if header is None:
            return None
        wanted = {"pk": header.pk, "epoch": header.assignment_epoch, "only": None, "limit": limit}
        return await changing_hands(db, connection, wanted) if header.type == "consumer" else ()


async def now(db: Database) -> Millis:
    """The current time, for a page that reads no rows."""
    async with db.connection() as connection:
        return await db.now_ms(connection)


async def group_brief(db: Database, viewer: Viewer, group_id: str) -> GroupBrief | None:
    """A summary of one group, None if there is no such group for the viewer."""
    return (await group_briefs(db, viewer, [group_id])).get(group_id)


async def group_briefs(db: Database, viewer: Viewer, group_ids: Sequence[str]) -> Mapping[str, GroupBrief]:
    """Summaries by id of those groups that exist for the viewer."""
    seen = [group_id for group_id in group_ids if viewer.sees_group(group_id)]
    async with db.snapshot() as connection:
        wanted = {"group_ids": seen, "now": await db.now_ms(connection), **viewer.parameters()}
        found = await db.records(connection, GroupBrief, Q.group_briefs, wanted)
    return {brief.group_id: brief for brief in found}


async def coordinator(db: Database, partition: int) -> rows.Coordinator | None:
    """The owner of a coordinator partition; None if it never had one."""
    async with db.connection() as connection:
        return await db.record(connection, rows.Coordinator, Q.group_coordinator, {"partition": partition})


async def _events(
    db: Database, connection: Connection, viewer: Viewer, group_id: str, before: int | None, limit: int
) -> list[rows.Event]:
    parameters = {"group_id": group_id, "before": before, "limit": limit, **viewer.parameters()}
    return await db.records(connection, viewer.event, Q.events_before, parameters)


async def header_with_members(
    db: Database, connection: Connection, viewer: Viewer, group_id: str
) -> rows.GroupHeader | None:
    """A group whose members are to be shown; None if the viewer sees no such group. Raises as `require_members`."""
    header = await _header(db, connection, viewer, group_id)
    if header is not None:
        await require_members(db, connection, viewer, header)
    return header


async def require_members(db: Database, connection: Connection, viewer: Viewer, header: rows.GroupHeader) -> None:
    """Raise Forbidden for a consumer or share group whose members use a topic that the viewer may not describe."""
    if await hides_members(db, connection, viewer, header):
        raise members_are_hidden(header.group_id)


async def hides_members(db: Database, connection: Connection, viewer: Viewer, header: rows.GroupHeader) -> bool:
    """Members of a consumer or share group use a topic that the viewer may not describe: none of them is shown."""
    if header.type == "classic" or viewer.topics.unlimited:
        return False
    return bool(await db.value(connection, Q.uses_hidden_topics, {"pk": header.pk, **viewer.parameters()}))


def members_are_hidden(group_id: str) -> Forbidden:
    """What to raise where nothing is left without the members."""
    return Forbidden(
        f"Members of group {group_id} use topics that your account may not describe, so that its members are not "
        "shown. The page of the group has its offsets, lag and events on the topics that you may see."
    )


async def _header(db: Database, connection: Connection, viewer: Viewer, group_id: str) -> rows.GroupHeader | None:
    if not viewer.sees_group(group_id):
        return None
    return await db.record(connection, rows.GroupHeader, Q.group_header, {"group_id": group_id})
