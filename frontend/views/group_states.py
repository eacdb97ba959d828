"""The state machine of a group, drawn, with where the group stands and what can happen next."""

from __future__ import annotations

from urllib.parse import quote

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from frontend import queries
from frontend.consumer import states as consumer_states
from frontend.machines.drawing import picture
from frontend.queries import Limits
from frontend.states import explain, next_timer, state
from frontend.viewer import viewer_of
from frontend.views.groups import Pace, group_url
from frontend.views.page import missing, page, show
from kcoord.process import bridge

PACE = Pace(every_ms=5_000, gap_ms=250)


@page
def group_states(request: HttpRequest, group_id: str) -> HttpResponse:
    """The picture, and its transitions as tables."""
    viewer = viewer_of(request)
    found = bridge.call(lambda runtime: queries.group_page(runtime.db, viewer, group_id, Limits()))
    if found is None:
        return missing(request, group_id)
    group, part = found.header, found.consumer
    drawn = None if group.type == "share" else picture(group.type, group.state)
    context = {
        "now": found.now,
        "pace": PACE,
        "stream": f"{reverse('frontend:live')}?group={quote(group_id, safe='')}",
        "group": group,
        "group_id": group_id,
        "group_url": group_url(group_id),
        "state": state(group.state, held=group.is_held(found.now)),
        "explanation": (part and consumer_states.explain(found, part)) or explain(found),
        "next_timer": next_timer(found),
        "picture": drawn,
        "narrow": picture(group.type, group.state, narrow=True) if drawn else None,
        "possible": [arrow for arrow in drawn.arrows if arrow.possible] if drawn else [],
        "members_hidden": found.members_hidden,
        "kind": group.type,
        "group_type": group.type,
    }
    return show(request, "group_states", context, section="groups", title=f"States · {group_id}")
