"""The page of a topic: its partitions, and a heat map of every group on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse

from frontend.ui import zones
from frontend.ui.chart import Chart, Point, Series, chart
from frontend.ui.page import Absent, access_link, address, page, show
from frontend.ui.page import number as whole_number
from frontend.ui.rows import Millis
from frontend.ui.shown import Known, Shown, Unknown, shown, time_behind
from frontend.ui.states import is_held, level, state
from frontend.ui.table import all_rows, csv_of
from frontend.ui.verdicts import LOWER_END_REMEDY
from frontend.ui.viewer import Viewer, viewer_of
from frontend.ui.wording import client_at, compact, member_name, number, plural, short_id
from kcoord.access.rights import Resource
from kcoord.database.pool import Database
from kcoord.database.sql import queries
from kcoord.process import bridge
from offsets.core.lag import position
from offsets.share.store import Standing, standing

Q = queries("frontend")

PARTITIONS = 50
"""Partitions of one page."""
GROUPS = 20
"""Groups of one page."""
DRAWN_MS, STEP_MS = 3_600_000, 60_000
"""How much of the past of the logs is drawn, and the distance of its points: a minute."""
FILE_ROWS = 5_000
"""Rows of a file that are read at once."""
GROUP_ROWS = 2_000
"""How many rows of owners and of offsets are searched for groups that the sampler has not noted."""


@dataclass(frozen=True, slots=True)
class TopicHeader:
    """The topic. `watermarks`: partitions with one; `oldest`, `newest` (ms) of them; `records` in the logs.

    `lower`: partitions with a reported end that does not count, the last at `lower_at` (ms), by `lower_by`.
    """

    pk: int
    name: str
    topic_id: str
    partitions: int
    labels: Mapping[str, str]
    created_at: Millis
    watermarks: int
    oldest: Millis | None
    newest: Millis | None
    records: int | None
    lower: int
    lower_at: Millis | None
    lower_by: Sequence[str]


@dataclass(frozen=True, slots=True)
class TopicPartition:
    """A partition with its watermark, if anybody has pushed one."""

    partition: int
    log_start_offset: int | None
    log_end_offset: int | None
    sampled_at: Millis | None


@dataclass(frozen=True, slots=True)
class TopicGroup:
    """A group on the topic. Lags are those of the last sample, `sampled_at` (ms); `total`: groups in all."""

    pk: int
    group_id: str
    type: str
    state: str
    held_until: Millis | None
    lag: int | None
    max_lag: int | None
    time_lag_ms: Millis | None
    time_lag_at_least_ms: Millis | None
    sampled_at: Millis | None
    total: int
    owned: int
    committed: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A group on a partition: what it committed, and the member that owns it, with its client and host if known; of a
    share group its `standing`.
    """

    pk: int
    partition: int
    committed_offset: int | None
    owner: str | None
    client_id: str | None = None
    client_host: str | None = None
    standing: Standing | None = None


@dataclass(frozen=True, slots=True)
class TopicPage:
    """What the page shows. `ends`: of the logs by partition, from DRAWN_MS ago until now in steps; None: not known."""

    now: Millis
    header: TopicHeader
    partitions: Sequence[TopicPartition]
    groups: Sequence[TopicGroup]
    cells: Sequence[Cell]
    ends: Mapping[int, Sequence[int | None]]


def _cell(**columns: Any) -> Cell:
    return Cell(**columns)


async def topic_page(
    db: Database, viewer: Viewer, name: str, first: int, skip: int, old_ms: Millis
) -> TopicPage | None:
    """Partitions from `first` on, and groups after the first `skip`; None: there is no such topic for the viewer.

    `old_ms`: how far two reports of an end may be apart.

    Raises ProtocolError COORDINATOR_NOT_AVAILABLE.
    """
    if not viewer.sees_topic(name):
        return None
    async with db.snapshot() as connection:
        header = await db.record(connection, TopicHeader, Q.topic_header, {"name": name})
        if header is None:
            return None
        last = min(first + PARTITIONS, header.partitions) - 1
        span = {"pk": header.pk, "topic": name, "first": first, "last": last}
        partitions = await db.records(connection, TopicPartition, Q.topic_partitions, span)
        paged = {"topic": name, "rows": GROUP_ROWS, "limit": GROUPS, "skip": skip, **viewer.with_groups()}
        groups = await db.records(connection, TopicGroup, Q.topic_groups, paged)
        shown = {**span, "groups": [group.pk for group in groups], "all_topics": viewer.topics.unlimited}
        cells = await db.records(connection, _cell, Q.topic_cells, shown)
        queued = await standing(db, connection, name, [group.pk for group in groups], first, last)
        cells += [Cell(one.pk, one.partition, None, None, standing=one) for one in queued]
        now = await db.now_ms(connection)
        drawn = {
            "pk": header.pk, "partitions": [one.partition for one in partitions if one.sampled_at is not None],
            "first": now - DRAWN_MS, "step_ms": STEP_MS, "steps": DRAWN_MS // STEP_MS, "old_ms": old_ms,
        }  # fmt: skip
        ends: dict[int, Sequence[int | None]] = dict(await db.rows(connection, Q.topic_ends, drawn))
        return TopicPage(now, header, partitions, groups, cells, ends)


