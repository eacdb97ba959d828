"""Values over time as an SVG with axes. Pure: numbers in, paths and ticks out; no script and no style is needed.

A view makes a `Chart` with `chart()` and includes `frontend/ui/chart.html` with it:

    {% include "frontend/ui/chart.html" with chart=lag_chart id="lag" title="Lag" %}

The drawing has coordinates of its own (`WIDTH` x `HEIGHT`) that are stretched to the page; texts are placed by shares
of the axes outside of them, so they keep their size. A table below the drawing, folded, has the same values, and
static/frontend/crosshair.js says them at one instant on all plots of a page. Values are `COUNT` (records, commits,
rebalances) or `LENGTH` (ms).

For one series without axes, in a cell of a table, there is `spark()`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from frontend.ui.rows import Millis
from frontend.ui.wording import duration, number, plural, zone_name
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


WIDTH, HEIGHT = 1_000, 200
TABLE_ROWS = 25
COUNT, LENGTH = "count", "length"
"""What values are: numbers of something, or lengths of time in ms."""
LONGEST_GAP = 3
"""Steps without a value that a line bridges: thinned-out and late samples are not an outage."""
MOST_MARKS = 200
LONG_LABEL = 8
"""Characters of a label for which the usual room beside the drawing does not suffice."""


@dataclass(frozen=True, slots=True)
class Point:
    """A value at an instant."""

    at: Millis
    value: int


@dataclass(frozen=True, slots=True)
class Series:
    """A line of the chart. Its points are in the order of time. `until` (ms): when the last was read, if known."""

    name: str
    points: Sequence[Point]
    until: Millis | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened at an instant: a vertical line over the drawing. `kind`: a class of its style."""

    at: Millis
    title: str
    kind: str = "rebalance"


