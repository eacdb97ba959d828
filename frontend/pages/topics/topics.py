"""The list of topics: its orders, pages and file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse

from frontend.pages.topics.topic import NO_WATERMARK, NOT_SAMPLED, NOTHING_COMMITTED
from frontend.ui.page import Pace, around, choice, cursor_given, edges, page, show, text
from frontend.ui.rows import Millis
from frontend.ui.shown import Shown, limited, shown, time_behind
from frontend.ui.table import Column, all_rows, csv_of, heads, orders
from frontend.ui.viewer import Forbidden, Viewer, viewer_of
from frontend.ui.wording import plural
from kcoord.database.paging import decode_cursor, encode_cursor
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError

Q = queries("frontend")

PAGE_SIZE = 50
GROUP_ROWS, FILE_GROUP_ROWS = 200, 1_000
"""How many of a topic's assignments, and of its offsets, are searched for groups that read it: for a page, a file."""


class TopicSort(str, Enum):
    """The orders of the list; topics that compare equal are ordered by name."""

    NAME = "name"
    NAME_DESCENDING = "-name"
    PARTITIONS = "partitions"
    PARTITIONS_DESCENDING = "-partitions"
    LAG = "lag"
    LAG_DESCENDING = "-lag"
    TIME_LAG = "time_lag"
    TIME_LAG_DESCENDING = "-time_lag"
    CREATED = "created"
    CREATED_DESCENDING = "-created"

    @property
    def descends(self) -> bool:
        """The largest comes first."""
        return self.value.startswith("-")


BY_NAME = TopicSort.NAME, TopicSort.NAME_DESCENDING
OF_ALL_GROUPS = TopicSort.LAG, TopicSort.LAG_DESCENDING, TopicSort.TIME_LAG, TopicSort.TIME_LAG_DESCENDING
"""Orders by what is stored of all groups together: not for people who may not describe some."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the list shows. `after` and `before` are cursors at the edge of a page; at most one of them is given."""

    q: str = ""
    sort: TopicSort = TopicSort.NAME
    after: str | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class Topic:
    """One line of the list. `groups` own partitions of it, `committed` have offsets on it.

    `sampled_at`: its oldest watermark (ms); None if it has none.
    """

    pk: int
    name: str
    partitions: int
    created_at: Millis
    watermarks: int
    sampled_at: Millis | None
    groups: Sequence[str]
    committed: Sequence[str]


@dataclass(frozen=True, slots=True)
class TopicTotal:
    """A topic over all groups that committed on it, as last sampled, `at` (ms): their number and the sum of their lags.

    `worst_group`: the one furthest behind, by `worst_lag`; None if it was deleted since. `time_lag_ms`: the longest;
    `time_lag_at_least_ms`: where it is not known of each group, it is at least this. None: not known of any group.
    """

    topic: str
    groups: int
    lag: int | None
    worst_group: str | None
    worst_lag: int | None
    time_lag_ms: Millis | None
    time_lag_at_least_ms: Millis | None
    at: Millis


@dataclass(frozen=True, slots=True)
class TopicList:
    """A page of the list; `total`: topics that match. `previous` and `next` are cursors, None where there is no more.

    `totals`: by name, of the topics that groups have committed on.
    """

    now: Millis
    topics: Sequence[Topic]
    totals: Mapping[str, TopicTotal]
    total: int
    previous: str | None
    next: str | None


@dataclass(frozen=True, slots=True)
class _Found:
    pk: int
    name: str
    key: int


def sorts_of(viewer: Viewer) -> Sequence[TopicSort]:
    """The orders that the person may ask for."""
    return [sort for sort in TopicSort if viewer.groups.unlimited or sort not in OF_ALL_GROUPS]


