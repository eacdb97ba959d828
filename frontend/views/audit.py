"""The audit: who changed what, when and why, over everything."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from frontend.audit.presenters import NOT_RECORDED, WHAT, AuditLine, audit_line
from frontend.audit.reads import SOURCES, AuditFilter, AuditKey, audit
from frontend.views.groups import group_url
from frontend.views.page import address, choice, cursor, cursor_address, instant, page, show, text
from frontend.wording import iso
from kcoord.process import bridge

AROUND_MS = 60_000
"""The commit history of an act begins and ends so long before and after it: statements take time."""


@require_safe
@page
def audit_page(request: HttpRequest) -> HttpResponse:
    """A page of the acts that match the filters of the URL, newest first."""
    wanted = wanted_acts(request)
    found = bridge.call(lambda runtime: audit(runtime.db, wanted))
    what = request.GET.get("what", "")
    filters = {name: text(request, name) for name in ("who", "name", "from", "to")}
    context = {
        "now": found.now,
        "lines": [(line, *urls(line)) for line in map(audit_line, found.acts)],
        "filters": filters,
        "what": what,
        "whats": [("", "Everything"), *((name, label) for name, (label, _, _) in WHAT.items())],
        "filtered": bool(what or any(filters.values())),
        "clear_url": request.path,
        "not_recorded": NOT_RECORDED,
        "newest_url": address(request, before=None) if wanted.before else None,
        "older_url": cursor_address(request, "before", *found.next) if found.next else None,
    }
    return show(request, "audit", context, section="audit")


def wanted_acts(request: HttpRequest) -> AuditFilter:
    """What the URL asks for. Raises BadAddress."""
    what = choice(request, "what", WHAT)
    _, sources, kinds = WHAT[what] if what else ("", SOURCES, None)
    return AuditFilter(
        sources=sources,
        kinds=None if kinds is None else [kind.value for kind in kinds],
        who=text(request, "who") or None,
        name=text(request, "name") or None,
        since=instant(request, "from"),
        until=instant(request, "to"),
        before=_before(request),
    )


def _before(request: HttpRequest) -> AuditKey | None:
    key = cursor(request, "before", int, str, str)
    return None if key is None else (int(key[0]), str(key[1]), str(key[2]))


def urls(line: AuditLine) -> tuple[str, str]:
    """The page of what an act is about, and the one that shows from what to what it changed; "" without."""
    if line.subject_kind == "run":
        return reverse("frontend:run", kwargs={"run_id": line.run_id}), ""
    if line.act.source not in ("event", "plan"):
        return "", ""
    here = group_url(line.subject)
    if line.plan_id:
        return here, f"{here}/plans/{line.plan_id}"
    if line.act.act.startswith("offsets_") or line.act.act == "group_deleted":
        around = {"from": iso(line.at - AROUND_MS), "to": iso(line.at + AROUND_MS)}
        return here, f"{here}/commits?{urlencode({'kind': 'changes', **around})}"
    return here, ""
