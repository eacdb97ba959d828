"""What a caller that may not describe all topics sees of groups: as if the other topics did not exist.

Source: http-api.md 7. `kcoord.access.rights` determines which topics those are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groups.core.model.events import MOST_TOPICS, EventKind
from kcoord.database.pool import Connection, Database
from kcoord.rest.paging import Visible
from kcoord.sql import queries

Q = queries("groups")

_OF_ALL_TOPICS: Mapping[str, str] = {
    EventKind.MEMBER_RECONCILED.value: "partitions",
    EventKind.REGEXES_RESOLVED.value: "topics",
    EventKind.TARGET_FAILED.value: "reason",
    EventKind.REBALANCE_STARTED.value: "reason",
    EventKind.MEMBER_LEFT.value: "reason",
}
"""What a kind of event counts over all topics of a group, or quotes from an assignor or a client: those of Kafka's
clients name topics.
"""


def seen_detail(kind: str, detail: Mapping[str, Any], visible: Visible) -> Mapping[str, Any]:
    """The detail of an event without names of topics outside `visible`, and without counts that include such topics.

    A truncated list of topics may continue with such topics, so the number of its partitions is left out.
    """
    if visible.unlimited:
        return detail
    seen = {name: value for name, value in detail.items() if name != _OF_ALL_TOPICS.get(kind)}
    topics = seen.get("topics")
    if isinstance(topics, list):
        seen["topics"] = [topic for topic in topics if topic in visible]
        if len(topics) >= MOST_TOPICS or len(seen["topics"]) < len(topics):
            seen.pop("partitions", None)
    if "topic" in seen and seen["topic"] not in visible:
        del seen["topic"]
    return seen


class SeenLag:
    """The lag of groups on the topics in `visible`, as of the last sample, within one snapshot.

    For a caller that sees all topics it is the stored lag of each group, without a query.
    """

    def __init__(self, db: Database, connection: Connection, visible: Visible) -> None:
        self._db = db
        self._connection = connection
        self._visible = visible

    async def conditions(self, min_lag: int | None, *, sorts: bool) -> dict[str, Any]:
        """Parameters of the group queries: which groups are far enough behind, and the lag that they are sorted by."""
        all_groups: dict[str, Any] = {"lagging": None, "lag_of": None, "lags": None}
        if self._visible.unlimited:
            return all_groups
        if min_lag is not None:
            all_groups |= {"lagging": [pk for pk, _ in await self._lags(None, min_lag)], "min_lag": None}
        if sorts:
            lags = await self._lags(None, None)
            all_groups |= {"lag_of": [pk for pk, _ in lags], "lags": [lag for _, lag in lags]}
        return all_groups

    async def with_lags(self, ids: Sequence[int], rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        """Rows of `group_summaries` with this lag; it is their second to last column."""
        if self._visible.unlimited:
            return rows
        lags = dict(await self._lags(ids, None))
        return [(*row[:-2], lags.get(row[0]), row[-1]) for row in rows]

    async def _lags(self, ids: Sequence[int] | None, min_lag: int | None) -> list[tuple[int, int]]:
        found = {"ids": None if ids is None else list(ids), "min_lag": min_lag, **self._visible.parameters()}
        return [(pk, lag) for pk, lag in await self._db.rows(self._connection, Q.visible_lags, found)]
