"""What happens at sign-in when nothing is wrong, and to whom it is told."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.test import Client
from pytest_django.fixtures import SettingsWrapper

from frontend.models import ProviderIdentity
from tests.frontend.identity.browsing import another, approve, is_in, leave, sign_in, use
from tests.support.identity_provider import Provider


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
    sign_in(other := another())
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
    thief = another()
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
    sign_in(another())
    assert sorted(ines.groups.values_list("name", flat=True)) == ["others", "viewers"]


def test_without_a_map_groups_are_left_alone(client: Client, provider: Provider) -> None:
    sign_in(client)
    ines = get_user_model().objects.get(username="ines")
    ines.groups.add(Group.objects.create(name="given by hand"))
    sign_in(another())
    assert ines.groups.count() == 1


def test_superusers_and_staff_are_made_by_named_groups_only_and_unmade(
    client: Client, provider: Provider, settings: SettingsWrapper
) -> None:
    person = {"sub": "1", "preferred_username": "ines", "is_superuser": True, "groups": ["root", "desk", ""]}
    provider.order(person=person)

    def rights(**more: str) -> tuple[bool, bool]:
        use(settings, provider, **more)
        sign_in(another())
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
        answer = sign_in(browser := another())
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
    assert sign_in(another()).status_code == 502


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
    assert sign_in(another()).status_code == 302
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


def test_no_page_of_another_host_is_opened_afterwards(client: Client, provider: Provider) -> None:
    for target in ("https://elsewhere.example/", "//elsewhere.example", "/\\elsewhere.example", "javascript:alert(1)"):
        browser = another()
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
        sign_in(another())
        client.get("/sign-in/provider/answer?state=x")
    finally:
        user_logged_in.disconnect(came)
        user_login_failed.disconnect(failed)
    assert told == [("in", "ines"), ("NAME_TAKEN", "ines"), ("NOT_STARTED_HERE", "")]
