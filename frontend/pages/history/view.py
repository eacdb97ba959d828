"""The past of a group over one span: rebalances, lag, commits and other changes; and all its rebalances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from frontend.pages.history.compare import MARKS, MOST_LINES, Past, lag_chart, past, points_said
from frontend.pages.history.events import journal
from frontend.pages.history.span import Span, of_span, span_of
from frontend.ui import reads, zones
from frontend.ui.chart import COUNT, LENGTH, Series, chart
from frontend.ui.episodes import CAUSES, HOUR_MS, Episode, unrest
from frontend.ui.page import address, choice, cursor, cursor_address, group_url, instant, missing, page, show
from frontend.ui.reads import History, Wanted, history
from frontend.ui.rows import Millis
from frontend.ui.viewer import viewer_of
from frontend.ui.wording import duration, iso, plural, span
from kcoord.database.paging import encode_cursor
from kcoord.process import bridge
from offsets.core.types import ChangeKind
from offsets.core.verdicts import of_window
from offsets.journal.reading import FREQUENT, JournalFilter
from offsets.verdicts import thresholds

CHANGES_SHOWN = 20


@page
def group_history(request: HttpRequest, group_id: str) -> HttpResponse:
    """What happened to a group in a span of time; its past outlives it."""
    cause, viewer = choice(request, "cause", tuple(CAUSES)), viewer_of(request)
    span = span_of(request, bridge.call(lambda runtime: reads.now(runtime.db)))
    found = bridge.call(lambda runtime: past(runtime.db, viewer, group_id, span, chosen_causes(cause)))
    changes = journal(viewer, group_id, _changes(span), limit=CHANGES_SHOWN)
    if found.rebalances.type is None and not found.rebalances.shown and found.lag.lag == [] and not changes:
        return missing(request, group_id)
    now = found.rebalances.now
    here, query = group_url(group_id), f"span={span.preset}" if span.preset else span.query
    context: dict[str, Any] = {
        "group_type": found.rebalances.type,
        **of_span(request, span, now),
        "clear_url": request.path,
        "cause": cause,
        "causes": [("", "Any"), *((name, label.capitalize()) for name, (label, _) in CAUSES.items())],
        "lines": episode_lines(group_id, found.rebalances, span.first, span.last),
        "more_rebalances": found.rebalances.older is not None,
        "changes": changes,
        "rebalances_url": f"{here}/rebalances?{span.query}",
        "commits_url": f"{here}/commits?{span.query}",
        "changes_url": f"{here}/commits?{span.query}&kind=changes",
        "compare_url": f"/compare?{urlencode({'what': 'groups', 'name': group_id})}&{query}",
        "sample_every_ms": settings.KCOORD.int("lag.sample.interval.ms"),
        "topics_left_out": found.lag.left_out,
        "points": points_said([found.lag], span, now),
    } | _charts(found, span, viewer.sees_cluster)
    return show(
        request, "pages/history/history", context, section="groups", title=f"History of {group_id}", script="brush"
    )


def _changes(span: Span) -> JournalFilter:
    return JournalFilter(kinds=[kind for kind in ChangeKind if kind not in FREQUENT], since=span.first, until=span.last)


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


BAR = 1_000
"""Width of the longest bar, in the coordinates of its drawing."""


@dataclass(frozen=True, slots=True)
class Line:
    """A rebalance as its row shows it. `parts`: its phases in the bar; `running`: one is not over."""

    episode: Episode
    trigger: str
    parts: Sequence[Mapping[str, Any]]
    length_ms: Millis
    events_url: str


@page
def group_rebalances(request: HttpRequest, group_id: str) -> HttpResponse:
    """The rebalances of a group, newest first; they outlive the group as long as its events are kept."""
    before, viewer = cursor(request, "before", int), viewer_of(request)
    chosen = choice(request, "cause", tuple(CAUSES))
    wanted = Wanted(
        int(before[0]) if before else None, instant(request, "from"), instant(request, "to"), chosen_causes(chosen)
    )
    found = bridge.call(lambda runtime: history(runtime.db, viewer, group_id, wanted))
    if found.type is None and not found.shown and wanted == Wanted():
        return missing(request, group_id)
    context = {
        "group_type": found.type,
        "now": found.now,
        "lines": episode_lines(group_id, found, wanted.since, wanted.until),
        "unrest": _unrest(found.recent, found.now) if wanted.newest else "",
        "wanted": {"from": wanted.since, "to": wanted.until} | {"cause": chosen},
        "causes": [("", "Any"), *((name, label.capitalize()) for name, (label, _) in CAUSES.items())],
        "filtered": bool(chosen or wanted.since or wanted.until),
        "clear_url": request.path,
        "newest_url": address(request, before=None) if before else None,
        "older_url": cursor_address(request, "before", found.older) if found.older else None,
    }
    return show(request, "pages/history/rebalances", context, section="groups", title=f"Rebalances of {group_id}")


def chosen_causes(name: str) -> frozenset[str] | None:
    """The causes of a group of them; None for "": all."""
    return frozenset(cause.value for cause in CAUSES[name][1]) if name else None


def episode_lines(group_id: str, found: History, since: Millis | None, until: Millis | None) -> list[Line]:
    """The rows of rebalances, with bars of the same scale. Their links keep the span."""
    given = {"from": since, "to": until}
    query = urlencode({name: iso(at) for name, at in given.items() if at is not None})
    bounds = f"&{query}" if query else ""
    longest = max((episode.length_ms(found.now) for episode in found.shown), default=0)
    return [_line(group_id, episode, longest, found.now, bounds) for episode in found.shown]


def _line(group_id: str, episode: Episode, longest: Millis, now: Millis, bounds: str) -> Line:
    length = episode.length_ms(now)
    phases = [(phase.name, phase.length_ms, False) for phase in episode.phases]
    if episode.ended is None:
        phases.append((_running(episode), max(length - sum(ms for _, ms, _ in phases), 0), True))
    parts, x = list[Mapping[str, Any]](), 0.0
    for name, length_ms, running in phases:
        width = BAR * length_ms / longest if longest else 0.0
        parts.append({"name": name, "x": x, "width": max(width, 2.0), "length_ms": length_ms, "running": running})
        x += width
    events = f"{group_url(group_id)}/events?before={encode_cursor(episode.last_id + 1)}{bounds}"
    return Line(episode, _capitalized(episode.trigger), parts, length, events)


def _capitalized(trigger: str) -> str:
    """As the beginning of a cell; an id at its beginning stays as it is."""
    return trigger[0].upper() + trigger[1:] if trigger.startswith(("the ", "subscribed ", "no ")) else trigger


def _running(episode: Episode) -> str:
    """The phase that an episode is in."""
    follows = {"joining": "assigning", "computing": "reconciling"}
    return follows.get(episode.phases[-1].name, "assigning") if episode.phases else "joining"


def _unrest(recent: tuple[Episode, ...], now: Millis) -> str:
    """How often the group rebalances, counted as by the verdict flapping, and how much of the last hour that took."""
    limits = thresholds(settings.KCOORD)
    score = len(of_window([episode.began for episode in recent], limits, now))
    most = limits.flapping_rebalances
    flaps = f"{'flapping' if score >= most else 'not flapping'}, which begins at {most}"
    begun = f"{plural(score, 'rebalance')} began in the last {span(limits.flapping_window_ms)} ({flaps})."
    found = unrest(recent, now)
    if not found.count:
        return begun
    share = 100 * found.length_ms / HOUR_MS
    part = f"{share:.0f} %" if share >= 1 else "less than 1 %"
    return f"{begun} For {duration(found.length_ms)} of the last hour ({part}) the group had no stable assignment."
