"""Lag over time as the points of an SVG. Pure: numbers in, paths out; no script draws anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frontend.offsets.rows import Bucket, Millis
from frontend.wording import duration, number, utc

WIDTH, HEIGHT = 960, 120
"""In the drawing's own coordinates; the page stretches it."""
LONGEST_GAP = 3
"""Slices without a sample that a line bridges: thinned-out and late samples are not an outage."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A slice that can be pointed at, in the coordinates of the drawing; `title` describes its values."""

    x: float
    width: float
    title: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A line and the area below it. `top`: the value at the upper edge. Without samples `line` is empty."""

    line: str
    area: str
    top: int
    spots: Sequence[Spot]
    summary: str

    @property
    def empty(self) -> bool:
        """Nothing to draw."""
        return not self.line


def plot(buckets: Sequence[Bucket], slices: int, first: Millis, last: Millis) -> Plot:
    """The plot of one series in chronological order."""
    top = nice(max((bucket.lag for bucket in buckets), default=0))
    runs = _runs(buckets)
    line, area = [], []
    for run in runs:
        points = [(_x(bucket.slice, slices), _y(bucket.lag, top)) for bucket in run]
        if len(points) == 1:
            (x, y), half = points[0], WIDTH / slices / 2
            points = [(x - half, y), (x + half, y)]
        drawn = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        line.append(f"M{drawn}")
        area.append(f"M{points[0][0]:.1f} {HEIGHT} L{drawn} L{points[-1][0]:.1f} {HEIGHT} Z")
    return Plot(
        line=" ".join(line),
        area=" ".join(area),
        top=top,
        spots=[_spot(bucket, slices, first, last) for bucket in buckets],
        summary=_summary(buckets),
    )


def nice(value: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50 … that is at least as large: where an axis ends."""
    if value <= 1:
        return 1
    power = int(10 ** (len(str(value)) - 1))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def _runs(buckets: Sequence[Bucket]) -> list[list[Bucket]]:
    runs: list[list[Bucket]] = []
    for bucket in buckets:
        if runs and bucket.slice - runs[-1][-1].slice <= LONGEST_GAP:
            runs[-1].append(bucket)
        else:
            runs.append([bucket])
    return runs


def _x(at: int, slices: int) -> float:
    return (at + 0.5) * WIDTH / slices


def _y(value: int, top: int) -> float:
    # A line on the very edge would be cut in half.
    return 2 + (HEIGHT - 4) * (1 - value / top)


def _spot(bucket: Bucket, slices: int, first: Millis, last: Millis) -> Spot:
    begins = first + (last - first) * bucket.slice // slices
    late = f", {duration(bucket.time_lag_ms)} behind" if bucket.time_lag_ms else ""
    return Spot(bucket.slice * WIDTH / slices, WIDTH / slices, f"{utc(begins)[:16]}: {number(bucket.lag)}{late}")


def _summary(buckets: Sequence[Bucket]) -> str:
    if not buckets:
        return "no samples yet"
    lags = [bucket.lag for bucket in buckets]
    return f"from {number(lags[0])} to {number(lags[-1])}, at most {number(max(lags))}, at least {number(min(lags))}"
