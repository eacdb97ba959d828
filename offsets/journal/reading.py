"""Read model of the journal: every change of a group's committed offsets, newest first.

Source: http-api.md 4; architecture.md 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groups.readmodel import unknown_group
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.rest.paging import DEFAULT_LIMIT, EVERYTHING, INT64_MAX, Page, Visible, cut, decode_cursor, encode_cursor
from kcoord.sql import queries
from offsets.core.types import ChangeKind, Millis

Q = queries("offsets")

FREQUENT = frozenset({ChangeKind.COMMIT, ChangeKind.TXN_COMMIT, ChangeKind.ITEMS_DONE})
"""The kinds that occur by the million, which the index of changes excludes."""


@dataclass(frozen=True, slots=True)
class JournalLine:
    """One change of the committed offset of a partition. Instants in ms.

    `committed_offset` None: it was removed. `member_id` "" and `generation_id` -1: not written by a member. `principal`
    "": the service itself. `expires_at` None: retention decides.
    """

    id: int
    at: Millis
    kind: str
    topic: str
    partition: int
    committed_offset: int | None
    committed_leader_epoch: int
    metadata: str
    member_id: str
    generation_id: int
    client_id: str
    principal: str
    transactional_id: str | None
    plan_id: str | None
    expires_at: Millis | None


@dataclass(frozen=True, slots=True)
class JournalFilter:
    """Which lines to read: all conditions must hold, with any one of `kinds`. None: no condition.

    `partition` is one of `topic`. `since` (ms) is inclusive, `until` exclusive.
    """

    topic: str | None = None
    partition: int | None = None
    kinds: Sequence[ChangeKind] | None = None
    since: Millis | None = None
    until: Millis | None = None

    def parameters(self) -> dict[str, Any]:
        """In the form that the statements take."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "kinds": None if self.kinds is None else [kind.value for kind in self.kinds],
            "since": 0 if self.since is None else self.since,
        }


class JournalReads:
    """Lists of the journal. Methods may raise COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db

    async def commits(
        self,
        group_id: str,
        wanted: JournalFilter,
        *,
        cursor: str | None = None,
        limit: int = DEFAULT_LIMIT,
        visible: Visible = EVERYTHING,
    ) -> Page[JournalLine]:
        """A page of what happened to the offsets of a group on topics in `visible`; also for a deleted group.

        Raises GROUP_ID_NOT_FOUND, INVALID_REQUEST for an impossible filter and for a cursor of another list.
        """
        check(wanted)
        parameters = {
            **wanted.parameters(),
            **visible.parameters(),
            **_position(wanted.until, cursor),
            "group_id": group_id,
            "limit": limit + 1,
        }
        async with self._db.connection() as connection:
            found = await self._db.records(connection, JournalLine, _statement(wanted), parameters)
            if not found and not await self._db.value(connection, Q.journal_knows_group, {"group_id": group_id}):
                raise unknown_group(group_id)
        lines, more = cut(found, limit)
        return Page(lines, encode_cursor(lines[-1].at, lines[-1].id) if more else None)


def check(wanted: JournalFilter) -> None:
    """Raise INVALID_REQUEST naming the field of a filter that can match nothing."""
    if wanted.partition is not None and wanted.topic is None:
        raise _invalid("partition", "requires `topic`, as in ?topic=orders&partition=0")
    if wanted.since is not None and wanted.until is not None and wanted.since >= wanted.until:
        raise _invalid("from", "must be before `to`; `from` is included, `to` is not")


def _invalid(field: str, detail: str) -> ProtocolError:
    return ProtocolError(Error.INVALID_REQUEST, f"{field}: {detail}", fields={"field": field})


def _statement(wanted: JournalFilter) -> str:
    if wanted.partition is not None:
        return Q.journal_page_of_partition
    if wanted.kinds and not FREQUENT.intersection(wanted.kinds):
        return Q.journal_page_of_changes
    return Q.journal_page


def _position(until: Millis | None, cursor: str | None) -> Mapping[str, int]:
    """The exclusive upper bound of the page. Ids begin at 1, so nothing at `until` precedes (`until`, 0)."""
    before: tuple[int, int] = (INT64_MAX, INT64_MAX) if until is None else (until, 0)
    if cursor is not None:
        at, line = decode_cursor(cursor, int, int)
        assert isinstance(at, int)
        assert isinstance(line, int)
        before = min(before, (at, line))
    return {"before_at": before[0], "before_id": before[1]}
