"""The page of a group's commits: the journal in words, filtered, a page at a time."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from frontend.pages.history.events import PAGE_SIZE, WORDS
from offsets.core.types import ChangeKind
from tests.frontend.seed import Seed, member_id

PAGE = "/groups/g/commits"


@pytest.mark.parametrize("kind", list(ChangeKind))
def test_every_kind_has_its_words(kind: ChangeKind) -> None:
    assert WORDS[kind][0]


@pytest.fixture
def lived(seed: Seed) -> Seed:
    """A group whose offsets were committed, reset, and taken away."""
    member = member_id("worker", 1)
    seed.journal("g", "commit", "orders", 0, 100, ms_ago=90_000, member_id=member, generation=4, metadata="<batch>")
    seed.journal("g", "commit", "orders", 1, 7, ms_ago=80_000, member_id=member, generation=4)
    seed.journal("g", "reset", "orders", 0, 5, ms_ago=70_000, principal="mara")
    seed.journal("g", "expire", "bills", 0, None, ms_ago=60_000)
    seed.journal("other", "commit", "orders", 0, 1)
    return seed


def lines(page: str) -> list[tuple[str, str, str]]:
    """What, topic and offset of each line."""
    rows = re.findall(r'<tr id="l\d+">(.*?)</tr>', page, re.DOTALL)
    cells = [[re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in rows]
    return [(cell[1], cell[2].partition(" ")[0], cell[4]) for cell in cells]


def test_the_newest_comes_first_with_who_did_it(person: Client, lived: Seed) -> None:
    page = person.get(PAGE).content.decode()
    assert lines(page) == [
        ("expired", "bills", "none"),
        ("reset", "orders", "5"),
        ("committed", "orders", "7"),
        ("committed", "orders", "100"),
    ]
    assert "the service" in page
    assert "mara" in page
    assert "&lt;batch&gt;" in page


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("topic=orders", 3),
        ("topic=orders&partition=1", 1),
        ("kind=changes", 2),
        ("kind=commit", 2),
        ("from=2000-01-01T00:00", 4),
        ("to=2000-01-01T00:00", 0),
        ("topic=nothing", 0),
    ],
)
def test_it_can_be_narrowed(person: Client, lived: Seed, query: str, count: int) -> None:
    page = person.get(f"{PAGE}?{query}").content.decode()
    assert len(lines(page)) == count
    assert ("Nothing here" in page) == (count == 0)


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("partition=1", "partition: requires `topic`"),
        ("topic=orders&partition=x", "is not a partition number"),
        ("from=yesterday", "From: &#x27;yesterday&#x27; is not a date and time; write it as YYYY-MM-DD HH:MM"),
        ("from=2025-01-02T00:00&to=2025-01-01T00:00", "from: must be before"),
        ("kind=nonsense", "is not one of"),
        ("after=nonsense", "cursor"),
    ],
)
def test_what_cannot_be_is_said(person: Client, lived: Seed, query: str, complaint: str) -> None:
    answer = person.get(f"{PAGE}?{query}")
    assert answer.status_code == 400
    assert complaint in answer.content.decode()


def test_a_long_history_comes_in_pages(person: Client, seed: Seed) -> None:
    for number in range(PAGE_SIZE + 5):
        seed.journal("g", "commit", "orders", 0, number, ms_ago=number)
    first = person.get(PAGE).content.decode()
    older = re.search(r'rel="next" href="([^"]+)"', first)
    assert older is not None
    second = person.get(older[1].replace("&amp;", "&")).content.decode()
    assert (len(lines(first)), len(lines(second))) == (PAGE_SIZE, 5)
    assert "‹ Newest" in second
    assert 'rel="next"' not in second


def test_a_group_that_is_gone_is_remembered_and_one_that_never_was_is_not(person: Client, lived: Seed) -> None:
    assert person.get("/groups/other/commits").status_code == 200
    answer = person.get("/groups/never/commits")
    assert answer.status_code == 404
    assert "never has no commit history" in answer.content.decode()


def test_the_page_of_the_group_leads_there(person: Client, seed: Seed) -> None:
    seed.group("a b", "Empty")
    assert 'href="/groups/a%20b/commits"' in person.get("/groups/a%20b?tab=offsets").content.decode()
