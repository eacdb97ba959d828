"""The plots of docs/performance.md, as SVG that reads on light and dark pages: one measure each, axes with units."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.figures import Point, Results
from tests.bench.sections.processes import capacity_of

INK = "#767676"
"""Text and axes: contrast above 4 both on white and on the dark of code hosts."""
COLOURS = ("#3b82c4", "#d9822b")
SIZE = (6.4, 3.2)

Draw = Callable[[Any, Results], None]


def members(axes: Any, results: Results) -> None:
    """CPU of a heartbeat over members in groups of 10."""
    _both_sides(axes, results.curve("members"), "members, in groups of 10", "CPU of a heartbeat, µs")
    _logarithmic(axes)


def group_size(axes: Any, results: Results) -> None:
    """CPU of a heartbeat over the size of groups."""
    _both_sides(axes, results.curve("group size"), "members of a group", "CPU of a heartbeat, µs")
    _logarithmic(axes)


def partitions(axes: Any, results: Results) -> None:
    """CPU of a commit over its partitions."""
    _both_sides(axes, results.curve("partitions"), "offsets in a commit", "CPU of a commit, µs")


def processes(axes: Any, results: Results) -> None:
    """Heartbeats a second over processes."""
    points = results.curve("processes")
    rates = [capacity_of(point.server_us, point.postgres_us, int(point.x), 2) for point in points]
    axes.plot([point.x for point in points], rates, color=COLOURS[0], marker="o")
    axes.set(xlabel="server processes", ylabel="heartbeats a second", ylim=(0, None))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_xticks([point.x for point in points])


def memory(axes: Any, results: Results) -> None:
    """Resident memory over members."""
    points = results.curve("members")
    axes.plot([p.x for p in points], [p.details["rss_mb"] for p in points], color=COLOURS[0], marker="o")
    axes.set(xlabel="members, in groups of 10", ylabel="resident memory of the server, MB", ylim=(0, None))
    axes.xaxis.set_major_formatter("{x:,.0f}")


def per_cpu_second(axes: Any, results: Results) -> None:
    """Requests per CPU second of all kinds."""
    named = {
        "Starlette echo": "echo",
        "classic heartbeat": "heartbeats.classic",
        "consumer heartbeat": "heartbeats.consumer",
        "fetch of 5 offsets": "fetches",
        "commit of 5 offsets": "commits.5",
        "Kafka: heartbeat": "kafka.heartbeats.rate",
        "Kafka: commit of 5": "kafka.commits.rate",
    }
    found = {name: results.figure(key) for name, key in named.items()}
    rates = {name: one.details["per_cpu_s"] for name, one in found.items() if one and "per_cpu_s" in one.details}
    _dots(axes, rates, "requests per CPU second of server and Postgres (or broker)")


def beside(axes: Any, results: Results) -> None:
    """p99 of a quiet heartbeat beside other work."""
    found = [figure for figure in results.figures if figure.key.startswith("beside.") and figure.key.count(".") == 1]
    names = ["alone" if one.key == "beside.alone" else one.name.strip().removeprefix("beside ") for one in found]
    rates = dict(zip(names, (one.value for one in found), strict=True))
    _dots(axes, rates, "p99 of a quiet group's heartbeat, ms")


PLOTS: Mapping[str, Draw] = {
    "per-cpu-second": per_cpu_second,
    "members": members,
    "group-size": group_size,
    "partitions": partitions,
    "processes": processes,
    "memory": memory,
    "beside": beside,
}
NEEDS: Mapping[str, Callable[[Results], bool]] = {
    "per-cpu-second": lambda results: results.figure("echo") is not None,
    "members": lambda results: len(results.curve("members")) > 1,
    "group-size": lambda results: len(results.curve("group size")) > 1,
    "partitions": lambda results: len(results.curve("partitions")) > 1,
    "processes": lambda results: len(results.curve("processes")) > 1,
    "memory": lambda results: len(results.curve("members")) > 1,
    "beside": lambda results: results.figure("beside.alone") is not None,
}


def _both_sides(axes: Any, points: Sequence[Point], over: str, measure: str) -> None:
    """Server and Postgres, a line each."""
    xs = [point.x for point in points]
    for colour, name, ys in (
        (COLOURS[0], "server", [point.server_us for point in points]),
        (COLOURS[1], "Postgres", [point.postgres_us for point in points]),
    ):
        axes.plot(xs, ys, color=colour, marker="o", label=name)
    axes.set(xlabel=over, ylabel=measure, ylim=(0, None))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.legend(frameon=False, labelcolor=INK)


def _logarithmic(axes: Any) -> None:
    """Numbers in full, not powers of ten."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")


def _dots(axes: Any, values: Mapping[str, float], measure: str) -> None:
    """A point with its value for each, on a logarithmic axis, the first on top."""
    axes.plot(list(values.values()), list(values), "o", color=COLOURS[0])
    for name, value in values.items():
        axes.annotate(f"{value:,.0f}", (value, name), xytext=(8, -3.5), textcoords="offset points", color=INK)
    axes.invert_yaxis()
    axes.set(xlabel=measure, xscale="log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="y", color=INK, alpha=0.25)
    axes.margins(x=0.15, y=0.1)


def draw(results: Results, directory: Path) -> list[str]:
    """Write the plots that this run has points for; returns their names. The same run gives the same bytes."""
    os.environ.setdefault("MPLBACKEND", "svg")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style = {
        "svg.fonttype": "none",
        "svg.hashsalt": "kcoord",
        "font.family": "sans-serif",
        "font.size": 10,
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    drawn = []
    directory.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(style):
        for name, one in PLOTS.items():
            if NEEDS[name](results):
                figure = Figure(figsize=SIZE, layout="constrained")
                one(figure.subplots(), results)
                figure.savefig(directory / f"{name}.svg", transparent=True, metadata={"Date": None, "Creator": None})
                drawn.append(name)
    return drawn
