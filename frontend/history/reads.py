"""Reads the rebalances of a group."""

from __future__ import annotations

from dataclasses import dataclass

from frontend.history.episodes import KINDS, Episode, episodes
from frontend.names import named_events
from frontend.rows import Event, Millis
from frontend.viewer import Viewer
from kcoord.database.pool import Connection, Database
from kcoord.sql import queries

Q = queries("frontend")

EVENTS_READ = 1_500
"""Events that one page is made of."""
MOST_SHOWN = 50
WAITING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
"""States of a group whose last rebalance is under way."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rebalances: before the event `before`, from `since` and before `until` (ms), with one of these causes."""

    before: int | None = None
    since: Millis | None = None
    until: Millis | None = None
    causes: frozenset[str] | None = None

    @property
    def newest(self) -> bool:
        """Up to the present."""
        return self.before is None and self.until is None


@dataclass(frozen=True, slots=True)
class History:
    """A page of rebalances, newest first. `older`: the event before which to continue; None if there is nothing more.

    `type`: of the group; None if it was deleted. `recent`: those of the page before they were filtered, if the page
    reaches up to the present. `read`: as `shown`, however many there are; `read_since` (ms): there are more before it.
    """

    now: Millis
    type: str | None
    shown: tuple[Episode, ...]
    recent: tuple[Episode, ...]
    older: int | None
    read: tuple[Episode, ...] = ()
    read_since: Millis | None = None


async def history(db: Database, viewer: Viewer, group_id: str, wanted: Wanted) -> History:
    """The rebalances of a group, from its events; they outlive the group. Raises COORDINATOR_NOT_AVAILABLE."""
    async with db.snapshot() as connection:
        return await history_in(db, connection, viewer, group_id, wanted)


async def history_in(db: Database, connection: Connection, viewer: Viewer, group_id: str, wanted: Wanted) -> History:
    """As `history`, in a snapshot that has begun."""
    now = await db.now_ms(connection)
    if not viewer.sees_group(group_id):
        return History(now, None, (), (), None)
    asked = {
        "group_id": group_id,
        "kinds": list(KINDS),
        "before": wanted.before,
        "since": wanted.since,
        "until": wanted.until,
        "limit": EVENTS_READ + 1,
        **viewer.parameters(),
    }
    header = await db.row(connection, Q.group_standing, {"group_id": group_id})
    events = await db.records(connection, viewer.event, Q.rebalance_events, asked)
    more = len(events) > EVENTS_READ
    events = await named_events(db, connection, viewer, group_id, events[:EVENTS_READ][::-1])
    kind, state, members = header if header is not None else (None, None, None)
    newest = wanted.before is None and (wanted.until is None or wanted.until > now)
    settled = not newest or state not in WAITING
    found = episodes(events, settled=settled, members=members if newest else None)
    return _page(now, kind, found, wanted, more=more)


def _page(now: Millis, kind: str | None, found: list[Episode], wanted: Wanted, *, more: bool) -> History:
    if more and len(found) > 1:
        found = found[1:]  # its first events are on the next page
    shown = [episode for episode in found if wanted.causes is None or episode.cause in wanted.causes]
    older = found[0].id if found and more else None
    read, since = tuple(shown[::-1]), found[0].began if found and more else None
    if len(shown) > MOST_SHOWN:
        shown = shown[-MOST_SHOWN:]
        older = shown[0].id
    return History(now, kind, tuple(shown[::-1]), tuple(found) if wanted.newest else (), older, read, since)


@dataclass(frozen=True, slots=True)
class EventsOfSpan:
    """A page of a group's events, newest first. `type`: None if the group was deleted; `more`: there are older ones."""

    now: Millis
    type: str | None
    events: tuple[Event, ...]
    more: bool


async def events_of(db: Database, viewer: Viewer, group_id: str, wanted: Wanted, limit: int = 100) -> EventsOfSpan:
    """Events of a group in a span, also of one that was deleted. Raises COORDINATOR_NOT_AVAILABLE."""
    asked = {
        "group_id": group_id,
        "before": wanted.before,
        "since": wanted.since,
        "until": wanted.until,
        "limit": limit + 1,
        **viewer.parameters(),
    }
    async with db.snapshot() as connection:
        now = await db.now_ms(connection)
        if not viewer.sees_group(group_id):
            return EventsOfSpan(now, None, (), False)
        header = await db.row(connection, Q.group_standing, {"group_id": group_id})
        events = await db.records(connection, viewer.event, Q.events_in_span, asked)
        named = await named_events(db, connection, viewer, group_id, events[:limit])
    return EventsOfSpan(now, header[0] if header else None, tuple(named), len(events) > limit)
