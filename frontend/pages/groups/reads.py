"""The read model of the list of groups: a page by key in one database snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from frontend.ui.rows import Millis
from frontend.ui.viewer import Forbidden, Viewer
from groups.core.assignors import BUILT_IN
from groups.readmodel import OF_ALL_TOPICS, GroupFilter, GroupSort, GroupSummary
from kcoord.database.pool import Database
from kcoord.database.sql import queries
from offsets.group_list import GroupFinder
from offsets.group_orders import cursor_at, position

PAGE_SIZE = 50
TOPICS_PER_LINE = 21
"""Topic names read per line of the list: a few are shown, the others are counted."""

Q = queries("frontend")

ALL = GroupFilter()
DRAWN_MS = 3_600_000
"""How much of the past of each group's lag the list draws."""
DRAWN_TOPICS = 50
"""Of a group with more topics it draws nothing: each is a range of an index."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the list shows. `after` and `before` are cursors at the edge of a page; at most one of them is given."""

    groups: GroupFilter = ALL
    sort: GroupSort = GroupSort.SEVERITY
    after: str | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class Looks:
    """The lag of a group at each look of the last hour: instants (ms), sums, and how many topics were known then.

    `topics`: how many it has committed on, as far as they can be seen; no looks are read if it is more than
    DRAWN_TOPICS.
    """

    group_id: int
    topics: int
    at: Sequence[Millis]
    lag: Sequence[int]
    parts: Sequence[int]


@dataclass(frozen=True, slots=True)
class Also:
    """What the list shows besides a summary: assignors by the key of the group, nodes by coordinator partition."""

    assignors: Mapping[int, str | None]
    coordinators: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class GroupList:
    """A page of the list of groups; counts are by state and by verdict, regardless of those that are chosen.

    `held`: how many are held. `previous` and `next` are cursors: before the first line, and after the last; None where
    there are no more. `looks` at their lag are by the key of the group. `also`: what else is known.
    """

    now: Millis
    groups: Sequence[GroupSummary]
    counts: Mapping[str, int]
    verdict_counts: Mapping[str, int]
    previous: str | None = None
    next: str | None = None
    held: int = 0
    looks: Mapping[int, Looks] = field(default_factory=dict)
    also: Also = field(default_factory=lambda: Also({}, {}))


async def group_list(db: Database, viewer: Viewer, wanted: Wanted, assignors: Iterable[str] = BUILT_IN) -> GroupList:
    """A page of groups with the counts. `assignors`: the server's, its default first.

    Raises ProtocolError: INVALID_REQUEST for a cursor of another order, INVALID_REGULAR_EXPRESSION,
    COORDINATOR_NOT_AVAILABLE; Forbidden for a condition on all topics of a viewer who may not describe them.
    """
    _check(viewer, wanted)
    if not _is_possible(viewer, wanted):
        return await unreadable(db)
    back = wanted.before is not None
    start = position(wanted.sort, wanted.before or wanted.after, before=back)
    async with db.snapshot() as connection:
        finder = GroupFinder(db, connection, viewer.listed_by(wanted.groups), viewer.topics, assignors)
        found = await finder.find(wanted.groups, wanted.sort, start, PAGE_SIZE + 1)
        more = len(found) > PAGE_SIZE
        found = found[:PAGE_SIZE]
        if back:
            found.reverse()
        ids = [one.id for one in found]
        has_previous, has_next = (more, True) if back else (start is not None, more)
        now = await db.now_ms(connection)
        counts, held = await finder.counts(wanted.groups)
        drawn = {"ids": ids, "first": now - DRAWN_MS, "last": now, "most": DRAWN_TOPICS, **viewer.parameters()}
        return GroupList(
            now=now,
            groups=await finder.summaries(ids, topics=TOPICS_PER_LINE, committed=True),
            counts=counts,
            held=held,
            verdict_counts=await finder.verdict_counts(wanted.groups),
            previous=cursor_at(wanted.sort, found[0]) if found and has_previous else None,
            next=cursor_at(wanted.sort, found[-1]) if found and has_next else None,
            looks={one.group_id: one for one in await db.records(connection, Looks, Q.lag_looks, drawn)},
            also=Also(await finder.assignors(ids), await finder.coordinators(now)),
        )


async def group_rows(
    db: Database, viewer: Viewer, wanted: Wanted, after: str | None, limit: int, assignors: Iterable[str] = BUILT_IN
) -> tuple[Sequence[tuple[GroupSummary, Also]], str | None]:
    """The first `limit` groups after a cursor, and the cursor where to continue; None: these were the last.

    Raises what `group_list` raises.
    """
    _check(viewer, wanted)
    if not _is_possible(viewer, wanted):
        return (), None
    async with db.snapshot() as connection:
        finder = GroupFinder(db, connection, viewer.listed_by(wanted.groups), viewer.topics, assignors)
        found = await finder.find(wanted.groups, wanted.sort, position(wanted.sort, after), limit + 1)
        shown = found[:limit]
        ids = [one.id for one in shown]
        groups = await finder.summaries(ids, topics=TOPICS_PER_LINE, committed=True)
        also = Also(await finder.assignors(ids), await finder.coordinators(await db.now_ms(connection)))
        following = cursor_at(wanted.sort, shown[-1]) if len(found) > limit else None
        return [(group, also) for group in groups], following


async def unreadable(db: Database) -> GroupList:
    """A list without groups: for a regular expression that cannot be used, or a topic that there is not."""
    async with db.connection() as connection:
        return GroupList(await db.now_ms(connection), (), {}, {})


def _check(viewer: Viewer, wanted: Wanted) -> None:
    """Time lag and partitions are known of all topics of a group together."""
    if viewer.topics.unlimited:
        return
    if wanted.sort in OF_ALL_TOPICS or wanted.groups.min_time_lag_ms is not None:
        what = "partitions" if wanted.sort.value.endswith(GroupSort.PARTITIONS.value) else "time lag"
        raise Forbidden(f"To sort or filter groups by their {what}, your account needs describe on every topic.")


def _is_possible(viewer: Viewer, wanted: Wanted) -> bool:
    """A topic that the viewer may not describe is one that no group has."""
    return wanted.groups.topic is None or viewer.sees_topic(wanted.groups.topic)