@dataclass(frozen=True, slots=True)
class Line:
    """A series as paths. `number`: which one, from 0; its colour and dashes. `values`: the text of each step.

    They are joined by `|`, nothing for a step without a value.
    """

    name: str
    number: int
    path: str
    area: str
    summary: str
    values: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: the largest value of each series in the time from `at` on; a dash if it has none."""

    at: str
    values: Sequence[str]


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing with axes. `first` and `last` bound its time (ms); `zone`: the name of the time zone of its texts.

    `bars`: values are numbers of what happened in a step. `most`: each is the largest of its step. `unknown`: where the
    values of all series end too early, and the words; `before`: until where they are not read.
    """

    first: Millis
    last: Millis
    step_ms: Millis
    zone: str
    bars: bool
    most: bool
    unknown: Tick | None
    before: Tick | None
    lines: Sequence[Line]
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    marks: Sequence[tuple[float, str, str]]
    rows: Sequence[Row]

    @property
    def has_long_labels(self) -> bool:
        """Labels of values need more room than usual, such as `100 k days`."""
        return any(len(tick.label) >= LONG_LABEL for tick in self.y_ticks)

    @property
    def empty(self) -> bool:
        """There is no value to draw."""
        return not any(line.values for line in self.lines)

    @property
    def latest(self) -> str:
        """The last value of the first series; "" if it is not known."""
        return "" if self.unknown else self.lines[0].values.rsplit("|", 1)[-1]

    @property
    def steps(self) -> int:
        """How many steps there are to choose from."""
        return -(-(self.last - self.first) // self.step_ms)

    @property
    def heads(self) -> list[str]:
        """What the columns of the table are called."""
        return [line.name for line in self.lines] if len(self.lines) > 1 else ["Largest value"]

    @property
    def labelled_rows(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The rows of the table: the instant, and each value after the name of its column."""
        return [(row.at, list(zip(self.heads, row.values, strict=True))) for row in self.rows]

    @property
    def summary(self) -> str:
        """The drawing in words."""
        if len(self.lines) == 1:
            return self.lines[0].summary
        return "; ".join(f"{line.name}: {line.summary}" for line in self.lines)


def chart(
    series: Sequence[Series],
    *,
    first: Millis,
    last: Millis,
    step_ms: Millis,
    kind: str = COUNT,
    zone: tzinfo = UTC,
    marks: Iterable[Mark] = (),
    by_day: bool = False,
    bars: bool = False,
    most: bool = False,
    now: Millis | None = None,
    gap_ms: float = 0,
    since: Millis | None = None,
) -> Chart:
    """Draw values over [first, last] (ms), of steps of `step_ms`; `kind`: COUNT or LENGTH.

    A point stands for the step in which it is, so that the smallest value is not known. `most`: it is the largest of
    it. `bars`: it is the number of what happened in it. `by_day`: the same of days, of which the page has a table
    already. `gap_ms`: for how long there may be no value although they are read. `now` (ms): the rest is to come.
    `since` (ms): from when on values are read, if not from the beginning.
    """
    top = max((point.value for one in series for point in one.points), default=0)
    values = count_ticks(top) if kind == COUNT else length_ticks(top)
    labels = count_labels(values) if kind == COUNT else length_labels(values)
    gap, end = max((LONGEST_GAP + 0.5) * step_ms, gap_ms), max(last, first + 1)
    frame = _Frame(first, end, values[-1], step_ms, kind, zone, bars or by_day, gap, end if now is None else now)
    return Chart(
        first=first,
        last=last,
        step_ms=step_ms,
        zone=zone_name(zone, first),
        bars=frame.bars,
        most=most,
        unknown=_unknown(series, frame),
        before=None if since is None else Tick(frame.x(since) / WIDTH, "not read"),
        lines=[_line(one, index, frame) for index, one in enumerate(series)],
        x_ticks=time_ticks(first, last, zone),
        y_ticks=[Tick(1 - value / values[-1], label) for value, label in zip(values, labels, strict=True)],
        marks=_marks(marks, frame),
        rows=() if by_day else _rows(series, frame),
    )


def spark(points: Sequence[Point], *, first: Millis, last: Millis, step_ms: Millis) -> Line:
    """One series without axes, from 0 to its largest value; it is small, so that its coordinates are whole numbers."""
    top = max((point.value for point in points), default=0)
    gap = (LONGEST_GAP + 0.5) * step_ms
    frame = _Frame(first, max(last, first + 1), max(top, 1), step_ms, COUNT, UTC, False, gap, last, digits=0)
    return _line(Series("", points), 0, frame)


@dataclass(frozen=True, slots=True)
class _Frame:
    """The axes: times (ms), the value at the upper edge, steps, what values are. `gap_ms`: what no line bridges."""

    first: Millis
    last: Millis
    top: int
    step_ms: Millis
    kind: str
    zone: tzinfo
    bars: bool
    gap_ms: float
    now: Millis
    digits: int = 1

    def x(self, at: Millis) -> float:
        return WIDTH * min(max((at - self.first) / (self.last - self.first), 0.0), 1.0)

    def y(self, value: int) -> float:
        return HEIGHT * (1 - value / self.top)

    def spot(self, x: float, y: float) -> str:
        return f"{x:.{self.digits}f} {y:.{self.digits}f}"

    def slot(self, at: Millis) -> int:
        return (min(max(at, self.first), self.last - 1) - self.first) // self.step_ms

    def ends(self, one: Series) -> Millis | None:
        """When a series ends that is not up to date."""
        until = one.until or max((point.at for point in one.points), default=None)
        return until if until is not None and min(self.last, self.now) - until > self.gap_ms else None

    def text(self, value: int) -> str:
        return number(value) if self.kind == COUNT else duration(value)


def _line(one: Series, index: int, frame: _Frame) -> Line:
    path, area = [], []
    half = WIDTH * frame.step_ms / (frame.last - frame.first) * (0.4 if frame.bars else 0.5)
    for run in _runs(one.points, 0 if frame.bars else frame.gap_ms):
        spots = [(frame.x(point.at), frame.y(point.value)) for point in run]
        if len(spots) == 1:
            (x, y), half = spots[0], max(half, 0.5 if frame.bars else 2.0)
            y = min(y, HEIGHT - 2.0) if run[0].value else y  # one is seen beside thousands
            spots = [(max(x - half, 0.0), y), (min(x + half, float(WIDTH)), y)]
        drawn = " L".join(frame.spot(x, y) for x, y in spots)
        path.append(f"M{drawn}")
        area.append(f"M{frame.spot(spots[0][0], HEIGHT)} L{drawn} L{frame.spot(spots[-1][0], HEIGHT)} Z")
    texts = {frame.slot(point.at): frame.text(point.value) for point in one.points}
    values = "|".join(texts.get(slot, "") for slot in range(max(texts, default=-1) + 1))
    return Line(one.name, index, "" if frame.bars else " ".join(path), " ".join(area), _summary(one, frame), values)


def _unknown(series: Sequence[Series], frame: _Frame) -> Tick | None:
    ends = [frame.ends(one) for one in series if one.points]
    found = [at for at in ends if at is not None]
    if not found or len(found) < len(ends):
        return None
    at = max(found)
    said = written(at, frame.zone)
    same_day = said[:10] == written(min(frame.last, frame.now), frame.zone)[:10]
    return Tick(frame.x(at) / WIDTH, f"unknown since {said[11:16] if same_day else said[:16]}")


def _runs(points: Sequence[Point], longest: float) -> list[list[Point]]:
    runs: list[list[Point]] = []
    for point in points:
        if runs and point.at - runs[-1][-1].at <= longest:
            runs[-1].append(point)
        else:
            runs.append([point])
    return runs


def _summary(one: Series, frame: _Frame) -> str:
    if not one.points:
        return "no samples"
    values = [point.value for point in one.points]
    told = "from {} to {}, at most {}".format(*map(frame.text, (values[0], values[-1], max(values))))
    ends = frame.ends(one)
    least = f", at least {frame.text(min(values))}" if frame.bars else ""
    return f"{told}{least}{'' if ends is None else f', unknown since {written(ends, frame.zone)}'}"


def _marks(marks: Iterable[Mark], frame: _Frame) -> list[tuple[float, str, str]]:
    """Marks of one kind that would be drawn over each other are one, which says how many there are."""
    by_place: dict[tuple[int, str], list[Mark]] = {}
    for mark in marks:
        if frame.first <= mark.at <= frame.last:
            by_place.setdefault((int(frame.x(mark.at) * MOST_MARKS / WIDTH), mark.kind), []).append(mark)
    drawn = []
    for (_, kind), there in by_place.items():
        title, more = f"{written(there[0].at, frame.zone)}: {there[0].title}", len(there) - 1
        said = f"{title}, and {plural(more, 'other')} close to it" if more else title
        drawn.append((frame.x(there[0].at), kind, said))
    return drawn


def _rows(series: Sequence[Series], frame: _Frame) -> list[Row]:
    bounds = instants(frame.first, frame.last, frame.zone, TABLE_ROWS)
    if not bounds or bounds[0] > frame.first:
        bounds.insert(0, frame.first)
    largest: list[dict[int, int]] = [{} for _ in bounds]
    for index, one in enumerate(series):
        row = 0
        for point in one.points:
            while row + 1 < len(bounds) and bounds[row + 1] <= point.at:
                row += 1
            largest[row][index] = max(largest[row].get(index, 0), point.value)
    return [
        Row(written(at, frame.zone), [frame.text(found[i]) if i in found else "–" for i in range(len(series))])
        for at, found in zip(bounds, largest, strict=True)
        if found
    ]
