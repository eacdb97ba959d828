"""Read models of the pages: one function per page, one database snapshot per call.

Nothing here writes or decides. The size of a result is bounded by the arguments, never by the contents of the
tables: lists are paged by key, panels carry a total beside the rows that fit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeVar

from frontend import rows
from frontend.consumer.queries import consumer_part
from frontend.consumer.rows import ConsumerPart
from frontend.offsets.queries import RANGES, Range, lag_part
from frontend.offsets.rows import NO_LAG, LagPart
from frontend.rows import Millis
from groups.readmodel import GroupFilter as Matching
from groups.readmodel import GroupSort, GroupSummary
from kcoord.database.pool import Connection, Database
from kcoord.sql import queries
from offsets.group_list import GroupFinder, Position

Q = queries("frontend")

T = TypeVar("T")

PAGE_SIZE = 50
TOPICS_PER_LINE = 21
"""Topic names read per line of the list: a few are shown, the others are counted."""
COMPARED = 10_000
"""In a group with more partitions, changes of ownership are looked for in the drawn topics only."""
TOPIC_GROUP_ROWS = 1_000
"""How many of a topic's assignments are searched for groups that read it."""


class Order(str, Enum):
    """How the list of groups is sorted."""

    NAME = "name"
    CHANGED = "changed"
    LAG = "lag"


_SORTS = {Order.NAME: GroupSort.GROUP_ID, Order.CHANGED: GroupSort.UPDATED, Order.LAG: GroupSort.LAG_DESCENDING}


@dataclass(frozen=True, slots=True)
class Cursor:
    """The key of a line at the edge of a page. `at`: what the list is sorted by besides the name, if anything."""

    group_id: str
    at: int = 0


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """What the list of groups shows; empty conditions do not restrict it. At most one of `after` and `before` is set.

    `topic`, `member`, `min_lag` and `label` (name and value, None for any) as in `groups.readmodel.GroupFilter`.
    """

    q: str = ""
    states: tuple[str, ...] = ()
    type: str = ""
    order: Order = Order.NAME
    after: Cursor | None = None
    before: Cursor | None = None
    verdicts: tuple[str, ...] = ()
    topic: str = ""
    member: str = ""
    min_lag: int | None = None
    label: tuple[str, str | None] | None = None


@dataclass(frozen=True, slots=True)
class GroupList:
    """A page of the list of groups; counts are by state and by verdict, regardless of those that are chosen."""

    now: Millis
    groups: tuple[GroupSummary, ...]
    counts: Mapping[str, int]
    verdict_counts: Mapping[str, int]
    previous: Cursor | None
    next: Cursor | None


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
    lag: Range = RANGES[0]
    """How much lag history is drawn."""
    q: str = ""
    """Partitions, lag and offsets are shown for topics whose names contain this."""
    member_topics: int = 12
    """Topics named beside each member."""


@dataclass(frozen=True, slots=True)
class GroupPage:
    """Everything that the page of a group shows."""

    now: Millis
    header: rows.GroupHeader
    counts: rows.GroupCounts
    earliest_timer: rows.MemberTimer | None
    members: tuple[rows.Member, ...]
    owned: tuple[rows.OwnedPartitions, ...]
    topics: tuple[rows.GroupTopic, ...]
    more_topics: bool
    widths: Mapping[str, int]
    """Topic -> how many of its partitions `owners` covers."""
    owners: tuple[rows.PartitionOwner, ...]
    totals: rows.PartitionTotals
    offsets: tuple[rows.PartitionOffset, ...]
    events: tuple[rows.Event, ...]
    more_events: bool
    lag: LagPart = NO_LAG
    consumer: ConsumerPart | None = None
    """What only groups of the consumer protocol have."""
    late: frozenset[str] = frozenset()
    """Ids of the shown members that miss heartbeats."""


@dataclass(frozen=True, slots=True)
class GroupBrief:
    """What an action on a group has to know about it."""

    now: Millis
    group_id: str
    type: str
    state: str
    members: int
    offsets: int
    topics: int
    held_until: Millis | None

    @property
    def held(self) -> bool:
        """An operator is keeping members out at the moment."""
        return self.held_until is not None and self.held_until > self.now


