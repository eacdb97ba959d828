"""The page of a group's settings: what it shows of each, who may change them, and what it says to bad values."""

from __future__ import annotations

import html
import re

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from groups.configs import ASSIGNOR, HEARTBEAT_INTERVAL, SESSION_TIMEOUT, SETTINGS
from tests.frontend.seed import Seed
from tests.frontend.viewers import allow

URL = "/groups/g/config"


def plain(client: Client, url: str = URL) -> str:
    """The page without its tags."""
    return words(client.get(url).content.decode())


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


@pytest.fixture
def group(seed: Seed) -> int:
    """A consumer group `g`."""
    return seed.consumer_group("g", "Stable", epoch=3, assignment_epoch=3)


def test_every_setting_has_its_value_source_and_limits(person: Client, group: int) -> None:
    page = plain(person)
    of_consumers = {name: setting for name, setting in SETTINGS.items() if name.startswith("consumer.")}
    assert all(name in page and setting.help in page for name, setting in of_consumers.items())
    assert "45,000 ms (45 s) Default group.consumer.session.timeout.ms 45,000 to 60,000 ms" in page
    assert "uniform Default group.consumer.assignors uniform, range Inherit: uniform uniform range" in page
    assert "bring their own timeouts" not in page


def test_who_may_not_change_them_may_look_and_is_told_why(person: Client, group: int) -> None:
    page = person.get(URL).content.decode()
    assert "your account needs admin on group g" in page
    assert (
        len(re.findall(r"<(?:input|select|button) [^>]*disabled", page))
        == sum(name.startswith("consumer.") for name in SETTINGS) + 1
    )
    assert person.post(URL, {SESSION_TIMEOUT: "50000"}).status_code == 403
    user = get_user_model().objects.get(username="mara")
    allow(user, "admin:group:g")
    assert person.post(URL, {SESSION_TIMEOUT: "50000"}).status_code == 302


def test_an_override_is_set_recorded_and_removed(operator: Client, group: int, database: str) -> None:
    told = operator.post(URL, {SESSION_TIMEOUT: "50,000", HEARTBEAT_INTERVAL: "", ASSIGNOR: "range"}, follow=True)
    page = words(told.content.decode())
    assert f"Changed {SESSION_TIMEOUT} and {ASSIGNOR}." in page
    assert "50,000 ms (50 s) Group override by root, now . Without it: 45,000 ms (45 s)" in page
    with psycopg.connect(database) as connection:
        events = connection.execute("select kind, detail from groups_event where group_name = 'g'").fetchall()
    assert [kind for kind, _ in events] == ["config_changed"]
    assert events[0][1]["settings"] == {SESSION_TIMEOUT: [45_000, 50_000], ASSIGNOR: ["uniform", "range"]}
    assert events[0][1]["principal"] == "root"
    form = {SESSION_TIMEOUT: "", f"shown:{SESSION_TIMEOUT}": "50000", ASSIGNOR: "range", f"shown:{ASSIGNOR}": "range"}
    told = operator.post(URL, form, follow=True)
    assert f"Changed {SESSION_TIMEOUT}." in told.content.decode()
    assert "45,000 ms (45 s) Default" in plain(operator)


def test_what_somebody_else_set_meanwhile_stays(operator: Client, group: int) -> None:
    operator.post(URL, {SESSION_TIMEOUT: "50000"})
    stale = {SESSION_TIMEOUT: "", f"shown:{SESSION_TIMEOUT}": "", ASSIGNOR: "range", f"shown:{ASSIGNOR}": ""}
    page = operator.post(URL, stale, follow=True).content.decode()
    assert f"Changed {ASSIGNOR}." in page
    assert "50,000 ms (50 s)" in page
    again = operator.post(URL, {ASSIGNOR: "range", f"shown:{ASSIGNOR}": "range"}, follow=True)
    assert "No setting was changed." in again.content.decode()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        (SESSION_TIMEOUT, "45 s", "'45 s' is not a whole number of ms. Enter a number from 45,000 to 60,000 (ms)"),
        (SESSION_TIMEOUT, "5", "5 ms is less than 45000 (group.consumer.min.session.timeout.ms). Enter a number from"),
        (HEARTBEAT_INTERVAL, "0", "must be from 1 to 2147483647 (ms). Enter a number from 5,000 to 15,000 (ms), or"),
        (HEARTBEAT_INTERVAL, "²", "'²' is not a whole number"),
        (ASSIGNOR, "mine", "Enter one of uniform, range, or leave the field empty to inherit uniform."),
    ],
)
def test_a_bad_value_is_told_with_its_field_and_the_remedy(
    operator: Client, group: int, name: str, value: str, says: str
) -> None:
    other = HEARTBEAT_INTERVAL if name != HEARTBEAT_INTERVAL else SESSION_TIMEOUT
    answer = operator.post(URL, {name: value, other: "6000" if other == HEARTBEAT_INTERVAL else "50000"})
    assert answer.status_code == 400
    page = words(answer.content.decode())
    assert page.count(f"{name}: ") >= 2, "in the summary and at the field"
    assert says in page
    assert answer.content.decode().count('aria-invalid="true"') == 1
    assert "Group override" not in page


def test_all_bad_values_are_told_together(operator: Client, group: int) -> None:
    answer = operator.post(URL, {SESSION_TIMEOUT: "x", HEARTBEAT_INTERVAL: "y"})
    assert answer.content.decode().count('aria-invalid="true"') == 2
    assert 'value="x"' in answer.content.decode()


def test_the_commands_send_what_the_form_says(operator: Client, group: int) -> None:
    page = html.unescape(operator.post(URL, {SESSION_TIMEOUT: "5", ASSIGNOR: ""}).content.decode())
    assert f"""-d '{{"{SESSION_TIMEOUT}": 5}}' http://testserver/v1/groups/g/config""" in page
    assert "-X PATCH" in page


def test_a_group_need_not_exist_and_a_classic_one_is_told(operator: Client, seed: Seed) -> None:
    assert "There is no such group now" in plain(operator, "/groups/later/config")
    assert operator.post("/groups/later/config", {ASSIGNOR: "range"}).status_code == 302
    assert operator.get(f"/groups/{'x' * 256}/config").status_code == 404
    seed.group("old")
    assert "bring their own timeouts" in plain(operator, "/groups/old/config")
    assert 'href="/groups/old/config"' in operator.get("/groups/old").content.decode()
