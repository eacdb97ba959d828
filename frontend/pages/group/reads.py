"""Reads the page of a group in one database snapshot. Instants are milliseconds.

The size of a result is bounded by the arguments, never by the contents of the tables: lists are paged by key, panels
carry a total beside the rows that fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from frontend.pages.group import tables
from frontend.pages.group.lag import DEFAULT_RANGE, NO_LAG, LagPart, Range, lag_part
from frontend.ui import reads as shared
from frontend.ui.members import AWAY_EPOCH, NAMES_PER_MEMBER, Detail
from frontend.ui.rows import Event, GroupHeader, Member, Millis, Names, PartitionOffset, PartitionTotals
from frontend.ui.shown import shares
from frontend.ui.viewer import Viewer
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries


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


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The coordinator partition of a group and its owner, whose lease may have run out. `node_id` None: no owner."""

    state: str
    epoch: int
    node_id: str | None
    url: str | None
    expires_at: Millis | None


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """How many members exist, how many of a classic group have rejoined; member ids issued but not used yet."""

    members: int
    joined: int
    pending_ids: int
    pending_deadline: Millis | None


@dataclass(frozen=True, slots=True)
class MemberTimer:
    """The member timer that expires first: its session, or one of the waits for it (`rebalance`, `join`, `sync`)."""

    member_id: str
    kind: str
    deadline: Millis


@dataclass(frozen=True, slots=True)
class OwnedPartitions:
    """The partitions of a topic that a member owns, ascending. `pending`: it was asked to give them up."""

    member_id: str
    topic: str
    pending: bool
    partitions: Sequence[int]


@dataclass(frozen=True, slots=True)
class GroupTopic:
    """A topic in which the group owns or has committed something.

    `partitions` is the number in the catalogue, None if the topic is not in it; `seen` is one more than the
    highest partition owned or committed.
    """

    topic: str
    partitions: int | None
    owned: int
    seen: int

    @property
    def size(self) -> int:
        """How many partitions the topic has, as far as known."""
        return max(self.partitions or 0, self.seen)


@dataclass(frozen=True, slots=True)
class PartitionOwner:
    """Who owns a partition. `member_pk` None: the owner is no longer a member; `pending`: it is to give it up.

    `client_id`, `client_host`: of the owner, None if it is no longer a member.
    """

    topic: str
    partition: int
    member_id: str
    member_pk: int | None
    pending: bool
    client_id: str | None = None
    client_host: str | None = None


@dataclass(frozen=True, slots=True)
class DrawnOffset:
    """How far a partition of the map is read. `lag` None: its watermark is not known."""

    topic: str
    partition: int
    committed_offset: int
    lag: int | None


MOST_CELLS = 2_400
"""The maximum number of partitions that the map of a group shows."""
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
    member_table: tables.Table = tables.FIRST_PAGE
    offset_table: tables.Table = tables.FIRST_PAGE


@dataclass(frozen=True, slots=True)
class MarkTotals:
    """How many partitions of a group have a mark of the map: nobody owns them, or they have records to read."""

    unowned: int
    behind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPage:
    """Everything that the page of a group shows."""

    now: Millis
    header: GroupHeader
    counts: GroupCounts
    earliest_timer: MemberTimer | None = None
    members: tuple[Member, ...] = ()
    owned: tuple[OwnedPartitions, ...] = ()
    topics: tuple[GroupTopic, ...] = ()
    more_topics: bool = False
    widths: Mapping[str, int] = field(default_factory=dict)
    """Topic -> how many of its partitions `owners` covers."""
    owners: tuple[PartitionOwner, ...] = ()
    drawn: tuple[DrawnOffset, ...] = ()
    """What is committed on the partitions that `widths` covers."""
    totals: PartitionTotals
    offsets: tuple[PartitionOffset, ...]
    events: tuple[Event, ...]
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
    member_table: tables.MemberRows = tables.NO_MEMBERS
    offset_table: tables.OffsetRows = tables.NO_OFFSETS
    names: Names = field(default_factory=dict)
    """Of members that are named outside the tables."""


