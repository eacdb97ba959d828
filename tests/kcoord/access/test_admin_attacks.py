"""The admin gives nobody a way to more rights: not by tokens, rules, groups, accounts or passwords."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.db import connections
from django.http import HttpResponse
from django.test import Client
from pytest_django.fixtures import SettingsWrapper

from kcoord.access import store
from kcoord.access.people import principal_of
from kcoord.access.roles import ADMINISTRATOR, OPERATOR
from kcoord.access.store import HolderName
from kcoord.access.tokens import create_token, parse_rule
from kcoord.models import AccessRule, ApiToken

User = get_user_model()
PASSWORD = "correct horse battery staple"
NEW_RULE = {
    "effect": "allow", "operation": "admin", "resource": "group", "pattern": "prefix", "name": "", "id": "",
}  # fmt: skip
MANAGED = ("user", "group", "apitoken", "accessrule")
"""Models that an attacker here has all of Django's permissions for."""


@pytest.fixture(autouse=True)
def _fast_passwords(settings: SettingsWrapper) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def account(database: str) -> Iterator[Callable[..., Any]]:
    """Make a staff account with all of Django's permissions for accounts, groups, tokens and rules, and these rules."""
    suffix = secrets.token_hex(4)
    User.objects.filter(username__contains="-walk-").delete()

    def make(name: str, *rules: Any, superuser: bool = False) -> Any:
        made = User.objects.create_user(f"{name}-walk-{suffix}", password=PASSWORD, is_staff=True)
        made.is_superuser = superuser
        made.save()
        made.user_permissions.set(Permission.objects.filter(content_type__model__in=MANAGED))
        store.add_rules(HolderName("User", made.username), rules)
        return made

    yield make
    User.objects.filter(username__contains="-walk-").delete()
    Group.objects.filter(name__contains="-walk-").delete()
    connections.close_all()


def signed_in(person: Any) -> Client:
    client = Client()
    client.force_login(person)
    return client


def rule_form(holder: str, rules: list[dict[str, str]]) -> dict[str, str]:
    """What a browser sends for the inline rules of a new or changed row."""
    prefix = "rules" if holder == "token" else "access_rules"
    management = {f"{prefix}-TOTAL_FORMS": str(len(rules)), f"{prefix}-INITIAL_FORMS": "0"}
    return management | {
        f"{prefix}-{index}-{key}": value for index, one in enumerate(rules) for key, value in one.items()
    }


def changed_user(person: Any, **fields: Any) -> dict[str, Any]:
    """The form of the account's page, with changes."""
    joined = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    return {
        "username": person.username,
        "is_active": "on",
        "is_staff": "on",
        **joined,
        **rule_form("user", []),
        **fields,
    }


def refused(response: HttpResponse) -> bool:
    return response.status_code == 403


