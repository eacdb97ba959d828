"""Accounts that others have, and passwords beside the provider."""

from __future__ import annotations

import pytest
from django.contrib.auth import SESSION_KEY, get_user_model
from django.test import Client
from pytest_django.fixtures import SettingsWrapper

from frontend.models import ProviderIdentity
from tests.frontend.conftest import PASSWORD
from tests.frontend.identity.browsing import BACKENDS, another, approve, broken, is_in, leave, sign_in, use
from tests.support.identity_provider import Provider


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
    browser = another()
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
    browser = another()
    broken(browser, approve(leave(browser)), 403)


@pytest.mark.parametrize("name", ["", "with space", "x" * 151, 7, None, "\ufb01ne", "<script>"])
def test_a_user_name_that_cannot_be_stored_as_it_is_is_refused(
    client: Client, provider: Provider, name: object
) -> None:
    """A ligature would be stored as two letters, which may be the name of somebody else."""
    provider.order(person={"sub": "1", "preferred_username": name})
    broken(client, approve(leave(client)), 502)


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
