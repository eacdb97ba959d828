"""The events of a group, all of them or those of a span of time."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from frontend.history.reads import Wanted, events_of
from frontend.timeline import folded
from frontend.viewer import viewer_of
from frontend.views.groups import group_url
from frontend.views.page import address, cursor, cursor_address, instant, missing, page, show
from kcoord.process import bridge


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
        "group_id": group_id,
        "group_type": found.type,
        "events": folded(found.events),
        "group_url": group_url(group_id),
        "since": wanted.since,
        "until": wanted.until,
        "all_url": request.path if spanned else None,
        "csv_url": f"{group_url(group_id)}/events.csv{query}",
        "newest_url": address(request, before=None) if wanted.before else None,
        "older_url": cursor_address(request, "before", found.events[-1].id) if found.more else None,
    }
    return show(request, "events", context, section="groups", title=f"Events of {group_id}")


def wanted_events(request: HttpRequest) -> Wanted:
    """What the URL asks for. Raises BadAddress."""
    before = cursor(request, "before", int)
    return Wanted(int(before[0]) if before else None, instant(request, "from"), instant(request, "to"))
