"""Figures: ratios, targets, the table, and what goes into JSON and comes back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.figures import Figure, Point, Results, shown, table
from tests.bench.targets import TARGETS, Target


def figure(key: str = "x", value: float = 3.0, base: float = 2.0, **details: float) -> Figure:
    return Figure(key, f"the {key}", value, "/s", "echo", base, details)


def test_a_ratio_to_the_yardstick() -> None:
    assert figure().ratio == 1.5
    assert figure(base=0).ratio is None


@pytest.mark.parametrize(
    ("key", "value", "base", "reached"),
    [
        ("heartbeats.classic", 60, 100, True),
        ("heartbeats.classic", 59, 100, False),
        ("heartbeats.classic.cpu", 20_000, 1, True),
        ("heartbeats.classic.cpu", 19_999, 1, False),
        ("joins.1000", 0.5, 1, True),
        ("joins.1000", 0.51, 1, False),
        ("sizes.3000", 11, 10, True),
        ("sizes.3000", 11.1, 10, False),
        ("heartbeats.classic", 60, 0, False),
        ("without a target", 1, 1, None),
    ],
)
def test_a_target_is_of_the_value_or_of_the_ratio(key: str, value: float, base: float, reached: bool | None) -> None:
    assert figure(key, value, base).reached is reached


def test_targets_in_words() -> None:
    assert str(Target(20_000)) == "≥ 20,000"
    assert str(Target(3, is_ratio=True, is_most=True)) == "≤ 3 x"
    assert str(TARGETS["beside.storm"]) == "≤ 3 x"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.1234, "0.123"),
        (0.999, "1.00"),
        (1.234, "1.23"),
        (12.34, "12.3"),
        (1234.5, "1,234"),
        (1e6, "1,000,000"),
    ],
)
def test_three_digits_are_shown(value: float, text: str) -> None:
    assert shown(value) == text


def test_the_table_has_a_line_for_each_figure_with_what_is_known() -> None:
    lines = table([figure("joins.1000", 0.25, p99_ms=12.0), figure("y", 7.0, base=0)]).splitlines()
    assert len(lines) == 3
    assert "≤ 0.5" in lines[1]
    assert "reached" in lines[1]
    assert lines[0].index("p99 ms") + len("p99 ms") == lines[1].index("12.0") + 4, "below its title"
    assert "echo" in lines[2]
    assert "missed" not in lines[2]


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    results = Results({"cores": 2}, [figure(p50_ms=1.0)], [Point("members", 10, 1.0, 2.0, {"rss_mb": 3.0})])
    results.missing["kafka"] = "no jars"
    path = tmp_path / "results.json"
    path.write_text(results.as_json())
    assert Results.read(path) == results
    assert json.loads(path.read_text())["figures"][0]["ratio"] == 1.5


def test_results_of_another_format_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text('{"format": 99, "figures": [], "points": []}')
    with pytest.raises(ValueError, match="of another version"):
        Results.read(path)


def test_points_of_a_curve_are_in_order() -> None:
    points = [Point("members", 100, 1, 1), Point("members", 10, 2, 2), Point("other", 1, 3, 3)]
    assert [point.x for point in Results(points=points).curve("members")] == [10, 100]
