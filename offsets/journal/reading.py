"""Read model of the journal: every change of a group's committed offsets, newest first.

Source: http-api.md 4; architecture.md 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from groups.readmodel import unknown_group
from kcoord.control.rest.answers import Instant, Int32, Natural32, doc, one_of
from kcoord.database.paging import (
    DEFAULT_LIMIT,
    EVERYTHING,
    INT64_MAX,
    Page,
    Visible,
    cut,
    decode_cursor,
    encode_cursor,
)
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.core.days import DAY_MS, bounds, day_of
from offsets.core.types import ChangeKind, Millis

Q = queries("offsets")

KINDS = [kind.value for kind in ChangeKind]

FREQUENT = frozenset({ChangeKind.COMMIT, ChangeKind.TXN_COMMIT, ChangeKind.ITEMS_DONE})
"""The kinds that occur by the million, which the index of changes excludes."""


@dataclass(frozen=True, slots=True)
class JournalLineView:
    """A change of the committed offset of a partition."""

    id: Annotated[int, doc("Grows with each line of a group.")]
    at: Instant
    kind: Annotated[
        str,
        one_of(
            KINDS,
            "commit, txn_commit: by a consumer; reset: by a plan or as start offset; restore: by undoing a plan; "
            "import: from a file; delete, expire, group_delete, topic_delete: the offset was removed; items_begin, "
            "items_done, items_dead: items of a share group, which `metadata` names as ranges of offsets.",
        ),
    ]
    topic: str
    partition: Natural32
    committed_offset: Annotated[
        int | None, doc("The next offset to read; null: the offset was removed, or the group has none.")
    ]
    committed_leader_epoch: Annotated[Int32, doc("-1: unknown.")]
    metadata: str
    member_id: Annotated[str, doc("Empty: not by a member.")]
    generation_id: Annotated[Int32, doc("Generation or member epoch of the commit; -1: none.")]
    client_id: str
    principal: Annotated[str, doc("Name of the token or account; empty: the service itself.")]
    transactional_id: str | None
    plan_id: Annotated[str | None, doc("The plan that was applied or undone.")]
    expires_at: Annotated[Instant | None, doc("Set if the commit had a retention time.")]


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


@dataclass(frozen=True, slots=True)
class Span:
    """A time of the journal: from `since` (ms) to before the line with this instant and id."""

    since: Millis
    before_at: Millis
    before_id: int

    def parts(self, now: Millis) -> Iterator[Span]:
        """The span in parts of whole days, the newest first: today and what is later, then ever more days.

        A page seldom needs more than the first, and the statement looks at every day of a part for each partition.
        """
        days, before_at, before_id = 1, self.before_at, self.before_id
        while before_at >= self.since:
            first = max((day_of(min(before_at, now)) + 1 - days) * DAY_MS, self.since)
            yield Span(first, before_at, before_id)
            days, before_at, before_id = days * 4, first - 1, INT64_MAX

    def parameters(self) -> dict[str, int]:
        """In the form that the statements take."""
        return {
            "since": self.since,
            "before_at": self.before_at,
            "before_id": self.before_id,
            "first_day": day_of(self.since) * DAY_MS,
            "after_day": min(bounds(day_of(self.before_at))[1], INT64_MAX),
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
    ) -> Page[JournalLineView]:
        """A page of what happened to the offsets of a group on topics in `visible`; also for a deleted group.

        Raises GROUP_ID_NOT_FOUND, INVALID_REQUEST for an impossible filter and for a cursor of another list.
        """
        check(wanted)
        parameters = {**wanted.parameters(), **visible.parameters(), "group_id": group_id}
        before = _position(wanted.until, cursor)
        statement = _statement(wanted)
        found: list[JournalLineView] = []
        async with self._db.connection() as connection:
            spans = [Span(parameters["since"], *before)]
            if statement is Q.journal_page:
                spans = list(spans[0].parts(await self._db.now_ms(connection)))
            for span in spans:
                asked = {**parameters, **span.parameters(), "limit": limit + 1 - len(found)}
                found += await self._db.records(connection, JournalLineView, statement, asked)
                if len(found) > limit:
                    break
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


def _position(until: Millis | None, cursor: str | None) -> tuple[Millis, int]:
    """The exclusive upper bound of the page. Ids begin at 1, so nothing at `until` precedes (`until`, 0)."""
    before: tuple[int, int] = (INT64_MAX, INT64_MAX) if until is None else (until, 0)
    if cursor is not None:
        at, line = decode_cursor(cursor, int, int)
        assert isinstance(at, int)
        assert isinstance(line, int)
        before = min(before, (at, line))
    return before
