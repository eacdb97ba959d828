"""The list of topics: its orders, and what is read of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from frontend.allowed import Forbidden
from frontend.rows import Millis
from frontend.viewer import Viewer
from kcoord.database.pool import Connection, Database
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.rest.paging import decode_cursor, encode_cursor
from kcoord.sql import queries

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

    `worst_group`: the one furthest behind, by `worst_lag`; None if it was deleted since. `time_lag_ms`: the longest.
    None: not known of any group.
    """

    topic: str
    groups: int
    lag: int | None
    worst_group: str | None
    worst_lag: int | None
    time_lag_ms: Millis | None
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


async def topic_list(
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