async def topic_partitions_from(
    db: Database, viewer: Viewer, name: str, first: int, limit: int = FILE_ROWS
) -> tuple[Sequence[TopicPartition], int | None]:
    """Partitions from `first` on, and the first of the next page; none: there is no such topic for the viewer.

    Raises ProtocolError COORDINATOR_NOT_AVAILABLE.
    """
    if not viewer.sees_topic(name):
        return (), None
    async with db.snapshot() as connection:
        header = await db.record(connection, TopicHeader, Q.topic_header, {"name": name})
        if header is None:
            return (), None
        last = min(first + limit, header.partitions) - 1
        span = {"pk": header.pk, "first": first, "last": last}
        found = await db.records(connection, TopicPartition, Q.topic_partitions, span)
    return found, last + 1 if last + 1 < header.partitions else None


async def topic_groups_from(
    db: Database, viewer: Viewer, name: str, after: str | None
) -> tuple[Sequence[TopicGroup], str | None]:
    """Groups on the topic by name, after one of them, and the last of these if there are more.

    Raises ProtocolError COORDINATOR_NOT_AVAILABLE.
    """
    if not viewer.sees_topic(name):
        return (), None
    asked = {"topic": name, "rows": GROUP_ROWS, "after": after, "limit": FILE_ROWS + 1, **viewer.with_groups()}
    async with db.snapshot() as connection:
        found = await db.records(connection, TopicGroup, Q.topic_groups_after, asked)
    shown = found[:FILE_ROWS]
    return shown, shown[-1].group_id if len(found) > FILE_ROWS else None


NO_END = "Nobody has said where the log ends"
READERS = 3
"""Groups that are named beside a partition; the map has the others."""
RATED_STEPS = 5
NOT_SAMPLED = "Its lag was not sampled yet"
NO_WATERMARK = "No watermark is known of any partition on which something is committed"
NOTHING_COMMITTED = "Nothing is committed"

LEGEND = (
    ("h0", "0", "no lag"),
    ("h1", "7", "up to 100 behind"),
    ("h2", "2 k", "up to 10,000"),
    ("h3", "80 k", "up to 1,000,000"),
    ("h4", "3 M", "more"),
    ("loose", "5", "committed, nobody owns it"),
    ("new", "○", "owned, nothing committed"),
    ("hidden", "?", "committed or begun, end unknown"),
    ("blank", "·", "neither"),
)
"""Class, sample and meaning of each kind of cell."""


