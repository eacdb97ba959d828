"""Attacks on the way back from the provider: answers that nobody waits for, or used twice."""

from __future__ import annotations

import time
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from tests.frontend.identity.browsing import another, approve, broken, leave
from tests.support.identity_provider import Provider


@pytest.mark.parametrize(
    "path", ["?code=a&state=forged", "?code=a", "?code=a&state=", "?error=access_denied&state=forged", ""]
)
def test_an_answer_that_nobody_waits_for_is_refused(client: Client, provider: Provider, path: str) -> None:
    leave(client)
    before = provider.asked()
    broken(client, f"/sign-in/provider/answer{path}", 400)
    assert provider.asked() == [*before, "/asked"], "the provider was asked"


def test_an_answer_in_another_browser_is_refused(client: Client, provider: Provider) -> None:
    """An attacker who makes a victim open the end of the attacker's own sign-in."""
    back = approve(leave(client))
    broken(another(), back, 400)
    leave(victim := another())
    broken(victim, back, 400)


def test_an_answer_is_good_for_once(client: Client, provider: Provider) -> None:
    back = approve(leave(client))
    assert client.get(back).status_code == 302
    client.post("/sign-out")
    broken(client, back, 400)


def test_a_state_is_good_for_once_even_with_a_fresh_code(client: Client, provider: Provider) -> None:
    address = leave(client)
    first, second = approve(address), approve(address)
    provider.order(token_status=400)
    broken(client, first, 502)
    provider.order()
    broken(client, second, 400)


def test_a_code_is_good_for_once(client: Client, provider: Provider) -> None:
    first = approve(leave(client))
    state = parse_qs(urlsplit(approve(leave(client))).query)["state"][0]
    code = parse_qs(urlsplit(first).query)["code"][0]
    # The code of the first attempt under the state of the second: PKCE binds it to the first.
    broken(client, f"/sign-in/provider/answer?code={code}&state={state}", 502)


def test_an_attempt_is_too_old_after_ten_minutes(
    client: Client, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    back, now = approve(leave(client)), time.time()
    monkeypatch.setattr("frontend.pages.sign_in.view.time.time", lambda: now + 601)
    answer = client.get(back)
    assert answer.status_code == 400


def test_a_browser_has_five_attempts_at_a_time(client: Client, provider: Provider) -> None:
    addresses = [leave(client) for _ in range(7)]
    broken(client, approve(addresses[0]), 400)
    assert client.get(approve(addresses[2])).status_code == 302
