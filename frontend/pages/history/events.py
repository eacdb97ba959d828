"""The events of a group and the history of its commits, as pages and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from frontend.ui.episodes import COLUMNS, Episode
from frontend.ui.events import folded, line
from frontend.ui.form import header
from frontend.ui.page import (
    Absent,
    BadAddress,
    address,
    choice,
    cursor,
    cursor_address,
    group_url,
    instant,
    member_names,
    missing,
    page,
    show,
    text,
)
from frontend.ui.reads import Wanted, events_of, history, now_ms
from frontend.ui.rows import Event, Names
from frontend.ui.table import all_rows, csv_of, rows_of
from frontend.ui.viewer import Viewer, viewer_of
from groups.readmodel import unknown_group
from kcoord.database.paging import MAX_LIMIT, Page
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.core.types import ChangeKind
from offsets.journal.reading import FREQUENT, JournalFilter, JournalLineView, JournalReads


@page
def group_events(request: HttpRequest, group_id: str) -> HttpResponse:
    """The events of a group, newest first; they outlive the group. Links to its other pages keep the span."""
    wanted, viewer = wanted_events(request), viewer_of(request)
    found = bridge.call(lambda runtime: events_of(runtime.db, viewer, group_id, wanted))
    spanned = wanted.since is not None or wanted.until is not None
    if found.type is None and not found.events and not spanned:
        return missing(request, group_id)
    query = address(request, before=None).removeprefix(request.path)
    context = {
        "now": found.now,
        "group_type": found.type,
        "events": folded(found.events),
        "since": wanted.since,
        "until": wanted.until,
        "all_url": request.path if spanned else None,
        "csv_url": f"{group_url(group_id)}/events.csv{query}",
        "newest_url": address(request, before=None) if wanted.before else None,
        "older_url": cursor_address(request, "before", found.events[-1].id) if found.more else None,
    }
    return show(request, "pages/history/events", context, section="groups", title=f"Events of {group_id}")


def wanted_events(request: HttpRequest) -> Wanted:
    """What the URL asks for. Raises BadAddress."""
    before = cursor(request, "before", int)
    return Wanted(int(before[0]) if before else None, instant(request, "from"), instant(request, "to"))


PAGE_SIZE = 100

WORDS: Mapping[ChangeKind, tuple[str, str]] = {
    ChangeKind.COMMIT: ("committed", "good"),
    ChangeKind.TXN_COMMIT: ("committed in a transaction", "good"),
    ChangeKind.RESET: ("reset", "warn"),
    ChangeKind.RESTORE: ("restored", "warn"),
    ChangeKind.IMPORT: ("imported", "warn"),
    ChangeKind.DELETE: ("deleted", "bad"),
    ChangeKind.EXPIRE: ("expired", "idle"),
    ChangeKind.GROUP_DELETE: ("deleted with the group", "bad"),
    ChangeKind.TOPIC_DELETE: ("deleted with the topic", "idle"),
    ChangeKind.ITEMS_BEGIN: ("began", "warn"),
    ChangeKind.ITEMS_DONE: ("settled", "good"),
    ChangeKind.ITEMS_DEAD: ("given up", "bad"),
}
"""The label and tone of each kind. Every `ChangeKind` has its text; a test checks that."""

CHANGES = "changes"
"""The filter for everything but what comes by the million: commits and settled items. Operators look for the rest."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the journal as text. `who`: the principal, if no member did it; `names`: that of the member."""

    row: JournalLineView
    word: str
    tone: str
    who: str
    names: Names


@page
def group_commits(request: HttpRequest, group_id: str) -> HttpResponse:
    """The journal of a group, newest first; it outlives the group."""
    wanted, kind, viewer = wanted_commits(request), request.GET.get("kind", ""), viewer_of(request)
    found = _read(viewer, group_id, wanted, text(request, "after") or None)
    if found is None:
        raise Absent("No such group", f"{group_id} has no commit history, or it is no longer kept.")
    brief = header(request, group_id)
    context: dict[str, Any] = {
        "group_type": brief.type if brief else None,
        "now": brief.now if brief else now_ms(),
        "lines": _lines(viewer, group_id, found.items),
        "wanted": {name: text(request, name) for name in ("topic", "partition")}
        | {"from": wanted.since, "to": wanted.until, "kind": kind},
        "kinds": [
            ("", "All"),
            (CHANGES, "All except commits"),
            *((k.value, word.capitalize()) for k, (word, _) in WORDS.items()),
        ],
        "filtered": wanted != JournalFilter(),
        "clear_url": request.path,
        "newest_url": address(request, after=None) if "after" in request.GET else None,
        "older_url": address(request, after=found.next_cursor) if found.next_cursor else None,
    }
    return show(request, "pages/history/commits", context, section="groups", title=f"Commit history of {group_id}")


