"""Pins: what retention leaves untouched in a group."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from frontend import commands as as_command
from frontend import queries
from frontend.allowed import PIN, missing, require
from frontend.commands import service_url
from frontend.viewer import viewer_of
from frontend.views.actions import LONGEST_REASON, Refusal, actor, attempt
from frontend.views.groups import group_url
from frontend.views.page import address, form_page, show, text
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from offsets.retention.pins import PinService


@form_page
def group_pins(request: HttpRequest, group_id: str) -> HttpResponse:
    """List, set and remove pins. The group need not exist."""
    viewer = viewer_of(request)
    refusal = Refusal()
    if request.method == "POST":
        require(request, PIN, group_id)
        changed, refusal = attempt(lambda runtime: _change(runtime, request, group_id))
        if changed is not None:
            return HttpResponseRedirect(f"{group_url(group_id)}/pins")
    cursor = text(request, "after") or None
    found = bridge.call(lambda runtime: runtime.get(PinService).pins(group_id, cursor=cursor, visible=viewer.topics))
    topic = request.POST.get("topic", "").strip() or None if request.method == "POST" else "TOPIC"
    reason = request.POST.get("reason", "").strip()[:LONGEST_REASON]
    context = {
        "group_id": group_id,
        "group_url": group_url(group_id),
        "pins": found.items,
        "next_url": address(request, after=found.next_cursor) if found.next_cursor else None,
        "refusal": refusal,
        "lacking": missing(viewer, PIN, group_id),
        "given": request.POST,
        "commands": as_command.pins(service_url(request), group_id, topic, reason),
        "now": bridge.call(lambda runtime: queries.now(runtime.db)),
    }
    return show(request, "pins", context, section="groups", status=refusal.status)


async def _change(runtime: Runtime, request: HttpRequest, group_id: str) -> bool:
    pins, topic = runtime.get(PinService), request.POST.get("topic", "").strip() or None
    if topic is not None:
        viewer_of(request).principal.require_described(topic)
    if request.POST.get("act") == "remove":
        await pins.unpin(group_id, topic, principal=actor(request))
    else:
        reason = request.POST.get("reason", "").strip()[:LONGEST_REASON]
        await pins.pin(group_id, topic, principal=actor(request), reason=reason)
    return True
