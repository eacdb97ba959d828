"""The sort orders of the list of groups: what each is read with, in both directions, and the cursors of its pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from groups.core.model.types import VerdictKind
from groups.readmodel import GroupSort
from groups.states import STATES
from kcoord.database.paging import Key, decode_cursor, encode_cursor
from kcoord.database.sql import queries
from kcoord.protocol.errors import Error, ProtocolError

Q = queries("offsets")


@dataclass(frozen=True, slots=True)
class Order:
    """How one sort order is read.

    `after` and `before` are the statements forwards and backwards, `first` is the key of the first page, `kind` the
    type of keys, None if the id is the only one, `extra` further parameters.
    """

    after: str
    before: str
    kind: type[Key] | None = int
    first: Key | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """A group of a page. `key`: what it is sorted by besides its id, None where that is the id alone."""

    id: int
    group_id: str
    key: Key | None


@dataclass(frozen=True, slots=True)
class Position:
    """Where a page begins: after the group with this id and key, or before it, in the same order."""

    group_id: str
    key: Key | None
    before: bool = False


UP, DOWN = {"sign": 1}, {"sign": -1}
_BY_ID = Q.list_groups_by_id, Q.list_groups_by_id_before
BY_LAG = Q.list_groups_by_lag, Q.list_groups_by_lag_before
_BY_TIME_LAG = Q.list_groups_by_time_lag, Q.list_groups_by_time_lag_before
_BY_MEMBERS = Q.list_groups_by_members, Q.list_groups_by_members_before
_BY_GENERATION = Q.list_groups_by_generation, Q.list_groups_by_generation_before
_BY_STATE_SINCE = Q.list_groups_by_time_in_state, Q.list_groups_by_time_in_state_before

_BY_PARTITIONS = Q.list_groups_by_partitions, Q.list_groups_by_partitions_before
BY_COORDINATOR = Q.list_groups_by_coordinator, Q.list_groups_by_coordinator_before

BY_ID = GroupSort.GROUP_ID, GroupSort.GROUP_ID_DESCENDING
ORDERS: Mapping[GroupSort, Order] = {
    GroupSort.GROUP_ID: Order(*_BY_ID, kind=None),
    GroupSort.GROUP_ID_DESCENDING: Order(
        Q.list_groups_by_id_descending, Q.list_groups_by_id_descending_before, kind=None
    ),
    GroupSort.UPDATED: Order(Q.list_groups_by_change, Q.list_groups_by_change_before),
    GroupSort.UPDATED_ASCENDING: Order(Q.list_groups_by_change_ascending, Q.list_groups_by_change_ascending_before),
    GroupSort.STATE: Order(Q.list_groups_by_state, Q.list_groups_by_state_before, kind=str, first=""),
    GroupSort.STATE_DESCENDING: Order(
        Q.list_groups_by_state_descending,
        Q.list_groups_by_state_descending_before,
        kind=str,
        extra={"states_of_groups": STATES},
    ),
    GroupSort.STATE_SINCE: Order(*_BY_STATE_SINCE, extra=UP),
    GroupSort.STATE_SINCE_DESCENDING: Order(*_BY_STATE_SINCE, extra=DOWN),
    GroupSort.MEMBERS: Order(*_BY_MEMBERS, extra=UP),
    GroupSort.MEMBERS_DESCENDING: Order(*_BY_MEMBERS, extra=DOWN),
    GroupSort.GENERATION: Order(*_BY_GENERATION, extra=UP),
    GroupSort.GENERATION_DESCENDING: Order(*_BY_GENERATION, extra=DOWN),
    GroupSort.LAG: Order(*BY_LAG, extra=UP),
    GroupSort.LAG_DESCENDING: Order(*BY_LAG, extra=DOWN),
    GroupSort.TIME_LAG: Order(*_BY_TIME_LAG, extra=UP),
    GroupSort.TIME_LAG_DESCENDING: Order(*_BY_TIME_LAG, extra=DOWN),
    GroupSort.PARTITIONS: Order(*_BY_PARTITIONS, extra=UP),
    GroupSort.PARTITIONS_DESCENDING: Order(*_BY_PARTITIONS, extra=DOWN),
    GroupSort.COORDINATOR: Order(*BY_COORDINATOR, extra=UP),
    GroupSort.COORDINATOR_DESCENDING: Order(*BY_COORDINATOR, extra=DOWN),
    GroupSort.OWNER: Order(Q.list_groups_by_owner, Q.list_groups_by_owner_before, kind=str, extra={"unowned": "z"}),
    GroupSort.OWNER_DESCENDING: Order(
        Q.list_groups_by_owner_descending,
        Q.list_groups_by_owner_descending_before,
        kind=str,
        extra={"unowned": "a"},
    ),
    GroupSort.SEVERITY: Order(
        Q.list_groups_by_severity,
        Q.list_groups_by_severity_before,
        extra={"worst_first": [kind.value for kind in VerdictKind]},
    ),
}
WELL = len(VerdictKind) + 1
"""The key of a group without verdicts in the order by severity."""


def position(sort: GroupSort, cursor: str | None, *, before: bool = False) -> Position | None:
    """Where the page of a cursor begins, None for no cursor.

    Raises INVALID_REQUEST for a cursor of another list or of another order.
    """
    if cursor is None:
        return None
    kind = ORDERS[sort].kind
    named, *key, group_id = decode_cursor(cursor, *((str, str) if kind is None else (str, kind, str)))
    if named != sort.value:
        raise ProtocolError(
            Error.INVALID_REQUEST,
            f"cursor: belongs to a list sorted by {named!r}; start again without a cursor",
            fields={"field": "cursor"},
        )
    return Position(str(group_id), key[0] if key else None, before)


def places(coordinators: Mapping[int, str]) -> dict[str, list[int]]:
    """Parameters of the order by coordinator, for the nodes by partition in the order of their names."""
    numbers = {name: place for place, name in enumerate(dict.fromkeys(coordinators.values()), 1)}
    return {
        "coordinated_partitions": list(coordinators),
        "places": [numbers[name] for name in coordinators.values()],
    }


def cursor_at(sort: GroupSort, edge: Found) -> str:
    """The cursor of the page that begins after, or before, this group."""
    if edge.key is None:
        return encode_cursor(sort.value, edge.group_id)
    return encode_cursor(sort.value, edge.key, edge.group_id)
