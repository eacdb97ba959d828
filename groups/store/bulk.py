"""Many groups read together: a few statements for all of them, in one snapshot.

Source: architecture.md 4, "Fast lanes".
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import structlog

from groups.core.model.group import Group
from groups.core.model.types import Millis
from groups.store import classic, consumer
from groups.store.rows import GroupRow
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime

log = structlog.get_logger(__name__)

Q = queries("groups")

ROWS_AT_ONCE = 2_500
"""Members and owned partitions of groups that are read together. A group with more is read alone."""

Children = TypeVar("Children", classic.Children, consumer.Children)


class Sized(NamedTuple):
    """The key of a group's row, its id, and how many rows belong to it: ROWS_AT_ONCE of a kind stand for more."""

    id: int
    group_id: str
    size: int


class BulkLoad:
    """Reads many groups of either protocol."""

    def __init__(self, db: Database, classic_rows: classic.ClassicRows, consumer_rows: consumer.ConsumerRows) -> None:
        self._db = db
        self._classic = classic_rows
        self._consumer = consumer_rows

    async def groups(
        self, connection: Connection, group_ids: Sequence[str]
    ) -> AsyncIterator[tuple[str, GroupRow, Group]]:
        """The groups that exist, in a snapshot of `connection`. One that cannot be read is logged and left out."""
        parameters = {"group_id": group_ids, "most": ROWS_AT_ONCE}
        sized = await self._db.records(connection, Sized, Q.group_sizes, parameters)
        for part in parts(sized):
            if len(part) == 1 and part[0].size > ROWS_AT_ONCE:
                async for found in self._alone(connection, part[0]):
                    yield found
                continue
            async for found in self._together(connection, part):
                yield found

    async def _alone(self, connection: Connection, sized: Sized) -> AsyncIterator[tuple[str, GroupRow, Group]]:
        for row in await self._headers(connection, [sized]):
            rows = self._consumer if row.type in consumer.KINDS else self._classic
            yield sized.group_id, row, await rows.load(connection, sized.group_id, row)

    async def _together(
        self, connection: Connection, part: Sequence[Sized]
    ) -> AsyncIterator[tuple[str, GroupRow, Group]]:
        names = {sized.id: sized.group_id for sized in part}
        headers = await self._headers(connection, part)
        consumers = [row for row in headers if row.type in consumer.KINDS]
        classics = [row for row in headers if row.type not in consumer.KINDS]
        folded: list[Iterator[tuple[GroupRow, Group]]] = []
        if classics:
            classic_rows = await self._classic.children(connection, [row.id for row in classics])
            folded.append(_fold(names, classics, classic_rows, classic.group_from_rows))
        if consumers:
            consumer_rows = await self._consumer.children(connection, consumers)
            folded.append(_fold(names, consumers, consumer_rows, consumer.group_from_rows))
        for groups in folded:
            async for row, group in off_loop.sliced(groups):
                yield names[row.id], row, group

    async def _headers(self, connection: Connection, part: Sequence[Sized]) -> list[GroupRow]:
        return await self._db.records(connection, GroupRow, Q.read_groups, {"ids": [sized.id for sized in part]})


def parts(sized: Iterable[Sized]) -> Iterator[list[Sized]]:
    """Groups that are read together: with ROWS_AT_ONCE rows at most, or a single one."""
    part: list[Sized] = []
    size = 0
    for one in sized:
        if part and size + one.size > ROWS_AT_ONCE:
            yield part
            part, size = [], 0
        part.append(one)
        size += one.size
    if part:
        yield part


def _fold(
    names: Mapping[int, str],
    rows: Iterable[GroupRow],
    children: Mapping[int, Children],
    fold: Callable[[str, GroupRow, Children], Group],
) -> Iterator[tuple[GroupRow, Group]]:
    for row in rows:
        try:
            group = fold(names[row.id], row, children[row.id])
        except Exception:
            log.exception("group_not_loaded", group_id=names[row.id])
            continue
        yield row, group


class WakeUps:
    """Moves wake-ups."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db

    async def move(self, limit: int) -> int:
        """Let due groups be due at their earliest deadline, if that is still to come; returns how many were looked at.

        At most `limit` groups. Those that other transactions hold are skipped: they set it themselves. Raises
        ProtocolError COORDINATOR_NOT_AVAILABLE.
        """

        async def work(connection: Connection) -> int:
            now: Millis = await self._db.now_ms(connection)
            ids = await self._db.column(connection, Q.lock_due_groups, {"now": now, "limit": limit})
            if ids:
                # In a statement of its own: what is read with the lock may be older than the lock.
                await connection.execute(Q.move_wake_ups.encode(), {"id": ids, "now": now})
            return len(ids)

        return await self._db.transaction(work, receipt=lambda: None)
