"""One list of the groups of this service and of others: its order, and pages that continue in each of them."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from itertools import islice

from msgspec import DecodeError, json

from frontend.pages.groups.reads import PAGE_SIZE
from frontend.ui.services import Found
from groups.core.model.types import VerdictKind
from groups.readmodel import GroupSort, GroupSummary
from kcoord.database.paging import Key, decode_cursor, encode_cursor
from kcoord.protocol.errors import ProtocolError
from offsets.group_orders import WELL, cursor_at
from offsets.group_orders import Found as Edge

HERE = ""
"""This service among the others, whose names are not empty."""
RANKS = {kind.value: rank for rank, kind in enumerate(VerdictKind, 1)}
Row = tuple[Found | None, GroupSummary]
"""A group with the service that it is of; None: this one."""


def positions(after: str | None) -> Mapping[str, str]:
    """The cursor of each service that a page begins after; of this one alone if `after` is of its own list."""
    try:
        (written,) = decode_cursor(after or "", str)
        return json.decode(str(written), type=dict[str, str])
    except (ProtocolError, DecodeError):
        return {HERE: after} if after else {}


def merged(
    sort: GroupSort, here: Sequence[GroupSummary], there: Sequence[Found], after: Mapping[str, str], *, more: bool
) -> tuple[Sequence[Row], str | None]:
    """A page of the groups of all services, each in its own order, and the cursor of the next; None: it is the last.

    `here`, `there`: a page of each; `after`: where it began. `more`: this service has others. Of a service that fails
    nothing is passed over: it continues where it was.
    """
    if not there:
        return [(None, group) for group in here], None
    sources: list[list[Row]] = [[(None, group) for group in here]]
    sources += [[(one, group) for group in one.groups] for one in there]
    rows = list(islice(heapq.merge(*sources, key=lambda row: _place(sort, row[1])), PAGE_SIZE + 1))
    shown, reached = rows[:PAGE_SIZE], dict(after)
    for service, group in shown:
        edge = Edge(0, group.group_id, _key(sort, group))
        reached[service.service if service else HERE] = cursor_at(sort, edge)
    more = more or len(rows) > PAGE_SIZE or any(one.more for one in there)
    return shown, encode_cursor(json.encode(reached).decode()) if more else None


def _key(sort: GroupSort, group: GroupSummary) -> Key | None:
    """What the statements of the list sort a group by besides its id."""
    name = sort.value.removeprefix("-")
    if sort is GroupSort.SEVERITY:
        return min((RANKS.get(kind, WELL - 1) for kind, _ in group.verdicts), default=WELL)
    if name in ("group_id", "state"):
        return None if name == "group_id" else group.state
    known: Sequence[int | None] = getattr(group, name), group.time_lag_at_least_ms if "time_lag" in name else None
    signed = next((value for value in known if value is not None), -1)
    return -signed if name != sort.value and sort is not GroupSort.UPDATED else signed


def _place(sort: GroupSort, group: GroupSummary) -> tuple[object, object]:
    """Ascends in the order of the list."""
    key = _key(sort, group)
    if isinstance(key, int):
        return -key if sort is GroupSort.UPDATED else key, group.group_id
    if sort is GroupSort.GROUP_ID_DESCENDING:
        return key, _backwards(group.group_id)
    return key if key is None or sort is GroupSort.STATE else _backwards(key), group.group_id


def _backwards(text: str) -> Sequence[int]:
    return [*(-ord(character) for character in text), 1]
