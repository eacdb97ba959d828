"""docs/performance.md is what the script makes of the results beside it, and its plots are there."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.bench import plots, report
from tests.bench.bench import TINY
from tests.bench.figures import Figure, Point, Results
from tests.bench.test_model import results

AT = {"at": "2026-01-01", "revision": "r", "cores": 2, "cpu": "c", "memory_gb": 1, "system": "s", "python": "3"}


def whole() -> Results:
    run = results()
    run.machine = {**AT, "load_before": 0.0, "scale": "tiny", "flush_ms": 200}
    run.machine |= {"settings": {"KCOORD_X": "1"}, "sizes": asdict(TINY)}
    run.figures += [
        Figure("echo", "Starlette echo", 100.0, "/s", "itself", 100.0, {"per_cpu_s": 90.0}),
        Figure(
            "heartbeats.classic", "heartbeats", 70.0, "/s", "echo", 100.0, {"per_cpu_s": 60.0, "p99_ms": 2, "p50_ms": 1}
        ),
        Figure("beside.alone", "alone", 4.0, "ms", "p50", 2.0),
        Figure("beside.storm", "  beside a storm", 20.0, "ms", "quiet", 4.0),
    ]
    run.missing["kafka"] = "no jars"
    return run


def test_the_document_is_that_of_the_results() -> None:
    made = report.Report(report.fitted(Results.read(report.RESULTS))).document(report.TEMPLATE.read_text())
    assert report.DOCUMENT.read_text() == made, "run `python -m tests.bench.report`"


def test_pictures_of_the_document_are_there() -> None:
    named = re.findall(r"\]\((performance/[^)]+\.svg)\)", report.DOCUMENT.read_text())
    assert {Path(one).name for one in named} == {path.name for path in report.FOLDER.glob("*.svg")}


def test_every_mark_is_filled_from_the_results() -> None:
    document = report.Report(report.fitted(whole())).document(report.TEMPLATE.read_text())
    assert "{{" not in document
    assert "5 groups of 2 members" in document
    assert "| settings | KCOORD_X=1 |" in document
    assert "| heartbeats | 70.0 /s | 0.700 x echo | ≥ 0.6 x: reached | 1.00, 2.00 |" in document
    assert "| beside a storm | 20.0 ms | 5.00 x quiet | ≤ 3 x: **missed** |  |" in document
    assert "| stored session | 12.0 | µs of CPU in Postgres |" in document
    assert "- kafka: no jars" in document
    assert "![CPU of a heartbeat over the number of members](performance/members.svg)" in document


def test_a_part_that_was_not_measured_is_left_out() -> None:
    template = "a\n{{when wire.}}\n## W {{size nothing}}\n{{end}}\nb\n{{when echo}}\n{{value echo}}\n\n{{end}}\nc"
    assert report.Report(whole()).document(template) == "a\nb\n100 /s\n\nc"
    run = whole()
    run.figures.append(Figure("wire.idle", "memory", 4.0, "kB", "HTTP", 5.0, {"rest_cores": 0.5}))
    run.machine = {**run.machine, "sizes": asdict(TINY)}
    document = report.Report(report.fitted(run)).document(report.TEMPLATE.read_text())
    assert "uses 0.500 cores" in document
    assert "storm 5 members join" in document
    run.figures.append(Figure("access.revoked", "until refused", 0.02, "s", "the promise", 1.0, {"median_ms": 12.5}))
    document = report.Report(report.fitted(run)).document(report.TEMPLATE.read_text())
    assert "| until refused | 0.020 s | 0.020 x the promise | ≤ 1: reached |  |" in document
    assert "in the median 12.5 ms" in document
    document = report.Report(report.fitted(whole())).document(report.TEMPLATE.read_text())
    assert "## Kafka clients" not in document
    assert "## Access" not in document


def test_sections_of_a_later_run_replace_the_earlier_ones_and_are_named() -> None:
    first = whole()
    later = Results({**AT, "at": "2026-02-02", "revision": "s", "load_before": 0.5})
    later.figures = [
        Figure("beside.storm", "  beside a storm", 8.0, "ms", "quiet", 4.0),
        Figure("access.check.1", "new", 2.0, "us", "none", 1.0),
    ]
    later.points = [Point("partitions", 5, 1.0, 2.0, {"wal_bytes": 3.0})]
    later.seconds = {"offsets": 2.0, "kafka": 1.0}
    both = first.again(later)
    assert [figure.key for figure in both.figures][:-1] == [figure.key for figure in first.figures]
    assert (both.figure("beside.storm"), both.figure("access.check.1")) == tuple(later.figures)
    assert both.curve("partitions") == later.points
    assert both.curve("members") == first.curve("members")
    assert both.missing == {}
    made = report.Report(both).machine("")
    assert "| taken again later | _offsets_, _kafka_: at 2026-02-02, revision s, load 0.5 before |" in made


def test_single_values() -> None:
    text = "{{value echo}}, {{ratio heartbeats.classic}}, {{detail echo per_cpu_s}}, {{value nothing}}"
    assert report.Report(whole()).document(text) == "100 /s, 0.700, 90.0, not measured"


def test_a_mark_that_there_is_not_is_an_error() -> None:
    with pytest.raises(KeyError, match="figure_of"):
        report.Report(whole()).document("{{figure_of echo}}")


def test_a_run_without_points_has_a_document_too() -> None:
    document = report.Report(Results({**whole().machine})).document(report.TEMPLATE.read_text())
    assert ".svg" not in document
    assert "_not measured_" in document


def test_plots_are_the_same_for_the_same_run(tmp_path: Path) -> None:
    drawn = plots.draw(whole(), tmp_path / "one")
    assert set(drawn) == {"per-cpu-second", "members", "group-size", "partitions", "processes", "memory", "beside"} - {
        name for name in plots.PLOTS if not plots.NEEDS[name](whole())
    }
    assert plots.draw(whole(), tmp_path / "two") == drawn
    for name in drawn:
        one, two = (tmp_path / folder / f"{name}.svg" for folder in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
        assert ElementTree.parse(one).getroot().tag.endswith("svg")
        assert "http" not in re.sub(
            r"xmlns[:\w]*=\"[^\"]*\"|<metadata>.*</metadata>|DOCTYPE.*?>", "", one.read_text(), flags=re.DOTALL
        )


def test_axes_have_names_with_units(tmp_path: Path) -> None:
    plots.draw(whole(), tmp_path)
    text = (tmp_path / "members.svg").read_text()
    assert "CPU of a heartbeat, µs" in text
    assert "members, in groups of 10" in text
