"""Write docs/performance.md, its data pages and plots from the JSON of a run: `python -m tests.bench.report [RESULTS]`.

The text is in templates/, one file for each page. What stands there in {{…}} is replaced by what the run found.
RESULTS is copied to docs/performance/results.json; without it that is read. With --again a later run of some sections
takes the place of theirs; docs/performance/method.md names them and that run.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench import model, plots
from tests.bench.figures import Figure, Results, shown
from tests.support.database import ROOT

TEMPLATES = Path(__file__).parent / "templates"
DOCS = ROOT / "docs"
FOLDER = DOCS / "performance"
RESULTS = FOLDER / "results.json"
MARK = re.compile(r"\{\{(\w+) ?([^}]*)\}\}")
WHEN = re.compile(r"\{\{when (\S+)\}\}\n(.*?)\{\{end\}\}\n", re.DOTALL)
"""A part that is left out unless some figure's key begins like this."""
NOT_MEASURED = "not measured"
ALTS = {
    "per-cpu-second": "Requests per CPU second: the echo, heartbeats, fetches and commits, and those of Kafka",
    "members": "CPU of a heartbeat over the number of members",
    "group-size": "CPU of a heartbeat over the size of groups",
    "partitions": "CPU of a commit over the number of offsets in it",
    "processes": "Heartbeats a second over the number of server processes",
    "memory": "Memory of the server over the number of members",
    "beside": "p99 of a quiet group's heartbeat beside other work",
}
EXAMPLES = (model.Service(1_000, 3, 5, 5), model.Service(10_000, 3, 5, 5), model.Service(100_000, 5, 5, 10))
UNITS = {
    "server_us": "µs of CPU in the server",
    "postgres_us": "µs of CPU in Postgres",
    "wal_bytes": "bytes of WAL",
    "us_a_second": "µs of CPU a second",
    "mb": "MB",
    "kb": "kB",
}


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    if not lines:
        return f"_{NOT_MEASURED}_"
    return "\n".join([_line(*head), _line(*("---" for _ in head)), *(_line(*line) for line in lines)])


def _figure_row(figure: Figure) -> list[str]:
    ratio = "" if figure.ratio is None else f"{shown(figure.ratio)} x {figure.yardstick}"
    mark = {None: "", True: "reached", False: "**missed**"}[figure.reached]
    target = "" if figure.target is None else f"{figure.target}: {mark}"
    late = figure.details.get("p99_ms")
    return [
        figure.name.strip(),
        f"{shown(figure.value)} {figure.unit}".strip(),
        ratio,
        target,
        "" if late is None else f"{shown(figure.details['p50_ms'])}, {shown(late)}",
    ]


def _later(run: Mapping[str, Any]) -> str:
    sections = ", ".join(f"_{name}_" for name in run["sections"])
    return f"{sections}: at {run['at']}, revision {run['revision']}, load {run['load_before']} before"


