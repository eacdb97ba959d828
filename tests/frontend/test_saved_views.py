"""Saved views of the list of groups: saving, whose they are, what is refused, and what they cost."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext

from frontend.models import SavedView
from frontend.pages.groups.saved import LONGEST_QUERY, MOST_VIEWS, PARAMETERS, written_view
from tests.frontend.seed import Seed, working_group

VIEW = "q=bil&state=Empty&state=Stable&sort=-lag&columns=state.lag"


def save(client: Client, name: str, query: str = VIEW, **extra: str) -> tuple[int, str]:
    """Save a view: the status, and the page that follows."""
    answer = client.post("/views", {"act": "save", "name": name, "query": query, **extra})
    text = client.get(answer["Location"]).content.decode() if answer.status_code == 302 else answer.content.decode()
    return answer.status_code, unescape(text)


def links(page: str) -> list[tuple[str, str, bool]]:
    """Name, address and whether it is the present one, of each saved view on the list."""
    found = re.findall(r'<a class="view" href="([^"]*)" title="([^"]*)"( aria-current="true")?>', page)
    return [(unescape(name), unescape(url), bool(current)) for url, name, current in found]


def test_a_view_keeps_filters_order_and_columns(person: Client, seed: Seed) -> None:
    working_group(seed)
    page = person.get(f"/groups?{VIEW}&after=").content.decode()
    present = re.search(r'name="query" value="([^"]*)"', page)
    assert present is not None
    status, page = save(person, "  Lag   of billing ", unescape(present[1]))
    assert (status, "Saved the view Lag of billing." in page) == (302, True)
    [(name, url, current)] = links(page)
    assert (name, current) == ("Lag of billing", True)
    assert re.findall(r'<option value="([^"]*)" selected', person.get(url).content.decode()) == ["-lag"]
    same = "/groups?columns=lag.state&sort=-lag&state=Stable&state=Empty&q=bil&topic=&type="
    assert links(person.get(same).content.decode()) == [(name, url, True)]
    assert links(person.get("/groups?q=bil").content.decode()) == [(name, url, False)]


def test_a_view_has_every_parameter_of_the_form(person: Client, seed: Seed) -> None:
    working_group(seed)
    page = person.get("/groups?columns=lag").content.decode()
    form = page[page.index('id="filters"') : page.index("</form>", page.index('id="filters"'))]
    assert set(re.findall(r'name="([^"]+)"', form)) == set(PARAMETERS)


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("", ""),
        ("sort=severity&q=+&after=x&unknown=1", ""),
        ("sort=changed", "sort=-updated_at"),
        ("columns=lag.state", "columns=state.lag"),
        ("columns=none&q=a+b%26c", "q=a+b%26c&columns=none"),
    ],
)
def test_one_list_is_written_in_one_way(written: str, plain: str) -> None:
    assert written_view(QueryDict(written)) == plain
    assert written_view(QueryDict(plain)) == plain


def test_what_cannot_be_saved_is_told_why_and_stays_in_the_form(person: Client, seed: Seed) -> None:
    assert save(person, "mine")[0] == 302
    for name, query, status, told in (
        ("mine", "", 409, "you have a view mine already"),
        (" ", "", 400, "Name: 1 to 60 characters"),
        ("x" * 61, "", 400, "Name: 1 to 60 characters"),
        ("other", "state=Sleeping", 400, "state: 'Sleeping' is not one of"),
        ("other", "columns=secrets", 400, "columns: write some of"),
        ("other", "&".join(f"{key}={'%C3%BC' * 240}" for key in ("q", "regex", "topic")), 400, f"{LONGEST_QUERY:,}"),
    ):
        found, page = save(person, name, query)
        assert (found, told in page) == (status, True), (name, query)
        assert f'name="query" value="{query}"' in page
    assert SavedView.objects.count() == 1


def test_fifty_views_are_the_most_and_cost_no_more_than_none(person: Client, seed: Seed) -> None:
    with CaptureQueriesContext(connection) as before:
        assert links(person.get("/groups").content.decode()) == []
    owner = get_user_model().objects.get(username="mara")
    SavedView.objects.bulk_create(
        SavedView(owner=owner, name=f"view {number}", query=VIEW, created_at=0) for number in range(MOST_VIEWS)
    )
    with CaptureQueriesContext(connection) as after:
        assert len(links(person.get("/groups").content.decode())) == MOST_VIEWS
    assert len(after) == len(before) <= 5
    with CaptureQueriesContext(connection) as managing:
        assert person.get("/views").content.decode().count('value="delete"') == MOST_VIEWS
    assert len(managing) <= 6
    status, page = save(person, "one more")
    assert (status, "You have 50 saved views, which is the most" in page) == (409, True)


def test_views_are_those_of_their_owner(person: Client, seed: Seed) -> None:
    save(person, "mine")
    view = SavedView.objects.get()
    other = Client()
    other.force_login(get_user_model().objects.create_user("ada"))
    assert links(other.get("/groups").content.decode()) == []
    assert other.post("/views", {"act": "delete", "view": str(view.pk)}).status_code == 404
    assert save(other, "mine")[0] == 302, "names are unique for an account only"
    for view_id in ("", "x", "²", "9" * 18, "9" * 30):
        assert person.post("/views", {"act": "delete", "view": view_id}).status_code == 404
    answer = person.post("/views", {"act": "delete", "view": str(view.pk)}, follow=True)
    assert "Deleted the view mine." in answer.content.decode()
    assert [left.owner.get_username() for left in SavedView.objects.select_related("owner")] == ["ada"]
    assert person.post("/views", {"act": "burn"}).status_code == 400


def test_a_form_without_its_token_is_refused(seed: Seed) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(get_user_model().objects.create_user("ada"))
    assert strict.post("/views", {"act": "save", "name": "x", "query": ""}).status_code == 403


def test_the_page_says_in_words_what_each_view_shows(person: Client, seed: Seed) -> None:
    assert "No saved views yet" in person.get("/views").content.decode()
    save(person, "everything", "")
    save(person, "late", VIEW)
    owner = get_user_model().objects.get(username="mara")
    SavedView.objects.create(owner=owner, name="old", query="state=Sleeping", created_at=0)
    page = unescape(person.get("/views").content.decode())
    assert re.findall(r'view-words">([^<]*)<', page)[:2] == [
        "All groups",
        "Groups with “bil” in its id, and the state Empty or Stable, sorted by: largest lag, 3 columns of 14",
    ]
    assert "The list no longer understands this view: state: 'Sleeping' is not one of" in page
