"""Peaks of lag: what stays of the largest samples when a time is thinned, and who reads it."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from kcoord.database.clock import VirtualClock
from kcoord.database.paging import EVERYTHING, Visible
from kcoord.process.runtime import Runtime
from offsets.core.samples import DAY_MS, HOUR_MS, MINUTE_MS
from offsets.lag.samples import SampleService
from offsets.lag.service import LagReads
from tests.conftest import START_MS


@pytest.fixture
def lags(runtime: Runtime) -> LagReads:
    """What reads past lag."""
    return runtime.get(LagReads)


LAGS = (
    "with s (group_name, topic, minute, lag, behind) as (values {}) insert into offsets_lagsample"
    " (group_name, topic, at, lag, time_lag_ms) select group_name, topic, %s + minute * 60000, lag, behind from s"
)


def looks(sql: psycopg.Connection[Any], first: int, found: dict[int, dict[tuple[str, str], tuple[int, int]]]) -> None:
    """Samples by minute after `first`, by group and topic: lag and time lag."""
    values = [
        (group, topic, minute, lag, behind)
        for minute, of in found.items()
        for (group, topic), (lag, behind) in of.items()
    ]
    text = ", ".join("(%s, %s, %s, %s::bigint, %s::bigint)" for _ in values)
    sql.execute(LAGS.format(text), [one for value in values for one in value] + [first])


def peaks(sql: psycopg.Connection[Any], first: int) -> dict[tuple[str, str], list[tuple[int, int, int | None]]]:
    """What is kept beside the samples: minute after `first`, lag and time lag."""
    found: dict[tuple[str, str], list[tuple[int, int, int | None]]] = {}
    for group, topic, at, lag, behind in sql.execute(
        "select group_name, topic, at, lag, time_lag_ms from offsets_lagpeak order by 1, 2, 3"
    ):
        found.setdefault((group, topic), []).append(((at - first) // MINUTE_MS, lag, behind))
    return found


A, B, C = ("a", "orders"), ("a", "paid"), ("b", "orders")


async def test_thinning_keeps_what_was_largest_of_each_and_of_the_sums(
    samples: SampleService, clock: VirtualClock, sql: psycopg.Connection[Any]
) -> None:
    first = START_MS // HOUR_MS * HOUR_MS
    found = {minute: {A: (1, 1), B: (1, 1), C: (1, 1)} for minute in range(0, 15, 2)}
    found[4] |= {A: (50, 9)}
    found[6] |= {B: (70, 1)}
    found[8] |= {A: (40, 1), B: (60, 1)}  # neither is its own peak, but the sum is
    found[10] |= {A: (45, 1), C: (44, 20)}
    found[20] = {A: (3, 3)}  # a step with one sample loses nothing
    looks(sql, first, found)
    clock.move_to(first + 4 * HOUR_MS)
    assert await samples.thin() == 6 * 3
    minutes = sql.execute("select distinct (at - %s) / 60000 from offsets_lagsample order by 1", [first]).fetchall()
    assert minutes == [(0,), (14,), (20,)]
    expected = {
        A: [(4, 50, 9)],
        B: [(6, 70, 1)],
        C: [(10, 44, 20)],
        ("a", ""): [(4, 51, 9), (8, 100, 1)],
        ("", "orders"): [(10, 89, 20)],
    }
    assert peaks(sql, first) == expected
    assert await samples.thin() == 0
    assert peaks(sql, first) == expected, "the second time they are what they were"

    looks(sql, first, {minute: {A: (2, 2)} for minute in (16, 31, 50)} | {32: {A: (99, 1)}})
    clock.move_to(first + 2 * DAY_MS)
    await samples.thin()
    hour = peaks(sql, first)
    assert hour[A] == [(4, 50, 9), (32, 99, 1)], "of the hour: the largest lag, and the largest time lag"
    assert hour["a", ""] == [(4, 51, 9), (8, 100, 1)]
    assert hour["", "orders"] == [(10, 89, 20)]
    clock.move_to(first + 9 * DAY_MS)
    await samples.thin()
    assert peaks(sql, first) == {}


async def test_the_past_lag_of_a_thinned_time_has_its_peak(
    samples: SampleService, lags: LagReads, clock: VirtualClock, sql: psycopg.Connection[Any]
) -> None:
    first = START_MS // HOUR_MS * HOUR_MS
    found = {minute: {A: (1, 1), B: (2, 1), C: (1, 1)} for minute in range(0, 15, 2)}
    found[6] |= {A: (50, 9), B: (49, 1), C: (23_542, 5)}
    looks(sql, first, found)
    clock.move_to(first + 4 * HOUR_MS)
    await samples.thin()

    async def history(group_id: str, topic: str | None = None, visible: Visible = EVERYTHING) -> list[tuple[int, int]]:
        page = await lags.history(group_id, topic=topic, visible=visible)
        return [((one.at - first) // MINUTE_MS, one.lag) for one in page.items]

    assert await history("b") == [(0, 1), (6, 23_542), (14, 1)]
    assert await history("a", "orders") == [(0, 1), (6, 50), (14, 1)]
    assert await history("a") == [(0, 3), (6, 99), (14, 3)]
    assert await history("a", visible=Visible(names=("orders",))) == [(0, 1), (14, 1)], "not the sum of all"
    assert await history("a", "paid", Visible(names=("orders",))) == []
