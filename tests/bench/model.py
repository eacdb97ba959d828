"""The capacity model: a few constants fitted to a run, and how far its predictions are from what was measured.

CPU is counted in microseconds, of servers and of Postgres apart, because Postgres scales apart. Points that a constant
was fitted to are marked; the others are predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.bench.figures import Point, Results
from tests.bench.sections.capacity import MIXED

BOUND = 0.2
FITTED = (1, 5, 50)
"""Partitions of the commits that the constants are fitted to; the others are predicted."""


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line: `first` + `each` * x."""

    first: float
    each: float

    def at(self, x: float) -> float:
        """Its value there."""
        return self.first + self.each * x


def fit(points: Sequence[tuple[float, float]]) -> Line:
    """The line with the smallest squares of relative errors; through one point it is flat. None may be negative."""
    assert points, "no point to fit a line to"
    if len({x for x, _ in points}) == 1:
        return Line(sum(y for _, y in points) / len(points), 0.0)
    weights = [1 / max(y, 1e-9) ** 2 for _, y in points]
    total = sum(weights)
    x_mean = sum(w * x for w, (x, _) in zip(weights, points, strict=True)) / total
    y_mean = sum(w * y for w, (_, y) in zip(weights, points, strict=True)) / total
    above = sum(w * (x - x_mean) * (y - y_mean) for w, (x, y) in zip(weights, points, strict=True))
    each = above / sum(w * (x - x_mean) ** 2 for w, (x, _) in zip(weights, points, strict=True))
    return Line(y_mean - each * x_mean, each)


@dataclass(frozen=True, slots=True)
class Check:
    """A measured value beside what the model says; `unit` of both."""

    name: str
    unit: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """How far the prediction is off, as a part of what was measured."""
        return self.predicted / self.measured - 1 if self.measured else 0.0

    @property
    def is_within(self) -> bool:
        """Whether that is near enough."""
        return abs(self.error) <= BOUND


def _ends(points: Sequence[Point], value: Callable[[Point], float]) -> Line:
    """Through the smallest and the largest point."""
    return fit([(point.x, value(point)) for point in (points[0], points[-1])])


def constants_of(results: Results) -> dict[str, float]:
    """What the model is made of; what was not measured is left out."""
    found: dict[str, float] = {}
    beat, fetch = results.figure("heartbeats.classic"), results.figure("fetches")
    for name, figure in (("heartbeat", beat), ("fetch_of_5", fetch)):
        if figure is not None:
            found |= {f"{name}_{side}": figure.details[side] for side in ("server_us", "postgres_us")}
    if beat is not None and "wal_bytes" in beat.details:
        found["heartbeat_wal_bytes"] = beat.details["wal_bytes"]
    commits = [point for point in results.curve("partitions") if point.x in FITTED]
    if len(commits) > 1:
        for side, value in _SIDES.items():
            line = fit([(point.x, value(point)) for point in commits])
            found |= {f"commit_{side}": line.first, f"offset_{side}": line.each}
    people = results.curve("members")
    if len(people) > 1:
        memory = _ends(people, lambda point: point.details["rss_mb"])
        found |= {"server_mb": memory.first, "member_kb": 1_000 * memory.each}
        for side in ("server_us", "postgres_us"):
            line = _ends(people, lambda point, side=side: point.details[f"idle_{side}_s"])  # type: ignore[misc]
            found |= {f"idle_{side}_s": line.first, f"idle_member_{side}_s": line.each}
    for point in results.curve("tick"):
        found |= {"tick_server_us": point.server_us, "tick_postgres_us": point.postgres_us}
    return found


_SIDES: Mapping[str, Callable[[Point], float]] = {
    "server_us": lambda point: point.server_us,
    "postgres_us": lambda point: point.postgres_us,
    "wal_bytes": lambda point: point.details.get("wal_bytes", 0.0),
}


def checks_of(results: Results, constants: Mapping[str, float]) -> list[Check]:
    """The points of this run that were not fitted, beside the model."""
    found: list[Check] = []

    def check(name: str, unit: str, measured: float, *names: tuple[float, str]) -> None:
        """The prediction is the sum of these constants, each so many times."""
        if all(constant in constants for _, constant in names):
            predicted = sum(times * constants[constant] for times, constant in names)
            found.append(Check(name, unit, measured, predicted))

    def cpu(name: str, point: Point, *names: tuple[float, str]) -> None:
        both = [(times, f"{one}_{side}") for side in ("server_us", "postgres_us") for times, one in names]
        check(name, "µs", point.server_us + point.postgres_us, *both)

    for point in results.curve("partitions"):
        if point.x not in FITTED:
            cpu(f"commit of {point.x:.0f} offsets", point, (1, "commit"), (point.x, "offset"))
            if "wal_bytes" in point.details:
                wal = point.details["wal_bytes"]
                check(f"WAL of it, {point.x:.0f} offsets", "bytes", wal, (1, "commit_wal_bytes"), (point.x, "offset_wal_bytes"))
    for point in results.curve("mixed"):
        whole = sum(share for _, share in MIXED)
        share = {kind: number / whole for kind, number in MIXED}
        parts = (share["heartbeat"], "heartbeat"), (share["fetch"], "fetch_of_5")
        cpu("mixed load, a request", point, *parts, (share["commit"], "commit"), (5 * share["commit"], "offset"))
    for point in results.curve("members"):
        cpu(f"heartbeat, {point.x:,.0f} members", point, (1, "heartbeat"))
    for point in results.curve("group size"):
        cpu(f"heartbeat, groups of {point.x:,.0f}", point, (1, "heartbeat"))
    for point in results.curve("processes"):
        cpu(f"heartbeat, {point.x:.0f} processes", point, (1, "heartbeat"))
    for point in results.curve("members")[1:-1]:
        memory = point.details["rss_mb"]
        check(f"memory, {point.x:,.0f} members", "MB", memory, (1, "server_mb"), (point.x / 1_000, "member_kb"))
    return found


def table(checks: Sequence[Check]) -> str:
    """For a terminal."""
    lines = [f"{'the model and what was measured':36} {'measured':>12} {'predicted':>12} {'error':>8}"]
    for one in checks:
        mark = "" if one.is_within else f"  above {BOUND:.0%}"
        values = f"{one.measured:12,.1f} {one.predicted:12,.1f} {one.error:+8.1%}"
        lines.append(f"{f'{one.name}, {one.unit}':36} {values}{mark}")
    return "\n".join(lines)
