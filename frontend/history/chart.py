"""Values over time as an SVG with axes. Pure: numbers in, paths and ticks out; no script and no style is needed.

A view makes a `Chart` with `chart()` and includes `frontend/chart.html` with it:

    {% include "frontend/chart.html" with chart=lag_chart id="lag" title="Lag" %}

The drawing has coordinates of its own (`WIDTH` x `HEIGHT`) that are stretched to the page; texts are placed by shares
of the axes outside of them, so they keep their size. A table below the drawing, folded, has the same values. Values
are `COUNT` (records, commits, rebalances) or `LENGTH` (ms).

For one series without axes, in a cell of a table, there is `spark()`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo

from frontend.history.ticks import (
    Tick,
    count_labels,
    count_ticks,
    instants,
    length_labels,
    length_ticks,
    time_ticks,
    written,
)
from frontend.rows import Millis
from frontend.wording import duration, number, plural, zone_name

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
    """A line of the chart. Its points are in the order of time."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened at an instant: a vertical line over the drawing."""

    at: Millis
    title: str


@dataclass(frozen=True, slots=True)
class Line:
    """A series as paths. `number`: which one, from 0; its colour and dashes."""

    name: str
    number: int
    path: str
    area: str
    summary: str


@dataclass(frozen=True, slots=True)
class Spot:
    """A part of the drawing that can be pointed at; `title` has the values there."""

    x: float
    width: float
    title: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: the largest value of each series in the time from `at` on; a dash if it has none."""

    at: str
    values: Sequence[str]


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing with axes. `first` and `last` bound its time (ms); `zone`: the name of the time zone of its texts."""

    first: Millis
    last: Millis
    zone: str
    lines: Sequence[Line]
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    marks: Sequence[tuple[float, str]]
    spots: Sequence[Spot]
    rows: Sequence[Row]

    @property
    def has_long_labels(self) -> bool:
        """Labels of values need more room than usual, such as `100 k days`."""
        return any(len(tick.label) >= LONG_LABEL for tick in self.y_ticks)

    @property
    def empty(self) -> bool:
        """There is no value to draw."""
        return not any(line.path for line in self.lines)

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
    of_steps: bool = False,
) -> Chart:
    """Draw values over [first, last] (ms). `step_ms`: the usual distance of two points; `kind`: COUNT or LENGTH.

    `by_day`: each point stands for the day in which it is, and the page has a table of the days already. `of_steps`:
    each point stands for a step of which it is the largest value, so that the smallest value is not known.
    """
    top = max((point.value for one in series for point in one.points), default=0)
    values = count_ticks(top) if kind == COUNT else length_ticks(top)
    labels = count_labels(values) if kind == COUNT else length_labels(values)
    frame = _Frame(first, max(last, first + 1), values[-1], step_ms, kind, zone, by_day, of_steps)
    return Chart(
        first=first,
        last=last,
        zone=zone_name(zone, first),
        lines=[_line(one, index, frame) for index, one in enumerate(series)],
        x_ticks=time_ticks(first, last, zone),
        y_ticks=[Tick(1 - value / values[-1], label) for value, label in zip(values, labels, strict=True)],
        marks=_marks(marks, frame),
        spots=_spots(series, frame),
        rows=() if by_day else _rows(series, frame),
    )


def spark(points: Sequence[Point], *, first: Millis, last: Millis, step_ms: Millis) -> Line:
    """One series without axes, from 0 to its largest value."""
    top = max((point.value for point in points), default=0)
    frame = _Frame(first, max(last, first + 1), max(top, 1), step_ms, COUNT, UTC, of_steps=True)
    return _line(Series("", points), 0, frame)


@dataclass(frozen=True, slots=True)
class _Frame:
    """The axes: times (ms), the value at the upper edge, the usual distance of points, what values are."""

    first: Millis
    last: Millis
    top: int
    step_ms: Millis
    kind: str
    zone: tzinfo
    by_day: bool = False
    of_steps: bool = False

    def x(self, at: Millis) -> float:
        return WIDTH * min(max((at - self.first) / (self.last - self.first), 0.0), 1.0)

    def y(self, value: int) -> float:
        return HEIGHT * (1 - value / self.top)

    def when(self, at: Millis) -> str:
        return written(at, self.zone)[:10] if self.by_day else written(at, self.zone)

    def text(self, value: int) -> str:
        return number(value) if self.kind == COUNT else duration(value)


def _line(one: Series, index: int, frame: _Frame) -> Line:
    path, area = [], []
    for run in _runs(one.points, frame.step_ms * (LONGEST_GAP + 0.5)):
        spots = [(frame.x(point.at), frame.y(point.value)) for point in run]
        if len(spots) == 1:
            (x, y), half = spots[0], max(WIDTH * frame.step_ms / (frame.last - frame.first) / 2, 2.0)
            spots = [(max(x - half, 0.0), y), (min(x + half, float(WIDTH)), y)]
        drawn = " L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
        path.append(f"M{drawn}")
        area.append(f"M{spots[0][0]:.1f} {HEIGHT} L{drawn} L{spots[-1][0]:.1f} {HEIGHT} Z")
    return Line(one.name, index, " ".join(path), " ".join(area), _summary(one.points, frame))


def _runs(points: Sequence[Point], longest: float) -> list[list[Point]]:
    runs: list[list[Point]] = []
    for point in points:
        if runs and point.at - runs[-1][-1].at <= longest:
            runs[-1].append(point)
        else:
            runs.append([point])
    return runs


def _summary(points: Sequence[Point], frame: _Frame) -> str:
    if not points:
        return "no samples"
    values = [point.value for point in points]
    told = "from {} to {}, at most {}".format(*map(frame.text, (values[0], values[-1], max(values))))
    return told if frame.of_steps else f"{told}, at least {frame.text(min(values))}"


def _marks(marks: Iterable[Mark], frame: _Frame) -> list[tuple[float, str]]:
    """Marks that would be drawn over each other are one, which says how many there are."""
    by_place: dict[int, list[Mark]] = {}
    for mark in marks:
        if frame.first <= mark.at <= frame.last:
            by_place.setdefault(int(frame.x(mark.at) * MOST_MARKS / WIDTH), []).append(mark)
    drawn = []
    for there in by_place.values():
        title = f"{written(there[0].at, frame.zone)}: {there[0].title}"
        more = len(there) - 1
        drawn.append((frame.x(there[0].at), f"{title}, and {plural(more, 'other')} close to it" if more else title))
    return drawn


def _spots(series: Sequence[Series], frame: _Frame) -> list[Spot]:
    at: dict[Millis, list[str]] = {}
    for one in series:
        name = f"{one.name}: " if len(series) > 1 else ""
        for point in one.points:
            at.setdefault(point.at, []).append(name + frame.text(point.value))
    width = WIDTH * frame.step_ms / (frame.last - frame.first)
    spots = []
    for instant, told in sorted(at.items()):
        x = max(frame.x(instant) - width / 2, 0.0)
        spots.append(Spot(x, min(width, WIDTH - x), f"{frame.when(instant)}: {', '.join(told)}"))
    return spots


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
