"""Charts: where ticks are and what they say, and that whatever is drawn lies in the drawing."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.ui import chart as ticks_module
from frontend.ui.chart import (
    DAY,
    HEIGHT,
    HOUR,
    LENGTH,
    MINUTE,
    SECOND,
    TABLE_ROWS,
    WIDTH,
    Chart,
    Mark,
    Point,
    Series,
    Tick,
    chart,
    count_labels,
    count_ticks,
    instants,
    length_labels,
    length_ticks,
    spark,
    time_ticks,
)
from frontend.ui.wording import zone_name

ZURICH = ZoneInfo("Europe/Zurich")
NIGHT = int(datetime(2025, 11, 21, 2, 50, tzinfo=UTC).timestamp() * 1000)
NUMBERS = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
zones = st.sampled_from([UTC, ZURICH, ZoneInfo("Asia/Kathmandu"), ZoneInfo("America/New_York")])


@given(st.integers(0, 2**62))
def test_an_axis_of_counts_goes_from_0_to_at_least_the_largest(most: int) -> None:
    values = count_ticks(most)
    assert values[0] == 0
    assert values[-1] >= most
    assert len(values) <= 6
    assert len({after - before for before, after in pairwise(values)}) == 1
    assert most == 0 or values[-2] < most, "no tick more than is needed"
    assert len(set(count_labels(values))) == len(values), "labels differ"


@given(st.integers(0, 2**50))
def test_so_does_an_axis_of_lengths(most: int) -> None:
    values = length_ticks(most)
    assert (values[0], values[-1] >= most, len(values) <= 6) == (0, True, True)
    assert len(set(length_labels(values))) == len(values)


@pytest.mark.parametrize(
    ("most", "labels"),
    [
        (0, ["0", "1"]),
        (3, ["0", "1", "2", "3"]),
        (7, ["0", "2", "4", "6", "8"]),
        (2_001, ["0", "1,000", "2,000", "3,000"]),
        (45_000, ["0", "20 k", "40 k", "60 k"]),
        (1_400_000, ["0", "0.5 M", "1 M", "1.5 M"]),
    ],
)
def test_counts_in_short(most: int, labels: list[str]) -> None:
    assert count_labels(count_ticks(most)) == labels


def test_lengths_are_round_in_units_of_time() -> None:
    assert length_labels(length_ticks(0)) == ["0", "1 s"]
    assert length_labels(length_ticks(70 * SECOND)) == ["0", "30 s", "1 min", "1 min 30 s"]
    assert length_labels(length_ticks(5 * HOUR)) == ["0", "2 h", "4 h", "6 h"]
    assert length_labels(length_ticks(4_000 * DAY)) == ["0", "1,000 days", "2,000 days", "3,000 days", "4,000 days"]
    assert length_labels(length_ticks(90_000 * DAY)) == ["0", "50 k days", "100 k days"]


def test_long_labels_get_room_beside_the_drawing() -> None:
    def drawn(value: int) -> Chart:
        return chart([Series("lag", [Point(0, value)])], first=0, last=HOUR, step_ms=MINUTE, kind=LENGTH)

    assert drawn(100_000 * DAY).has_long_labels
    assert drawn(70 * SECOND).has_long_labels
    assert not drawn(5 * HOUR).has_long_labels


@given(st.integers(0, 2_000_000_000_000), st.integers(SECOND, 400 * DAY), zones)
def test_times_are_few_round_and_within_the_span(first: int, length: int, zone: ZoneInfo) -> None:
    ticks = time_ticks(first, first + length, zone)
    assert len(ticks) <= 11
    assert all(0 <= tick.share <= 1 for tick in ticks)
    assert [tick.share for tick in ticks] == sorted({tick.share for tick in ticks})
    if length >= 8 * MINUTE:
        assert all(tick.long.endswith(":00") for tick in ticks)
    if length >= 10 * HOUR:
        assert ticks, "there is a round instant in it"


@pytest.mark.parametrize("length", [1, 9 * SECOND, 9 * MINUTE, 9 * HOUR, 300 * DAY])
def test_only_instants_near_the_span_are_looked_at(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day has 86,400 seconds: charts of minutes, and modules with a chart of nothing, would compute them all."""
    looked_at = []
    instant = ticks_module._instant
    monkeypatch.setattr(ticks_module, "_instant", lambda *given: looked_at.append(given) or instant(*given))
    time_ticks(NIGHT, NIGHT + length)
    assert len(looked_at) < 50


def test_ticks_are_round_where_the_reader_is() -> None:
    assert [tick.label for tick in time_ticks(NIGHT, NIGHT + 24 * HOUR, ZURICH)] == [
        "06:00", "09:00", "12:00", "15:00", "18:00", "21:00", "22 Nov", "03:00",
    ]  # fmt: skip
    assert [tick.label for tick in time_ticks(NIGHT, NIGHT + 5 * SECOND)] == [f"02:50:0{n}" for n in range(6)]
    assert (zone_name(UTC, NIGHT), zone_name(ZURICH, NIGHT)) == ("UTC", "CET")
    assert zone_name(ZoneInfo("Asia/Dubai"), NIGHT) == "UTC+04"


def test_the_day_on_which_clocks_change_has_no_tick_twice() -> None:
    for month, day in ((3, 30), (10, 26)):
        midnight = int(datetime(2025, month, day, tzinfo=ZURICH).timestamp() * 1000)
        found = instants(midnight, midnight + 23 * HOUR, ZURICH, 30)
        hours = [datetime.fromtimestamp(at / 1000, ZURICH) for at in found]
        assert all(one.minute == 0 for one in hours)
        assert len({one.replace(fold=0) for one in hours}) == len(hours) >= 22