@dataclass(frozen=True, slots=True)
class Heat:
    """A cell: what is written in it, how it looks, and what it means in words."""

    text: str
    look: str
    title: str


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A group with its cells, in the order of the partitions.

    `lag`: the sum of the cells, without `unmeasured` of them, if they are all partitions; otherwise of the last sample.
    """

    group: TopicGroup
    cells: Sequence[Heat]
    lag: Shown[int]
    time_lag: Shown[int]
    unmeasured: int = 0


def heat(partition: TopicPartition, cell: Cell | None) -> Heat:
    """What a group is doing on a partition."""
    where = f"partition {partition.partition}: "
    if cell is None:
        return Heat("·", "blank", f"{where}neither owned nor committed")
    if cell.standing is not None:
        return _queue(where, cell.standing)
    owner = f"owned by {_owner(cell, cell.owner)}" if cell.owner else "nobody owns it"
    if cell.committed_offset is None:
        return Heat("○", "new", f"{where}{owner}, nothing committed")
    loose = "" if cell.owner else " loose"
    lag = _lag(partition, cell)
    if lag is None:
        said = f"committed {number(cell.committed_offset)}, watermark unknown"
        return Heat("?", f"hidden{loose}", f"{where}{said}, {owner}")
    return Heat(compact(lag), f"h{level(lag)}{loose}", f"{where}{number(lag)} behind, {owner}")


def _queue(where: str, found: Standing) -> Heat:
    """What a share group has to do on a partition."""
    if found.lag is None or found.ready is None:
        return Heat("?", "hidden", f"{where}nobody has said where it ends, or it has not begun")
    again = f", {number(found.again)} of them again" if found.again else ""
    said = f"{number(found.lag)} behind: {number(found.ready)} ready{again}, {number(found.acquired)} acquired"
    return Heat(compact(found.lag), f"h{level(found.lag)}", f"{where}{said}")


def _lag(partition: TopicPartition, cell: Cell) -> int | None:
    """How far a group is behind on a partition; None: nothing is committed, or the watermark is not known."""
    if cell.standing is not None:
        return cell.standing.lag
    if cell.committed_offset is None or partition.log_end_offset is None:
        return None
    return max(partition.log_end_offset - position(cell.committed_offset, partition.log_start_offset or 0), 0)


def _owner(cell: Cell, member_id: str) -> str:
    return member_name(member_id, {member_id: client_at(cell.client_id or "", cell.client_host or "")})


def rows(found: TopicPage) -> list[HeatRow]:
    """The map."""
    cells = {(cell.pk, cell.partition): cell for cell in found.cells}
    return [_row(found, group, cells) for group in found.groups]


def _row(found: TopicPage, group: TopicGroup, cells: Mapping[tuple[int, int], Cell]) -> HeatRow:
    drawn = [(one, cells.get((group.pk, one.partition))) for one in found.partitions]
    looks = [heat(one, cell) for one, cell in drawn]
    lag: Shown[int] = shown(group.lag, group.sampled_at, why=NOT_SAMPLED)
    time_lag: Shown[int] = time_behind(group.time_lag_ms, group.time_lag_at_least_ms, group.sampled_at, NOT_SAMPLED)
    if len(found.partitions) < found.header.partitions:
        return HeatRow(group, looks, lag, time_lag)
    committed = [
        _lag(one, cell)
        for one, cell in drawn
        if cell is not None and (cell.committed_offset is not None or cell.standing is not None)
    ]
    known = [one for one in committed if one is not None]
    lag = shown(sum(known) if known else None, why=NO_WATERMARK if committed else NOTHING_COMMITTED)
    if isinstance(lag, Unknown) or lag == Known(0):
        time_lag = lag
    return HeatRow(group, looks, lag, time_lag, len(committed) - len(known) if known else 0)


@dataclass(frozen=True, slots=True)
class Reader:
    """A group on a partition. `owner`: the member that has it, for people; "": none has, or several share it."""

    group_id: str
    owner: str
    member_id: str
    committed: Shown[int]
    lag: Shown[int]


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition, how many records were written per minute, and groups there: the owners come first."""

    partition: TopicPartition
    written: Shown[int]
    readers: Sequence[Reader]
    more: int


def partition_rows(found: TopicPage) -> list[PartitionRow]:
    """The partitions as text."""
    groups = {group.pk: group.group_id for group in found.groups}
    by_partition: dict[int, dict[int, Cell]] = {}
    for cell in found.cells:
        by_partition.setdefault(cell.partition, {})[cell.pk] = cell
    drawn = []
    for one in found.partitions:
        there = by_partition.get(one.partition, {})
        readers = [_reader(one, there[pk], groups[pk]) for pk in groups if pk in there]
        readers.sort(key=lambda reader: not reader.member_id)
        written = _written(found.ends.get(one.partition, ()))
        drawn.append(PartitionRow(one, written, readers[:READERS], max(len(readers) - READERS, 0)))
    return drawn


def _reader(partition: TopicPartition, cell: Cell, group_id: str) -> Reader:
    member_id = cell.owner or ""
    name = client_at(cell.client_id or "", cell.client_host or "") or short_id(member_id)
    nothing = "A share group commits nothing" if cell.standing else NOTHING_COMMITTED
    why = NO_END if cell.standing or cell.committed_offset is not None else NOTHING_COMMITTED
    committed: Shown[int] = shown(cell.committed_offset, why=nothing)
    return Reader(group_id, name, member_id, committed, shown(_lag(partition, cell), why=why))


def _written(ends: Sequence[int | None]) -> Shown[int]:
    """Records per minute over the last steps of which the end is known at both sides."""
    known = [(step, end) for step, end in enumerate(ends) if end is not None][-RATED_STEPS - 1 :]
    if len(known) < 2 or known[0][0] < len(ends) - 2 * RATED_STEPS:
        return Unknown("No reports of the last minutes")
    (first, low), (last, high) = known[0], known[-1]
    return Known(round((high - low) / (last - first)))


