"""What members are called for people: client and host first, the id second (`frontend.wording.member_name`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from frontend.rows import Event, Names
from frontend.viewer import Viewer
from frontend.wording import client_at
from kcoord.database.pool import Connection, Database
from kcoord.sql import queries

Q = queries("frontend")

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
