"""Times in UTC or in the zone of the browser, which a cookie names."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from django.test import Client, RequestFactory
from django.utils import timezone

from frontend.ui import zones
from frontend.ui.wording import INSTANT_PATTERN, read_instant
from tests.frontend.item_seed import share_group
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
        assert zones.wall(NIGHT) == "2025-11-21 03:50:07"
        assert zones.read(zones.wall(NIGHT)) == NIGHT
        assert zones.read("2025-11-21T02:50:07Z") == NIGHT
        assert (zones.wall(None), zones.wall(NIGHT - 7_000)) == ("", "2025-11-21 03:50")


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
    assert 'name="from" value="2025-11-21 03:50"' in page
    assert person.get("/groups/billing/commits?from=2025-11-21T03:50").status_code == 302


WITH_INSTANTS = (
    "/audit", "/plans", "/compare", "/groups/billing/commits", "/groups/billing/history", "/groups/billing/rebalances",
    "/groups/mailing/dead-letters", "/timeline",
)  # fmt: skip


@pytest.mark.parametrize("path", WITH_INSTANTS)
def test_fields_for_instants_are_text_by_the_24_hour_clock_in_the_zone_of_the_page(
    operator: Client, seed: Seed, path: str
) -> None:
    working_group(seed)
    share_group(seed)
    seed.journal("billing", "commit", "orders", 0, 1)
    operator.cookies[zones.COOKIE] = "Asia/Kathmandu"
    written = operator.get(f"{path}?from=2025-11-21 18:30&to=2025-11-21 19:00")
    assert written.status_code == 302
    answer = operator.get(written.headers["Location"])
    page = answer.content.decode()
    assert answer.status_code == 200, page
    assert "datetime-local" not in page, "browsers show it with am and pm where their locale does"
    assert re.findall(r"<label for=\"(?:from|to)\">([^<]*)<", page) == [
        f"{'Made from' if path == '/plans' else 'From'} (UTC+0545)",
        "Before (UTC+0545)",
    ]
    assert re.findall(r'name="(?:from|to)" value="([^"]*)"', page) == ["2025-11-21 18:30", "2025-11-21 19:00"]
    wrong = operator.get(f"{path}?from=2025-11-21 6:30 pm")
    assert wrong.status_code == 400
    said = (
        "From: &#x27;2025-11-21 6:30 pm&#x27; is not a date and time; write it as YYYY-MM-DD HH:MM by the 24-hour clock"
    )
    assert said in wrong.content.decode()


def test_every_page_with_such_a_field_is_looked_at() -> None:
    templates = Path(zones.__file__).parents[1]
    with_field = {path.name for path in templates.rglob("*.html") if "instant_field.html" in path.read_text()}
    assert len(with_field) == len(WITH_INSTANTS)
    assert not [path for path in templates.rglob("*.html") if re.search('type="(datetime|date|time)', path.read_text())]


@pytest.mark.parametrize("written", ["2025-11-21 03:50", "2025-11-21T03:50", "2025-11-21 03:50:00.000"])
def test_instants_are_read_with_a_blank_or_a_t(written: str) -> None:
    assert read_instant(written, ZURICH) == NIGHT - 7_000
    assert read_instant(f"{written}+01:00") == NIGHT - 7_000
    assert re.fullmatch(INSTANT_PATTERN, written)


@pytest.mark.parametrize(
    "written", ["20251121T035000", "2025-W47-5", "2025-11-21 3:50", "2025-13-01 00:00", "03:50", ""]
)
def test_other_forms_of_iso_8601_are_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"date and time|month"):
        read_instant(written)