def plots(found: TopicPage) -> tuple[Chart, Chart, int]:
    """Records written per minute, and since the plot begins; of how many partitions.

    A step counts if the ends of all these partitions are known at it.
    """
    known = [ends for ends in found.ends.values() if any(end is not None for end in ends)]
    first = found.now - DRAWN_MS
    total = [
        Point(first + step * STEP_MS, sum(end for end in ends if end is not None))
        for step, ends in enumerate(zip(*known, strict=True))
        if None not in ends
    ]
    growth = [Point(point.at, max(point.value - total[0].value, 0)) for point in total]
    rates = [
        Point(after.at - STEP_MS // 2, max(after.value - before.value, 0))
        for before, after in pairwise(total)
        if after.at - before.at == STEP_MS
    ]

    def drawn(name: str, points: Sequence[Point], *, bars: bool = False) -> Chart:
        series = [Series(name, points)]
        return chart(series, first=first, last=found.now, step_ms=STEP_MS, zone=zones.current(), bars=bars)

    return drawn("Written per minute", rates, bars=True), drawn("Written since", growth), len(known)


MOST_GROUPS = 100_000


@page
def topic(request: HttpRequest, name: str) -> HttpResponse:
    """A page of the topic's partitions and groups."""
    viewer = viewer_of(request)
    first = min(whole_number(request, "partition") or 0, 2**31 - PARTITIONS - 1)
    skip = min(whole_number(request, "skip") or 0, MOST_GROUPS)
    old_ms, found = settings.KCOORD.int("lag.stale.ms"), None
    if "\0" not in name:
        found = bridge.call(lambda runtime: topic_page(runtime.db, viewer, name, first, skip, old_ms))
    if found is None:
        raise no_such_topic(name)
    return show(
        request, "pages/topics/topic", _context(request, found, first, skip), section="topics", title=f"{name} · Topics"
    )


def no_such_topic(name: str) -> Absent:
    """Of a topic that does not exist, or is hidden from the viewer."""
    return Absent("No such topic", f"There is no topic “{name}”; it may have been deleted.", "topics")


def _context(request: HttpRequest, found: TopicPage, first: int, skip: int) -> dict[str, object]:
    header = found.header
    total = found.groups[0].total if found.groups else None if skip else 0
    stale_ms = settings.KCOORD.int("lag.stale.ms")
    last = first + len(found.partitions) - 1
    rate_chart, growth_chart, drawn = plots(found)
    heading = f"{first:,} to {last:,} of {header.partitions:,}" if header.partitions > PARTITIONS else ""
    return {
        "now": found.now,
        "topic": header,
        "remedy": LOWER_END_REMEDY,
        "labels": sorted(header.labels.items()),
        "stale_ms": stale_ms,
        "stale": header.oldest is not None and found.now - header.oldest > stale_ms,
        "stale_before": found.now - stale_ms,
        "partitions": found.partitions,
        "partition_rows": partition_rows(found),
        "rate_chart": rate_chart,
        "growth_chart": growth_chart,
        "drawn": drawn,
        "which": heading,
        "rows": [(row, state(row.group.state, held=is_held(row.group.held_until, found.now))) for row in rows(found)],
        "groups": total,
        "group_list_url": f"{reverse('frontend:groups')}?{urlencode({'topic': header.name})}",
        "groups_from": skip + 1,
        "groups_to": skip + len(found.groups),
        "legend": LEGEND,
        "access": access_link(viewer_of(request), Resource.TOPIC, header.name),
        "summary": plural(header.partitions, "partition"),
        "previous_url": address(request, partition=str(max(first - PARTITIONS, 0))) if first > 0 else None,
        "next_url": address(request, partition=str(last + 1)) if last + 1 < header.partitions else None,
        "fewer_url": address(request, skip=str(max(skip - GROUPS, 0))) if skip > 0 else None,
        "more_url": address(request, skip=str(skip + GROUPS)) if skip + GROUPS < (total or 0) else None,
    }


@page
def topic_partitions_csv(request: HttpRequest, name: str) -> HttpResponseBase:
    """All partitions of a topic with their watermarks."""
    viewer = viewer_of(request)
    _require_topic(viewer, name)
    found = all_rows(lambda runtime, first: topic_partitions_from(runtime.db, viewer, name, first or 0))
    return csv_of(f"{name}-partitions", "partition log_start_offset log_end_offset @watermark_at=sampled_at", found)


@page
def topic_groups_csv(request: HttpRequest, name: str) -> HttpResponseBase:
    """All groups on a topic, by name, with their lag there as last sampled."""
    viewer = viewer_of(request)
    _require_topic(viewer, name)
    columns = """
        group_id type state lag largest_lag_of_a_partition=max_lag time_lag_ms time_lag_at_least_ms
        @lag_sampled_at=sampled_at owned committed
    """
    found = all_rows(lambda runtime, after: topic_groups_from(runtime.db, viewer, name, after))
    return csv_of(f"{name}-groups", columns, found)


def _require_topic(viewer: Viewer, name: str) -> None:
    """Raise Absent unless the topic exists for the viewer."""
    found = "\0" not in name and bridge.call(lambda runtime: topic_partitions_from(runtime.db, viewer, name, 0, 1))
    if not found or found == ((), None):
        raise no_such_topic(name)