def test_an_operator_with_every_django_permission_gets_no_rights(account: Callable[..., Any]) -> None:
    """Its own account, another one, a superuser's password, a group, a token, a rule: each attempt is refused."""
    attacker = account("mallory", *OPERATOR.rules("team-"))
    root = account("root", superuser=True)
    team = Group.objects.create(name=f"admins-walk-{secrets.token_hex(4)}")
    store.add_rules(HolderName("Group", team.name), ADMINISTRATOR.rules())
    token = create_token(f"ops-{secrets.token_hex(4)}", [parse_rule("admin:group:*")])
    number = ApiToken.objects.get(name=token.name).pk
    client = signed_in(attacker)
    own, before = f"/admin/auth/user/{attacker.pk}/change/", AccessRule.objects.count()
    users, tokens = User.objects.count(), ApiToken.objects.count()
    rules = rule_form("user", [NEW_RULE])
    attempts = {
        "make oneself a superuser": client.post(own, changed_user(attacker, is_superuser="on")),
        "give oneself a rule": client.post(own, changed_user(attacker) | rules),
        "join the administrators": client.post(own, changed_user(attacker, groups=[str(team.pk)])),
        "set a superuser's password": client.post(
            f"/admin/auth/user/{root.pk}/password/", {"password1": "a" * 20, "password2": "a" * 20}
        ),
        "rename a superuser": client.post(f"/admin/auth/user/{root.pk}/change/", changed_user(root, username="x")),
        "delete a superuser": client.post(f"/admin/auth/user/{root.pk}/delete/", {"post": "yes"}),
        "add an account": client.post(
            "/admin/auth/user/add/", {"username": "eve", "password1": "a" * 20, "password2": "a" * 20}
        ),
        "give a group a rule": client.post(
            f"/admin/auth/group/{team.pk}/change/", {"name": team.name, **rule_form("group", [NEW_RULE])}
        ),
        "add a token": client.post(
            "/admin/kcoord/apitoken/add/", {"name": "mine", **rule_form("token", [NEW_RULE])}
        ),
        "give a token a rule": client.post(
            f"/admin/kcoord/apitoken/{number}/change/", {"name": token.name, **rule_form("token", [NEW_RULE])}
        ),
        "delete all accounts": client.post(
            "/admin/auth/user/", {"action": "delete_selected", "_selected_action": [str(root.pk)], "post": "yes"}
        ),
    }  # fmt: skip
    for attempt, response in attempts.items():
        if attempt != "delete all accounts":
            assert refused(response), (attempt, response.status_code)
    attacker.refresh_from_db()
    assert not attacker.is_superuser
    assert not attacker.groups.exists()
    assert not principal_of(attacker).administers
    assert AccessRule.objects.count() == before
    assert (User.objects.count(), ApiToken.objects.count()) == (users, tokens)
    root.refresh_from_db()
    assert root.check_password(PASSWORD)


def test_an_administrator_who_is_no_superuser_makes_none(account: Callable[..., Any]) -> None:
    administrator, root = account("ada", *ADMINISTRATOR.rules()), account("root", superuser=True)
    other = account("bob")
    client = signed_in(administrator)
    sent = changed_user(other, is_superuser="on", user_permissions=[str(Permission.objects.all()[0].pk)])
    other.user_permissions.clear()
    response = client.post(f"/admin/auth/user/{other.pk}/change/", sent | rule_form("user", [NEW_RULE]))
    assert response.status_code == 302, response.content.decode()[:2000]
    other.refresh_from_db()
    assert not other.is_superuser
    assert not other.user_permissions.exists()
    assert [str(rule) for rule in AccessRule.objects.filter(user=other)] == ["admin group:*"]
    assert refused(client.post(f"/admin/auth/user/{root.pk}/change/", changed_user(root, is_active="")))
    passwords = {"password1": "b" * 20, "password2": "b" * 20}
    assert refused(client.post(f"/admin/auth/user/{root.pk}/password/", passwords))
    assert refused(client.post(f"/admin/auth/user/{root.pk}/delete/", {"post": "yes"}))
    client.post("/admin/auth/user/", {"action": "delete_selected", "_selected_action": [str(root.pk)], "post": "yes"})
    root.refresh_from_db()
    assert root.is_active
    assert root.check_password(PASSWORD)


@pytest.mark.parametrize("page", ["user", "group"])
def test_an_administrator_gives_rules(account: Callable[..., Any], page: str) -> None:
    client = signed_in(account("ada", *ADMINISTRATOR.rules()))
    holder = account("bob") if page == "user" else Group.objects.create(name=f"team-walk-{secrets.token_hex(4)}")
    own = changed_user(holder) if page == "user" else {"name": holder.name}
    deny = {**NEW_RULE, "effect": "deny", "operation": "read", "pattern": "literal", "name": "g"}
    response = client.post(f"/admin/auth/{page}/{holder.pk}/change/", own | rule_form(page, [NEW_RULE, deny]))
    assert response.status_code == 302, response.content.decode()[:2000]
    assert {str(rule) for rule in AccessRule.objects.filter(**{page: holder})} == {"admin group:*", "deny read group:g"}


def test_cluster_admin_alone_is_no_administrator(account: Callable[..., Any]) -> None:
    attacker = account("mallory", *(rule for rule in ADMINISTRATOR.rules() if rule.resource == "cluster"))
    form = changed_user(attacker) | rule_form("user", [NEW_RULE])
    assert refused(signed_in(attacker).post(f"/admin/auth/user/{attacker.pk}/change/", form))
