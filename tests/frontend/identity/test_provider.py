"""A provider whose tokens, documents or answers are wrong, or that does not answer."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from pytest_django.fixtures import SettingsWrapper
from structlog.testing import capture_logs

from kcoord.door.http import outgoing
from tests.frontend.identity.browsing import another, approve, broken, leave, sign_in, use
from tests.support.identity_provider import Provider

NOW = int(time.time())


@pytest.mark.parametrize(
    "orders",
    [
        pytest.param({"claims": {"nonce": "another"}}, id="wrong nonce"),
        pytest.param({"claims": {"nonce": None}}, id="no nonce"),
        pytest.param({"claims": {"iss": "https://elsewhere.example"}}, id="wrong issuer"),
        pytest.param({"claims": {"iss": None}}, id="no issuer"),
        pytest.param({"claims": {"aud": "another-client"}}, id="wrong audience"),
        pytest.param({"claims": {"aud": ["another-client"]}}, id="wrong audiences"),
        pytest.param({"claims": {"aud": "another-client", "azp": "kcoord:test"}}, id="for another at our request"),
        pytest.param({"claims": {"aud": None}}, id="no audience"),
        pytest.param({"claims": {"aud": ["kcoord:test", "x"], "azp": "x"}}, id="made for another party"),
        pytest.param({"claims": {"exp": NOW - 61}}, id="expired"),
        pytest.param({"claims": {"exp": None}}, id="no expiry"),
        pytest.param({"claims": {"iat": NOW + 3_600, "exp": NOW + 7_200}}, id="of the future"),
        pytest.param({"claims": {"nbf": NOW + 3_600}}, id="not yet valid"),
        pytest.param({"claims": {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}}, id="of another access token"),
        pytest.param({"claims": {"sub": None}}, id="nobody"),
        pytest.param({"claims": {"sub": ""}}, id="empty sub"),
        pytest.param({"claims": {"sub": 7}}, id="sub of another type"),
        pytest.param({"claims": {"sub": "x" * 256}}, id="long sub"),
        pytest.param({"signed": "none"}, id="unsigned"),
        pytest.param({"signed": "None"}, id="unsigned, in other letters"),
        pytest.param({"signed": "HS256-public-key"}, id="HS256 with the public key"),
        pytest.param({"signed": "HS256-secret"}, id="HS256 with the client secret"),
        pytest.param({"signed": "other-key"}, id="another key under a known id"),
        pytest.param({"signed": "unknown-kid"}, id="unknown key id"),
        pytest.param({"signed": "no-kid"}, id="another key without an id"),
        pytest.param({"signed": "key-inside"}, id="the key is in the token"),
        pytest.param({"signed": "tampered"}, id="changed after it was signed"),
        pytest.param({"iss_of_answer": "https://elsewhere.example"}, id="answer of another provider"),
        pytest.param({"token_status": 400}, id="refused code"),
    ],
)
def test_a_token_that_is_not_right_in_every_way_is_refused(
    client: Client, provider: Provider, orders: dict[str, Any], settings: SettingsWrapper
) -> None:
    use(settings, provider, oidc_superuser_group="superusers")
    provider.order(**orders)
    broken(client, approve(leave(client)), 502)
    assert not get_user_model().objects.exists()


def test_the_clock_of_the_provider_may_be_off_by_the_setting(
    client: Client, provider: Provider, settings: SettingsWrapper
) -> None:
    now = int(time.time())
    provider.order(claims={"iat": now - 400, "exp": now - 100})
    use(settings, provider, oidc_clock_skew_ms=300_000)
    assert sign_in(client).status_code == 302
    use(settings, provider, oidc_clock_skew_ms=0)
    broken(another(), approve(leave(browser := another())), 400)
    assert sign_in(browser).status_code == 502


def test_a_provider_that_promises_iss_must_send_it(client: Client, provider: Provider) -> None:
    promise = {"authorization_response_iss_parameter_supported": True}
    provider.order(metadata=promise)
    broken(client, approve(leave(client)), 502)
    provider.order(metadata=promise, iss_of_answer=provider.issuer)
    assert sign_in(client).status_code == 302


@pytest.mark.parametrize(
    ("metadata", "status"),
    [
        ({"issuer": "https://elsewhere.example"}, 502),
        ({"authorization_endpoint": "http://elsewhere.example/"}, 502),
        ({"authorization_endpoint": "javascript:alert(1)"}, 502),
        ({"authorization_endpoint": None}, 502),
    ],
)
def test_a_discovery_document_that_cannot_be_trusted_is_refused(
    client: Client, provider: Provider, metadata: dict[str, Any], status: int
) -> None:
    provider.order(metadata=metadata)
    assert client.get("/sign-in/provider").status_code == status


@pytest.mark.parametrize("name", ["token_endpoint", "jwks_uri"])
def test_nothing_is_sent_without_https(client: Client, provider: Provider, name: str) -> None:
    provider.order(metadata={name: "http://elsewhere.example/"})
    broken(client, approve(leave(client)), 502)


def test_redirects_of_the_token_endpoint_are_not_followed(client: Client, provider: Provider) -> None:
    """The code, its verifier and the client's secret would go with them."""
    provider.order(redirects=f"{provider.issuer}/userinfo")
    back = approve(leave(client))
    before = provider.asked().count("/userinfo")
    broken(client, back, 502)
    assert provider.asked().count("/userinfo") == before


def test_an_error_of_the_provider_is_explained_and_its_words_are_in_the_log(client: Client, provider: Provider) -> None:
    provider.order(error="access_denied")
    with capture_logs() as lines:
        text = broken(client, approve(leave(client)), 403)
    assert "did not sign you in" in text
    (line,) = [line for line in lines if line["event"] == "identity_refused"]
    assert (line["reason"], line["detail"]) == ("DENIED", "access_denied: <b>internal-host-7</b>")


def test_a_provider_that_is_down_or_broken_is_named_as_the_cause(
    client: Client, provider: Provider, settings: SettingsWrapper
) -> None:
    provider.order(token_status=500)
    broken(client, approve(leave(client)), 503)
    use(settings, provider, oidc_issuer="http://127.0.0.1:1")
    assert client.get("/sign-in/provider").status_code == 503
    assert client.get("/sign-in").status_code == 200


def test_a_provider_that_is_silent_holds_nobody_for_longer_than_the_limit(
    client: Client, provider: Provider, settings: SettingsWrapper
) -> None:
    back = approve(leave(client))
    use(settings, provider, oidc_timeout_ms=200)
    os.kill(provider.process.pid, signal.SIGSTOP)
    try:
        text = broken(client, back, 503)
        assert "KCOORD_OIDC_ISSUER" in text
        assert client.get("/sign-in/provider").status_code == 503
    finally:
        os.kill(provider.process.pid, signal.SIGCONT)


def test_a_provider_that_sends_a_byte_at_a_time_is_given_up(
    client: Client, provider: Provider, settings: SettingsWrapper
) -> None:
    use(settings, provider, oidc_timeout_ms=300)
    provider.order(drip=True)
    assert client.get("/sign-in/provider").status_code == 503


def test_an_answer_that_is_too_large_is_given_up(
    client: Client, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing, "LARGEST_ANSWER", 100)
    assert client.get("/sign-in/provider").status_code == 502
