"""The list of groups: which match, in which order, and what is shown of each. The API and the dashboard share it.

It knows what groups committed and how far they are behind, so it belongs to offsets. A caller that may not describe all
topics sees groups as if the other topics did not exist (http-api.md 7).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from psycopg import errors as pg
from psycopg.types.json import Jsonb

from groups.configs import ASSIGNOR, DecisionContexts
from groups.core.assignors import BUILT_IN
from groups.core.model.types import VerdictKind
from groups.engine.service import GroupService
from groups.nodes.hosting import Hosting
from groups.readmodel import MAX_TOPICS, GroupFilter, GroupSort, GroupSummary
from kcoord.control.rest.ranges import BEYOND, ranges
from kcoord.database.paging import DEFAULT_LIMIT, EVERYTHING, Page, Visible, cut
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime
from offsets import group_patterns
from offsets.core.types import Millis
from offsets.group_orders import (
    BY_COORDINATOR,
    BY_ID,
    BY_LAG,
    ORDERS,
    WELL,
    Found,
    Position,
    cursor_at,
    places,
    position,
)

Q = queries("offsets")

_COMPARES_CODE_POINTS: WeakKeyDictionary[Database, bool] = WeakKeyDictionary()
"""Of each database that was asked: its collation never changes."""

FEW_ROWS = 5_000
"""A topic that fewer rows name is looked up once; of another, groups are asked for one by one."""


class GroupFinder:
    """Finds groups in one snapshot: those in `visible`, as if only the topics in `visible_topics` existed."""

    def __init__(
        self,
        db: Database,
        connection: Connection,
        visible: Visible = EVERYTHING,
        visible_topics: Visible = EVERYTHING,
        assignors: Iterable[str] = BUILT_IN,
    ) -> None:
        """`assignors`: the server's, the first one is for groups that ask for none."""
        self._db = db
        self._connection = connection
        self._visible = visible
        self._visible_topics = visible_topics
        self._assigning = {"assignors": list(assignors), "setting": ASSIGNOR}
        self._asked: GroupFilter | None = None
        self._found: tuple[dict[str, Any], list[set[int]]] = ({}, [])

    async def find(self, wanted: GroupFilter, sort: GroupSort, start: Position | None, limit: int) -> list[Found]:
        """The first `limit` groups of a page, in order; `before` a position from there on backwards."""
        if sort is GroupSort.SEVERITY:
            return await self._worst_first(wanted, start, limit)
        return await self._find(wanted, sort, start, limit)

    async def _worst_first(self, wanted: GroupFilter, start: Position | None, limit: int) -> list[Found]:
        """Groups with verdicts, which are few, by the worst; then the others by id, for which there is an index."""
        backwards, among_well = start is not None and start.before, start is not None and start.key == WELL
        if not backwards:
            found = [] if among_well else await self._find(wanted, GroupSort.SEVERITY, start, limit)
            return found + await self._well(wanted, start if among_well else None, limit - len(found))
        found = await self._well(wanted, start, limit) if among_well else []
        end = Position("", None, before=True) if among_well else start
        return found + await self._find(wanted, GroupSort.SEVERITY, end, limit - len(found))

    async def _well(self, wanted: GroupFilter, start: Position | None, limit: int) -> list[Found]:
        if wanted.verdicts is not None or not limit:
            return []
        found = await self._find(replace(wanted, well=True), GroupSort.GROUP_ID, start, limit)
        return [replace(one, key=WELL) for one in found]

    async def _find(self, wanted: GroupFilter, sort: GroupSort, start: Position | None, limit: int) -> list[Found]:
        order = ORDERS[sort]
        backwards = start is not None and start.before
        statement = order.before if backwards else order.after
        parameters = {
            **await self._conditions(wanted, by_lag=order.after in BY_LAG),
            **order.extra,
            "after_key": order.first if start is None else start.key,
            "after": "" if start is None else start.group_id,
            "limit": limit,
        }
        if order.after in BY_COORDINATOR:
            parameters |= places(await self._live())
        if sort in BY_ID and await self._can_seek():
            descending = (sort is GroupSort.GROUP_ID_DESCENDING) != backwards
            statement = Q.list_groups_by_id_within_descending if descending else Q.list_groups_by_id_within
            within = ranges(self._visible)
            parameters |= {"low": [low for low, _ in within], "high": [high for _, high in within]}
            parameters["after"] = parameters["after"] or (BEYOND if descending else "")
        async with self._limited(wanted):
            return await off_loop.records(self._connection, Found, statement, parameters)

    async def _can_seek(self) -> bool:
        """Ranges of an index hold what is visible: it is not everything, and the index is in the order of ranges."""
        if self._visible.unlimited:
            return False
        if self._db not in _COMPARES_CODE_POINTS:
            _COMPARES_CODE_POINTS[self._db] = bool(await self._db.value(self._connection, Q.compares_code_points))
        return _COMPARES_CODE_POINTS[self._db]

    async def summaries(self, ids: Sequence[int], *, topics: int, committed: bool = False) -> list[GroupSummary]:
        """What is shown of these groups, in the given order, with the names of at most `topics` topics.

        `committed`: also of topics that a group has committed offsets on, and not only of those its members own.
        """
        shown = {
            "ids": list(ids),
            "topics": topics,
            "committed": committed,
            "worst_first": [kind.value for kind in VerdictKind],
            **self._visible_topics.parameters(),
        }
        found = await off_loop.records(self._connection, GroupSummary, Q.group_summaries, shown)
        if not self._visible_topics.unlimited:
            lags = dict(await self._lags(ids, None))
            seen = {"ids": list(ids), **self._visible_topics.parameters()}
            partitions: dict[int, int] = dict(await self._db.rows(self._connection, Q.visible_partitions, seen))
            found = [
                replace(
                    summary,
                    lag=lags.get(summary.pk),
                    time_lag_ms=None,
                    time_lag_at_least_ms=None,
                    partitions=partitions.get(summary.pk, 0),
                )
                for summary in found
            ]
        by_pk = {summary.pk: summary for summary in found}
        return [by_pk[pk] for pk in ids]

    async def assignors(self, ids: Sequence[int]) -> Mapping[int, str | None]:
        """What assigns the partitions of these groups; None: a classic group that has not chosen a protocol."""
        asked = {"ids": list(ids), **self._assigning}
        return dict(await self._db.rows(self._connection, Q.assignors_of, asked))

    async def coordinators(self, now: Millis) -> Mapping[int, str]:
        """The names of the nodes that own coordinator partitions at `now` (ms), by partition, in the order of names."""
        return dict(await self._db.rows(self._connection, Q.coordinator_names, {"now": now}))

    async def _live(self) -> Mapping[int, str]:
        return await self.coordinators(await self._db.now_ms(self._connection))

    async def counts(self, wanted: GroupFilter) -> tuple[dict[str, int], int]:
        """How many groups of each state match, whatever states are wanted, and how many of all are held."""
        parameters = await self._conditions(replace(wanted, states=None, held=False), by_lag=False)
        parameters["held_now"] = await self._db.now_ms(self._connection)
        async with self._limited(wanted):
            rows = await self._db.rows(self._connection, Q.count_groups_by_state, parameters)
        return {state: count for state, count, _ in rows}, sum(held for _, _, held in rows)

    async def verdict_counts(self, wanted: GroupFilter) -> dict[str, int]:
        """How many groups with each verdict match, whatever verdicts are wanted."""
        parameters = await self._conditions(replace(wanted, verdicts=None), by_lag=False)
        async with self._limited(wanted):
            return dict(await self._db.rows(self._connection, Q.count_groups_by_verdict, parameters))

    @asynccontextmanager
    async def _limited(self, wanted: GroupFilter) -> AsyncIterator[None]:
        """A statement with a regular expression ends in time; INVALID_REGULAR_EXPRESSION if it has to be ended."""
        if wanted.regex is None:
            yield
            return
        usual = await self._db.value(self._connection, Q.statement_limit)
        await self._db.rows(self._connection, Q.limit_statements, {"limit": f"{group_patterns.TIMEOUT_MS}ms"})
        try:
            yield
        except pg.QueryCanceled:
            raise group_patterns.too_slow() from None
        except pg.InvalidRegularExpression as error:
            raise group_patterns.unreadable(error.diag.message_primary or "") from None
        await self._db.rows(self._connection, Q.limit_statements, {"limit": usual})

    async def _conditions(self, wanted: GroupFilter, *, by_lag: bool) -> dict[str, Any]:
        """Parameters of all statements that find groups.

        For a caller that sees all topics the lag is the stored one of each group; for others it has to be added up.
        """
        asked = replace(wanted, states=None, verdicts=None, held=False, well=False)
        if self._asked != asked:
            self._asked, self._found = asked, await self._chosen(wanted)
        named, found = self._found
        parameters: dict[str, Any] = {
            **wanted.parameters(),
            **self._visible.parameters(),
            **named,
            **self._visible_topics.parameters("topic"),
            "among": list(set.intersection(*found)) if found else None,
            "regex": None if wanted.regex is None else group_patterns.for_postgres(wanted.regex),
            "lagging": None,
            "lag_of": None,
            "lags": None,
            "held_at": await self._db.now_ms(self._connection) if wanted.held else None,
        }
        if self._visible_topics.unlimited:
            return parameters
        if wanted.min_lag is not None:
            parameters |= {"lagging": [pk for pk, _ in await self._lags(None, wanted.min_lag)], "min_lag": None}
        if by_lag:
            lags = await self._lags(None, None)
            parameters |= {"lag_of": [pk for pk, _ in lags], "lags": [lag for _, lag in lags]}
        return parameters

    async def _chosen(self, wanted: GroupFilter) -> tuple[dict[str, Any], list[set[int]]]:
        """The conditions about members, assignors and topics: parameters, and sets of groups; each has to have a group.

        Once for all statements of a page: members are read from end to end. A topic with few groups is looked up once
        and not for each group.
        """
        found: list[set[int]] = []
        if wanted.by_members:
            of_member = {"member": wanted.member, "client_id": wanted.client_id, "host": wanted.host}
            rows = await off_loop.fetch(self._connection, Q.groups_with_members, of_member)
            found.append({pk for (pk,) in rows})
        parameters: dict[str, Any] = {
            "topic": wanted.topic,
            "labelled": None,
            "label_pairs": None,
            "label_names": None,
            "assigned": await self._assigned(wanted.assignor),
            "coordinated": await self._coordinated(wanted.coordinator),
        }
        if wanted.topic is not None:
            of_topic = await self._few(Q.groups_of_topics, {"names": [wanted.topic], "subscribed": False})
            if of_topic is not None:
                found.append(of_topic)
                parameters["topic"] = None
        if wanted.labels is not None:
            asked = _asked(wanted.labels)
            topics = await self._labelled_topics(asked)
            of_topics = await self._few(Q.groups_of_topics, {"names": topics, "subscribed": True})
            with_label = None if of_topics is None else await self._few(Q.labelled_groups, asked)
            if of_topics is None or with_label is None:
                parameters |= {"labelled": topics, "label_pairs": asked["pairs"], "label_names": asked["names"]}
            else:
                found.append(of_topics | with_label)
        return parameters, found

    async def _few(self, statement: str, parameters: Mapping[str, Any]) -> set[int] | None:
        """The groups that a statement finds; None: too many rows."""
        rows = await off_loop.fetch(self._connection, statement, {**parameters, "limit": FEW_ROWS})
        return {pk for (pk,) in rows} if len(rows) < FEW_ROWS else None

    async def _assigned(self, assignor: str | None) -> list[int] | None:
        """The consumer groups whose assignor has this in its name; None: no such condition."""
        if assignor is None:
            return None
        asked = {"assignor": assignor, **self._assigning}
        return [pk for (pk,) in await off_loop.fetch(self._connection, Q.consumer_groups_assigned_by, asked)]

    async def _coordinated(self, node_id: str | None) -> list[int] | None:
        """The partitions that a node coordinates now; None: no such condition."""
        return None if node_id is None else [part for part, name in (await self._live()).items() if name == node_id]

    async def _labelled_topics(self, asked: Mapping[str, Any]) -> list[str]:
        """Names of the topics that have any of the labels."""
        parameters = {**asked, **self._visible_topics.parameters()}
        return await self._db.column(self._connection, Q.labelled_topics, parameters)

    async def _lags(self, ids: Sequence[int] | None, min_lag: int | None) -> list[tuple[int, int]]:
        """The lag of groups on the visible topics, as of the last sample."""
        found = {
            "ids": None if ids is None else list(ids),
            "min_lag": min_lag,
            **self._visible_topics.parameters(),
        }
        return [(pk, lag) for pk, lag in await self._db.rows(self._connection, Q.visible_lags, found)]


def _asked(labels: Sequence[tuple[str, str | None]]) -> dict[str, Any]:
    """Labels with a value, and names of labels with any value, in the form that the statements take."""
    return {
        "pairs": [Jsonb({name: value}) for name, value in labels if value is not None],
        "names": [name for name, value in labels if value is None],
    }


class GroupListReads:
    """The list of groups of the API. Methods may raise COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._groups = runtime.get(GroupService)
        self._hosting = runtime.get(Hosting)
        self._assignors = runtime.get(DecisionContexts).assignors

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
        start = position(sort, cursor)
        if wanted.topic is not None and wanted.topic not in visible_topics:
            return Page([], None)
        async with self._db.snapshot() as connection:
            finder = GroupFinder(self._db, connection, visible, visible_topics, self._assignors)
            found, more = cut(await finder.find(wanted, sort, start, limit + 1), limit)
            listed = [group for group in found if is_listed is None or is_listed(group.group_id)]
            groups = await finder.summaries([group.id for group in listed], topics=MAX_TOPICS)
        return Page(groups, cursor_at(sort, found[-1]) if more else None)
