"""Sign-in at an identity provider, against one that runs in a process of its own, and attacks on the way back."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.auth.models import Group
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.test import Client
from pytest_django.fixtures import SettingsWrapper
from structlog.testing import capture_logs

from frontend.identity import transport
from frontend.models import ProviderIdentity
from kcoord.config import Config
from tests.frontend.conftest import PASSWORD
from tests.support.identity_provider import Provider, identity_provider

BACKENDS = ["frontend.identity.backends.PasswordBackend", "frontend.identity.backends.ProviderBackend"]


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    """The provider of the tests of this file."""
    with identity_provider() as found:
        yield found


@pytest.fixture
def provider(running: Provider, settings: SettingsWrapper, client: Client) -> Provider:
    """The provider, honest again, and settings that name it."""
    running.order()
    use(settings, running)
    Group.objects.all().delete()
    return running


def use(settings: SettingsWrapper, provider: Provider, **more: Any) -> None:
    """Configure it; names have `_` for `.`."""
    settings.AUTHENTICATION_BACKENDS = BACKENDS
    settings.KCOORD = Config(provider.settings()).override({name.replace("_", "."): more[name] for name in more})


def leave(client: Client, next_url: str = "") -> str:
    """Begin; the address at the provider."""
    answer = client.get("/sign-in/provider", {"next": next_url} if next_url else {})
    assert answer.status_code == 302, answer.content.decode()
    return str(answer.headers["Location"])


def approve(address: str) -> str:
    """What a browser does at the provider: the path with which it comes back."""
    back = httpx.get(address, timeout=30)
    assert back.status_code == 302, back.text
    parts = urlsplit(back.headers["Location"])
    assert (parts.scheme, parts.netloc) == ("http", "localhost")
    return f"{parts.path}?{parts.query}"


@pytest.fixture
def client(client: Client) -> Client:
    """A browser on the machine of the server, where http is allowed."""
    client.defaults["SERVER_NAME"] = "localhost"
    return client


def sign_in(client: Client, next_url: str = "") -> Any:
    return client.get(approve(leave(client, next_url)))


def is_in(client: Client) -> bool:
    return client.get("/groups").status_code == 200


# What happens when nothing is wrong


def test_a_new_person_gets_an_account_and_the_page_that_was_asked_for(client: Client, provider: Provider) -> None:
    email = {"email": "i@corp.example", "email_verified": True}
    provider.order(person={"sub": "77", "preferred_username": "ines", **email})
    answer = sign_in(client, "/groups/billing?tab=lag")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/groups/billing?tab=lag")
    assert is_in(client)
    ines = get_user_model().objects.get(username="ines")
    assert ines.email == "i@corp.example"
    assert [ines.is_staff, ines.is_superuser, ines.has_usable_password()] == [False, False, False]
    found = ProviderIdentity.objects.get(user=ines)
    assert (found.issuer, found.subject) == (provider.issuer, "77")


def test_the_account_is_found_by_sub_although_the_name_changed(client: Client, provider: Provider) -> None:
    sign_in(client)
    provider.order(person={"sub": "1", "preferred_username": "ines.new"})
    sign_in(other := Client(SERVER_NAME="localhost"))
    assert is_in(other)
    assert [user.username for user in get_user_model().objects.all()] == ["ines"]


def test_the_session_id_changes_and_the_session_ends_at_a_set_time(
    client: Client, provider: Provider, settings: SettingsWrapper
) -> None:
    use(settings, provider, oidc_session_max_age_ms=60_000)
    address = leave(client)
    planted = client.cookies["sessionid"].value
    answer = client.get(approve(address))
    fresh = answer.cookies["sessionid"]
    assert fresh.value != planted
    assert 50 < client.session.get_expiry_age() <= 60
    # It does not move when the person comes back.
    session, before = client.session, client.session.get_expiry_date()
    session["anything"] = 1
    session.save()
    assert client.session.get_expiry_date() == before
    thief = Client(SERVER_NAME="localhost")
    thief.cookies["sessionid"] = planted
    assert not is_in(thief)


def test_groups_follow_the_provider_at_each_sign_in(
    client: Client, provider: Provider, settings: SettingsWrapper
) -> None:
    use(settings, provider, oidc_group_map="CN=ops,OU=x=operators; readers=viewers;readers=others")
    provider.order(person={"sub": "1", "preferred_username": "ines", "groups": ["CN=ops,OU=x", "readers", "unmapped"]})
    sign_in(client)
    ines = get_user_model().objects.get(username="ines")
    assert sorted(ines.groups.values_list("name", flat=True)) == ["operators", "others", "viewers"]
    ines.groups.add(Group.objects.create(name="given by hand"))
    provider.order(person={"sub": "1", "preferred_username": "ines", "groups": "readers"})
    sign_in(Client(SERVER_NAME="localhost"))
    assert sorted(ines.groups.values_list("name", flat=True)) == ["others", "viewers"]


def test_without_a_map_groups_are_left_alone(client: Client, provider: Provider) -> None:
    sign_in(client)
    ines = get_user_model().objects.get(username="ines")
    ines.groups.add(Group.objects.create(name="given by hand"))
    sign_in(Client(SERVER_NAME="localhost"))
    assert ines.groups.count() == 1


def test_superusers_and_staff_are_made_by_named_groups_only_and_unmade(
    client: Client, provider: Provider, settings: SettingsWrapper
) -> None:
    person = {"sub": "1", "preferred_username": "ines", "is_superuser": True, "groups": ["root", "desk", ""]}
    provider.order(person=person)

    def rights(**more: str) -> tuple[bool, bool]:
        use(settings, provider, **more)
        sign_in(Client(SERVER_NAME="localhost"))
        ines = get_user_model().objects.get(username="ines")
        return ines.is_staff, ines.is_superuser

    assert rights() == (False, False)
    assert rights(oidc_staff_group="desk") == (True, False)
    assert rights(oidc_superuser_group="root") == (True, True)
    assert rights(oidc_superuser_group="roots") == (False, False)


def test_only_members_of_allowed_groups_come_in(client: Client, provider: Provider, settings: SettingsWrapper) -> None:
    use(settings, provider, oidc_allowed_groups="staff;kafka users")
    for groups, status in ((["kafka users"], 302), (["kafka"], 403), ([], 403), (None, 403), ({"kafka users": 1}, 403)):
        provider.order(person={"sub": "1", "preferred_username": "ines", "groups": groups})
        answer = sign_in(browser := Client(SERVER_NAME="localhost"))
        assert answer.status_code == status, groups
        assert is_in(browser) == (status == 302)
    assert "kafka users" not in answer.content.decode()


def test_claims_that_only_userinfo_has_are_read_there(
    client: Client, provider: Provider, settings: SettingsWrapper
) -> None:
    use(settings, provider, oidc_allowed_groups="ops")
    person = {"sub": "1", "preferred_username": "ines", "groups": ["ops"]}
    provider.order(person=person, only_userinfo=["preferred_username", "groups"])
    assert sign_in(client).status_code == 302
    provider.order(person=person, only_userinfo=["groups"], userinfo_sub="2")
    assert sign_in(Client(SERVER_NAME="localhost")).status_code == 502


def test_the_secret_is_read_from_a_file_at_each_sign_in(
    client: Client, provider: Provider, settings: SettingsWrapper, tmp_path: Any
) -> None:
    file = tmp_path / "secret"
    use(settings, provider, oidc_client_secret="", oidc_client_secret_file=str(file))
    assert sign_in(client).status_code == 502
    file.write_text("s3cret & more\n")
    assert sign_in(client).status_code == 302


def test_new_keys_of_the_provider_are_read_when_they_are_needed(client: Client, provider: Provider) -> None:
    sign_in(client)
    provider.rotate()
    before = provider.asked().count("/keys")
    assert sign_in(Client(SERVER_NAME="localhost")).status_code == 302
    assert provider.asked().count("/keys") == before + 1


def test_the_admin_is_entered_the_same_way(client: Client, provider: Provider, settings: SettingsWrapper) -> None:
    use(settings, provider, oidc_staff_group="desk")
    provider.order(person={"sub": "1", "preferred_username": "ines", "groups": ["desk"]})
    asked = client.get("/admin/", follow=True)
    assert 'href="/sign-in/provider?next=%2Fadmin%2F"' in asked.content.decode()
    assert sign_in(client, "/admin/").headers["Location"] == "/admin/"
    assert client.get("/admin/").status_code == 200


def test_without_a_provider_there_is_no_button_and_no_way(client: Client) -> None:
    assert "/sign-in/provider" not in client.get("/sign-in").content.decode()
    assert client.get("/sign-in/provider").status_code == client.get("/sign-in/provider/answer").status_code == 404


# Attacks


def broken(client: Client, path: str, status: int) -> str:
    """Come back with `path`; nobody is signed in, and the page says nothing that the provider said."""
    answer = client.get(path)
    text = answer.content.decode()
    assert answer.status_code == status, text
    assert SESSION_KEY not in client.session
    assert not is_in(client)
    assert "internal-host-7" not in text
    assert "Sign-in failed" in text
    return text


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
    broken(Client(SERVER_NAME="localhost"), back, 400)
    leave(victim := Client(SERVER_NAME="localhost"))
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
    monkeypatch.setattr("frontend.views.identity.time.time", lambda: now + 601)
    answer = client.get(back)
    assert answer.status_code == 400


def test_a_browser_has_five_attempts_at_a_time(client: Client, provider: Provider) -> None:
    addresses = [leave(client) for _ in range(7)]
    broken(client, approve(addresses[0]), 400)
    assert client.get(approve(addresses[2])).status_code == 302


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
        pytest.param({"signed": "HS256-public-key"}, id="HS256 with the public key"),
        pytest.param({"signed": "HS256-secret"}, id="HS256 with the client secret"),
        pytest.param({"signed": "other-key"}, id="another key under a known id"),
        pytest.param({"signed": "unknown-kid"}, id="unknown key id"),
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
    broken(Client(SERVER_NAME="localhost"), approve(leave(browser := Client(SERVER_NAME="localhost"))), 400)
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
    monkeypatch.setattr(transport, "LARGEST_ANSWER", 100)
    assert client.get("/sign-in/provider").status_code == 502


def test_no_page_of_another_host_is_opened_afterwards(client: Client, provider: Provider) -> None:
    for target in ("https://elsewhere.example/", "//elsewhere.example", "/\\elsewhere.example", "javascript:alert(1)"):
        browser = Client(SERVER_NAME="localhost")
        assert sign_in(browser, target).headers["Location"] == "/", target
        # Somebody who is signed in already is not sent there either.
        assert browser.get("/sign-in/provider", {"next": target}).headers["Location"] == "/"


def test_without_https_nobody_is_sent_away(client: Client, provider: Provider, settings: SettingsWrapper) -> None:
    settings.ALLOWED_HOSTS = ["kcoord.example"]
    answer = client.get("/sign-in/provider", SERVER_NAME="kcoord.example")
    assert answer.status_code == 400
    assert "X-Forwarded-Proto" in answer.content.decode()
    assert client.get("/sign-in/provider", SERVER_NAME="kcoord.example", secure=True).status_code == 302
    assert client.get("/sign-in/provider", SERVER_NAME="elsewhere.example").status_code == 400


# Accounts that others have


@pytest.mark.parametrize("rights", [{}, {"is_superuser": True, "is_staff": True}])
def test_a_name_at_the_provider_takes_over_no_account_with_a_password(
    client: Client, provider: Provider, rights: dict[str, bool]
) -> None:
    get_user_model().objects.create_user("ines", password=PASSWORD, **rights)
    text = broken(client, approve(leave(client)), 403)
    assert "belongs to somebody else" in text


def test_a_superuser_without_a_password_is_taken_over_by_nobody(client: Client, provider: Provider) -> None:
    get_user_model().objects.create_user("ines", is_superuser=True)
    broken(client, approve(leave(client)), 403)


def test_a_second_person_of_the_same_name_does_not_get_the_account(client: Client, provider: Provider) -> None:
    sign_in(client)
    provider.order(person={"sub": "2", "preferred_username": "ines"})
    browser = Client(SERVER_NAME="localhost")
    broken(browser, approve(leave(browser)), 403)


def test_an_account_prepared_without_a_password_is_linked(
    client: Client, provider: Provider, settings: SettingsWrapper
) -> None:
    use(settings, provider, oidc_create_accounts=False)
    text = broken(client, approve(leave(client)), 403)
    assert "KCOORD_OIDC_CREATE_ACCOUNTS" in text
    prepared = get_user_model().objects.create_user("ines")
    assert sign_in(client).status_code == 302
    assert client.session[SESSION_KEY] == str(prepared.pk)


def test_a_deactivated_account_stays_out_and_its_session_ends(client: Client, provider: Provider) -> None:
    sign_in(client)
    get_user_model().objects.update(is_active=False)
    assert not is_in(client)
    browser = Client(SERVER_NAME="localhost")
    broken(browser, approve(leave(browser)), 403)


@pytest.mark.parametrize("name", ["", "with space", "x" * 151, 7, None, "\ufb01ne", "<script>"])
def test_a_user_name_that_cannot_be_stored_as_it_is_is_refused(
    client: Client, provider: Provider, name: object
) -> None:
    """A ligature would be stored as two letters, which may be the name of somebody else."""
    provider.order(person={"sub": "1", "preferred_username": name})
    broken(client, approve(leave(client)), 502)


# Passwords beside it


def test_for_emergencies_only_superusers_without_an_identity_have_a_password(
    client: Client, provider: Provider, settings: SettingsWrapper
) -> None:
    get_user_model().objects.create_user("mara", password=PASSWORD)
    root = get_user_model().objects.create_superuser("root", password=PASSWORD)
    client.post("/sign-in", {"username": "mara", "password": PASSWORD})
    assert is_in(client)
    use(settings, provider, password_sign_in="emergency")
    assert not is_in(client)
    answer = client.post("/sign-in", {"username": "mara", "password": PASSWORD})
    assert "Wrong user name or password" in answer.content.decode()
    assert client.post("/sign-in", {"username": "root", "password": PASSWORD}).status_code == 302
    ProviderIdentity.objects.create(user=root, issuer="https://x.example", subject="1")
    assert not is_in(client)


def test_sessions_of_the_provider_end_when_it_is_no_longer_configured(
    client: Client, provider: Provider, settings: SettingsWrapper
) -> None:
    sign_in(client)
    settings.AUTHENTICATION_BACKENDS = BACKENDS[:1]
    assert not is_in(client)


def test_an_account_of_the_provider_has_no_password_to_change(client: Client, provider: Provider) -> None:
    sign_in(client)
    assert client.get("/password").status_code == 403


def test_sign_ins_and_refusals_are_told_to_who_listens(client: Client, provider: Provider) -> None:
    told: list[tuple[str, str]] = []

    def came(user: Any, **_: Any) -> None:
        told.append(("in", user.get_username()))

    def failed(credentials: dict[str, str], request: Any, **_: Any) -> None:
        assert request.META["REMOTE_ADDR"]
        told.append((credentials["reason"], credentials["username"]))

    user_logged_in.connect(came)
    user_login_failed.connect(failed)
    try:
        sign_in(client)
        provider.order(person={"sub": "2", "preferred_username": "ines"})
        sign_in(Client(SERVER_NAME="localhost"))
        client.get("/sign-in/provider/answer?state=x")
    finally:
        user_logged_in.disconnect(came)
        user_login_failed.disconnect(failed)
    assert told == [("in", "ines"), ("NAME_TAKEN", "ines"), ("NOT_STARTED_HERE", "")]
