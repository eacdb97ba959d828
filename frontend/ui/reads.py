"""What several pages read of a group: its brief, its header, the names of its members, its events and rebalances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.db import connection

from frontend.ui.episodes import KINDS, Episode, episodes
from frontend.ui.rows import Event, GroupHeader, Millis, Names
from frontend.ui.viewer import Forbidden, Viewer
from frontend.ui.wording import client_at
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries

Q = queries("frontend")


@dataclass(frozen=True, slots=True)
class GroupBrief:
    """What an action on a group has to know about it. `lag` in records; None if it was never sampled."""

    now: Millis
    group_id: str
    type: str
    state: str
    members: int
    offsets: int
    topics: int
    held_until: Millis | None
    lag: int | None
    lag_sampled_at: Millis | None

    @property
    def held(self) -> bool:
        """An operator is keeping members out at the moment."""
        return self.held_until is not None and self.held_until > self.now


async def now(db: Database) -> Millis:
    """The current time, for a page that reads no rows."""
    async with db.connection() as connection:
        return await db.now_ms(connection)


async def group_brief(db: Database, viewer: Viewer, group_id: str) -> GroupBrief | None:
    """A summary of one group, None if there is no such group for the viewer."""
    return (await group_briefs(db, viewer, [group_id])).get(group_id)


async def group_briefs(db: Database, viewer: Viewer, group_ids: Sequence[str]) -> Mapping[str, GroupBrief]:
    """Summaries by id of those groups that exist for the viewer."""
    seen = [group_id for group_id in group_ids if viewer.sees_group(group_id)]
    async with db.snapshot() as connection:
        wanted = {"group_ids": seen, "now": await db.now_ms(connection), **viewer.parameters()}
        found = await db.records(connection, GroupBrief, Q.group_briefs, wanted)
    return {brief.group_id: brief for brief in found}


async def header_with_members(
    db: Database, connection: Connection, viewer: Viewer, group_id: str
) -> GroupHeader | None:
    """A group whose members are to be shown; None if the viewer sees no such group. Raises as `require_members`."""
    header = await group_header(db, connection, viewer, group_id)
    if header is not None:
        await require_members(db, connection, viewer, header)
    return header


async def require_members(db: Database, connection: Connection, viewer: Viewer, header: GroupHeader) -> None:
    """Raise Forbidden for a consumer or share group whose members use a topic that the viewer may not describe."""
    if await hides_members(db, connection, viewer, header):
        raise members_are_hidden(header.group_id)


async def hides_members(db: Database, connection: Connection, viewer: Viewer, header: GroupHeader) -> bool:
    """Members of a consumer or share group use a topic that the viewer may not describe: none of them is shown."""
    if header.type == "classic" or viewer.topics.unlimited:
        return False
    return bool(await db.value(connection, Q.uses_hidden_topics, {"pk": header.pk, **viewer.parameters()}))


def members_are_hidden(group_id: str) -> Forbidden:
    """What to raise where nothing is left without the members."""
    return Forbidden(
        f"Members of group {group_id} use topics that your account may not describe, so that its members are not "
        "shown. The page of the group has its offsets, lag and events on the topics that you may see."
    )


async def group_header(db: Database, connection: Connection, viewer: Viewer, group_id: str) -> GroupHeader | None:
    """A group; None if the viewer sees no such group."""
    if not viewer.sees_group(group_id):
        return None
    return await db.record(connection, GroupHeader, Q.group_header, {"group_id": group_id})


def now_ms() -> int:
    """The time in milliseconds since 1970, as Postgres has it."""
    with connection.cursor() as read:
        read.execute(queries("kcoord").read_clock, {"override": None})
        return int(read.fetchone()[0])


SEARCHED = 1_000
"""The newest events of a group, among which the joins of members that are gone are looked for."""
IN_DETAIL = ("leader", "old_member_id")
"""Keys of an event's detail that name a member."""


async def names_of(
    db: Database, connection: Connection, viewer: Viewer, group_id: str, member_ids: Iterable[str | None]
) -> Names:
    """`client@host` of these members, as far as it is known and can be seen. Raises COORDINATOR_NOT_AVAILABLE."""
    wanted = sorted({member_id for member_id in member_ids if member_id})
    if not wanted:
        return {}
    asked = {"group_id": group_id, "member_ids": wanted, "most": SEARCHED, **viewer.parameters()}
    found = await db.rows(connection, Q.member_names, asked)
    names: dict[str, str] = {}
    for member_id, client_id, host, _ in found:
        if name := client_at(client_id or "", host or ""):
            names.setdefault(member_id, name)
    return names


async def names_in_groups(
    db: Database, connection: Connection, viewer: Viewer, members: Mapping[str, Iterable[str]], *, gone: bool
) -> Mapping[str, Names]:
    """As `names_of`, by group, for members by the group that they are or were in. `gone`: also those that it had.

    Raises COORDINATOR_NOT_AVAILABLE.
    """
    pairs = sorted({(group_id, one) for group_id, ids in members.items() for one in ids})
    if not pairs:
        return {}
    asked = {
        "group_ids": [group_id for group_id, _ in pairs],
        "member_ids": [member_id for _, member_id in pairs],
        "most": SEARCHED if gone else 0,
        **viewer.parameters(),
    }
    names: dict[str, dict[str, str]] = {}
    for group_id, member_id, client_id, host, _ in await db.rows(connection, Q.member_names_in_groups, asked):
        if name := client_at(client_id or "", host or ""):
            names.setdefault(group_id, {}).setdefault(member_id, name)
    return names


def members_in(events: Iterable[Event]) -> set[str]:
    """The members that events name."""
    found = {event.member_id for event in events if event.member_id}
    return found | {str(event.detail[key]) for event in events for key in IN_DETAIL if event.detail.get(key)}


def with_names(events: Sequence[Event], names: Names) -> list[Event]:
    """Events that know the names of members."""
    return [replace(event, names=names) for event in events]


async def named_events(
    db: Database, connection: Connection, viewer: Viewer, group_id: str, events: Sequence[Event]
) -> list[Event]:
    """Events of a group with the names of their members. Raises COORDINATOR_NOT_AVAILABLE."""
    return with_names(events, await names_of(db, connection, viewer, group_id, members_in(events)))


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
