"""The list of groups: which match, in which order, and what is shown of each. The API and the dashboard share it.

It knows what groups committed and how far they are behind, so it belongs to offsets. A caller that may not describe all
topics sees groups as if the other topics did not exist (http-api.md 7).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psycopg.types.json import Jsonb

from groups.engine.service import GroupService
from groups.nodes.hosting import Hosting
from groups.readmodel import MAX_TOPICS, GroupFilter, GroupSort, GroupSummary
from kcoord.database.pool import Connection, Database
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.rest.paging import DEFAULT_LIMIT, EVERYTHING, Key, Page, Visible, cut, decode_cursor, encode_cursor
from kcoord.sql import queries

Q = queries("offsets")


@dataclass(frozen=True, slots=True)
class _Order:
    """How one sort order is read: its statements in both directions, the key of the first page, the key's type, further
    parameters.
    """

    after: str
    before: str | None
    first: Key | None
    kind: type[Key] | None
    extra: Mapping[str, int]


_BY_LAG = Q.list_groups_by_lag, Q.list_groups_by_lag_before
_ORDERS: Mapping[GroupSort, _Order] = {
    GroupSort.GROUP_ID: _Order(Q.list_groups_by_id, Q.list_groups_by_id_before, None, None, {}),
    GroupSort.UPDATED: _Order(Q.list_groups_by_change, Q.list_groups_by_change_before, None, int, {}),
    GroupSort.STATE: _Order(Q.list_groups_by_state, None, "", str, {}),
    GroupSort.MEMBERS: _Order(Q.list_groups_by_members, None, None, int, {"sign": 1}),
    GroupSort.MEMBERS_DESCENDING: _Order(Q.list_groups_by_members, None, None, int, {"sign": -1}),
    GroupSort.LAG: _Order(*_BY_LAG, None, int, {"sign": 1}),
    GroupSort.LAG_DESCENDING: _Order(*_BY_LAG, None, int, {"sign": -1}),
}


@dataclass(frozen=True, slots=True)
class Found:
    """A group of a page. `key`: what it is sorted by besides its id, None for GroupSort.GROUP_ID."""

    id: int
    group_id: str
    key: Key | None


@dataclass(frozen=True, slots=True)
class Position:
    """Where a page begins: after the group with this id and key, or before it, in the same order."""

    group_id: str
    key: Key | None
    before: bool = False


class GroupFinder:
    """Finds groups in one snapshot: those in `visible`, as if only the topics in `visible_topics` existed."""

    def __init__(
        self,
        db: Database,
        connection: Connection,
        visible: Visible = EVERYTHING,
        visible_topics: Visible = EVERYTHING,
    ) -> None:
        self._db = db
        self._connection = connection
        self._visible = visible
        self._visible_topics = visible_topics

    async def find(self, wanted: GroupFilter, sort: GroupSort, start: Position | None, limit: int) -> list[Found]:
        """The first `limit` groups of a page, in order; `before` a position from there on backwards.

        Backwards only by id, change or lag.
        """
        order = _ORDERS[sort]
        statement = order.before if start is not None and start.before else order.after
        assert statement is not None
        parameters = {
            **await self._conditions(wanted, by_lag="sign" in order.extra and order.after in _BY_LAG),
            **order.extra,
            "after_key": order.first if start is None else start.key,
            "after": "" if start is None else start.group_id,
            "limit": limit,
        }
        return await off_loop.records(self._connection, Found, statement, parameters)

    async def summaries(self, ids: Sequence[int], *, topics: int, committed: bool = False) -> list[GroupSummary]:
        """What is shown of these groups, in the given order, with the names of at most `topics` topics.

        `committed`: also of topics that a group has committed offsets on, and not only of those its members own.
        """
        shown = {"ids": list(ids), "topics": topics, "committed": committed, **self._visible_topics.parameters()}
        found = await off_loop.records(self._connection, GroupSummary, Q.group_summaries, shown)
        if not self._visible_topics.unlimited:
            lags = dict(await self._lags(ids, None))
            found = [replace(summary, lag=lags.get(summary.pk)) for summary in found]
        by_pk = {summary.pk: summary for summary in found}
        return [by_pk[pk] for pk in ids]

    async def counts(self, wanted: GroupFilter) -> dict[str, int]:
        """How many groups of each state match, whatever states are wanted."""
        parameters = await self._conditions(replace(wanted, states=None), by_lag=False)
        return dict(await self._db.rows(self._connection, Q.count_groups_by_state, parameters))

    async def _conditions(self, wanted: GroupFilter, *, by_lag: bool) -> dict[str, Any]:
        """Parameters of all statements that find groups.

        For a caller that sees all topics the lag is the stored one of each group; for others it has to be added up.
        """
        parameters: dict[str, Any] = {
            **wanted.parameters(),
            **self._visible.parameters(),
            "labelled": await self._labelled(wanted.labels),
            "lagging": None,
            "lag_of": None,
            "lags": None,
        }
        if self._visible_topics.unlimited:
            return parameters
        if wanted.min_lag is not None:
            parameters |= {"lagging": [pk for pk, _ in await self._lags(None, wanted.min_lag)], "min_lag": None}
        if by_lag:
            lags = await self._lags(None, None)
            parameters |= {"lag_of": [pk for pk, _ in lags], "lags": [lag for _, lag in lags]}
        return parameters

    async def _labelled(self, labels: Sequence[tuple[str, str | None]] | None) -> list[str] | None:
        """Names of the topics that have any of the labels; None: no such condition."""
        if labels is None:
            return None
        parameters = {
            "pairs": [Jsonb({name: value}) for name, value in labels if value is not None],
            "names": [name for name, value in labels if value is None],
            **self._visible_topics.parameters(),
        }
        return await self._db.column(self._connection, Q.labelled_topics, parameters)

    async def _lags(self, ids: Sequence[int] | None, min_lag: int | None) -> list[tuple[int, int]]:
        """The lag of groups on the visible topics, as of the last sample."""
        found = {
            "ids": None if ids is None else list(ids),
            "min_lag": min_lag,
            **self._visible_topics.parameters(),
        }
        return [(pk, lag) for pk, lag in await self._db.rows(self._connection, Q.visible_lags, found)]


class GroupListReads:
    """The list of groups of the API. Methods may raise COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._groups = runtime.get(GroupService)
        self._hosting = runtime.get(Hosting)

    async def search(
        self,
        wanted: GroupFilter,
        *,
        sort: GroupSort = GroupSort.GROUP_ID,
        cursor: str | None = None,
        limit: int = DEFAULT_LIMIT,
        visible: Visible = EVERYTHING,
        visible_topics: Visible = EVERYTHING,
    ) -> Page[GroupSummary]:
        """A page of the groups in `visible` that match, as if only the topics in `visible_topics` existed.

        With the routing `owner` only groups of this node are listed, so that a page may have fewer than `limit`.
        Raises INVALID_REQUEST for a cursor of another list.
        """
        self._groups.check_active()
        is_listed = self._hosting.listed()
        start = _position(sort, cursor)
        if wanted.topic is not None and wanted.topic not in visible_topics:
            return Page([], None)
        async with self._db.snapshot() as connection:
            finder = GroupFinder(self._db, connection, visible, visible_topics)
            found, more = cut(await finder.find(wanted, sort, start, limit + 1), limit)
            listed = [group for group in found if is_listed is None or is_listed(group.group_id)]
            groups = await finder.summaries([group.id for group in listed], topics=MAX_TOPICS)
        return Page(groups, _cursor_after(sort, found[-1]) if more else None)


def _position(sort: GroupSort, cursor: str | None) -> Position | None:
    if cursor is None:
        return None
    kind = _ORDERS[sort].kind
    named, *key, group_id = decode_cursor(cursor, *((str, str) if kind is None else (str, kind, str)))
    if named != sort.value:
        raise ProtocolError(
            Error.INVALID_REQUEST,
            f"cursor: belongs to a list sorted by {named!r}; start again without a cursor",
            fields={"field": "cursor"},
        )
    return Position(str(group_id), key[0] if key else None)


def _cursor_after(sort: GroupSort, last: Found) -> str:
    if last.key is None:
        return encode_cursor(sort.value, last.group_id)
    return encode_cursor(sort.value, last.key, last.group_id)
