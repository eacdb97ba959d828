"""The overview, the page that people land on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from frontend.pages.overview.health import limits_of, part_urls
from frontend.pages.overview.parts import ACTIVITY_MS, Needy, OverviewParts, Part, health, judged_at, with_judged_at
from frontend.ui import zones
from frontend.ui.chart import MINUTE, Chart, Point, Series, chart
from frontend.ui.labels import Label, whom_to_call
from frontend.ui.page import Pace, page, show
from frontend.ui.reads import now_ms
from frontend.ui.rows import Millis
from frontend.ui.services import WORST_FIRST, elsewhere
from frontend.ui.states import STATES, State, is_held, state
from frontend.ui.verdicts import KINDS, VerdictLine, lines
from frontend.ui.viewer import viewer_of
from groups.readmodel import GroupSort
from kcoord.process import bridge
from offsets.verdicts import Minute, thresholds


def _list_url(name: str, value: str) -> str:
    return f"{reverse('frontend:groups')}?{urlencode({name: value})}"


@page
def overview(request: HttpRequest) -> HttpResponse:
    """What needs attention, and how the service is."""
    now, viewer = now_ms(), viewer_of(request)
    parts = bridge.call(lambda runtime: runtime.get(OverviewParts).read(viewer))
    config = settings.KCOORD
    attention, counted, activity, behind = (
        parts.get(name, Part()) for name in ("attention", "counts", "activity", "behind")
    )
    found = attention.value and attended(attention.value, thresholds(config).flapping_window_ms, now)
    groups = None if counted.value is None else counts(counted.value)
    return show(
        request,
        "pages/overview/overview",
        {
            "now": now,
            "attention": attention,
            "found": found,
            "all_url": f"{reverse('frontend:groups')}?{urlencode([('verdict', kind.value) for kind in KINDS])}",
            "counts": counted,
            "groups": groups,
            "activity": activity,
            "behind": behind,
            "furthest": getattr(behind.value, "furthest", ()) or (),
            "furthest_url": _list_url("sort", GroupSort.TIME_LAG_DESCENDING.value),
            "lag": behind.value and behind.value.total,
            "stale_ms": config.int("lag.stale.ms"),
            "sees_cluster": viewer.sees_cluster,
            "rates": rates(activity.value or (), now),
            "trend": trend(activity.value or (), now),
            "sees_all": viewer.sees_all,
            "health": health(with_judged_at(parts), now, limits_of(config), part_urls()),
            "base_url": config.str("advertised.url") or f"{request.scheme}://{request.get_host()}",
            "announcement": announcement(found, groups),
            **elsewhere(viewer, WORST_FIRST),
            "stream": reverse("frontend:live"),
            "pace": Pace(every_ms=5_000, gap_ms=2_000),
        },
        section="overview",
        title="Overview",
    )


TYPES = ("classic", "consumer", "share")


@dataclass(frozen=True, slots=True)
class Need:
    """A group that needs attention: its worst verdict, where to look, and what else is wrong with it.

    `repeats`: what to do has just been said of the group before it. `call`: whom to call.
    """

    group_id: str
    worst: VerdictLine
    others: Sequence[VerdictLine]
    repeats: bool
    call: Sequence[Label] = ()
    held: bool = False


@dataclass(frozen=True, slots=True)
class Tally:
    """How many groups there are of a kind, and the list of them."""

    state: State
    count: int
    url: str


@dataclass(frozen=True, slots=True)
class Cause(Tally):
    """Groups with one kind of verdict. `needs`: those of which it is the worst, as far as they are named."""

    needs: Sequence[Need]


@dataclass(frozen=True, slots=True)
class Attended:
    """What needs attention, the worst cause first. `more`: groups not named; `judged_at`: as of when, None if never."""

    causes: Sequence[Cause]
    total: int
    more: int
    judged_at: Millis | None


@dataclass(frozen=True, slots=True)
class Counts:
    """Groups by state and by type. `types`: name, count and list."""

    total: int
    states: Sequence[Tally]
    types: Sequence[tuple[str, int, str]]


def attended(needy: Needy, window_ms: Millis, now: Millis = 0) -> Attended:
    """What needs attention. `window_ms`: as in `lines`."""
    by_cause: dict[State, list[Need]] = {}
    found = needy.found
    for group in found.groups:
        names, held = needy.names.get(group.group_id, {}), is_held(group.held_until, now)
        worst, *others = lines(group.verdicts, group.state, window_ms=window_ms, names=names, held=held)
        needs = by_cause.setdefault(worst.state, [])
        repeats = bool(needs) and needs[-1].worst.advice == worst.advice
        call = whom_to_call(needy.labels.get(group.group_id, {}))
        needs.append(Need(group.group_id, worst, others, repeats, call, held))
    causes = [
        Cause(shown, found.counts[kind], _list_url("verdict", kind.value), by_cause.get(shown, ()))
        for kind, shown in KINDS.items()
        if found.counts.get(kind)
    ]
    more = max(found.total - len(found.groups), 0)
    return Attended(causes, found.total, more, judged_at(found.judged_at))


def counts(rows: Sequence[tuple[str, str, int]]) -> Counts:
    """How many groups there are, by (type, state, count)."""
    by_state: dict[str, int] = {}
    by_type = dict.fromkeys(TYPES, 0)
    for kind, name, count in rows:
        by_state[name] = by_state.get(name, 0) + count
        by_type[kind] = by_type.get(kind, 0) + count
    known = [shown.name for shown in STATES]
    names = [*known, *(name for name in by_state if name not in known)]
    return Counts(
        sum(by_state.values()),
        [Tally(state(name), by_state.get(name, 0), _list_url("state", name)) for name in names],
        [(kind, count, _list_url("type", kind)) for kind, count in by_type.items()],
    )


def rates(minutes: Sequence[Minute], now: Millis) -> list[Chart]:
    """Commits and rebalances per minute during the last hour."""
    return [
        per_minute("Offsets committed", minutes, now, lambda minute: round(minute.commits)),
        per_minute("Rebalances", minutes, now, lambda minute: round(minute.rebalances)),
    ]


def trend(minutes: Sequence[Minute], now: Millis) -> Chart:
    """Lag of all groups during the last hour."""
    return per_minute("Lag", minutes, now, lambda minute: minute.lag, bars=False)


def per_minute(
    name: str, minutes: Sequence[Minute], now: Millis, value: Callable[[Minute], int | None], *, bars: bool = True
) -> Chart:
    """A value of each minute of the last hour.

    Checks are a little late: a minute of the drawing has the value of the time in which its middle is.
    """
    first = now - ACTIVITY_MS
    points, found = [], iter(minutes)
    minute = next(found, None)
    for middle in range(first + MINUTE // 2, now, MINUTE):
        while minute is not None and minute.at < middle:
            minute = next(found, None)
        if minute is not None and minute.since < middle and (read := value(minute)) is not None:
            points.append(Point(middle, read))
    series = [Series(name, points)]
    return chart(series, first=first, last=now, step_ms=MINUTE, zone=zones.current(), bars=bars, now=now)


def announcement(found: Attended | None, groups: Counts | None) -> str:
    """What a screen reader announces when it changes; "" if the viewer sees no groups."""
    if found is None or found.judged_at is None or (groups is not None and not groups.total):
        return ""
    if not found.total:
        return "Nothing needs attention"
    return f"{found.total:,} {'group needs' if found.total == 1 else 'groups need'} attention"