@dataclass(frozen=True, slots=True)
class EventPage:
    """A page of a group's events, newest first. `exists`: the group still exists."""

    now: Millis
    exists: bool
    events: tuple[rows.Event, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class TopicList:
    """A page of the catalogue of topics; `previous` and `next` are the names before and after which to continue."""

    now: Millis
    topics: tuple[rows.Topic, ...]
    total: int
    previous: str | None
    next: str | None


async def group_list(db: Database, wanted: GroupFilter) -> GroupList:
    """A page of groups with the counts by state. Raises ProtocolError COORDINATOR_NOT_AVAILABLE, as all here do."""

    async def read(connection: Connection) -> GroupList:
        matching = _matching(wanted)
        finder = GroupFinder(db, connection)
        found = await finder.find(matching, _SORTS[wanted.order], _start(wanted), PAGE_SIZE + 1)
        more = len(found) > PAGE_SIZE
        found = found[:PAGE_SIZE]
        if wanted.before:
            found.reverse()
        groups = await finder.summaries([group.id for group in found], topics=TOPICS_PER_LINE, committed=True)
        return GroupList(
            now=await db.now_ms(connection),
            groups=tuple(groups),
            counts=await finder.counts(matching),
            verdict_counts=await finder.verdict_counts(matching),
            previous=_edge(groups, 0, wanted.order, more if wanted.before else wanted.after is not None),
            next=_edge(groups, -1, wanted.order, True if wanted.before else more),
        )

    return await _snapshot(db, read)


async def group_rows(db: Database, wanted: GroupFilter, limit: int) -> tuple[Sequence[GroupSummary], Cursor | None]:
    """The first `limit` groups after `wanted.after`, and the place where to continue; None: these were the last."""

    async def read(connection: Connection) -> tuple[Sequence[GroupSummary], Cursor | None]:
        finder = GroupFinder(db, connection)
        found = await finder.find(_matching(wanted), _SORTS[wanted.order], _start(wanted), limit + 1)
        groups = await finder.summaries([one.id for one in found[:limit]], topics=TOPICS_PER_LINE, committed=True)
        return groups, _edge(groups, -1, wanted.order, len(found) > limit)

    return await _snapshot(db, read)


def _matching(wanted: GroupFilter) -> Matching:
    return Matching(
        q=wanted.q,
        types=[wanted.type] if wanted.type else None,
        states=list(wanted.states) or None,
        verdicts=wanted.verdicts or None,
        topic=wanted.topic or None,
        member=wanted.member or None,
        min_lag=wanted.min_lag,
        labels=[wanted.label] if wanted.label else None,
    )


NO_LAG_KEY = -1
"""The sort key of a group whose lag is unknown."""


def _start(wanted: GroupFilter) -> Position | None:
    edge = wanted.before or wanted.after
    if edge is None:
        return None
    key = {Order.NAME: None, Order.CHANGED: edge.at, Order.LAG: -edge.at}[wanted.order]
    return Position(edge.group_id, key, before=wanted.before is not None)


def _edge(groups: Sequence[GroupSummary], index: int, order: Order, there_is_more: bool) -> Cursor | None:
    if not groups or not there_is_more:
        return None
    group = groups[index]
    if order is Order.LAG:
        return Cursor(group.group_id, NO_LAG_KEY if group.lag is None else group.lag)
    return Cursor(group.group_id, group.updated_at)


async def group_page(db: Database, group_id: str, limits: Limits) -> GroupPage | None:
    """Everything about one group, None if the group does not exist."""

    async def read(connection: Connection) -> GroupPage | None:
        header = await db.record(connection, rows.GroupHeader, Q.group_header, {"group_id": group_id})
        if header is None:
            return None
        group = {"pk": header.pk, "epoch": header.assignment_epoch}
        counts = await db.record(connection, rows.GroupCounts, Q.group_counts, group)
        timer = await db.record(connection, rows.MemberTimer, Q.earliest_timer, group)
        now = await db.now_ms(connection)
        lag = await lag_part(db, connection, header.pk, group_id, now, limits.lag, limits.topics, limits.q)
        searched = {**group, "q": limits.q, "limit": limits.offsets}
        offsets = await db.records(connection, rows.PartitionOffset, Q.partition_offsets, searched)
        events = await _events(db, connection, group_id, None, limits.events + 1)
        assert counts is not None
        picture = await _picture(db, connection, group, limits)
        members = await _members(db, connection, group, limits, counts.members)
        member_ids = [member.member_id for member in members]
        shown = {**group, "member_ids": member_ids, "topics": limits.member_topics}
        owned = await db.records(connection, rows.OwnedPartitions, Q.owned_partitions, shown)
        consumer = None
        if header.type == "consumer":
            consumer = await consumer_part(
                db, connection, shown, picture.widths, limits.handovers, partial=lag.totals.partitions > COMPARED
            )
        return GroupPage(
            now=now,
            header=header,
            counts=counts,
            earliest_timer=timer,
            members=members,
            owned=tuple(owned),
            topics=picture.topics,
            more_topics=picture.more,
            widths=picture.widths,
            owners=picture.owners,
            totals=lag.totals,
            offsets=tuple(offsets),
            events=tuple(events[: limits.events]),
            more_events=len(events) > limits.events,
            lag=lag,
            consumer=consumer,
        )

    return await _snapshot(db, read)


async def _members(
    db: Database, connection: Connection, group: dict[str, int], limits: Limits, count: int
) -> tuple[rows.Member, ...]:
    parameters = {**group, "limit": limits.members, "unsettled_first": count > limits.members}
    return tuple(await db.records(connection, rows.Member, Q.group_members, parameters))


class _Picture(NamedTuple):
    topics: tuple[rows.GroupTopic, ...]
    more: bool
    widths: Mapping[str, int]
    owners: tuple[rows.PartitionOwner, ...]


async def _picture(db: Database, connection: Connection, group: dict[str, int], limits: Limits) -> _Picture:
    searched = {**group, "q": limits.q, "limit": limits.topics + 1}
    found = await db.records(connection, rows.GroupTopic, Q.group_topics, searched)
    topics = tuple(found[: limits.topics])
    widths = shares({topic.topic: topic.size for topic in topics}, limits.cells)
    drawn = {**group, "topics": list(widths), "widths": list(widths.values())}
    owners = await db.records(connection, rows.PartitionOwner, Q.partition_owners, drawn)
    return _Picture(topics, len(found) > limits.topics, widths, tuple(owners))


def shares(sizes: Mapping[str, int], most: int) -> dict[str, int]:
    """How many of each are shown when only `most` fit in total: small ones in full, large ones in equal shares."""
    given: dict[str, int] = {}
    left = most
    for name, size in sorted(sizes.items(), key=lambda item: item[1]):
        given[name] = min(size, left // (len(sizes) - len(given)))
        left -= given[name]
    return given


async def now(db: Database) -> Millis:
    """The current time, for a page that reads no rows."""
    async with db.connection() as connection:
        return await db.now_ms(connection)


async def group_brief(db: Database, group_id: str) -> GroupBrief | None:
    """A summary of one group, None if it does not exist."""
    async with db.snapshot() as connection:
        now = await db.now_ms(connection)
        return await db.record(connection, GroupBrief, Q.group_brief, {"group_id": group_id, "now": now})


async def coordinator(db: Database, partition: int) -> rows.Coordinator | None:
    """The owner of a coordinator partition; None if it never had one."""
    async with db.connection() as connection:
        return await db.record(connection, rows.Coordinator, Q.group_coordinator, {"partition": partition})


async def event_page(db: Database, group_id: str, before: int | None, limit: int = 100) -> EventPage:
    """Events of a group older than the event `before`; the newest if it is None. Events outlive their group."""

    async def read(connection: Connection) -> EventPage:
        header = await db.row(connection, Q.group_header, {"group_id": group_id})
        events = await _events(db, connection, group_id, before, limit + 1)
        now = await db.now_ms(connection)
        return EventPage(now, header is not None, tuple(events[:limit]), len(events) > limit)

    return await _snapshot(db, read)


async def topic_list(db: Database, q: str, after: str | None, before: str | None) -> TopicList:
    """A page of topics by name. At most one of `after` and `before` is given."""

    async def read(connection: Connection) -> TopicList:
        like = {"q": q or None}
        start = after
        if before is not None:
            earlier = await db.column(connection, Q.topics_before, {**like, "before": before, "limit": PAGE_SIZE + 1})
            start = earlier[PAGE_SIZE] if len(earlier) > PAGE_SIZE else None
        page = {**like, "after": start, "limit": PAGE_SIZE + 1, "rows": TOPIC_GROUP_ROWS}
        found = await db.records(connection, rows.Topic, Q.topics_after, page)
        topics = tuple(found[:PAGE_SIZE])
        has_previous = bool(topics) and bool(
            await db.column(connection, Q.topics_before, {**like, "before": topics[0].name, "limit": 1})
        )
        return TopicList(
            now=await db.now_ms(connection),
            topics=topics,
            total=await db.value(connection, Q.count_topics, like),
            previous=topics[0].name if has_previous else None,
            next=topics[-1].name if len(found) > PAGE_SIZE else None,
        )

    return await _snapshot(db, read)


async def _events(
    db: Database, connection: Connection, group_id: str, before: int | None, limit: int
) -> list[rows.Event]:
    parameters = {"group_id": group_id, "before": before, "limit": limit}
    return await db.records(connection, rows.Event, Q.events_before, parameters)


async def _snapshot(db: Database, read: Callable[[Connection], Awaitable[T]]) -> T:
    async with db.snapshot() as connection:
        return await read(connection)
