"""Lag of several groups, or of several topics over their groups, in one span of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from frontend.pages.history.span import Span, of_span, span_of
from frontend.ui import reads, zones
from frontend.ui.chart import COUNT, LENGTH, LONGEST_GAP, Chart, Mark, Point, Series, chart
from frontend.ui.page import LONGEST_TEXT, BadAddress, choice, page, show
from frontend.ui.reads import History, Wanted, history_in
from frontend.ui.rows import Millis
from frontend.ui.shown import UNKNOWN, Known, Shown, shown
from frontend.ui.viewer import Viewer, viewer_of
from frontend.ui.wording import duration, elided
from groups.core.model.group import partition_of
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from kcoord.process import bridge
from offsets.core.days import DAY_MS, bounds, day_of
from offsets.core.samples import TIERS

MOST = 4
NO_SAMPLES = "No samples of this time that you may see"
KINDS = {"groups": "group", "topics": "topic"}


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
        **of_span(request, span, now),
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


def _line(one: Compared, past: PastLag) -> Mapping[str, Any]:
    """One of those that are compared. `only`: its lag is that of these topics or groups alone."""
    lags, late = ([point.value for point in points] for points in (past.lag, past.time_lag))
    of_group = one.what == "group"
    only = f"the first {MOST_TOPICS:,} topics" if of_group else f"the {GROUPS_OF_TOPIC} groups furthest behind"
    return {
        "name": one.name,
        "of_group": of_group,
        "only": only if past.left_out else "",
        "last": past.lag_at_end,
        "largest": shown(max(lags, default=None), why=NO_SAMPLES),
        "late": past.time_lag_at_end,
        "furthest": shown(max(late, default=None), why=NO_SAMPLES),
    }


Q = queries("frontend")

MOST_TOPICS = 2_000
"""Of a group with more topics, the lag of the first by name is drawn."""
MOST_LOOKUPS = 60_000
"""Samples read for one drawing: with more topics, its steps are longer."""
MOST_SAMPLES = 200_000
"""Samples that are all read for one drawing, so that each point is the largest value of its step."""
MOST_LINES = 500
"""Lines of the journal counted in one step."""
GROUPS_OF_TOPIC = 50
TOPIC_ROWS = 2_000


class _Step(NamedTuple):
    number: int
    step: int
    lag: int
    time_lag_ms: Millis | None


class _Last(NamedTuple):
    number: int
    at: Millis
    lag: int
    time_lag_ms: Millis | None


@dataclass(frozen=True, slots=True)
class PastLag:
    """Lag over a span. `step_ms`: the distance of its points; `left_out`: how many topics or groups are not in it.

    `peaks`: each point is the largest value of its step; otherwise, of very many samples, the last one. `partial_sum`:
    it is over only some of what there is, so that its peaks go when samples are thinned. `lag_at_end`,
    `time_lag_at_end`: of the last sample of the span, with its instant.
    """

    lag: Sequence[Point]
    time_lag: Sequence[Point]
    step_ms: Millis
    left_out: int = 0
    peaks: bool = True
    partial_sum: bool = False
    lag_at_end: Shown[int] = UNKNOWN
    time_lag_at_end: Shown[Millis] = UNKNOWN


@dataclass(frozen=True, slots=True)
class Past:
    """A group over a span. `changes`: lines of the journal by step, at most `MOST_LINES` each; `marks` by time."""

    rebalances: History
    lag: PastLag
    changes: Sequence[Point]
    marks: Sequence[Mark]


@dataclass(frozen=True, slots=True)
class Compared:
    """What is compared with others: a group, or a topic over the groups that have committed on it."""

    what: str
    name: str


MARKS: Mapping[str, tuple[str, str]] = {
    "applied": ("plan", "plan applied by {}"),
    "undone": ("plan", "plan undone by {}"),
    "handed": ("hand-over", "coordinator handed over, {}"),
    "opened": ("alert", "alert opened: {}"),
    "resolved": ("alert", "alert resolved: {}"),
}
"""What `marks_in_span` finds: the kind of its marks, and its words."""


async def past(db: Database, viewer: Viewer, group_id: str, span: Span, causes: frozenset[str] | None) -> Past:
    """Rebalances, lag and commits of a group over a span; they outlive the group. Raises COORDINATOR_NOT_AVAILABLE."""
    wanted = Wanted(since=span.first, until=span.last, causes=causes)
    async with db.snapshot() as connection:
        rebalances = await history_in(db, connection, viewer, group_id, wanted)
        (lag,) = await lags(db, connection, viewer, [Compared("group", group_id)], span)
        changes = await _changes(db, connection, viewer, group_id, span)
        marks = await _marks(db, connection, viewer, group_id, span)
    marks += [Mark(episode.began, episode.trigger) for episode in rebalances.read]
    return Past(rebalances, lag, changes, sorted(marks, key=lambda mark: mark.at))


async def compared(db: Database, viewer: Viewer, wanted: Sequence[Compared], span: Span) -> list[PastLag]:
    """The lag of each over a span; none of what the viewer may not describe."""
    async with db.snapshot() as connection:
        return await lags(db, connection, viewer, wanted, span)


async def lags(
    db: Database, connection: Connection, viewer: Viewer, wanted: Sequence[Compared], span: Span
) -> list[PastLag]:
    """The lag of each over a span, all in steps of the same length."""
    pairs: list[tuple[int, str, str]] = []
    left_out = []
    sums: list[tuple[int, str, str]] = []
    for number, one in enumerate(wanted):
        parts, left = await _parts(db, connection, viewer, one)
        pairs += [(number, group_id, topic) for group_id, topic in parts]
        left_out.append(left)
        if not left and (viewer.topics if one.what == "group" else viewer.groups).unlimited:
            sums.append((number, one.name, "") if one.what == "group" else (number, "", one.name))
    peaks = await _can_read_all(db, connection, pairs, span)
    step_ms = span.step_ms * (1 if peaks else max(-(-len(pairs) * span.steps // MOST_LOOKUPS), 1))
    parameters = {
        "numbers": [number for number, _, _ in pairs],
        "groups": [group_id for _, group_id, _ in pairs],
        "topics": [topic for _, _, topic in pairs],
        "sum_numbers": [number for number, _, _ in sums],
        "sum_groups": [group_id for _, group_id, _ in sums],
        "sum_topics": [topic for _, _, topic in sums],
        "first": span.first,
        "last": span.last,
        "step_ms": step_ms,
        "steps": -(-(span.last - span.first) // step_ms),
    }
    steps = await db.records(connection, _Step, Q.lag_peaks_by_step if peaks else Q.lag_by_step, parameters)
    last = {one.number: one for one in await db.records(connection, _Last, Q.lag_at_end, parameters)}
    drawn = [
        _past_lag([one for one in steps if one.number == number], span, step_ms, left)
        for number, left in enumerate(left_out)
    ]
    whole, several = {number for number, _, _ in sums}, Counter(number for number, _, _ in pairs)
    return [
        replace(_ended(past, last.get(number)), peaks=peaks, partial_sum=several[number] > 1 and number not in whole)
        for number, past in enumerate(drawn)
    ]


async def _can_read_all(
    db: Database, connection: Connection, pairs: Sequence[tuple[int, str, str]], span: Span
) -> bool:
    """Whether all samples of these are few enough; one look takes one of each, so the first tells."""
    if not pairs:
        return True
    most = MOST_SAMPLES // len(pairs) + 1
    _, group_id, topic = pairs[0]
    asked = {"group_id": group_id, "topic": topic, "first": span.first, "last": span.last, "most": most}
    return int(await db.value(connection, Q.samples_in_span, asked)) < most


def _ended(past: PastLag, last: _Last | None) -> PastLag:
    if last is None:
        return past
    time_lag = UNKNOWN if last.time_lag_ms is None else Known(last.time_lag_ms, last.at)
    return replace(past, lag_at_end=Known(last.lag, last.at), time_lag_at_end=time_lag)


async def _parts(
    db: Database, connection: Connection, viewer: Viewer, one: Compared
) -> tuple[list[tuple[str, str]], int]:
    """The groups and topics that one that is compared consists of, and how many more there are at least."""
    if not (viewer.sees_group if one.what == "group" else viewer.sees_topic)(one.name):
        return [], 0
    seen = viewer.with_groups()
    if one.what == "group":
        asked: dict[str, Any] = {"group_id": one.name, "limit": MOST_TOPICS + 1, **seen}
        topics = await db.column(connection, Q.sampled_topics, asked)
        return [(one.name, topic) for topic in topics[:MOST_TOPICS]], max(len(topics) - MOST_TOPICS, 0)
    asked = {"topic": one.name, "rows": TOPIC_ROWS, "limit": GROUPS_OF_TOPIC + 1, **seen}
    groups = await db.column(connection, Q.groups_of_topic, asked)
    return [(group_id, one.name) for group_id in groups[:GROUPS_OF_TOPIC]], max(len(groups) - GROUPS_OF_TOPIC, 0)


def _past_lag(steps: Sequence[_Step], span: Span, step_ms: Millis, left_out: int) -> PastLag:
    return PastLag(
        lag=_points(((one.step, one.lag) for one in steps), span, step_ms),
        time_lag=_points(((one.step, one.time_lag_ms) for one in steps), span, step_ms),
        step_ms=step_ms,
        left_out=left_out,
    )


def _points(values: Iterable[tuple[int, int | None]], span: Span, step_ms: Millis) -> list[Point]:
    """Values in the middle of their steps."""
    middle = span.first + step_ms // 2
    return [Point(min(middle + step * step_ms, span.last), value) for step, value in values if value is not None]


async def _marks(db: Database, connection: Connection, viewer: Viewer, group_id: str, span: Span) -> list[Mark]:
    """What happened to a group besides rebalances: hand-overs are for who may describe the cluster."""
    if not viewer.sees_group(group_id):
        return []
    number = settings.KCOORD.int("offsets.topic.num.partitions")
    coordinator = partition_of(group_id, number) if viewer.sees_cluster else None
    asked = {"group_id": group_id, "first": span.first, "last": span.last, "coordinator": coordinator}
    found = await db.rows(connection, Q.marks_in_span, asked)
    return [Mark(at, MARKS[what][1].format(elided(name)), MARKS[what][0]) for at, what, name in found]


async def _changes(db: Database, connection: Connection, viewer: Viewer, group_id: str, span: Span) -> list[Point]:
    if not viewer.sees_group(group_id):
        return []
    parameters = {
        "group_id": group_id,
        "first": span.first,
        "last": span.last,
        "step_ms": span.step_ms,
        "steps": span.steps,
        "most": MOST_LINES,
        "topic": None,
        "first_day": day_of(span.first) * DAY_MS,
        "after_day": bounds(day_of(span.last))[1],
        **viewer.topics.parameters(),
    }
    found: dict[int, int] = dict(await db.rows(connection, queries("offsets").changes_by_step, parameters))
    if not found:
        return []
    whole = max((span.last - span.first) // span.step_ms, 1)  # what is left at the end would look like a pause
    return _points(((step, found.get(step, 0)) for step in range(whole)), span, span.step_ms)
