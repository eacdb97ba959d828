"""Lag on the page of a group: the picture of its past, what is behind, what nobody reads any more."""

from __future__ import annotations

import random
import re

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from frontend import queries
from frontend.offsets.plot import HEIGHT, WIDTH, nice, plot
from frontend.offsets.rows import Bucket
from kcoord.process.runtime import Runtime
from offsets.lag.service import LagReads
from tests.frontend.seed import Seed, working_group

NUMBERS = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def series(*lags: int, start: int = 0) -> list[Bucket]:
    return [Bucket("t", start + index, lag, None) for index, lag in enumerate(lags)]


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (1, 1), (2, 2), (3, 5), (7, 10), (10, 10), (11, 20), (99, 100), (2_001, 5_000)]
)
def test_an_axis_ends_at_a_round_number(value: int, top: int) -> None:
    assert nice(value) == top


@given(st.lists(st.tuples(st.integers(0, 95), st.integers(0, 2**62)), max_size=96, unique_by=lambda spot: spot[0]))
def test_every_point_lies_in_the_picture(spots: list[tuple[int, int]]) -> None:
    drawn = plot([Bucket("t", at, lag, None) for at, lag in sorted(spots)], 96, 0, 96_000)
    numbers = [float(number) for number in NUMBERS.findall(drawn.line)]
    assert all(0 <= x <= WIDTH for x in numbers[0::2])
    assert all(0 <= y <= HEIGHT for y in numbers[1::2])
    assert len(drawn.spots) == len(spots)
    assert drawn.empty == (not spots)
    assert drawn.top >= max((lag for _, lag in spots), default=0)


def test_more_lag_is_drawn_higher() -> None:
    (_, low), (_, high) = (point.split(" ") for point in plot(series(1, 9), 96, 0, 96).line[1:].split(" L"))
    assert float(high) < float(low)


def test_a_line_ends_where_nothing_was_sampled_for_long() -> None:
    assert plot([*series(1, 2), *series(3, 4, start=4)], 96, 0, 96).line.count("M") == 1
    assert plot([*series(1, 2), *series(3, 4, start=5)], 96, 0, 96).line.count("M") == 2


def test_a_single_sample_is_seen() -> None:
    assert " L" in plot(series(5), 96, 0, 96).line


def test_the_page_says_how_far_behind_each_topic_is(person: Client, seed: Seed) -> None:
    working_group(seed)
    seed.topic("orders", 12, [11_000] * 12)
    seed.topic("payments", 6, [88_100] * 6)
    seed.lag_samples("billing", {"orders": [10, 200, 3_000], "payments": [5]})
    page = person.get("/groups/billing").content.decode()
    panel = page[page.index('id="lag-title"') : page.index('id="offsets-title"')]
    assert "3,005" in panel, "the total of the last look is told to screen readers"
    assert panel.index(">orders") < panel.index(">payments"), "the furthest behind comes first"
    assert "1 min" in panel, "3,000 records of 20 ms each"
    assert "4 committed" in panel, "two partitions of payments were never committed"
    assert 'aria-label="Lag of orders: from 10 to 3,000, at most 3,000, at least 10"' in panel


def test_watermarks_that_are_too_old_are_told(person: Client, seed: Seed) -> None:
    seed.topic("orders", 2, [100, 100])
    pk = seed.group("idle", "Empty")
    seed.commit(pk, {("orders", 0): 10, ("orders", 1): 10})
    for address in ("/groups/idle", "/topics"):
        assert "stale" not in person.get(address).content.decode()
    seed.connection.execute("update groups_watermark set sampled_at = sampled_at - 24 * 60000 where partition = 1")
    page = person.get("/groups/idle").content.decode()
    facts = page[page.index("<dt>Lag") : page.index("<dt>Protocol")]
    assert re.search(r"watermarks of <time[^>]*>24 min ago", facts)
    assert '<span class="tag">stale</span>' in page
    assert ", stale" in person.get("/topics").content.decode()


def test_without_samples_the_page_says_why(person: Client, seed: Seed) -> None:
    seed.group("idle", "Empty")
    page = person.get("/groups/idle").content.decode()
    assert "No samples of this time yet" in page
    assert "sampled every 1 min" in page


def test_topics_that_are_gone_or_not_read_any_more_are_marked(person: Client, seed: Seed) -> None:
    pk = seed.consumer_group("g", "Stable", epoch=3, assignment_epoch=3)
    seed.consumer_member(pk, "m1", epoch=3)
    seed.topic("entries", 2, [5, 5])
    seed.topic("left", 1, [5])
    seed.commit(pk, {("entries", 0): 1, ("left", 0): 1, ("deleted", 0): 1})
    page = person.get("/groups/g").content.decode()
    panel = page[page.index('id="lag-title"') : page.index('id="offsets-title"')]
    marks = re.findall(r'data-label="Topic">(\w+)(?: <span class="tag" title="[^"]+">([^<]+)</span>)?', panel)
    assert sorted(marks) == [("deleted", "not in the catalogue"), ("entries", ""), ("left", "not read")]


def test_a_week_can_be_drawn_and_nothing_else(person: Client, seed: Seed) -> None:
    seed.group("g", "Empty")
    seed.lag_samples("g", {"orders": [7] * 60}, every_ms=3_600_000)
    day = person.get("/groups/g").content.decode()
    week = person.get("/groups/g?range=week").content.decode()
    assert day.count("plot-spot") in (24, 25)
    assert week.count("plot-spot") in (60, 61)
    assert 'aria-current="true">7 days</a>' in week
    assert person.get("/groups/g?range=year").status_code == 400


def test_the_list_shows_lag_and_sorts_by_it(person: Client, seed: Seed) -> None:
    for name, lag, late in (("a", 5, None), ("b", 70_000, 125_000), ("c", None, None)):
        seed.group_lag(seed.group(name, "Empty"), lag, late)
    seed.group("d", "Empty")
    page = person.get("/groups?sort=lag").content.decode()
    assert re.findall(r'<a class="row-link"[^>]*>(\w)</a>', page) == ["b", "a", "c", "d"]
    assert "70,000" in page
    assert ">2 min</span>" in page
    assert 'aria-sort="descending">Lag' in page


async def test_the_page_counts_as_the_api_does(runtime: Runtime, seed: Seed) -> None:
    """The page adds up in a statement of its own, which is cheaper; the rule is that of `offsets.core.lag`."""
    chance = random.Random(7)
    pk = seed.group("g", "Empty")
    for topic in ("alpha", "beta", "gamma"):
        seed.topic(topic, 9, [chance.randrange(100) for _ in range(chance.randrange(5, 9))])
        seed.commit(pk, {(topic, p): chance.randrange(120) for p in range(9) if chance.random() < 0.8})
    seed.commit(pk, {("deleted", 0): 5})
    seed.connection.execute("update groups_watermark set log_start_offset = least(40, log_end_offset) where id % 2 = 0")
    api = await runtime.get(LagReads).lag("g", partitions=False)
    page = await queries.group_page(runtime.db, "g", queries.Limits())
    assert page is not None
    assert {t.topic: t.lag for t in page.lag.topics} == {t.topic: t.total.lag for t in api.topics}
    assert {t.topic: t.sampled_at for t in page.lag.topics} == {t.topic: t.total.sampled_at for t in api.topics}
    assert page.totals.lag == api.total.lag
    rows = [offset.lag for offset in page.offsets if offset.lag is not None]
    assert sum(rows) == api.total.lag
