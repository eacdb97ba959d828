"""What happened to all groups and to the service on one axis of time, and in lines below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse

from frontend import queries, zones
from frontend.happened.lines import KINDS, Line, lines
from frontend.happened.reads import MOST_EVENTS, MOST_OTHERS, Asked, Happened, happened
from frontend.history.chart import Chart, Mark, Point, Series, chart
from frontend.history.span import Span
from frontend.history.ticks import DAY, MINUTE, written
from frontend.rows import Millis
from frontend.viewer import viewer_of
from frontend.views.csv_pages import csv_file
from frontend.views.group_list import Choice, label_of
from frontend.views.groups import group_url
from frontend.views.page import address, choices_of, cursor, cursor_address, page, show, text
from frontend.views.spans import preset_links, span_of, step_links
from frontend.wording import duration, iso, plural
from kcoord.process import bridge

LINES = 100
KEPT = {
    "events.retention.days": ("Rebalances and hand-overs", {"rebalance", "hand-over"}),
    "offsets.journal.retention.days": ("Resolved alerts", {"alert"}),
}
"""How long it is known what happened, by the setting: what it is about, and its kinds."""


@page
def timeline(request: HttpRequest) -> HttpResponse:
    """The kinds that the URL asks for, all without; the newest lines first."""
    viewer, kinds, before = viewer_of(request), _kinds(request), cursor(request, "before", int, str)
    asked, found = _found(request)
    span = asked.span
    counts = Counter({"rebalance": len(found.rebalances)} | {kind: len(some) for kind, some in found.others.items()})
    chosen = lines(found, kinds)
    rest = [one for one in chosen if before is None or one.key < before]
    offered = [kind for kind in KINDS if kind == "rebalance" or kind in found.others]
    context: dict[str, Any] = {
        "now": found.now,
        "span": span,
        "presets": preset_links(request, span),
        "steps": step_links(request, span, found.now),
        "q": asked.prefix,
        "label": text(request, "label"),
        "kinds": [Choice(KINDS[kind], counts[kind], kind in request.GET.getlist("kind")) for kind in offered],
        "hidden": not viewer.sees_cluster,
        "filtered": not asked.of_all_groups or len(kinds) < len(KINDS),
        "clear_url": address(request, q=None, label=None, kind=None, before=None),
        "limits": _limits(found, span, kinds),
        "chart": _chart(found, chosen, span, kinds),
        "step": duration(span.step_ms),
        "marked": [
            (kind, plural(counts[kind], KINDS[kind].label)) for kind in offered[1:] if kind in kinds and counts[kind]
        ],
        "lines": [(one, one.words, *_when(one), _history(one, span)) for one in rest[:LINES]],
        "shown": len(rest[:LINES]),
        "total": len(chosen),
        "audit_url": f"{reverse('frontend:audit')}?{span.query}",
        "csv_url": reverse("frontend:timeline-csv") + address(request, before=None).removeprefix(request.path),
        "newest_url": address(request, before=None) if before else None,
        "older_url": cursor_address(request, "before", *rest[LINES - 1].key) if len(rest) > LINES else None,
    }
    return show(request, "happened", context, section="timeline")


@page
def timeline_csv(request: HttpRequest) -> HttpResponseBase:
    """The lines of the page, all of them; the last rows say what is not in it."""
    kinds, (asked, found) = _kinds(request), _found(request)

    def rows() -> Iterator[Sequence[object]]:
        for one in lines(found, kinds):
            yield iso(one.first), iso(one.last), one.kind, one.group_id or None, len(one.run) or 1, one.words.text
        for said in _limits(found, asked.span, kinds):
            yield None, None, "left_out", None, None, said

    return csv_file("timeline", ("first_at", "last_at", "kind", "group_id", "count", "what"), rows())


def _kinds(request: HttpRequest) -> Collection[str]:
    return choices_of(request, "kind", KINDS) or tuple(KINDS)


def _found(request: HttpRequest) -> tuple[Asked, Happened]:
    """What the URL asks for, and what happened. Raises BadAddress."""
    span = span_of(request, bridge.call(lambda runtime: queries.now(runtime.db)))
    asked, viewer = Asked(span, text(request, "q"), label_of(request)), viewer_of(request)
    return asked, bridge.call(lambda runtime: happened(runtime, viewer, asked))


def _limits(found: Happened, span: Span, kinds: Collection[str]) -> list[str]:
    """What is not shown although it happened, in sentences."""
    said = []
    for kind, at in found.since.items():
        if kind == "rebalance" and kind in kinds:
            said.append(
                f"More than {MOST_EVENTS:,} events of groups are kept of this time: rebalances before"
                f" {zones.instant(at)} are not listed. Choose a shorter time to see them."
                + (" Their bars are counted once a minute." if found.minutes else "")
            )
        elif kind in kinds:
            said.append(
                f"More than {MOST_OTHERS:,} lines are of the kind {KINDS[kind].label}: those before"
                f" {zones.instant(at)} are not listed. Choose a shorter time to see them."
            )
    gone = [(what, kept) for what, kept in _kept(found.now, kinds) if span.first < kept]
    return said + [f"{what} before {zones.minute(kept)} are no longer kept." for what, kept in gone]


def _kept(now: Millis, kinds: Collection[str]) -> list[tuple[str, Millis]]:
    return [(what, now - settings.KCOORD.int(name) * DAY) for name, (what, of) in KEPT.items() if of & set(kinds)]


def _chart(found: Happened, chosen: Sequence[Line], span: Span, kinds: Collection[str]) -> Chart:
    """What is chosen as bars, and all but rebalances as marks too. No bar where it is not known how much happened."""
    middle, counts = span.first + span.step_ms // 2, _counts(found, span, kinds)
    points = [Point(min(middle + slot * span.step_ms, span.last), count) for slot, count in sorted(counts.items())]
    known = min(counts, default=0) * span.step_ms
    return chart(
        [Series("Happened", points)],
        first=span.first,
        last=span.last,
        step_ms=span.step_ms,
        zone=zones.current(),
        marks=[Mark(one.first, one.words.text, one.kind) for one in reversed(chosen) if one.kind != "rebalance"],
        bars=True,
        now=found.now,
        since=span.first + known if known else None,
    )


def _counts(found: Happened, span: Span, kinds: Collection[str]) -> dict[int, int]:
    """How much happened in each step of the span, where it is known."""
    first, step_ms, until = span.first, span.step_ms, min(span.last, found.now + 1) - 1

    def slot(at: Millis) -> int:
        return (at - first) // step_ms

    others = max([first, *(at for kind, at in found.since.items() if kind in kinds and kind != "rebalance")])
    kept = max([others, *(at for _, at in _kept(found.now, kinds))])
    known = max(kept, found.since.get("rebalance", 0)) if "rebalance" in kinds else kept
    counts = dict.fromkeys(range(slot(known), slot(until) + 1), 0)
    by_minute: Counter[int] = Counter()
    for minute in found.minutes if "rebalance" in kinds else ():
        if slot(kept) <= (there := slot((minute.since + minute.at) // 2)) <= slot(known):
            by_minute[there] += round(minute.rebalances * (minute.at - minute.since) / MINUTE)
    counts |= by_minute
    listed = found.rebalances if "rebalance" in kinds else ()
    slots = [there for one in listed if (there := slot(one.at)) not in by_minute]
    slots += [slot(one.at) for kind, records in found.others.items() if kind in kinds for one in records]
    for there in slots:
        if there in counts:
            counts[there] += 1
    return counts


def _when(one: Line) -> tuple[str, str]:
    """When it happened, and until when if that is later, which need not repeat the day."""
    first, last = written(one.first, zones.current()), written(one.last, zones.current())
    return first, "" if first == last else last[11:] if last[:10] == first[:10] else last


def _history(one: Line, span: Span) -> str:
    """The page of its group, of the span that is shown; "" without a group."""
    return f"{group_url(one.group_id)}/history?{span.query}" if one.group_id else ""