async def listed_topics(
    db: Database, viewer: Viewer, wanted: Wanted, *, limit: int = PAGE_SIZE, rows: int = GROUP_ROWS
) -> TopicList:
    """A page of the topics that the viewer may describe. `rows`: how deep groups are looked for.

    Raises ProtocolError: INVALID_REQUEST for a cursor of another order, COORDINATOR_NOT_AVAILABLE; Forbidden for an
    order by all groups of a viewer who may not describe them.
    """
    if wanted.sort not in sorts_of(viewer):
        raise Forbidden("To sort topics by lag, your account needs describe on every group.")
    back = wanted.before is not None
    edge = _edge(wanted)
    async with db.snapshot() as connection:
        found = await _find(db, connection, viewer, wanted, edge, limit + 1)
        more = len(found) > limit
        found = found[:limit]
        if back:
            found.reverse()
        has_previous, has_next = (more, True) if back else (edge is not None, more)
        asked = {"ids": [one.pk for one in found], "rows": rows, **viewer.with_groups()}
        lines = {topic.pk: topic for topic in await db.records(connection, Topic, Q.topic_lines, asked)}
        named = {"names": [one.name for one in found], **viewer.with_groups()}
        totals = Q.topic_totals if viewer.groups.unlimited else Q.visible_topic_totals
        return TopicList(
            now=await db.now_ms(connection),
            topics=[lines[one.pk] for one in found],
            totals={total.topic: total for total in await db.records(connection, TopicTotal, totals, named)},
            total=await db.value(connection, Q.count_topics, _searched(viewer, wanted)),
            previous=_cursor(wanted.sort, found[0]) if found and has_previous else None,
            next=_cursor(wanted.sort, found[-1]) if found and has_next else None,
        )


def _searched(viewer: Viewer, wanted: Wanted) -> dict[str, Any]:
    return {"q": wanted.q or None, **viewer.parameters()}


async def _find(
    db: Database, connection: Connection, viewer: Viewer, wanted: Wanted, edge: tuple[int, str] | None, limit: int
) -> list[_Found]:
    back = wanted.before is not None
    if wanted.sort in BY_NAME:
        statement = Q.topics_by_name_before if wanted.sort.descends != back else Q.topics_by_name
    else:
        statement = Q.topics_by_key_before if back else Q.topics_by_key
    parameters = {
        **_searched(viewer, wanted),
        "by": wanted.sort.value.removeprefix("-"),
        "sign": -1 if wanted.sort.descends else 1,
        "edge_key": edge and edge[0],
        "edge": edge and edge[1],
        "limit": limit,
    }
    return await db.records(connection, _Found, statement, parameters)


def _edge(wanted: Wanted) -> tuple[int, str] | None:
    cursor = wanted.before or wanted.after
    if cursor is None:
        return None
    named, key, name = decode_cursor(cursor, str, int, str)
    if named != wanted.sort.value:
        raise ProtocolError(Error.INVALID_REQUEST, f"cursor: belongs to a list sorted by {named!r}")
    return int(key), str(name)


def _cursor(sort: TopicSort, edge: _Found) -> str:
    return encode_cursor(sort.value, edge.key, edge.name)


S = TopicSort

GROUPS_SHOWN = 3

COLUMNS = (
    Column("topic", "Topic", S.NAME, S.NAME_DESCENDING, orders="Name|Name, from Z to A"),
    Column(
        "partitions", "Partitions", S.PARTITIONS_DESCENDING, S.PARTITIONS, number=True,
        orders="Most partitions|Fewest partitions",
    ),
    Column("read_by", "Read by", title="Groups that own partitions, and groups that committed offsets"),
    Column(
        "lag", "Lag", S.LAG_DESCENDING, S.LAG, number=True, orders="Largest lag|Smallest lag",
        title="Of all groups that committed an offset, as of the last sample, and of the group that is furthest behind",
    ),
    Column(
        "time_lag", "Time lag", S.TIME_LAG_DESCENDING, S.TIME_LAG, number=True,
        orders="Largest time lag|Smallest time lag", title="Of the group that is furthest behind in time",
    ),
    Column("watermarks", "Watermarks", number=True, title="Partitions whose log start and end somebody has pushed"),
    Column("created", "Created", S.CREATED_DESCENDING, S.CREATED, number=True, orders="Newest|Oldest"),
)  # fmt: skip
SORTS = orders(COLUMNS)


@dataclass(frozen=True, slots=True)
class TopicLine:
    """A topic in the list. `idle`: groups that own nothing of it, but have committed offsets. `stale`: a watermark is
    too old. `why` a lag is not known, if it is not."""

    topic: Topic
    groups: Sequence[str]
    idle: Sequence[str]
    more: int
    stale: bool
    total: TopicTotal | None
    why: str
    time_lag: Shown[Millis]


