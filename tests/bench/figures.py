"""What a run found: figures, each beside its yardstick of the same run, and points of curves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.bench.targets import TARGETS, Target

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table.

    `yardstick` names what `value` was measured beside, `base` is its value in the same unit, and `details` what else is
    known of the load: p50_ms, p99_ms, per_cpu_s, server_us, postgres_us, backends_us, wal_bytes, generator_us, ….
    """

    key: str
    name: str
    value: float
    unit: str
    yardstick: str
    base: float
    details: Mapping[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """To the yardstick; None where that is nothing."""
        return self.value / self.base if self.base else None

    @property
    def target(self) -> Target | None:
        """What it has to reach."""
        return TARGETS.get(self.key)

    @property
    def reached(self) -> bool | None:
        """None: there is no target."""
        target = self.target
        if target is None:
            return None
        found = self.ratio if target.is_ratio else self.value
        return found is not None and target.is_reached_by(found)


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a curve: CPU microseconds of one operation where `x` is what the curve is over."""

    curve: str
    x: float
    server_us: float
    postgres_us: float
    details: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Results:
    """Everything that a run found. `machine`: what it ran on; `missing`: section -> why it has no figures."""

    machine: Mapping[str, Any] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    constants: dict[str, float] = field(default_factory=dict)
    checks: list[dict[str, Any]] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def figure(self, key: str) -> Figure | None:
        """By its key."""
        return next((figure for figure in self.figures if figure.key == key), None)

    def curve(self, name: str) -> list[Point]:
        """Its points, in order."""
        return sorted((point for point in self.points if point.curve == name), key=lambda point: point.x)

    def again(self, later: Results) -> Results:
        """With the sections that a later run measured again, each whole, in place of the earlier ones.

        `machine` names them: figures of two runs must not look like those of one.
        """
        newer = {figure.key: figure for figure in later.figures}
        figures = [newer.pop(figure.key, figure) for figure in self.figures]
        curves = {point.curve for point in later.points}
        run = {name: later.machine[name] for name in ("at", "revision", "load_before")}
        runs = [*self.machine.get("again", ()), run | {"sections": list(later.seconds)}]
        return replace(
            self,
            machine={**self.machine, "again": runs},
            figures=[*figures, *newer.values()],
            points=[*(point for point in self.points if point.curve not in curves), *later.points],
            missing={**{k: v for k, v in self.missing.items() if k not in later.seconds}, **later.missing},
            seconds={**self.seconds, **later.seconds},
        )

    def as_json(self) -> str:
        """The whole of it; ratio and target of each figure are written for other readers, and not read back."""
        whole = asdict(self) | {"format": FORMAT, "figures": [_figure(figure) for figure in self.figures]}
        return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"

    @staticmethod
    def read(path: Path) -> Results:
        """From a file that `as_json` made. Raises ValueError for another format."""
        whole = json.loads(path.read_text())
        if whole.pop("format", None) != FORMAT:
            raise ValueError(f"{path}: not a file that `python -m tests.bench --json` wrote, or of another version")
        figures = [Figure(**{name: one[name] for name in _FIELDS}) for one in whole.pop("figures")]
        return Results(**{**whole, "figures": figures, "points": [Point(**point) for point in whole["points"]]})


_FIELDS = ("key", "name", "value", "unit", "yardstick", "base", "details")


def _figure(figure: Figure) -> dict[str, Any]:
    target = figure.target
    return asdict(figure) | {
        "ratio": figure.ratio,
        "target": None if target is None else str(target),
        "reached": figure.reached,
    }


def shown(value: float) -> str:
    """Three digits that count, and none after the point from a hundred on."""
    if value == 0:
        return "0"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 0.995 else 3
    return f"{value:,.{digits}f}"


COLUMNS = ("p50_ms", "p99_ms", "per_cpu_s", "server_us", "postgres_us", "generator_us", "wal_bytes", "rss_mb")
TITLES = ("p50 ms", "p99 ms", "per CPU s", "server µs", "Postgres µs", "generator µs", "WAL bytes", "RSS MB")


def rows(figures: Iterable[Figure]) -> list[list[str]]:
    """The table: a row for each figure."""
    found = []
    for figure in figures:
        ratio = "" if figure.ratio is None else shown(figure.ratio)
        target = "" if figure.target is None else str(figure.target)
        mark = {None: "", True: "reached", False: "missed"}[figure.reached]
        more = [shown(figure.details[name]) if name in figure.details else "" for name in COLUMNS]
        found.append(
            [figure.name, f"{shown(figure.value)} {figure.unit}", ratio, figure.yardstick, target, mark, *more]
        )
    return found


HEAD = ["figure", "value", "ratio", "to", "at least, or at most", "", *TITLES]


def table(figures: Iterable[Figure]) -> str:
    """For a terminal."""
    lines = [HEAD, *rows(figures)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(HEAD))]
    left = (0, 3, 4, 5)
    return "\n".join(
        "  ".join(
            text.ljust(width) if place in left else text.rjust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
