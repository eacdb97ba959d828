"""Instants of offsets and offsets of instants, interpolated from samples; which samples are kept."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from offsets.core.samples import DAY_MS, HOUR_MS, TIERS, Sample, TimeLag, end_was_at, offset_at, surplus, time_lag


def series(*samples: tuple[int, int] | tuple[int, int, int], start: int = 0) -> list[Sample]:
    """Samples from (instant, end) or (from, until, end)."""
    return [Sample(sample[0], sample[-2], start, sample[-1]) for sample in samples]


@st.composite
def any_series(draw: st.DrawFn, *, truncated: bool = True) -> list[Sample]:
    """Samples as a partition may have them; ends may fall where `truncated`."""
    found: list[Sample] = []
    at, end = draw(st.integers(0, 1_000)), draw(st.integers(0, 1_000))
    for _ in range(draw(st.integers(1, 8))):
        until = at + draw(st.sampled_from([0, 0, 1, 7, 500]))
        found.append(Sample(at, until, 0, end))
        at = until + draw(st.integers(1, 1_000))
        moved = draw(st.integers(-300 if truncated else 0, 1_000) | st.integers(0, 3))
        end = max(0, end + moved)
    return found


SERIES = any_series()
OFFSETS = st.integers(0, 6_000)
INSTANTS = st.integers(0, 12_000)


@pytest.mark.parametrize(
    ("offset", "instant"),
    [
        (99, None),  # written before the first sample
        (100, 5_000),  # the log ended there until then
        (101, 5_010),
        (150, 5_500),
        (199, 5_990),
        (200, 9_000),
        (250, 9_500),
        (300, 10_000),  # the end of the log
        (999, 10_000),
    ],
)
def test_the_last_instant_at_which_the_log_ended_at_an_offset(offset: int, instant: int | None) -> None:
    samples = series((1_000, 5_000, 100), (6_000, 9_000, 200), (10_000, 300))
    assert end_was_at(samples, offset) == instant


@pytest.mark.parametrize(
    ("instant", "offset"),
    [(999, None), (1_000, 100), (5_000, 100), (5_001, 101), (5_500, 150), (6_000, 200), (9_000, 200), (99_000, 300)],
)
def test_the_first_offset_written_at_an_instant_or_after(instant: int, offset: int | None) -> None:
    """Differs from Kafka: interpolated between samples."""
    samples = series((1_000, 5_000, 100), (6_000, 9_000, 200), (10_000, 300))
    assert offset_at(samples, instant) == offset


def test_without_samples_nothing_is_known() -> None:
    assert end_was_at([], 5) is None
    assert offset_at([], 5) is None
    assert time_lag([], 5, 1_000) == TimeLag(None, None)


def test_a_log_whose_old_records_are_all_gone_needs_no_older_samples() -> None:
    assert offset_at(series((1_000, 0), (2_000, 50)), 10) == 0
    assert offset_at([Sample(1_000, 1_000, 0, 40), Sample(2_000, 2_000, 40, 50)], 10) == 40
    assert offset_at([Sample(1_000, 1_000, 0, 40), Sample(2_000, 2_000, 39, 50)], 10) is None


def test_what_was_above_a_truncation_was_written_after_it() -> None:
    samples = series((1_000, 100), (2_000, 200), (3_000, 150), (4_000, 250))
    assert end_was_at(samples, 120) == 1_200
    assert end_was_at(samples, 160) == 3_100
    assert offset_at(samples, 1_200) == 120
    assert offset_at(samples, 1_900) == 150
    assert offset_at(samples, 3_100) == 160


def test_time_lag_does_not_grow_while_there_is_nothing_to_read() -> None:
    idle = series((1_000, 500_000, 100))
    assert time_lag(idle, 100, 9_000_000) == TimeLag(0)
    assert time_lag([*idle, *series((501_000, 101))], 100, 502_000) == TimeLag(2_000)


def test_time_lag_beyond_the_samples_says_how_much_it_is_at_least() -> None:
    samples = series((1_000, 100), (2_000, 200))
    assert time_lag(samples, 99, 10_000) == TimeLag(None, 9_000)
    assert time_lag(samples, 100, 10_000) == TimeLag(9_000)
    assert time_lag(samples, 99, 500) == TimeLag(None, 0), "a clock that went back makes nothing negative"
    assert time_lag(samples, 199, 500) == TimeLag(0)


@given(SERIES, OFFSETS)
def test_a_larger_offset_was_not_written_earlier(samples: list[Sample], offset: int) -> None:
    this, following = end_was_at(samples, offset), end_was_at(samples, offset + 1)
    assert this is None or (following is not None and this <= following)


@given(SERIES)
def test_instants_are_exact_where_a_sample_was_taken(samples: list[Sample]) -> None:
    for position, sample in enumerate(samples):
        if all(later.log_end_offset > sample.log_end_offset for later in samples[position + 1 :]):
            assert end_was_at(samples, sample.log_end_offset) == sample.until
            assert offset_at(samples, sample.until) == sample.log_end_offset
            if all(before.log_end_offset < sample.log_end_offset for before in samples[:position]):
                assert offset_at(samples, sample.at) == sample.log_end_offset


@given(SERIES, INSTANTS)
def test_the_two_are_inverse_to_each_other(samples: list[Sample], instant: int) -> None:
    """The offset found is the smallest that was written at the instant or after."""
    assume(samples[0].at <= instant <= samples[-1].until)
    found = offset_at(samples, instant)
    assert found is not None
    written = end_was_at(samples, found)
    assert written is not None
    assert written >= instant
    if found > 0:
        before = end_was_at(samples, found - 1)
        assert before is None or before < instant


@given(SERIES, INSTANTS, INSTANTS)
def test_a_later_instant_has_no_smaller_offset(samples: list[Sample], one: int, other: int) -> None:
    earlier, later = (offset_at(samples, instant) for instant in sorted((one, other)))
    if earlier is not None:
        assert later is not None
        assert earlier <= later


@given(SERIES, OFFSETS, INSTANTS, st.integers(0, 1_000))
def test_time_lag_grows_with_time_and_never_is_negative(
    samples: list[Sample], offset: int, now: int, later: int
) -> None:
    one, other = time_lag(samples, offset, now), time_lag(samples, offset, now + later)
    for before, after in ((one.ms, other.ms), (one.at_least_ms, other.at_least_ms)):
        assert (before is None) == (after is None)
        if before is not None and after is not None:
            assert 0 <= before <= after <= before + later


@given(SERIES, OFFSETS, INSTANTS)
def test_who_read_more_is_not_later(samples: list[Sample], offset: int, now: int) -> None:
    one, other = time_lag(samples, offset, now), time_lag(samples, offset + 1, now)
    assert (one.ms is None) == (one.at_least_ms is not None)
    if one.ms is not None:
        assert other.ms is not None
        assert other.ms <= one.ms


NOW = 1_700_000_000_000
AGES = st.lists(st.integers(0, 8 * DAY_MS), max_size=60)


def kept_of(instants: list[int], now: int = NOW) -> list[int]:
    gone = set(surplus(instants, now))
    return sorted(set(instants) - gone)


@given(AGES)
def test_thinning_twice_is_thinning_once(ages: list[int]) -> None:
    kept = kept_of([NOW - age for age in ages])
    assert surplus(kept, NOW) == []


@given(AGES)
def test_recent_samples_and_the_ends_of_each_step_stay(ages: list[int]) -> None:
    instants = [NOW - age for age in ages]
    gone = surplus(instants, NOW)
    kept = set(kept_of(instants))
    assert all(instant < NOW - TIERS[0].age_ms for instant in gone)
    for instant in gone:
        step = TIERS[1].step_ms if instant < TIERS[1].ends(NOW) else TIERS[0].step_ms
        members = [other for other in instants if other // step == instant // step]
        assert {min(members), max(members)} <= kept
        assert min(members) < instant < max(members)


@given(AGES, st.integers(0, DAY_MS))
def test_thinning_late_keeps_no_more_than_thinning_in_time(ages: list[int], later: int) -> None:
    instants = [NOW - age for age in ages]
    at_once = kept_of(instants, NOW + later)
    assert kept_of(kept_of(instants), NOW + later) == at_once


@given(any_series(truncated=False), st.integers(0, 40), OFFSETS)
def test_what_thinning_changes_is_less_than_a_step(samples: list[Sample], hours: int, offset: int) -> None:
    stretched = [Sample(sample.at * 10_000, sample.until * 10_000, 0, sample.log_end_offset) for sample in samples]
    now = stretched[-1].until + hours * HOUR_MS
    gone = set(surplus([sample.at for sample in stretched], now))
    thinned = [sample for sample in stretched if sample.at not in gone]
    exact, rough = end_was_at(stretched, offset), end_was_at(thinned, offset)
    assert (exact is None) == (rough is None)
    if exact is not None and rough is not None:
        assert abs(exact - rough) < TIERS[-1].step_ms


def test_how_many_samples_are_kept_of_a_week() -> None:
    minutes = list(range(NOW - 7 * DAY_MS, NOW, 60_000))
    assert len(kept_of(minutes)) < 700
    assert [NOW - instant for instant in kept_of(minutes)][-3:] == [180_000, 120_000, 60_000]


def test_a_step_divides_the_next() -> None:
    assert [coarse.step_ms % fine.step_ms for fine, coarse in pairwise(TIERS)] == [0]


def test_an_instant_at_which_the_log_still_ended_there_is_not_interpolated() -> None:
    samples = series((1_000, 5_000, 100), (6_000, 200))
    assert [offset_at(samples, instant) for instant in (4_999, 5_000, 5_001)] == [100, 100, 101]


def test_what_is_dropped_is_told_in_order_and_a_step_begins_with_its_first_instant() -> None:
    now, step = 40 * DAY_MS, HOUR_MS
    begins = now - 10 * DAY_MS
    instants = [begins + part * step // 4 for part in range(8)]
    assert surplus(reversed(instants), now) == [instants[1], instants[2], instants[5], instants[6]]


def test_tiers_begin_after_three_hours_and_after_a_day() -> None:
    minute = 60_000
    assert (60 * minute, 24 * 60 * minute) == (HOUR_MS, DAY_MS)
    assert [(tier.age_ms, tier.step_ms) for tier in TIERS] == [(3 * HOUR_MS, 15 * minute), (DAY_MS, HOUR_MS)]
    now = 40 * DAY_MS
    quarter = [now - 3 * HOUR_MS - part * minute for part in range(4)]
    assert surplus(quarter, now) == [now - 3 * HOUR_MS - 2 * minute], "the instant at the edge is not older than it"
    day = now - DAY_MS
    assert surplus([day, day + 5 * minute, day + 10 * minute], now) == [day + 5 * minute]
