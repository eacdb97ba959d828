"""Lag on the page of a group: the picture of its past, what is behind, what nobody reads any more."""

from __future__ import annotations

import random
import re

from django.test import Client

from frontend.pages.group import reads as queries
from kcoord.process.runtime import Runtime
from offsets.lag.service import LagReads
from tests.frontend.seed import Seed, working_group
from tests.frontend.viewers import ALL


def test_the_page_says_how_far_behind_each_topic_is(person: Client, seed: Seed) -> None:
    working_group(seed)
    seed.topic("orders", 12, [11_000] * 12)
    seed.topic("payments", 6, [88_100] * 6)
    seed.lag_samples("billing", {"orders": [10, 200, 3_000], "payments": [5]})
    page = person.get("/groups/billing").content.decode()
    panel = page[page.index('id="lag-title"') : page.index('id="events-title"')]
    assert "3,005" in panel, "the total of the last look is told to screen readers"
    assert panel.index(">orders") < panel.index(">payments"), "the furthest behind comes first"
    assert "1 min" in panel, "3,000 records of 20 ms each"
    assert "4 committed" in panel, "two partitions of payments were never committed"
    assert 'aria-label="Lag of orders: from 10 to 3,000, at most 3,000"' in panel


def test_a_topic_that_was_caught_up_since_the_last_sample_is_not_behind_in_time(person: Client, seed: Seed) -> None:
    """Lag is counted now, and time only when it is sampled."""
    seed.topic("orders", 1, [100])
    pk = seed.group("idle", "Empty")
    seed.commit(pk, {("orders", 0): 100})
    seed.lag_samples("idle", {"orders": [650]})
    page = person.get("/groups/idle").content.decode()
    assert 'data-label="Lag" class="num"><span>0</span></td>' in page
    assert 'data-label="Behind" class="num">0 s</td>' in page


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
    pk = seed.group("idle", "Empty")
    page = person.get("/groups/idle").content.decode()
    assert "Nothing has been committed, so there is no lag to show." in page
    seed.commit(pk, {("orders", 0): 1})
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
    panel = page[page.index('id="lag-title"') : page.index('id="events-title"')]
    marks = re.findall(r'data-label="Topic">(\w+)(?: <span class="tag" title="[^"]+">([^<]+)</span>)?', panel)
    assert sorted(marks) == [("deleted", "not in the catalogue"), ("entries", ""), ("left", "not read")]


def test_a_week_can_be_drawn_and_nothing_else(person: Client, seed: Seed) -> None:
    seed.group("g", "Empty")
    seed.lag_samples("g", {"orders": [7] * 60}, every_ms=3_600_000)
    day = person.get("/groups/g").content.decode()
    week = person.get("/groups/g?range=week").content.decode()
    lags = [re.findall('data-name="Lag" data-values="([^"]*)"', drawn)[0].count("7") for drawn in (day, week)]
    assert lags in ([24, 60], [25, 60], [25, 61], [24, 61])
    assert 'aria-current="true">7 d</a>' in week
    assert person.get("/groups/g?range=year").status_code == 400


def test_the_list_shows_lag_and_sorts_by_it(person: Client, seed: Seed) -> None:
    for name, lag, late in (("a", 5, None), ("b", 70_000, 125_000), ("c", None, None)):
        seed.group_lag(seed.group(name, "Empty"), lag, late)
    seed.group("d", "Empty")
    page = person.get("/groups?sort=-lag").content.decode()
    assert re.findall(r'<a class="row-link"[^>]*>(\w)</a>', page) == ["b", "a", "c", "d"]
    assert "70,000" in page
    assert ">2 min 5 s</span>" in page
    assert 'aria-sort="descending"><a class="sort" href="/groups?sort=lag">Lag' in page


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
    page = await queries.group_page(runtime.db, ALL, "g", queries.Limits())
    assert page is not None
    assert {t.topic: t.lag for t in page.lag.topics} == {t.topic: t.total.lag for t in api.topics}
    assert {t.topic: t.sampled_at for t in page.lag.topics} == {t.topic: t.total.sampled_at for t in api.topics}
    assert page.totals.lag == api.total.lag
    rows = [offset.lag for offset in page.offsets if offset.lag is not None]
    assert sum(rows) == api.total.lag
