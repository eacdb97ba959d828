"""Which days of the journal there should be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from offsets.core.days import DAY_MS, DAYS_AHEAD, SETTLED_AFTER_MS, Calendar, bounds, day_named, day_of, partition_name

LAST_DAY = 2_932_896 - DAYS_AHEAD
"""The year 9999 ends soon after it."""

days = st.integers(0, LAST_DAY)
instants = st.integers(0, LAST_DAY * DAY_MS)


@given(days)
def test_names_of_days_are_read_back(day: int) -> None:
    assert day_named(partition_name(day)) == day


def test_other_names_are_no_days() -> None:
    assert partition_name(0) == "offset_commit_log_19700101"
    for name in ("offset_commit_log", "offset_commit_log_default", "offset_commit_log_20230231", "x_20230101"):
        assert day_named(name) is None
    for name in ("offset_commit_log_202301011", "offset_commit_log_２０２３０１０１", "offset_commit_log_20230101\n"):
        assert day_named(name) is None


@given(instants)
def test_an_instant_lies_in_its_day(instant: int) -> None:
    first, after = bounds(day_of(instant))
    assert first <= instant < after
    assert after - first == DAY_MS


@given(instants, st.integers(1, 3_650), st.sets(days, max_size=20), st.sets(days, max_size=20))
def test_upkeep_converges(now: int, retention: int, there: set[int], in_default: set[int]) -> None:
    """What is made is not dropped by the next run, nothing young is dropped, and then there is nothing to do."""
    calendar = Calendar(now, retention)
    made, dropped = calendar.to_make(there, in_default), calendar.to_drop(there)
    after = (there - set(dropped)) | set(made)
    assert not set(made) & there
    assert all(bounds(day)[1] + retention * DAY_MS <= now for day in dropped)
    assert all(bounds(day)[1] + retention * DAY_MS > now for day in after)
    assert set(range(calendar.today, calendar.today + DAYS_AHEAD + 1)) <= after
    assert calendar.to_drop(after) == calendar.to_make(after, in_default) == []


@given(instants)
def test_today_is_never_quiet(now: int) -> None:
    calendar = Calendar(now, 1)
    assert not calendar.is_quiet(calendar.today)
    assert calendar.is_quiet(calendar.today + 1)
    assert calendar.is_quiet(calendar.today - 1) == (now % DAY_MS >= SETTLED_AFTER_MS)
    assert calendar.is_quiet(calendar.today - 2)


def test_the_most_urgent_days_are_made_first_and_the_oldest_dropped_first() -> None:
    calendar = Calendar(100 * DAY_MS, 10)
    ahead = [*range(100, 100 + DAYS_AHEAD + 1)]
    waiting = {89, 90, 95, 91, 101, 100 + DAYS_AHEAD + 1}
    assert calendar.to_make([], waiting) == [*ahead, 90, 91, 95]
    assert calendar.to_make([101, 95], waiting) == [100, *ahead[2:], 90, 91]
    assert calendar.to_drop([95, 89, 88, 90, 87]) == [87, 88, 89]


def test_a_day_is_quiet_from_the_instant_at_which_it_is_settled() -> None:
    settled = 101 * DAY_MS + SETTLED_AFTER_MS
    assert Calendar(settled, 1).is_quiet(100)
    assert not Calendar(settled - 1, 1).is_quiet(100)


def test_a_day_has_86_400_seconds() -> None:
    assert bounds(1) == (86_400_000, 172_800_000)
