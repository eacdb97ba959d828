"""The overview as text, colours and bars. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from frontend.labels import Label, whom_to_call
from frontend.overview.health import judged_at
from frontend.overview.parts import ACTIVITY_MS, Needy
from frontend.rows import Millis
from frontend.states import STATES, State, is_held, state
from frontend.verdicts.presenters import KINDS, VerdictLine, lines
from frontend.wording import number
from offsets.verdicts.reads import Minute

BARS = 60
WIDTH, HEIGHT = 600, 56
"""Of a drawing, in its own coordinates; the page stretches it."""
TYPES = ("classic", "consumer", "share")


@dataclass(frozen=True, slots=True)
class Need:
    """A group that needs attention: its worst verdict, where to look, and what else is wrong with it.

    `repeats`: the group before it has the same kind of verdict, so what to do has just been said. `call`: whom to call.
    """

    group_id: str
    url: str
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
class Attended:
    """What needs attention. `more`: groups that are not named. `judged_at`: as of when, None if never."""

    needs: Sequence[Need]
    total: int
    more: int
    tallies: Sequence[Tally]
    judged_at: Millis | None


@dataclass(frozen=True, slots=True)
class Counts:
    """Groups by state and by type. `types`: name, count and list."""

    total: int
    states: Sequence[Tally]
    types: Sequence[tuple[str, int, str]]


@dataclass(frozen=True, slots=True)
class Bar:
    """A minute, in the coordinates of the drawing."""

    x: float
    y: float
    width: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Rate:
    """Something that happens so often per minute. `latest` None: not known yet. `summary`: for who cannot see bars."""

    name: str
    latest: int | None
    bars: Sequence[Bar]
    summary: str


def attended(
    needy: Needy,
    group_url: Callable[[str], str],
    list_url: Callable[[str, str], str],
    window_ms: Millis,
    now: Millis = 0,
) -> Attended:
    """What needs attention. `list_url`: of the groups with a value of a filter. `window_ms`: as in `lines`."""
    needs: list[Need] = []
    found = needy.found
    for group in found.groups:
        worst, *others = lines(
            group.verdicts,
            group.state,
            window_ms=window_ms,
            names=needy.names.get(group.group_id, {}),
            held=is_held(group.held_until, now),
        )
        repeats = bool(needs) and needs[-1].worst.state is worst.state
        call = whom_to_call(needy.labels.get(group.group_id, {}))
        held = is_held(group.held_until, now)
        needs.append(Need(group.group_id, group_url(group.group_id), worst, others, repeats, call, held))
    tallies = [
        Tally(shown, found.counts[kind], list_url("verdict", kind.value))
        for kind, shown in KINDS.items()
        if found.counts.get(kind)
    ]
    more = max(found.total - len(needs), 0)
    return Attended(needs, found.total, more, tallies, judged_at(found.judged_at))


def counts(rows: Sequence[tuple[str, str, int]], list_url: Callable[[str, str], str]) -> Counts:
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
        [Tally(state(name), by_state.get(name, 0), list_url("state", name)) for name in names],
        [(kind, count, list_url("type", kind)) for kind, count in by_type.items()],
    )


def rates(minutes: Sequence[Minute], now: Millis) -> list[Rate]:
    """Commits and rebalances per minute during the last hour."""
    return [
        _rate("Offsets committed", minutes, now, lambda minute: minute.commits),
        _rate("Rebalances", minutes, now, lambda minute: minute.rebalances),
    ]


def _rate(name: str, minutes: Sequence[Minute], now: Millis, value: Callable[[Minute], float]) -> Rate:
    top = max((value(minute) for minute in minutes), default=0) or 1
    width = WIDTH / BARS
    bars = []
    for minute in minutes:
        height = max(HEIGHT * value(minute) / top, 1.5 if value(minute) else 0)
        x = WIDTH * (1 - (now - minute.at) / ACTIVITY_MS) - width
        title = f"{number(round(value(minute)))} a minute"
        bars.append(Bar(round(x + 1, 1), round(HEIGHT - height, 1), round(width - 2, 1), round(height, 1), title))
    latest = round(value(minutes[-1])) if minutes else None
    summary = f"At most {number(round(top))} a minute in the last hour" if minutes else ""
    return Rate(name, latest, bars, summary)


def announcement(found: Attended | None, groups: Counts | None) -> str:
    """What a screen reader announces when it changes; "" if the viewer sees no groups."""
    if found is None or found.judged_at is None or (groups is not None and not groups.total):
        return ""
    if not found.total:
        return "Nothing needs attention"
    return f"{found.total:,} {'group needs' if found.total == 1 else 'groups need'} attention"