async def group_page(db: Database, viewer: Viewer, group_id: str, limits: Limits) -> GroupPage | None:
    """Everything about one group, None if there is no such group for the viewer.

    Without the members of a consumer group that use a topic which the viewer may not describe (`members_hidden`), as
    `/v1` does not describe them either. Raises Forbidden for a search by these members.
    """
    async with db.snapshot() as connection:
        header = await shared.group_header(db, connection, viewer, group_id)
        if header is None:
            return None
        if await shared.hides_members(db, connection, viewer, header):
            return await _page_without_members(db, connection, viewer, header, limits)
        group = {"pk": header.pk, "group_id": group_id, "epoch": header.assignment_epoch, **viewer.parameters()}
        counts = await db.record(connection, GroupCounts, Q.group_counts, group)
        timer = await db.record(connection, MemberTimer, Q.earliest_timer, group)
        now = await db.now_ms(connection)
        lag = await lag_part(db, connection, viewer, header.pk, group_id, now, limits.lag, limits.topics, limits.q)
        offsets = await tables.offset_rows(
            db, connection, viewer, header.pk, limits.q, limits.offset_table, limits.offsets, now
        )
        events = await _events(db, connection, viewer, group_id, None, limits.events + 1)
        assert counts is not None
        picture = await _picture(db, connection, group, limits)
        members = await tables.member_rows(
            db, connection, group, limits.member_table, limits.members, counts.members, now
        )
        member_ids = [member.member_id for member in members.members]
        shown = {**group, "member_ids": member_ids, "topics": limits.member_topics}
        owned = await db.records(connection, OwnedPartitions, Q.owned_partitions, shown)
        consumer = None
        if header.type == "consumer":
            consumer = await consumer_part(
                db, connection, shown, picture.widths, limits.handovers, partial=lag.totals.partitions > COMPARED
            )
        mentioned = {header.leader_id, timer.member_id if timer else None, *shared.members_in(events)}
        mentioned |= {who for move in consumer.handovers for who in (move.holder, move.heir)} if consumer else set()
        names = await shared.names_of(db, connection, viewer, group_id, mentioned)
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
            events=tuple(shared.with_names(events[: limits.events], names)),
            more_events=len(events) > limits.events,
            lag=lag,
            consumer=consumer,
            member_table=members,
            offset_table=offsets,
            names=names,
            marks=picture.marks,
        )


async def _page_without_members(
    db: Database, connection: Connection, viewer: Viewer, header: GroupHeader, limits: Limits
) -> GroupPage:
    """Offsets, lag and events, on the topics that the viewer may describe."""
    if limits.offset_table.member_id or limits.offset_table.only == "unowned":
        raise shared.members_are_hidden(header.group_id)
    pk, group_id, table = header.pk, header.group_id, limits.offset_table
    counts = await db.record(connection, GroupCounts, Q.group_counts, {"pk": pk})
    now = await db.now_ms(connection)
    lag = await lag_part(db, connection, viewer, pk, group_id, now, limits.lag, limits.topics, limits.q)
    offsets = await tables.offset_rows(db, connection, viewer, pk, limits.q, table, limits.offsets, now)
    events = await _events(db, connection, viewer, group_id, None, limits.events + 1)
    named = await shared.named_events(db, connection, viewer, group_id, events[: limits.events])
    assert counts is not None
    return GroupPage(
        now=now, header=header, counts=counts, totals=lag.totals,
        offsets=tuple(replace(row, owner=None, client_id=None, client_host=None) for row in offsets.offsets),
        events=tuple(named), more_events=len(events) > limits.events, lag=lag, offset_table=offsets,
        members_hidden=True,
    )  # fmt: skip


class _Picture(NamedTuple):
    topics: tuple[GroupTopic, ...]
    more: bool
    widths: Mapping[str, int]
    owners: tuple[PartitionOwner, ...]
    offsets: tuple[DrawnOffset, ...]
    marks: MarkTotals | None


async def _picture(db: Database, connection: Connection, group: dict[str, Any], limits: Limits) -> _Picture:
    searched = {**group, "q": limits.q, "limit": limits.topics + 1}
    found = await db.records(connection, GroupTopic, Q.group_topics, searched)
    topics = tuple(found[: limits.topics])
    widths = shares({topic.topic: topic.size for topic in topics}, limits.cells)
    drawn = {**group, "topics": list(widths), "widths": list(widths.values())}
    owners = await db.records(connection, PartitionOwner, Q.partition_owners, drawn)
    offsets = await db.records(connection, DrawnOffset, Q.drawn_offsets, drawn)
    more = len(found) > limits.topics
    marks = None
    if limits.cells > 1 and (more or any(topic.size > widths[topic.topic] for topic in topics)):
        marks = await db.record(connection, MarkTotals, Q.mark_totals, searched)
    return _Picture(topics, more, widths, tuple(owners), tuple(offsets), marks)


async def handovers_of(db: Database, viewer: Viewer, group_id: str, limit: int) -> Sequence[Handover] | None:
    """What is changing hands in a group, at most `limit` lines; None if there is no such group for the viewer.

    Raises Forbidden as `group_page` does.
    """
    async with db.snapshot() as connection:
        header = await shared.header_with_members(db, connection, viewer, group_id)
        if header is None:
            return None
        wanted = {"pk": header.pk, "epoch": header.assignment_epoch, "only": None, "limit": limit}
        return await changing_hands(db, connection, wanted) if header.type == "consumer" else ()


async def coordinator(db: Database, partition: int) -> Coordinator | None:
    """The owner of a coordinator partition; None if it never had one."""
    async with db.connection() as connection:
        return await db.record(connection, Coordinator, Q.group_coordinator, {"partition": partition})


async def _events(
    db: Database, connection: Connection, viewer: Viewer, group_id: str, before: int | None, limit: int
) -> list[Event]:
    parameters = {"group_id": group_id, "before": before, "limit": limit, **viewer.parameters()}
    return await db.records(connection, viewer.event, Q.events_before, parameters)