@page
def topic_list(request: HttpRequest) -> HttpResponse:
    """All topics, one page at a time."""
    wanted, viewer = wanted_topics(request), viewer_of(request)
    stale_ms = settings.KCOORD.int("lag.stale.ms")
    with cursor_given("after" if wanted.after else "before"):
        found = bridge.call(lambda runtime: listed_topics(runtime.db, viewer, wanted))
    context = {
        "now": found.now,
        "q": wanted.q,
        "order": "" if wanted.sort is S.NAME else wanted.sort.value,
        "sorts": [("" if s is S.NAME else s.value, label) for s, label in SORTS if s in sorts_of(viewer)],
        "caption": dict(SORTS)[wanted.sort].lower(),
        "heads": heads(request, COLUMNS, wanted.sort, sorts_of(viewer), S.NAME),
        "summary": plural(found.total, "topic") + (" found" if wanted.q else ""),
        "lines": [_line(topic, found.totals.get(topic.name), found.now - stale_ms, viewer) for topic in found.topics],
        "stale_ms": stale_ms,
        **around(request, found.previous, found.next),
        "stream": reverse("frontend:live"),
        # Lags are those of the last sample, which is not taken more often than this.
        "pace": Pace(every_ms=15_000, gap_ms=10_000),
    }
    return show(request, "pages/topics/topics", context, section="topics", title="Topics")


def wanted_topics(request: HttpRequest) -> Wanted:
    """What the URL of the list asks for. Raises BadAddress."""
    sort = S(choice(request, "sort", tuple(one.value for one in S)) or S.NAME.value)
    return Wanted(text(request, "q"), sort, *edges(request))


def _line(topic: Topic, total: TopicTotal | None, stale_before: int, viewer: Viewer) -> TopicLine:
    owners = set(topic.groups)
    idle = [group_id for group_id in topic.committed if group_id not in owners]
    named = topic.groups[:GROUPS_SHOWN]
    named_idle = idle[: GROUPS_SHOWN - len(named)]
    known = max(len(topic.groups) + len(idle), total.groups if total else 0)
    why = NO_WATERMARK if total else NOT_SAMPLED if topic.committed else NOTHING_COMMITTED
    late = total and time_behind(total.time_lag_ms, total.time_lag_at_least_ms, total.at, why)
    return TopicLine(
        topic, named, named_idle, known - len(named) - len(named_idle),
        topic.sampled_at is not None and topic.sampled_at < stale_before,
        total, why, limited(late or shown(None, why=why), viewer.groups_counted),
    )  # fmt: skip


TOPICS_AT_ONCE = 200


@page
def topics_csv(request: HttpRequest) -> HttpResponseBase:
    """The topics that match the search, in the order of the page."""
    wanted, viewer = replace(wanted_topics(request), after=None, before=None), viewer_of(request)

    async def read(runtime: Runtime, after: str | None) -> tuple[Sequence[Mapping[str, Any]], str | None]:
        here = replace(wanted, after=after)
        found = await listed_topics(runtime.db, viewer, here, limit=TOPICS_AT_ONCE, rows=FILE_GROUP_ROWS)
        return [{"of": topic, "total": found.totals.get(topic.name)} for topic in found.topics], found.next

    def groups(row: Mapping[str, Any]) -> int | None:
        """Where no group has been sampled: if none has committed either, that is all there is to know."""
        return row["total"].groups if row["total"] else None if row["of"].committed else 0

    columns = """
        topic=of.name partitions=of.partitions watermarks=of.watermarks @oldest_watermark=of.sampled_at
        read_by=of.groups committed_by=of.committed groups lag=total.lag worst_group=total.worst_group
        worst_lag=total.worst_lag time_lag_ms=total.time_lag_ms
        time_lag_at_least_ms=total.time_lag_at_least_ms @lag_sampled_at=total.at @created_at=of.created_at
    """
    return csv_of("topics", columns, all_rows(read), groups=groups, counted=viewer.groups_counted or "of all groups")
