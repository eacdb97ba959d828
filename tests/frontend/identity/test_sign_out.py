"""Sign-out: the session here ends whatever the provider does, and then the one at the provider."""

from __future__ import annotations

import re
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.sessions.models import Session
from django.test import Client
from pytest_django.fixtures import SettingsWrapper

from frontend.pages.sign_in import view as sign_out
from tests.frontend.conftest import PASSWORD
from tests.frontend.identity.browsing import another, approve, is_in, leave, sign_in, use
from tests.frontend.seed import Seed
from tests.support.identity_provider import CLIENT_ID, Provider

REFRESH = re.compile(r'<meta http-equiv="refresh" content="0; url=([^"]+)">')


def end(client: Client) -> str:
    """Sign out; where the answer leads. The session has ended then."""
    session = client.cookies["sessionid"].value
    answer = client.post("/sign-out")
    assert answer.status_code == 302
    assert SESSION_KEY not in client.session
    assert not is_in(client)
    assert not Session.objects.filter(pk=session).exists()
    return str(answer.headers["Location"])


def page(client: Client, address: str = "/signed-out") -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return str(answer.content.decode())


def at_provider(client: Client) -> str:
    """Follow the link to the provider; the address there."""
    answer = client.get("/signed-out/provider")
    assert answer.status_code == 302
    return str(answer.headers["Location"])


