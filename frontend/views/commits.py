"""The commit history of a group: who committed, reset or removed what, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from frontend import queries
from frontend.rows import Names
from frontend.viewer import Viewer, viewer_of
from frontend.views.actions import header
from frontend.views.groups import group_url
from frontend.views.page import BadAddress, address, choice, instant, member_names, message, page, show, text
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.rest.paging import Page
from offsets.core.types import ChangeKind
from offsets.journal.reading import FREQUENT, JournalFilter, JournalLine, JournalReads

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

    row: JournalLine
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
        return message(request, 404, "No such group", f"{group_id} has no commit history, or it is no longer kept.")
    brief = header(request, group_id)
    context: dict[str, Any] = {
        "group_id": group_id,
        "group_url": group_url(group_id),
        "group_type": brief.type if brief else None,
        "now": brief.now if brief else bridge.call(lambda runtime: queries.now(runtime.db)),
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
    return show(request, "commits", context, section="groups", title=f"Commit history of {group_id}")


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


def _read(viewer: Viewer, group_id: str, wanted: JournalFilter, cursor: str | None) -> Page[JournalLine] | None:
    """A page of the journal; None if it has nothing about the group. Raises BadAddress for an invalid filter."""

    async def read(runtime: Runtime) -> Page[JournalLine]:
        return await runtime.get(JournalReads).commits(
            group_id, wanted, cursor=cursor, limit=PAGE_SIZE, visible=viewer.topics
        )

    try:
        return bridge.call(read)
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
    if not viewer.sees_group(group_id):
        return []

    async def read(runtime: Runtime) -> Page[JournalLine]:
        return await runtime.get(JournalReads).commits(group_id, wanted, limit=limit, visible=viewer.topics)

    try:
        return _lines(viewer, group_id, bridge.call(read).items)
    except ProtocolError as error:
        if error.error is Error.GROUP_ID_NOT_FOUND:
            return []
        raise


def _lines(viewer: Viewer, group_id: str, rows: Sequence[JournalLine]) -> list[Line]:
    """Rows as text. A member that is gone is named by the client id of its commits."""
    clients = {row.member_id: row.client_id for row in rows if row.member_id and row.client_id}
    names = {**clients, **member_names(viewer, group_id, {row.member_id for row in rows})}
    return [Line(row, *WORDS[ChangeKind(row.kind)], row.principal or "the service", names) for row in rows]
