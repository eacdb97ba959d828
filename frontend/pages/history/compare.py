"""Lag of several groups, or of several topics over their groups, in one span of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from frontend.pages.history.lags import GROUPS_OF_TOPIC, MOST_TOPICS, Compared, PastLag, compared
from frontend.pages.history.span import Span, preset_links, span_of, step_links
from frontend.ui import reads, zones
from frontend.ui.chart import COUNT, LENGTH, LONGEST_GAP, Chart, Mark, Series, chart
from frontend.ui.page import LONGEST_TEXT, BadAddress, choice, group_url, page, show
from frontend.ui.rows import Millis
from frontend.ui.shown import Known, Shown, shown
from frontend.ui.viewer import viewer_of
from frontend.ui.wording import duration
from kcoord.process import bridge
from offsets.core.samples import TIERS

MOST = 4
NO_SAMPLES = "No samples of this time that you may see"
KINDS = {"groups": "group", "topics": "topic"}


@dataclass(frozen=True, slots=True)
class Value:
    """A cell of the table: what it is called on a narrow screen, and what is shown by `form`. `dated`: as of when."""

    label: str
    shown: Shown[int]
    form: str = "number"
    dated: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One of those that are compared. `left_out`: its lag is that of `of` topics or groups only."""

    name: str
    url: str
    values: Sequence[Value]
    left_out: int
    of: str


@page
def compare(request: HttpRequest) -> HttpResponse:
    """Up to four groups or topics, by their names in the URL: `?what=topics&name=orders&name=payments&span=7d`."""
    if ticked := request.GET.getlist("group"):  # in the list of groups
        return redirect(f"{request.path}?{urlencode([('name', name) for name in ticked])}")
    what = choice(request, "what", KINDS) or "groups"
    names, viewer = _names(request), viewer_of(request)
    now = bridge.call(lambda runtime: reads.now(runtime.db))
    span = span_of(request, now)
    wanted = [Compared(KINDS[what], name) for name in names]
    found = bridge.call(lambda runtime: compared(runtime.db, viewer, wanted, span)) if wanted else []
    context = {
        "now": now,
        "span": span,
        "presets": preset_links(request, span),
        "steps": step_links(request, span, now),
        "clear_url": request.path,
        "what": what,
        "word": KINDS[what].capitalize(),
        "names": [*names, *[""] * (MOST - len(names))],
        "chosen": [_line(one, past) for one, past in zip(wanted, found, strict=True)],
        "points": points_said(found, span, now),
        "lag_chart": lag_chart(names, found, span, now),
        "time_lag_chart": lag_chart(names, found, span, now, LENGTH),
    }
    return show(request, "pages/history/compare", context, section="compare", title="Compare", script="brush")


def points_said(found: Sequence[PastLag], span: Span, now: Millis) -> str:
    """What a point of the plots is."""
    step = duration(found[0].step_ms if found else span.step_ms)
    said = f"the {'largest' if all(past.peaks for past in found) else 'last'} sample in {step}"
    if not _has_all_peaks(found, span, now) and said.startswith("the largest"):
        kept = duration(TIERS[0].age_ms)
        return f"{said}; before the last {kept}, peaks of sums over only some topics or groups are not kept"
    return said


def _names(request: HttpRequest) -> list[str]:
    names = list(dict.fromkeys(name for name in map(str.strip, request.GET.getlist("name")) if name))
    if len(names) > MOST or any(len(name) > LONGEST_TEXT for name in names):
        raise BadAddress(f"name: at most {MOST} names of at most {LONGEST_TEXT} characters.")
    return names


def lag_chart(
    names: Sequence[str],
    found: Sequence[PastLag],
    span: Span,
    now: Millis,
    kind: str = COUNT,
    marks: Sequence[Mark] = (),
) -> Chart:
    """The lag of each, in records or for LENGTH in time, up to `now` (ms)."""
    pasts = zip(names, found, strict=True)
    return chart(
        [Series(name, one.time_lag, _at(one.time_lag_at_end)) for name, one in pasts]
        if kind == LENGTH
        else [Series(name, one.lag, _at(one.lag_at_end)) for name, one in pasts],
        first=span.first,
        last=span.last,
        step_ms=found[0].step_ms if found else span.step_ms,
        kind=kind,
        zone=zones.current(),
        marks=marks,
        most=_has_all_peaks(found, span, now),
        now=now,
        gap_ms=_gap(span, now),
    )


def _gap(span: Span, now: Millis) -> Millis:
    """For how long there may be no sample: some are late, and most of long ago are thinned out."""
    thinned = [tier.step_ms for tier in TIERS if span.last <= tier.ends(now)]
    return LONGEST_GAP * settings.KCOORD.int("lag.sample.interval.ms") + max(thinned, default=0)


def _at(end: Shown[int]) -> Millis | None:
    return end.as_of if isinstance(end, Known) else None


def _has_all_peaks(found: Sequence[PastLag], span: Span, now: Millis) -> bool:
    kept = span.first >= TIERS[0].ends(now)
    return all(past.peaks and (kept or not past.partial_sum) for past in found)


def _line(one: Compared, past: PastLag) -> Line:
    lags = [point.value for point in past.lag]
    late = [point.value for point in past.time_lag]
    values = (
        Value("Last lag", past.lag_at_end, dated=True),
        Value("Largest lag", shown(max(lags, default=None), why=NO_SAMPLES)),
        Value("Last time behind", past.time_lag_at_end, "time_lag", dated=True),
        Value("Furthest behind", shown(max(late, default=None), why=NO_SAMPLES), "time_lag"),
    )
    of_group = one.what == "group"
    of = f"the first {MOST_TOPICS:,} topics" if of_group else f"the {GROUPS_OF_TOPIC} groups furthest behind"
    return Line(one.name, group_url(one.name) if of_group else "", values, past.left_out, of)