class Report:
    """Fills the template with a run."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.checks = model.checks_of(results, results.constants)
        self._parts: Mapping[str, Callable[[str], str]] = {
            "machine": self.machine,
            "size": self.size,
            "figures": self.figures,
            "missed": self.missed,
            "plot": self.plot,
            "constant": lambda name: shown(self.results.constants[name]),
            "constants": self.constants,
            "checks": self.check_table,
            "within": self.within,
            "examples": self.examples,
            "value": self.value,
            "ratio": self.ratio,
            "detail": self.detail,
            "missing": self.missing,
        }

    def document(self, template: str) -> str:
        """The template with all marks replaced. Raises KeyError for a mark that there is not."""
        measured = WHEN.sub(lambda found: found[2] if self._has(found[1]) else "", template)
        return MARK.sub(lambda found: self._parts[found[1]](found[2].strip()), measured)

    def _has(self, prefix: str) -> bool:
        return any(figure.key.startswith(prefix) for figure in self.results.figures)

    def machine(self, _: str) -> str:
        """What it ran on."""
        one = self.results.machine
        seconds = sum(self.results.seconds.values())
        return _table(
            ["what", ""],
            [
                ["taken at", str(one["at"])],
                ["revision", str(one["revision"])],
                ["machine", f"{one['cores']} cores ({one['cpu']}), {one['memory_gb']} GB"],
                ["system", f"{one['system']}, Python {one['python']}"],
                ["other work when it began", f"load {one['load_before']}"],
                ["scale, and how long it took", f"{one['scale']}, {seconds / 60:.0f} minutes"],
                *([["settings", ", ".join(f"{k}={v}" for k, v in one["settings"].items())]] if one["settings"] else []),
                *([["Kafka", str(one["kafka"])]] if "kafka" in one else []),
                *(["taken again later", _later(run)] for run in one.get("again", ())),
            ],
        )

    def size(self, name: str) -> str:
        """How much was measured of something."""
        return f"{self.results.machine['sizes'][name]:,g}"

    def figures(self, prefixes: str) -> str:
        """Those whose keys begin with one of these."""
        wanted = tuple(prefixes.split())
        found = [figure for figure in self.results.figures if figure.key.startswith(wanted)]
        rows = [["figure", "value", "ratio", "target", "p50, p99 ms"], *(_figure_row(figure) for figure in found)]
        filled = [column for column in zip(*rows, strict=True) if any(column[1:])]
        head, *lines = ([*row] for row in zip(*filled, strict=True)) if found else ([],)
        return _table(head, lines)

    def missed(self, _: str) -> str:
        """Those that have not reached their target, as a list."""
        lines = [
            f"- {name}: {value}, {ratio}; the target is {figure.target}"
            for figure in self.results.figures
            if figure.reached is False
            for name, value, ratio, *_ in [_figure_row(figure)]
        ]
        return "\n".join(lines) or "None."

    def plot(self, path: str) -> str:
        """A picture, if it can be drawn. `path`: relative to the page, without `.svg`."""
        name = Path(path).name
        return f"![{ALTS[name]}]({path}.svg)" if plots.NEEDS[name](self.results) else f"_{NOT_MEASURED}_"

    def constants(self, _: str) -> str:
        """What the model is made of."""
        lines = []
        for name, value in self.results.constants.items():
            unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), "")
            what = next((name.removesuffix(end).strip("_") for end in UNITS if name.endswith(end)), name)
            lines.append([what.replace("_", " "), shown(value), unit])
        return _table(["constant", "value", "unit"], lines)

    def check_table(self, _: str) -> str:
        """The model beside what was measured."""
        lines = [
            [one.name, f"{shown(one.measured)} {one.unit}", f"{shown(one.predicted)} {one.unit}", f"{one.error:+.0%}"]
            for one in self.checks
        ]
        return _table(["point", "measured", "predicted", "error"], lines)

    def within(self, _: str) -> str:
        """How many of the checks hold."""
        return f"{sum(one.is_within for one in self.checks)} of {len(self.checks)}"

    def examples(self, _: str) -> str:
        """What the model says of some services."""
        lines = []
        for service in EXAMPLES:
            try:
                server, postgres = model.cores(self.results.constants, service, self.flush_ms)
            except KeyError:
                return f"_{NOT_MEASURED}_"
            commits = f"a commit of {service.offsets} offsets every {service.commit_seconds:g} s"
            what = f"{service.members:,} members, a heartbeat every {service.heartbeat_seconds:g} s, {commits}"
            lines.append([what, f"{server:.2f}", f"{postgres:.2f}"])
        return _table(["service", "cores of servers", "cores of Postgres"], lines)

    @property
    def flush_ms(self) -> float:
        """How often sessions are stored."""
        return float(self.results.machine.get("flush_ms", 0))

    def value(self, key: str) -> str:
        """Of a figure, with its unit."""
        figure = self.results.figure(key)
        return NOT_MEASURED if figure is None else f"{shown(figure.value)} {figure.unit}".strip()

    def ratio(self, key: str) -> str:
        """Of a figure to its yardstick."""
        figure = self.results.figure(key)
        return NOT_MEASURED if figure is None or figure.ratio is None else shown(figure.ratio)

    def detail(self, both: str) -> str:
        """KEY NAME: something else that is known of a figure."""
        key, name = both.split()
        figure = self.results.figure(key)
        return NOT_MEASURED if figure is None or name not in figure.details else shown(figure.details[name])

    def missing(self, _: str) -> str:
        """What the run has not measured."""
        lines = [f"- {name}: {why}" for name, why in self.results.missing.items()]
        return "\n".join(lines) if lines else "Nothing was left out."


def fitted(results: Results) -> Results:
    """With the model's constants and checks, by today's model."""
    results.constants = model.constants_of(results)
    results.checks = [one.as_dict() for one in model.checks_of(results, results.constants)]
    return results


def pages(results: Results) -> dict[Path, str]:
    """The generated pages and their text."""
    report = Report(results)
    return {
        DOCS / template.relative_to(TEMPLATES).with_suffix(""): report.document(template.read_text())
        for template in sorted(TEMPLATES.rglob("*.md.in"))
    }


def write(results: Results) -> None:
    """The pages, their plots, and the results that they were made from."""
    RESULTS.write_text(results.as_json())
    plots.draw(results, FOLDER)
    for page, text in pages(results).items():
        page.write_text(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write it."""
    parser = argparse.ArgumentParser(prog="tests.bench.report", description=__doc__)
    parser.add_argument("results", type=Path, nargs="?", default=RESULTS)
    parser.add_argument("--again", type=Path, help="a later run of some sections (ONLY), in place of these sections")
    given = parser.parse_args(arguments)
    results = Results.read(given.results)
    if given.again is not None:
        results = results.again(Results.read(given.again))
    write(fitted(results))
    print(f"wrote docs/performance.md and {FOLDER.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
