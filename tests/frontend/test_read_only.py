"""Pages on which nothing can be changed (`dashboard.read.only`), found by the URL table: a new one is in the walk."""

from __future__ import annotations

from html import unescape

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from pytest_django.fixtures import SettingsWrapper

from frontend.middleware import ADMIN
from kcoord.access.read_only import REASON, SETTING
from kcoord.access.tokens import ALL_RULES, create_token
from kcoord.models import ApiToken
from tests.frontend.seed import Seed, working_group
from tests.frontend.test_audit_walk import (
    STORIES,
    Story,
    _no_processes,  # noqa: F401 - a fixture
    head,
    post,
    records,
    refused_act,
)
from tests.frontend.test_every_action import ACTIONS, Buttons, Shown
from tests.support.selection import sample

SIGN_IN = {"login", "logout"}
"""What is no change of anything that the pages show."""


@pytest.fixture
def read_only(settings: SettingsWrapper) -> None:
    """Nothing can be changed from here on."""
    settings.KCOORD = settings.KCOORD.override({SETTING: True})


def shut(settings: SettingsWrapper) -> None:
    settings.KCOORD = settings.KCOORD.override({SETTING: True})


@pytest.mark.parametrize("name", [name for name in [*STORIES, "views"] if name not in SIGN_IN])
def test_what_would_change_something_is_refused_and_recorded(
    operator: Client, seed: Seed, settings: SettingsWrapper, name: str
) -> None:
    story = STORIES.get(name) or Story(form={"act": "save", "name": "mine", "query": ""})
    parts = (story.prepare() or {}) if story.prepare is not None else {}
    shut(settings)
    before = head()
    answer = post(operator, name, story, {} if name == "group-actions" else parts)
    assert answer.status_code == 403
    assert REASON in unescape(answer.content.decode())
    (found,) = records(seed, before)
    assert (found.result, found.act, found.principal) == ("refused", refused_act(name, story), "root")


@pytest.mark.parametrize(
    "shown",
    sample(ACTIONS, "every page again without its buttons"),
    ids=lambda shown: f"{shown.action}-{'-'.join(shown.buttons)}",
)
def test_no_button_is_enabled_and_the_reason_is_there(
    operator: Client, seed: Seed, archived: None, receivers: None, settings: SettingsWrapper, shown: Shown
) -> None:
    path = shown.page(seed)
    if shown.action == "pins":
        operator.post(path, {"act": "pin", "topic": "orders"})
    assert Buttons(operator.get(path).content.decode()).found
    shut(settings)
    answer = operator.get(path)
    page = answer.content.decode()
    assert answer.status_code in (200, 403)
    assert Buttons(page).found == set()
    assert REASON in unescape(page)


@pytest.mark.parametrize("path", ["/password", "/views"])
def test_neither_are_those_of_what_a_person_has_alone(operator: Client, settings: SettingsWrapper, path: str) -> None:
    operator.post("/views", {"act": "save", "name": "mine", "query": ""})
    assert Buttons(operator.get(path).content.decode()).found
    shut(settings)
    page = operator.get(path).content.decode()
    assert Buttons(page).found == set()
    assert REASON in unescape(page)


def test_pages_still_show_everything_and_say_that_they_are_read_only(
    operator: Client, seed: Seed, read_only: None
) -> None:
    working_group(seed)
    token = create_token("readers", ALL_RULES)
    for path in (
        "/groups",
        "/groups/billing",
        "/groups/billing?tab=members",
        "/tokens",
        "/plans",
        "/timeline",
        "/alerts",
        "/audit",
        "/health",
    ):
        answer = operator.get(path)
        page = unescape(answer.content.decode())
        assert answer.status_code == 200, path
        assert f'title="{REASON}">Read-only</span>' in page
    assert "Delete group…<small>" + REASON in unescape(operator.get("/groups/billing").content.decode())
    assert operator.get("/search?q=create%20a%20token").content.decode().count(REASON) >= 1
    # The API is not meant: its tokens have rules.
    answer = operator.delete("/v1/groups/none", headers={"Authorization": f"Bearer {token.secret}"})
    assert answer.status_code == 404


def test_the_admin_changes_nothing_either(operator: Client, seed: Seed, settings: SettingsWrapper) -> None:
    user = get_user_model().objects.get(username="root")
    create_token("readers", ALL_RULES)
    token = ApiToken.objects.get(name="readers")
    pages = [f"{ADMIN}kcoord/apitoken/{token.pk}/change/", f"{ADMIN}auth/user/{user.pk}/change/"]
    lists = [f"{ADMIN}kcoord/quota/", f"{ADMIN}auth/group/"]
    for path in pages:
        assert 'name="_save"' in operator.get(path).content.decode()
    for path in lists:
        assert operator.get(f"{path}add/").status_code == 200
    shut(settings)
    before = head()
    for path in pages:
        assert 'name="_save"' not in operator.get(path).content.decode()
        answer = operator.post(path, {"name": "other", "username": "other"})
        assert answer.status_code == 403
        assert REASON in unescape(answer.content.decode())
    for path in lists:
        assert operator.get(f"{path}add/").status_code == 403
    answer = operator.post(f"{ADMIN}django_celery_beat/intervalschedule/add/", {"every": 1, "period": "days"})
    assert answer.status_code == 403
    assert {(one.result, one.principal) for one in records(seed, before)} == {("refused", "root")}
    assert list(ApiToken.objects.values_list("name", flat=True)) == ["readers"]


def test_one_can_still_sign_in_and_out(client: Client, read_only: None) -> None:
    from tests.frontend.conftest import PASSWORD

    get_user_model().objects.create_user("mara", password=PASSWORD)
    answer = client.post("/sign-in", {"username": "mara", "password": PASSWORD})
    assert answer.status_code == 302
    assert client.post("/sign-out").status_code == 302
    assert client.get("/groups").headers["Location"].startswith("/sign-in")
