"""Times in UTC or in the zone of the browser, which a cookie names."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.test import Client, RequestFactory
from django.utils import timezone

from frontend import zones
from tests.frontend.seed import Seed, working_group

ZURICH = ZoneInfo("Europe/Zurich")
NIGHT = int(datetime(2025, 11, 21, 2, 50, 7, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("cookie", "name"),
    [
        ("Europe/Zurich", "Europe/Zurich"),
        ("Europe%2FZurich", "Europe/Zurich"),
        ("America/Argentina/Ushuaia", "America/Argentina/Ushuaia"),
        ("", "UTC"),
        ("Mars/Phobos", "UTC"),
        ("../../etc/passwd", "UTC"),
        ("Europe", "UTC"),
        ("a" * 500, "UTC"),
        ("Europe/Zurich\n", "UTC"),
    ],
)
def test_a_cookie_names_the_zone(cookie: str, name: str) -> None:
    request = RequestFactory().get("/groups")
    request.COOKIES[zones.COOKIE] = cookie
    assert str(zones.zone_of(request)) == name


def test_instants_are_written_and_read_in_the_zone_of_the_page() -> None:
    assert zones.instant(NIGHT) == "2025-11-21 02:50:07.000 UTC"
    with timezone.override(ZURICH):
        assert zones.instant(NIGHT) == "2025-11-21 03:50:07.000 CET"
        assert zones.minute(NIGHT) == "2025-11-21 03:50 CET"
        assert zones.wall(NIGHT) == "2025-11-21T03:50:07"
        assert zones.read(zones.wall(NIGHT)) == NIGHT
        assert zones.read("2025-11-21T02:50:07Z") == NIGHT
        assert (zones.wall(None), zones.wall(NIGHT - 7_000)) == ("", "2025-11-21T03:50")


def test_every_page_follows_the_choice(person: Client, seed: Seed) -> None:
    working_group(seed)
    seed.event("billing", "rebalance_started", 7, cause="member_joined")
    assert '<html lang="en" data-zone="UTC">' in person.get("/groups").content.decode()
    person.cookies[zones.COOKIE] = "Asia/Kathmandu"
    page = person.get("/groups/billing/rebalances").content.decode()
    assert re.search(r'<span class="at">[^<]* UTC\+0545</span>', page)
    assert "From (UTC+0545)" in page
    assert 'data-zone="Asia/Kathmandu"' in page
    for address in ("/", "/groups", "/groups/billing", "/topics", "/nodes", "/archive"):
        text = person.get(address).content.decode()
        assert not re.search(r"\d\d:\d\d(:\d\d\.\d+)? UTC\b(?!\+)", text), address
    person.cookies[zones.COOKIE] = "nonsense"
    assert person.get("/groups").status_code == 200


def test_the_address_of_a_span_means_the_same_to_everybody(person: Client, seed: Seed) -> None:
    working_group(seed)
    written = "/groups/billing/rebalances?from=2025-11-21T03:50&to="
    assert person.get(written).status_code == 200, "in UTC, as before"
    person.cookies[zones.COOKIE] = "Europe/Zurich"
    answer = person.get(written)
    assert answer.status_code == 302
    assert answer.headers["Location"] == "/groups/billing/rebalances?from=2025-11-21T02%3A50%3A00.000Z"
    page = person.get(answer.headers["Location"]).content.decode()
    assert 'name="from" step="1" value="2025-11-21T03:50"' in page
    assert person.get("/groups/billing/commits?from=2025-11-21T03:50").status_code == 302
