"""Attacks on sessions, and on the throttle by those who have an account of their own."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from django.conf import settings as configured
from django.contrib.auth import get_user_model
from django.test import Client

from frontend.pages.sign_in import view as throttle
from tests.frontend.conftest import PASSWORD
from tests.frontend.seed import Seed


@pytest.fixture(autouse=True)
def mara(seed: Seed) -> Any:
    """Somebody with an account."""
    return get_user_model().objects.create_user("mara", password=PASSWORD)


def sign_in(client: Client, username: str = "mara", password: str = PASSWORD) -> Any:
    return client.post("/sign-in", {"username": username, "password": password})


def is_in(client: Client) -> bool:
    return client.get("/groups").status_code == 200


def with_session(key: str) -> Client:
    """A browser that has this session id."""
    browser = Client()
    browser.cookies["sessionid"] = key
    return browser


def test_a_session_that_was_planted_before_sign_in_is_worth_nothing(client: Client) -> None:
    planted = import_module(configured.SESSION_ENGINE).SessionStore()
    planted["theirs"] = 1
    planted.create()
    victim = with_session(planted.session_key)
    assert sign_in(victim).status_code == 302
    assert is_in(victim)
    assert victim.cookies["sessionid"].value != planted.session_key
    assert not is_in(with_session(planted.session_key))


def test_a_session_id_that_was_made_up_is_not_taken_on(client: Client) -> None:
    victim = with_session("a" * 32)
    assert sign_in(victim).status_code == 302
    assert victim.cookies["sessionid"].value != "a" * 32
    assert not is_in(with_session("a" * 32))


def test_signing_out_ends_the_session_for_copies_of_its_cookie(client: Client) -> None:
    sign_in(client)
    copied = client.cookies["sessionid"].value
    assert is_in(with_session(copied))
    assert client.post("/sign-out").status_code == 302
    assert not is_in(with_session(copied))


def test_a_link_signs_nobody_out(client: Client) -> None:
    sign_in(client)
    assert client.get("/sign-out").status_code == 405
    assert is_in(client)


@pytest.mark.parametrize("change", ["deactivated", "deleted", "another password"])
def test_sessions_end_with_what_they_rest_on(client: Client, mara: Any, change: str) -> None:
    sign_in(client)
    assert is_in(client)
    if change == "deleted":
        mara.delete()
    elif change == "deactivated":
        mara.is_active = False
        mara.save()
    else:
        mara.set_password("battery staple correct horse")
        mara.save()
    assert not is_in(client)


def test_changing_the_password_ends_the_other_sessions_and_keeps_this_one(client: Client) -> None:
    other, new = Client(), "battery staple correct horse"
    sign_in(client)
    sign_in(other)
    form = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert client.post("/password", form).status_code == 302
    assert is_in(client)
    assert not is_in(other)


def test_scripts_cannot_read_the_cookie_and_other_sites_cannot_send_it_with_forms(client: Client) -> None:
    cookie = sign_in(client).cookies["sessionid"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert not cookie["domain"]
    assert Client(enforce_csrf_checks=True).post("/sign-in", {"username": "mara"}).status_code == 403


@pytest.mark.usefixtures("long_waits")
def test_good_sign_ins_of_another_account_give_no_more_guesses_at_one(client: Client) -> None:
    get_user_model().objects.create_user("eve", password=PASSWORD)
    for _ in range(throttle.FREE_FOR_ACCOUNT):
        assert sign_in(Client(), password="wrong").status_code == 200
        assert sign_in(Client(), "eve").status_code == 302
    assert sign_in(Client(), password="wrong").status_code == 429
    assert sign_in(Client(), "eve").status_code == 302


@pytest.mark.usefixtures("long_waits")
def test_good_sign_ins_of_another_account_give_the_address_no_more_guesses(client: Client) -> None:
    get_user_model().objects.create_user("eve", password=PASSWORD)
    for number in range(throttle.FREE_FOR_ADDRESS):
        assert sign_in(Client(), f"somebody-{number}", "wrong").status_code == 200
        if number < throttle.FREE_FOR_ADDRESS - 1:
            assert sign_in(Client(), "eve").status_code == 302
    assert sign_in(Client(), "another", "wrong").status_code == 429
