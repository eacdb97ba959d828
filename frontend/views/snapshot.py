"""A group's page as a file to attach: JSON or Markdown."""

from __future__ import annotations

import json

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from frontend import presenters
from frontend.group.look import Look, look
from frontend.history.reads import History, Wanted, history
from frontend.labels import shown as shown_labels
from frontend.partitions import names
from frontend.queries import Limits, members_are_hidden
from frontend.snapshot import markdown, snapshot
from frontend.states import state
from frontend.verdicts.presenters import lines as verdict_lines
from frontend.viewer import Viewer, viewer_of
from frontend.views.groups import group_url
from frontend.views.page import BadAddress, attached, missing, page
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.verdicts.checks import thresholds
from offsets.verdicts.reads import summaries

REBALANCES = 10
LIMITS = Limits(members=200, offsets=500, events=50, topics=200, cells=20_000, member_topics=50)

TYPES = {"json": "application/json", "md": "text/markdown; charset=utf-8"}
"""The kinds of files, by the end of their names."""


@page
def group_snapshot(request: HttpRequest, group_id: str, kind: str) -> HttpResponseBase:
    """The group as it is now."""
    if kind not in TYPES:
        raise BadAddress(f"There is no snapshot of this kind: {', '.join(TYPES)}.")
    viewer = viewer_of(request)
    found = bridge.call(lambda runtime: _read(runtime, viewer, group_id))
    if found is None:
        return missing(request, group_id)
    looked, past = found
    context = presenters.group(looked.page, 1, {}, looked.assignors, looked.rule)
    taken = snapshot(
        looked.page,
        state(looked.page.header.state),
        context["explanation"],
        context["next_timer"],
        verdict_lines(
            summaries(looked.verdicts),
            looked.page.header.state,
            window_ms=thresholds(settings.KCOORD).flapping_window_ms,
            explained=True,
            names=names(looked.page),
        ),
        past.shown[:REBALANCES],
        request.build_absolute_uri(group_url(group_id)),
        {label.name: label.value for label in shown_labels(looked.labels)},
    )
    content = json.dumps(taken, indent=1, ensure_ascii=False) if kind == "json" else markdown(taken)
    response = HttpResponse(content, content_type=TYPES[kind])
    return attached(response, group_id, kind, at=taken["taken_at"][:19].replace(":", ""))


async def _read(runtime: Runtime, viewer: Viewer, group_id: str) -> tuple[Look, History] | None:
    looked = await look(runtime, viewer, group_id, LIMITS)
    if looked is not None and looked.page.members_hidden:
        raise members_are_hidden(group_id)
    if looked is not None and looked.failed:
        raise ProtocolError(
            Error.COORDINATOR_NOT_AVAILABLE, f"could not be read: {', '.join(looked.failed)}; try again"
        )
    return None if looked is None else (looked, await history(runtime.db, viewer, group_id, Wanted()))
