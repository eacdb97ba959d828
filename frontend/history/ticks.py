"""Where the ticks of an axis are, and what they say. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from frontend.rows import Millis
from frontend.wording import duration, number
from kcoord.resets.instants import clock

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
TIME_STEPS = (
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7, 14, 28, 56, 112, 364)),
)
"""Distances of ticks on an axis of time, in ms: those up to 12 h divide a day."""
LENGTH_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, *TIME_STEPS)
"""Distances of ticks on an axis of lengths of time, in ms."""
MOST_UP = 5


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick. `share`: where on the axis, from 0 to 1. `label`: its value as text. `long`: with date and time."""

    share: float
    label: str
    long: str = ""


def instants(first: Millis, last: Millis, zone: tzinfo, most: int) -> list[Millis]:
    """Round instants of `zone` within [first, last], at most `most` if the span is shorter than `most` years."""
    step = next((step for step in TIME_STEPS if (last - first) / step <= most - 1), TIME_STEPS[-1])
    days = max(step // DAY, 1)
    day = _local(first, zone).date()
    day -= timedelta(days=day.toordinal() % days)
    found: set[Millis] = set()
    while (midnight := _instant(day, 0, zone)) <= last:
        for offset in _offsets(first - midnight, last - midnight, step, day, zone) if step < DAY else (0,):
            if first <= (at := _instant(day, offset, zone) if offset else midnight) <= last:
                found.add(at)
        day += timedelta(days=days)
    return sorted(found)


def _offsets(first: int, last: int, step: Millis, day: date, zone: tzinfo) -> range:
    """Times of day among which all are that lie between `first` and `last` ms after its midnight."""
    length = _instant(day + timedelta(days=1), 0, zone) - _instant(day, 0, zone)
    change = abs(length - DAY)  # of the clocks, on this day
    return range(max(first - change, 0) // step * step, min(last + change + 1, DAY), step)


def time_ticks(first: Millis, last: Millis, zone: tzinfo = UTC, most: int = 10) -> list[Tick]:
    """The ticks of an axis of time: `03:00`, at midnight `21 Nov`."""
    found = instants(first, last, zone, most)
    seconds = any(at % MINUTE for at in found)
    length = max(last - first, 1)
    return [Tick((at - first) / length, _label(at, zone, seconds), written(at, zone)) for at in found]


def written(at: Millis, zone: tzinfo) -> str:
    """An instant to the second: `2025-11-21 03:30:12`."""
    return f"{_local(at, zone):%Y-%m-%d %H:%M:%S}"


def count_ticks(most: int) -> list[int]:
    """The values of ticks from 0 to the first that is at least `most`: 0, 500, 1000, 1500."""
    step = 1
    while step * (MOST_UP - 1) < most:
        step = next(n * 10 ** (len(str(step)) - 1) for n in (2, 5, 10) if n * 10 ** (len(str(step)) - 1) > step)
    return list(range(0, max(-(-most // step), 1) * step + 1, step))


def length_ticks(most: Millis) -> list[Millis]:
    """As `count_ticks`, in steps that are round in units of time."""
    step = next((step for step in LENGTH_STEPS if step * (MOST_UP - 1) >= most), 0) if most else SECOND
    if not step:
        return [days * DAY for days in count_ticks(-(-most // DAY))]
    return list(range(0, max(-(-most // step), 1) * step + 1, step))


def count_labels(values: Sequence[int]) -> list[str]:
    """Labels that differ from each other: `1.5 M`, `20 k`, `800`."""
    return [_short(value, values[-1]) for value in values]


def length_labels(values: Sequence[Millis]) -> list[str]:
    """`0`, `30 s`, `1 min 30 s`; days as `count_labels` writes numbers: `100 k days`."""
    if values[-1] >= 10_000 * DAY:
        return [f"{_short(value // DAY, values[-1] // DAY)} days" if value else "0" for value in values]
    return [duration(value) if value else "0" for value in values]


def _short(value: int, top: int) -> str:
    for unit, size in (("E", 10**18), ("P", 10**15), ("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if top >= size and top >= 10_000:
            whole, rest = divmod(value, size)
            decimals = f"{rest / size:.3f}".rstrip("0")[1:].rstrip(".") if rest else ""
            return f"{number(whole)}{decimals} {unit}" if value else "0"
    return number(value)


def _local(at: Millis, zone: tzinfo) -> datetime:
    return clock(at, zone)


def _instant(day: date, offset: Millis, zone: tzinfo) -> Millis:
    """The instant at which clocks show `offset` ms after the midnight of a day; when clocks go back, the first."""
    clock = datetime.combine(day, time(), zone) + timedelta(milliseconds=offset)  # in the time of the clock
    return round(clock.timestamp() * 1000)


def _label(at: Millis, zone: tzinfo, seconds: bool) -> str:
    clock = _local(at, zone)
    if (clock.hour, clock.minute, clock.second) == (0, 0, 0):
        return f"{clock.day} {clock:%b}"
    return f"{clock:%H:%M:%S}" if seconds else f"{clock:%H:%M}"
