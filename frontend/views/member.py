"""The page of a member of a group."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from frontend.allowed import KICK, action
from frontend.member import presenters
from frontend.member.concerns import Concerns, concerns
from frontend.member.reads import EVENTS_SEARCHED, START, MemberPage, member_page
from frontend.timeline import lines
from frontend.viewer import Viewer, viewer_of
from frontend.views.groups import Pace, group_url
from frontend.views.page import cursor, cursor_address, is_panel, message, page, show
from frontend.wording import number
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from offsets.verdicts.checks import thresholds


def member_url(group_id: str, member_id: str) -> str:
    """The URL of a member's page. An id may contain anything, also a slash."""
    return f"{group_url(group_id)}/members/{quote(member_id, safe='')}"


@page
def member(request: HttpRequest, group_id: str, member_id: str) -> HttpResponse:
    """One member; one that is gone, as far as events tell."""
    after = cursor(request, "after", str, int)
    start = (str(after[0]), int(after[1])) if after else START
    found, concern, viewer = None, None, viewer_of(request)
    if "\0" not in member_id:
        found, concern = bridge.call(lambda runtime: _look(runtime, viewer, group_id, member_id, start))
    if found is None or (found.present is None and not found.events and found.given_out is None):
        return _unknown(request, group_id, member_id)
    context: dict[str, Any] = {
        "now": found.now,
        "group_id": group_id,
        "group": found.header,
        "held": found.header is not None and found.header.is_held(found.now),
        "member_id": member_id,
        "group_url": group_url(group_id),
        "events": lines(found.events),
        "history_url": f"{group_url(group_id)}/events",
        "stream": f"{reverse('frontend:live')}?group={quote(group_id, safe='')}",
        "pace": Pace(every_ms=5_000, gap_ms=1_000),
    }
    if concern is None:
        context |= presenters.gone(found)
        # A page that is already open gets its panel with status 200: htmx would not show one with an error status.
        return show(request, "member", context, section="groups", status=200 if is_panel(request) else 404)
    kick = f"{group_url(group_id)}/kick?{urlencode({'member': member_id})}"
    context |= presenters.present(
        found,
        viewer,
        concern,
        stale_ms=settings.KCOORD.int("lag.stale.ms"),
        window_ms=thresholds(settings.KCOORD).flapping_window_ms,
    )
    context |= {"action": action(viewer, "Remove the member…", kick, KICK, group_id, bad=True)}
    return show(request, "member", context | _pages(request, found, after is not None), section="groups")


async def _look(
    runtime: Runtime, viewer: Viewer, group_id: str, member_id: str, after: tuple[str, int]
) -> tuple[MemberPage, Concerns | None]:
    found = await member_page(runtime.db, viewer, group_id, member_id, after)
    return found, await concerns(runtime, viewer, found)


def _pages(request: HttpRequest, found: MemberPage, further: bool) -> dict[str, str | None]:
    """Pages of its partitions lead on, and back to the first."""
    rows = found.present.partitions if found.present else ()
    more = found.present is not None and found.present.more
    return {
        "first_url": request.path if further else None,
        "next_url": cursor_address(request, "after", rows[-1].topic, rows[-1].partition) if more else None,
    }


def _unknown(request: HttpRequest, group_id: str, member_id: str) -> HttpResponse:
    text = (
        f"{group_id} has no member {member_id}, and none of the newest {number(EVENTS_SEARCHED)} events of the group"
        " names it."
    )
    return message(request, 404, "No such member", text)
