"""The audit: who did what, when, from where and why, and what was refused."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import NoReverseMatch, reverse

from frontend import zones
from frontend.audit.presenters import NOT_RECORDED, WHAT, AuditLine, acts_of, audit_line
from frontend.audit.reads import audit
from frontend.viewer import viewer_of
from frontend.views.groups import group_url
from frontend.views.page import address, choice, cursor, cursor_address, instant, page, show, text
from kcoord.audit.reading import AuditFilter, Sight
from kcoord.process import bridge

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
    return show(request, "audit", context, section="audit", title="Audit")


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