def wanted_commits(request: HttpRequest) -> JournalFilter:
    """What the URL of the history asks for. Raises BadAddress."""
    kind = choice(request, "kind", (*(kind.value for kind in ChangeKind), CHANGES))
    partition = text(request, "partition")
    return JournalFilter(
        topic=text(request, "topic") or None,
        partition=_partition(partition) if partition else None,
        kinds=_kinds(kind),
        since=instant(request, "from"),
        until=instant(request, "to"),
    )


def _kinds(kind: str) -> list[ChangeKind] | None:
    if kind == CHANGES:
        return [k for k in ChangeKind if k not in FREQUENT]
    return [ChangeKind(kind)] if kind else None


def _read(
    viewer: Viewer, group_id: str, wanted: JournalFilter, cursor: str | None = None, limit: int = PAGE_SIZE
) -> Page[JournalLineView] | None:
    """A page of the journal; None if it has nothing about the group. Raises BadAddress for an invalid filter."""
    try:
        return bridge.call(
            lambda runtime: runtime.get(JournalReads).commits(
                group_id, wanted, cursor=cursor, limit=limit, visible=viewer.topics
            )
        )
    except ProtocolError as error:
        if error.error is Error.GROUP_ID_NOT_FOUND:
            return None
        if error.error is Error.INVALID_REQUEST:
            raise BadAddress(error.detail) from error
        raise


def _partition(written: str) -> int:
    if not written.isascii() or not written.isdigit() or len(written) > 9:
        raise BadAddress(f"partition: {written!r} is not a partition number.")
    return int(written)


def journal(viewer: Viewer, group_id: str, wanted: JournalFilter, *, limit: int) -> list[Line]:
    """The newest lines of a group's journal that can be seen; none if it has nothing about the group."""
    found = _read(viewer, group_id, wanted, limit=limit) if viewer.sees_group(group_id) else None
    return _lines(viewer, group_id, found.items) if found else []


def _lines(viewer: Viewer, group_id: str, rows: Sequence[JournalLineView]) -> list[Line]:
    """Rows as text. A member that is gone is named by the client id of its commits."""
    clients = {row.member_id: row.client_id for row in rows if row.member_id and row.client_id}
    names = {**clients, **member_names(viewer, group_id, {row.member_id for row in rows})}
    return [Line(row, *WORDS[ChangeKind(row.kind)], row.principal or "the service", names) for row in rows]


@page
def commits_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The commit history of a group, newest first, with the filters of the page."""
    wanted, topics = wanted_commits(request), viewer_of(request).topics
    columns = "@at kind topic partition committed_offset member_id client_id principal generation=generation_id"
    found = rows_of(
        lambda runtime, cursor: runtime.get(JournalReads).commits(
            group_id, wanted, cursor=cursor, limit=MAX_LIMIT, visible=topics
        )
    )
    return csv_of(f"{group_id}-commits", columns, found)


@page
def rebalances_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """All rebalances of a group that are kept, newest first."""
    viewer = viewer_of(request)

    async def read(runtime: Runtime, before: int | None) -> tuple[Sequence[Episode], int | None]:
        found = await history(runtime.db, viewer, group_id, Wanted(before))
        if found.type is None and not found.shown and before is None:
            raise unknown_group(group_id)
        return found.shown, found.older

    found, at = all_rows(read), now_ms()
    return csv_of(
        f"{group_id}-rebalances", COLUMNS, found, length_ms=lambda one: one.length_ms(at),
        phases_ms=lambda one: " ".join(f"{phase.name}:{phase.length_ms}" for phase in one.phases),
    )  # fmt: skip


@page
def events_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The events of a group, newest first, with the filters of the page."""
    wanted, viewer = replace(wanted_events(request), before=None), viewer_of(request)

    async def read(runtime: Runtime, before: int | None) -> tuple[Sequence[Event], int | None]:
        found = await events_of(runtime.db, viewer, group_id, replace(wanted, before=before), MAX_LIMIT)
        if found.type is None and not found.events and before is None:
            raise unknown_group(group_id)
        return found.events, found.events[-1].id if found.more else None

    columns = "id @at kind generation=generation_id member_id text reason=note"
    return csv_of(f"{group_id}-events", columns, map(line, all_rows(read)))