def drawn(*values: int | None, step: int = MINUTE, **options: object) -> Chart:
    points = [Point(NIGHT + step * n + step // 2, value) for n, value in enumerate(values) if value is not None]
    last = NIGHT + step * max(len(values), 1)
    return chart([Series("lag", points)], first=NIGHT, last=last, step_ms=step, **options)  # type: ignore[arg-type]


@given(st.lists(st.none() | st.integers(0, 2**62), max_size=168))
def test_every_point_lies_in_the_drawing(values: list[int | None]) -> None:
    picture = drawn(*values)
    (line,) = picture.lines
    numbers = [float(number) for number in NUMBERS.findall(line.path)]
    assert all(0 <= x <= WIDTH for x in numbers[0::2])
    assert all(0 <= y <= HEIGHT for y in numbers[1::2])
    known = [value for value in values if value is not None]
    assert picture.empty == (not known)
    said = line.values.split("|") if known else []
    assert [text != "" for text in said] == [value is not None for value in values][: len(said)]
    assert sum(text != "" for text in said) == len(known) <= picture.steps
    assert len(picture.rows) <= TABLE_ROWS + 1


def test_more_is_drawn_higher() -> None:
    (low, high) = (float(point.split(" ")[1]) for point in drawn(1, 9).lines[0].path[1:].split(" L"))
    assert high < low


def test_a_line_ends_where_nothing_was_sampled_for_long() -> None:
    assert drawn(1, 2, None, None, 3).lines[0].path.count("M") == 1
    assert drawn(1, 2, None, None, None, 3).lines[0].path.count("M") == 2


def test_a_single_value_is_seen() -> None:
    assert " L" in drawn(5).lines[0].path
    assert " L" in spark([Point(5, 1)], first=0, last=10, step_ms=1).path


def test_the_table_has_the_largest_value_of_each_row() -> None:
    picture = drawn(*range(60), zone=ZURICH)
    assert picture.rows[0] == type(picture.rows[0])("2025-11-21 03:50:00", ["4"])
    assert picture.rows[-1].values == ["59"]
    assert drawn(1, 2, by_day=True).rows == ()


def test_values_in_words() -> None:
    assert drawn(10, 3_000, 7).summary == "from 10 to 7, at most 3,000"
    assert drawn(10, 3_000, 7, bars=True).summary == "from 10 to 7, at most 3,000, at least 7"
    assert drawn(90_000, kind=LENGTH).summary.startswith("from 1 min 30 s")
    assert drawn().summary == "no samples"


def test_marks_close_to_each_other_are_one() -> None:
    marks = [Mark(NIGHT + HOUR, "m1 joined"), Mark(NIGHT + HOUR + 1, "m2 joined"), Mark(NIGHT + 9 * DAY, "too late")]
    picture = drawn(*[1] * 120, marks=marks)
    assert picture.marks == [(500.0, "rebalance", "2025-11-21 03:50:00: m1 joined, and 1 other close to it")]


def test_marks_of_different_kinds_are_not_one() -> None:
    marks = [Mark(NIGHT + HOUR, "m1 joined"), Mark(NIGHT + HOUR, "plan applied by mara", "plan")]
    assert [kind for _, kind, _ in drawn(*[1] * 120, marks=marks).marks] == ["rebalance", "plan"]


def test_where_values_end_too_early_they_are_unknown_and_not_the_last_one() -> None:
    def ended(**options: Any) -> Chart:
        return drawn(1, 2, *[None] * 8, **options)

    assert drawn(1, 2, 3, None, None).unknown is None, "a late sample is no outage"
    assert ended().unknown == Tick(0.15, "unknown since 02:51")
    assert ended().summary.endswith(", unknown since 2025-11-21 02:51:30")
    assert ended(gap_ms=9 * MINUTE).unknown is None, "values are read that seldom"
    assert ended(now=NIGHT + 3 * MINUTE).unknown is None, "the rest is to come"
    assert drawn(*[None] * 8).unknown is None


def test_what_is_unknown_begins_where_the_last_series_ends() -> None:
    def unknown(*series: Series) -> Tick | None:
        return chart(series, first=NIGHT, last=NIGHT + HOUR, step_ms=MINUTE).unknown

    ended = Series("a", [Point(NIGHT, 1)]), Series("b", [Point(NIGHT, 1)], until=NIGHT + 3 * MINUTE)
    assert unknown(*ended, Series("c", [])) == Tick(0.05, "unknown since 02:53")
    assert unknown(*ended, Series("c", [Point(NIGHT + HOUR - 1, 1)])) is None


def test_bars_stand_where_something_happened() -> None:
    (line,) = drawn(3, 0, 4_000, bars=True).lines
    assert (line.path, line.values) == ("", "3|0|4,000")
    tops = [min(float(y) for y in NUMBERS.findall(bar)[1::2]) for bar in line.area.split("Z")[:3]]
    assert tops == [HEIGHT - 2, HEIGHT, 0], "3 are seen beside 4,000, and nothing is seen of nothing"


def test_days_begin_at_midnight_of_the_zone() -> None:
    found = instants(NIGHT, NIGHT + 7 * DAY, ZURICH, 9)
    assert all(datetime.fromtimestamp(at / 1000, ZURICH).hour == 0 for at in found)
    assert len(found) == 7
    assert timedelta(milliseconds=found[1] - found[0]) == timedelta(days=1)