def query(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


def test_a_person_signs_out_here_and_then_if_they_want_at_the_provider(client: Client, provider: Provider) -> None:
    provider.order(person={"sub": "77", "preferred_username": "ines"})
    sign_in(client)
    before = len(provider.ended())
    assert end(client) == "/signed-out"
    asked = page(client)
    assert 'href="/signed-out/provider"' in asked
    assert "Sign out of your company account" in asked
    assert not REFRESH.search(asked)
    assert len(provider.ended()) == before, "nobody is signed out of everything unasked"
    address = at_provider(client)
    given = query(address)
    assert (given["client_id"], given["post_logout_redirect_uri"]) == (CLIENT_ID, "http://localhost/signed-out")
    back = approve(address)
    assert provider.ended()[before:] == ["77"]
    assert "You are signed out here and of your company account." in page(client, back)
    # It is good for once, and nothing is left of it.
    assert client.get("/signed-out").headers["Location"] == "/sign-in"
    assert client.get("/signed-out/provider").headers["Location"] == "/sign-in"
    assert sign_out.LEAVING not in client.session


def test_a_setting_sends_people_straight_on_but_not_in_circles(
    client: Client, provider: Provider, settings: SettingsWrapper
) -> None:
    use(settings, provider, oidc_sign_out="always")
    sign_in(client)
    found = REFRESH.search(page(client, end(client)))
    assert found is not None
    assert found[1] == "/signed-out/provider"
    back = approve(at_provider(client))
    # Back in the browser, after an error at the provider for example: there is a link, and no refresh.
    again = page(client)
    assert not REFRESH.search(again)
    assert 'href="/signed-out/provider"' in again
    assert not REFRESH.search(page(client, back))


def test_a_setting_leaves_sessions_at_the_provider_alone(
    client: Client, provider: Provider, settings: SettingsWrapper
) -> None:
    sign_in(client)
    use(settings, provider, oidc_sign_out="never")
    assert end(client) == "/sign-in"
    sign_in(other := another())
    assert sign_out.KEPT not in other.session
    assert end(other) == "/sign-in"


@pytest.mark.parametrize("endpoint", [None, "", 7, "http://elsewhere.example/out", "javascript:alert(1)"])
def test_without_a_place_that_can_be_trusted_the_sign_out_is_only_here(
    client: Client, provider: Provider, endpoint: object
) -> None:
    provider.order(metadata={"end_session_endpoint": endpoint})
    assert sign_in(client).status_code == 302
    assert end(client) == "/sign-in"


def test_the_session_here_ends_while_the_provider_is_down(
    client: Client, provider: Provider, settings: SettingsWrapper
) -> None:
    sign_in(client)
    before = provider.asked()
    use(settings, provider)  # a process that has not read the discovery document
    assert end(client) == "/signed-out"
    assert provider.asked() == [*before, "/asked"], "the provider was asked"
    assert "Your session here has ended" in page(client)


def test_an_answer_that_this_browser_does_not_wait_for_says_nothing(client: Client, provider: Provider) -> None:
    sign_in(client)
    end(client)
    forged = page(client, "/signed-out?state=forged")
    assert "Your session here has ended" in forged
    assert "signed out here and of" not in forged
    # Somebody who is signed in is not signed out by an address.
    sign_in(victim := another())
    assert victim.get("/signed-out?state=forged").headers["Location"] == "/"
    assert victim.get("/signed-out/provider").headers["Location"] == "/sign-in"
    assert is_in(victim)


def test_a_sign_out_at_the_provider_is_possible_for_ten_minutes(
    client: Client, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(client)
    end(client)
    now = time.time()
    monkeypatch.setattr("frontend.pages.sign_in.view.time.time", lambda: now + 601)
    assert client.get("/signed-out").headers["Location"] == "/sign-in"
    assert client.get("/signed-out/provider").headers["Location"] == "/sign-in"


@pytest.mark.parametrize("way", ["provider", "password"])
def test_who_signs_in_next_has_nothing_of_the_person_before(client: Client, provider: Provider, way: str) -> None:
    sign_in(client)
    end(client)
    provider.order(person={"sub": "2", "preferred_username": "oskar"})
    if way == "provider":
        assert sign_in(client).status_code == 302
    else:
        get_user_model().objects.create_user("oskar", password=PASSWORD)
        leave(client)
        assert client.post("/sign-in", {"username": "oskar", "password": PASSWORD}).status_code == 302
    assert is_in(client)
    assert sign_out.LEAVING not in client.session
    # Nor the ten minutes that a sign-out, or a sign-in that was begun, is kept for.
    assert client.session.get_expiry_age() > 3_600
    assert end(client) == ("/signed-out" if way == "provider" else "/sign-in")


def test_a_token_that_is_too_long_for_an_address_is_left_out(
    client: Client, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.order(person={"sub": "1", "preferred_username": "ines", "groups": ["g" * 40] * 100})
    sign_in(client)
    end(client)
    address = at_provider(client)
    assert "id_token_hint" not in query(address)
    assert len(address) < 1_000
    before = len(provider.ended())
    assert "signed out here and of" in page(client, approve(address))
    assert provider.ended()[before:] == [""]


def test_the_admin_signs_out_the_same_way(client: Client, provider: Provider, settings: SettingsWrapper) -> None:
    use(settings, provider, oidc_staff_group="desk")
    provider.order(person={"sub": "1", "preferred_username": "ines", "groups": ["desk"]})
    sign_in(client, "/admin/")
    assert client.get("/admin/logout/").status_code == 405
    answer = client.post("/admin/logout/")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/signed-out")
    assert not is_in(client)


def test_a_password_ends_at_the_sign_in(client: Client, provider: Provider) -> None:
    get_user_model().objects.create_user("mara", password=PASSWORD)
    client.post("/sign-in", {"username": "mara", "password": PASSWORD})
    assert end(client) == "/sign-in"


def test_it_takes_the_form_of_a_page(client: Client, provider: Provider, seed: Seed) -> None:
    sign_in(client)
    strict = Client(enforce_csrf_checks=True, SERVER_NAME="localhost")
    strict.cookies = client.cookies
    answer: Any = strict.post("/sign-out")
    assert answer.status_code == 403
    assert client.get("/sign-out").status_code == 405
    assert is_in(client)


def test_the_provider_refuses_what_a_provider_refuses(client: Client, provider: Provider) -> None:
    """The tests above could not fail otherwise."""
    sign_in(client)
    end(client)
    address = at_provider(client)
    for wrong in (address.replace("kcoord", "other"), address.replace("signed-out", "elsewhere")):
        assert httpx.get(wrong, timeout=30).status_code == 400
