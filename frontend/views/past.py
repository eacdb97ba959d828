"""The past of a group on one page, over one span: rebalances, lag, commits and other changes of offsets."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from frontend import queries, zones
from frontend.history.chart import COUNT, LENGTH, Series, chart
from frontend.history.episodes import CAUSES
from frontend.history.past import MARKS, MOST_LINES, Past, past
from frontend.history.span import Span
from frontend.viewer import viewer_of
from frontend.views.commits import journal
from frontend.views.compare import lag_chart, points_said
from frontend.views.groups import group_url
from frontend.views.history import chosen_causes, episode_lines
from frontend.views.page import choice, missing, page, show
from frontend.views.spans import preset_links, span_of, step_links
from frontend.wording import duration, plural
from kcoord.process import bridge
from offsets.core.types import ChangeKind
from offsets.journal.reading import FREQUENT, JournalFilter

CHANGES_SHOWN = 20


@page
def group_history(request: HttpRequest, group_id: str) -> HttpResponse:
    """What happened to a group in a span of time; its past outlives it."""
    cause, viewer = choice(request, "cause", tuple(CAUSES)), viewer_of(request)
    span = span_of(request, bridge.call(lambda runtime: queries.now(runtime.db)))
    found = bridge.call(lambda runtime: past(runtime.db, viewer, group_id, span, chosen_causes(cause)))
    changes = journal(viewer, group_id, _changes(span), limit=CHANGES_SHOWN)
    if found.rebalances.type is None and not found.rebalances.shown and found.lag.lag == [] and not changes:
        return missing(request, group_id)
    now = found.rebalances.now
    here = group_url(group_id)
    context: dict[str, Any] = {
        "group_id": group_id,
        "group_url": here,
        "group_type": found.rebalances.type,
        "now": now,
        "span": span,
        "presets": preset_links(request, span),
        "steps": step_links(request, span, now),
        "clear_url": request.path,
        "cause": cause,
        "causes": [("", "Any"), *((name, label.capitalize()) for name, (label, _) in CAUSES.items())],
        "lines": episode_lines(group_id, found.rebalances, span.first, span.last),
        "more_rebalances": found.rebalances.older is not None,
        "changes": changes,
        "rebalances_url": f"{here}/rebalances?{span.query}",
        "commits_url": f"{here}/commits?{span.query}",
        "changes_url": f"{here}/commits?{span.query}&kind=changes",
        "compare_url": f"/compare?{urlencode({'what': 'groups', 'name': group_id})}&{_of(span)}",
        "sample_every_ms": settings.KCOORD.int("lag.sample.interval.ms"),
        "topics_left_out": found.lag.left_out,
        "points": points_said([found.lag], span, now),
    } | _charts(found, span, viewer.sees_cluster)
    return show(request, "history", context, section="groups")


def _changes(span: Span) -> JournalFilter:
    return JournalFilter(kinds=[kind for kind in ChangeKind if kind not in FREQUENT], since=span.first, until=span.last)


def _of(span: Span) -> str:
    return f"span={span.preset}" if span.preset else span.query


def _charts(found: Past, span: Span, sees_cluster: bool) -> dict[str, Any]:
    """The plots, all of the same span and with the same marks."""
    now = found.rebalances.now
    commits = chart(
        [Series("Commits", found.changes)],
        first=span.first,
        last=span.last,
        step_ms=span.step_ms,
        zone=zones.current(),
        marks=found.marks,
        bars=True,
        now=now,
    )
    marked = Counter(mark.kind for mark in found.marks)
    kinds = dict.fromkeys(["rebalance", *(kind for kind, _ in MARKS.values())])
    return {
        "lag_chart": lag_chart(["Lag"], [found.lag], span, now, COUNT, found.marks),
        "time_lag_chart": lag_chart(["Behind"], [found.lag], span, now, LENGTH, found.marks),
        "commits_chart": commits,
        "commits_step": duration(span.step_ms),
        "commits_most": MOST_LINES if any(point.value >= MOST_LINES for point in found.changes) else None,
        "marked": [(kind, plural(marked[kind], kind)) for kind in kinds if marked[kind]],
        "marked_since": found.rebalances.read_since,
        "handovers_hidden": not sees_cluster,
    }
