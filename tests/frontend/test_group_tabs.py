"""The navigation of a group's pages: the same on all of them."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urlencode

import pytest
from django.test import Client

from tests.frontend.item_seed import share_group
from tests.frontend.seed import Seed, reconciling_group, working_group

OF_GROUP = ["Overview", "Members", "Partitions"]
PAST = ["History", "Rebalances", "Commits", "Events"]
SETTINGS = ["Configuration", "Reset"]


def tabs(page: str) -> tuple[list[str], list[str], dict[str, str]]:
    """The labels of the tabs, those that are chosen, and where each leads."""
    (nav,) = re.findall(r'<nav class="tabs".*?</nav>', page, re.DOTALL)
    links = re.findall(r'<a href="([^"]+)"( aria-current="page")?>([^<]+?)\s*(?:<span|</a>)', nav)
    chosen = [label for _, current, label in links if current]
    return [label for *_, label in links], chosen, {label: unescape(url) for url, _, label in links}


@pytest.mark.parametrize(
    ("page", "chosen"),
    [
        ("", "Overview"),
        ("?tab=members", "Members"),
        ("?tab=offsets&topic=orders", "Partitions"),
        ("/history", "History"),
        ("/rebalances", "Rebalances"),
        ("/commits", "Commits"),
        ("/events", "Events"),
        ("/config", "Configuration"),
        ("/reset", "Reset"),
    ],
)
def test_every_page_of_a_group_has_them(operator: Client, seed: Seed, page: str, chosen: str) -> None:
    working_group(seed)
    answer = operator.get(f"/groups/billing{page}", follow=True)
    assert answer.status_code == 200
    labels, current, urls = tabs(answer.content.decode())
    assert labels == OF_GROUP + PAST + SETTINGS
    assert current == [chosen]
    assert urls["Overview"].startswith("/groups/billing")
    assert operator.get(urls["Members"]).status_code == operator.get(urls["Reset"]).status_code == 200


def test_a_consumer_group_has_them_on_the_page_of_its_states(operator: Client, seed: Seed) -> None:
    reconciling_group(seed)
    labels, current, _ = tabs(operator.get("/groups/ledger/states").content.decode())
    assert (labels, current) == (OF_GROUP + PAST + SETTINGS, [])


@pytest.mark.parametrize(
    ("page", "chosen"), [("/items", "Items"), ("/dead-letters", "Dead letters"), ("/events", "Events")]
)
def test_a_share_group_has_its_items_among_them(operator: Client, seed: Seed, page: str, chosen: str) -> None:
    share_group(seed)
    labels, current, _ = tabs(operator.get(f"/groups/mailing{page}").content.decode())
    assert labels == [*OF_GROUP, "Items", "Dead letters", *PAST, *SETTINGS]
    assert current == [chosen]


def test_who_may_not_reset_gets_no_tab_for_it(person: Client, seed: Seed) -> None:
    working_group(seed)
    labels, *_ = tabs(person.get("/groups/billing").content.decode())
    assert labels == OF_GROUP + PAST + ["Configuration"]


def test_of_a_deleted_group_the_past_is_left(person: Client, seed: Seed) -> None:
    seed.event("gone", "group_created", 0)
    labels, current, _ = tabs(person.get("/groups/gone/events").content.decode())
    assert (labels, current) == (PAST, ["Events"])


def test_the_span_of_time_stays_from_one_part_of_the_past_to_the_next(person: Client, seed: Seed) -> None:
    working_group(seed)
    span = urlencode({"from": "2026-01-30T06:00Z", "to": "2026-01-30T09:00Z"})
    _, _, urls = tabs(person.get(f"/groups/billing/rebalances?{span}", follow=True).content.decode())
    assert {label: urls[label].partition("?")[2] for label in PAST} == dict.fromkeys(PAST, span)
    assert "from=" not in urls["Overview"] + urls["Configuration"]


def test_the_search_for_topics_stays_among_the_tabs_of_the_group(person: Client, seed: Seed) -> None:
    working_group(seed)
    _, _, urls = tabs(person.get("/groups/billing?tab=offsets&topic=orders").content.decode())
    assert urls["Overview"] == "/groups/billing?topic=orders"
    assert urls["History"] == "/groups/billing/history"
