"""What the search finds in the database. Each part has a time limit of its own and a bound on the rows it looks at."""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from psycopg import errors as pg

from frontend.ui.rows import Millis
from frontend.ui.viewer import Viewer
from kcoord.database.pool import Connection, Database
from kcoord.sql import queries

Q = queries("frontend")

T = TypeVar("T")

MOST_ROWS = 500_000
"""Rows of one table that are looked at for a part of a name."""
SHOWN = 6
"""Results of each kind."""
MEMBERS_READ = 60
"""Members that are read to name client ids and hosts."""
PART_SECONDS, ALL_SECONDS = 1.5, 3.0
"""Time limits of one part of the search and of all."""


@dataclass(frozen=True, slots=True)
class GroupHit:
    """A group."""

    group_id: str
    state: str
    type: str
    held_until: Millis | None = None


@dataclass(frozen=True, slots=True)
class LabelHit:
    """A label of groups. `groups`: how many have it; `group_id`: one of them."""

    name: str
    value: str
    groups: int
    group_id: str


@dataclass(frozen=True, slots=True)
class TopicHit:
    """A topic of the catalogue."""

    name: str
    partitions: int


@dataclass(frozen=True, slots=True)
class MemberHit:
    """A member of a group that has the words in one of its ids or its host."""

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str


@dataclass(frozen=True, slots=True)
class PlanHit:
    """An offset plan."""

    id: uuid.UUID
    group_name: str
    strategy: str
    state: str
    reason: str
    created_at: Millis
    created_by: str


@dataclass(frozen=True, slots=True)
class Hits:
    """Results of each kind. `unfinished`: the kinds whose search took too long."""

    groups: Sequence[GroupHit] = ()
    labels: Sequence[LabelHit] = ()
    topics: Sequence[TopicHit] = ()
    members: Sequence[MemberHit] = ()
    plans: Sequence[PlanHit] = ()
    unfinished: Sequence[str] = ()


async def find(db: Database, viewer: Viewer, q: str) -> Hits:
    """What has `q` in its name, ignoring case, and can be seen; names that begin with it come first.

    Raises ProtocolError COORDINATOR_NOT_AVAILABLE.
    """
    deadline = time.monotonic() + ALL_SECONDS
    found: dict[str, Sequence[Any]] = {}
    unfinished = []
    seen = {"q": q, **viewer.with_groups()}
    parts: dict[str, Callable[[Connection], Awaitable[Sequence[Any]]]] = {
        "groups": lambda connection: _names(
            db, connection, GroupHit, Q.groups_beginning, Q.groups_containing, seen, lambda hit: hit.group_id
        ),
        "labels": lambda connection: db.records(
            connection, LabelHit, Q.labels_containing, {**seen, "most": MOST_ROWS, "limit": SHOWN}
        ),
        "topics": lambda connection: _names(
            db, connection, TopicHit, Q.topics_beginning, Q.topics_containing, seen, lambda hit: hit.name
        ),
        "members": lambda connection: db.records(
            connection, MemberHit, Q.members_containing, {**seen, "most": MOST_ROWS, "limit": MEMBERS_READ}
        ),
        "plans": lambda connection: db.records(
            connection, PlanHit, Q.plans_containing, {**seen, "most": MOST_ROWS, "limit": SHOWN}
        ),
    }
    for name, part in parts.items():
        read = await _within(db, deadline, part)
        if read is None:
            unfinished.append(name)
        else:
            found[name] = read
    return Hits(**found, unfinished=tuple(unfinished))


async def groups_like(db: Database, viewer: Viewer, q: str, limit: int) -> Sequence[GroupHit]:
    """A few groups whose id has `q` in it; none if that takes too long."""

    seen = {"q": q, **viewer.with_groups()}

    async def read(connection: Connection) -> Sequence[GroupHit]:
        found = await _names(
            db, connection, GroupHit, Q.groups_beginning, Q.groups_containing, seen, lambda hit: hit.group_id
        )
        return found[:limit]

    return await _within(db, time.monotonic() + PART_SECONDS, read) or ()


async def _within(db: Database, deadline: float, read: Callable[[Connection], Awaitable[T]]) -> T | None:
    """What a part finds; None if it takes too long."""
    left = min(deadline - time.monotonic(), PART_SECONDS)
    if left <= 0.01:
        return None
    async with db.snapshot() as connection:
        try:
            async with connection.transaction():
                await db.rows(connection, Q.limit_search, {"limit": f"{int(left * 1_000)}ms"})
                return await read(connection)
        except pg.QueryCanceled:
            return None


async def _names(
    db: Database,
    connection: Connection,
    kind: type[T],
    beginning: str,
    containing: str,
    seen: Mapping[str, Any],
    name_of: Callable[[T], str],
) -> Sequence[T]:
    """The first names that begin with `q`, and if these are few, names that contain it.

    `seen`: `q`, and the parameters of the viewer.
    """
    prefixed = {**seen, "end": seen["q"] + "\U0010ffff", "limit": SHOWN}
    found = {name_of(hit): hit for hit in await db.records(connection, kind, beginning, prefixed)}
    if len(found) < SHOWN:
        parts = {**seen, "most": MOST_ROWS, "limit": 2 * SHOWN}
        more = await db.records(connection, kind, containing, parts)
        for hit in sorted(more, key=name_of):
            found.setdefault(name_of(hit), hit)
    return list(found.values())[:SHOWN]
