"""The audit: who changed what, in pages and as a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import NoReverseMatch, reverse

from frontend.pages.audit.present import NOT_RECORDED, WHAT, AuditLine, acts_of, audit_line, hidden_values
from frontend.ui import zones
from frontend.ui.page import address, choice, cursor, cursor_address, group_url, instant, page, show, text
from frontend.ui.rows import Millis
from frontend.ui.shown import cell, shown
from frontend.ui.table import all_rows, csv_file
from frontend.ui.viewer import viewer_of
from frontend.ui.wording import iso
from kcoord.audit.encoding import Record
from kcoord.audit.reading import AuditFilter, Sight, read_records
from kcoord.database.pool import Database
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.rest.paging import MAX_LIMIT

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Audit:
    """A page of records, newest first. `next`: before which number the next page begins; None on the last page."""

    now: Millis
    records: Sequence[Record]
    next: int | None


async def audit(db: Database, sight: Sight, wanted: AuditFilter, limit: int = PAGE_SIZE) -> Audit:
    """A page of records, as far as its reader may see them. Raises ProtocolError COORDINATOR_NOT_AVAILABLE."""
    async with db.snapshot() as connection:
        records, following = await read_records(db, connection, sight, wanted, limit)
        now = await db.now_ms(connection)
    return Audit(now, records, following)


RESULTS = {"done": "Done", "refused": "Refused"}
AROUND_MS = 60_000
DELETED = frozenset({"token.delete", "topic.delete"})


@page
def audit_page(request: HttpRequest) -> HttpResponse:
    """A page of the records that match the filters of the URL, newest first."""
    wanted, sight = wanted_records(request), sight_of(request)
    found = bridge.call(lambda runtime: audit(runtime.db, sight, wanted))
    what, result = request.GET.get("what", ""), request.GET.get("result", "")
    filters = {"who": wanted.who or "", "name": wanted.name or "", "from": wanted.since, "to": wanted.until}
    context = {
        "now": found.now,
        "everything": sight.everything,
        "lines": [(line, *urls(line)) for line in (audit_line(one, sight) for one in found.records)],
        "filters": filters,
        "what": what,
        "whats": [("", "Everything"), *((name, label) for name, (label, _) in WHAT.items())],
        "result": result,
        "results": [("", "Done and refused"), *RESULTS.items()],
        "filtered": bool(what or result or any(filters.values())),
        "clear_url": request.path,
        "not_recorded": NOT_RECORDED,
        "newest_url": address(request, before=None) if wanted.before else None,
        "older_url": cursor_address(request, "before", found.next) if found.next else None,
    }
    return show(request, "pages/audit/audit", context, section="audit", title="Audit")


def sight_of(request: HttpRequest) -> Sight:
    """What the account may see."""
    return Sight.of(viewer_of(request).principal)


def wanted_records(request: HttpRequest) -> AuditFilter:
    """What the URL asks for. Raises BadAddress."""
    what = choice(request, "what", WHAT)
    key = cursor(request, "before", int)
    return AuditFilter(
        acts=acts_of(what) if what else None,
        result=choice(request, "result", RESULTS) or None,
        who=text(request, "who") or None,
        name=text(request, "name") or None,
        since=instant(request, "from"),
        until=instant(request, "to"),
        before=None if key is None else int(key[0]),
    )


def urls(line: AuditLine) -> tuple[str, str, str]:
    """The page of what a record is about, that of its plan, and the changes of offsets around it; "" without."""
    record = line.record
    if not record.name or record.act in DELETED or record.result == "refused":
        return "", "", ""
    try:
        if record.resource == "group":
            here = group_url(record.name)
            if line.plan_id:
                return here, f"{here}/plans/{line.plan_id}", ""
            return here, "", _commits(here, line.at) if record.act.startswith("offsets.") else ""
        if record.resource == "topic":
            return reverse("frontend:topic", kwargs={"name": record.name}), "", ""
        if record.resource == "run":
            return reverse("frontend:run", kwargs={"run_id": record.name}), "", ""
    except NoReverseMatch:  # a name that no page can have
        return "", "", ""
    return "", "", ""


def _commits(group: str, at: int) -> str:
    """The changes of offsets within a minute of an instant (ms)."""
    around = {"from": zones.wall(at - AROUND_MS), "to": zones.wall(at + AROUND_MS)}
    return f"{group}/commits?{urlencode({'kind': 'changes', **around})}"


@page
def audit_csv(request: HttpRequest) -> HttpResponseBase:
    """What people and tokens changed, with the filters of the page."""
    wanted, sight = replace(wanted_records(request), before=None), sight_of(request)

    async def read(runtime: Runtime, before: int | None) -> tuple[Sequence[Record], int | None]:
        found = await audit(runtime.db, sight, replace(wanted, before=before), MAX_LIMIT)
        return found.records, found.next

    head = (
        "seq", "at", "kind", "who", "door", "address", "request_id", "act", "resource", "name", "before", "after",
        "reason", "result", "error", "count",
    )  # fmt: skip
    rows = (
        (
            one.seq, iso(one.at), one.kind, one.principal, one.door, one.address, one.request_id, one.act, one.resource,
            one.name, *(cell(shown(said or None, hidden=hidden)) for said in (one.before, one.after, one.reason)),
            one.result, one.error, one.count,
        )
        for one in all_rows(read)
        for hidden in (hidden_values(one, sight),)
    )  # fmt: skip
    return csv_file("audit", head, rows)
