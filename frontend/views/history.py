"""The rebalances of a group: what triggered each, how long its phases took, and who came and went."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from frontend.history.episodes import CAUSES, HOUR_MS, Episode, unrest
from frontend.history.reads import Wanted, history
from frontend.rows import Millis
from frontend.views.groups import group_url, missing
from frontend.views.page import address, choice, cursor, cursor_address, instant, page, show, text
from frontend.wording import duration, plural
from kcoord.process import bridge
from kcoord.rest.paging import encode_cursor

BAR = 1_000
"""Width of the longest bar, in the coordinates of its drawing."""


@dataclass(frozen=True, slots=True)
class Part:
    """A phase in the bar of its episode. `running`: it is not over."""

    name: str
    x: float
    width: float
    length_ms: Millis
    running: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A rebalance as its row shows it."""

    episode: Episode
    trigger: str
    parts: tuple[Part, ...]
    length_ms: Millis
    events_url: str


@require_safe
@page
def group_rebalances(request: HttpRequest, group_id: str) -> HttpResponse:
    """The rebalances of a group, newest first; they outlive the group as long as its events are kept."""
    if "\0" in group_id:
        return missing(request, group_id)
    before = cursor(request, "before", int)
    chosen = choice(request, "cause", tuple(CAUSES))
    causes = frozenset(cause.value for cause in CAUSES[chosen][1]) if chosen else None
    wanted = Wanted(int(before[0]) if before else None, instant(request, "from"), instant(request, "to"), causes)
    found = bridge.call(lambda runtime: history(runtime.db, group_id, wanted))
    if not found.exists and not found.shown and wanted == Wanted():
        return missing(request, group_id)
    longest = max((episode.length_ms(found.now) for episode in found.shown), default=0)
    context = {
        "group_id": group_id,
        "group_url": group_url(group_id),
        "exists": found.exists,
        "now": found.now,
        "lines": [_line(group_id, episode, longest, found.now) for episode in found.shown],
        "unrest": _unrest(found.recent, found.now) if wanted.newest else "",
        "wanted": {name: text(request, name) for name in ("from", "to")} | {"cause": chosen},
        "causes": [("", "Any"), *((name, label.capitalize()) for name, (label, _) in CAUSES.items())],
        "filtered": bool(chosen or wanted.since or wanted.until),
        "clear_url": request.path,
        "newest_url": address(request, before=None) if before else None,
        "older_url": cursor_address(request, "before", found.older) if found.older else None,
    }
    return show(request, "rebalances", context, section="groups")


def _line(group_id: str, episode: Episode, longest: Millis, now: Millis) -> Line:
    length = episode.length_ms(now)
    phases = [(phase.name, phase.length_ms, False) for phase in episode.phases]
    if episode.ended is None:
        phases.append((_running(episode), max(length - sum(ms for _, ms, _ in phases), 0), True))
    parts, x = [], 0.0
    for name, length_ms, running in phases:
        width = BAR * length_ms / longest if longest else 0.0
        parts.append(Part(name, x, max(width, 2.0), length_ms, running))
        x += width
    events = f"{group_url(group_id)}/events?before={encode_cursor(episode.last_id + 1)}"
    return Line(episode, _capitalized(episode.trigger), tuple(parts), length, events)


def _capitalized(trigger: str) -> str:
    """As the beginning of a cell; an id at its beginning stays as it is."""
    return trigger[0].upper() + trigger[1:] if trigger.startswith(("the ", "subscribed ", "no ")) else trigger


def _running(episode: Episode) -> str:
    """The phase that an episode is in."""
    follows = {"joining": "assigning", "computing": "reconciling"}
    return follows.get(episode.phases[-1].name, "assigning") if episode.phases else "joining"


def _unrest(recent: tuple[Episode, ...], now: Millis) -> str:
    """The last hour in a sentence."""
    found = unrest(recent, now)
    if not found.count:
        return "No rebalance in the last hour."
    share = 100 * found.length_ms / HOUR_MS
    part = f"{share:.0f} %" if share >= 1 else "less than 1 %"
    unstable = f"for {duration(found.length_ms)} of it ({part}) the group had no stable assignment"
    return f"{plural(found.count, 'rebalance')} in the last hour: {unstable}."
