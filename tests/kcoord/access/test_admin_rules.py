"""Rules given in the admin: checked, recorded and made known as those that are added in other ways."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import connections
from django.test import Client

from kcoord.access import store
from kcoord.access.roles import OPERATOR, roles_of
from kcoord.access.tokens import Rule, create_token, parse_rule
from kcoord.models import AccessRule, ApiToken, AuditRecord

RULE = {"effect": "deny", "operation": "delete", "resource": "group", "pattern": "prefix", "name": "billing-"}
HOLDERS = ("user", "group", "token")


@pytest.fixture
def admin(database: str) -> Iterator[Client]:
    """A superuser's browser."""
    name = f"root-{secrets.token_hex(4)}"
    root = get_user_model().objects.create_superuser(name)
    client = Client()
    client.force_login(root)
    yield client
    get_user_model().objects.filter(username__contains="-given-").delete()
    get_user_model().objects.filter(username=name).delete()
    Group.objects.filter(name__contains="-given-").delete()
    connections.close_all()


def made(kind: str) -> tuple[str, Any]:
    """A new holder without rules that deny, and its page in the admin."""
    name = f"{kind}-given-{secrets.token_hex(4)}"
    if kind == "user":
        found = get_user_model().objects.create_user(name)
        return f"/admin/auth/user/{found.pk}/change/", found
    if kind == "group":
        team = Group.objects.create(name=name)
        return f"/admin/auth/group/{team.pk}/change/", team
    create_token(name, [parse_rule("read:group:*")])
    token = ApiToken.objects.get(name=name)
    return f"/admin/kcoord/apitoken/{token.pk}/change/", token


def sent(kind: str, holder: Any, *rules: dict[str, str], **more: str) -> dict[str, Any]:
    """What a browser sends: the holder as it is, and these new rules."""
    prefix = "rules" if kind == "token" else "access_rules"
    old = list(AccessRule.objects.filter(**{kind: holder}))
    form: dict[str, Any] = {
        "name": getattr(holder, "name", ""),
        f"{prefix}-TOTAL_FORMS": str(len(old) + len(rules)),
        f"{prefix}-INITIAL_FORMS": str(len(old)),
        **more,
    }
    if kind == "user":
        joined = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
        form |= {"username": holder.get_username(), "is_active": "on", **joined}
    for index, row in enumerate(old):
        fields = ("effect", "operation", "resource", "pattern", "name")
        form |= {f"{prefix}-{index}-{field}": getattr(row, field) for field in fields}
        form |= {f"{prefix}-{index}-id": row.pk, f"{prefix}-{index}-{kind}": holder.pk}
    for index, rule in enumerate(rules, len(old)):
        form |= {f"{prefix}-{index}-{field}": value for field, value in rule.items()}
    return form


@pytest.mark.parametrize("kind", HOLDERS)
def test_a_rule_of_the_admin_is_recorded_and_every_process_is_told(admin: Client, database: str, kind: str) -> None:
    page, holder = made(kind)
    before = AuditRecord.objects.count()
    with psycopg.connect(database, autocommit=True) as listening:
        listening.execute("listen kcoord_tokens")
        answer = admin.post(page, sent(kind, holder, RULE))
        assert answer.status_code == 302, answer.content.decode()
        assert len(list(listening.notifies(timeout=10, stop_after=1))) == 1
    assert "deny delete group:billing-*" in map(str, AccessRule.objects.filter(**{kind: holder}))
    records = AuditRecord.objects.order_by("seq")[before:]
    acts = [one.act for one in records if "deny delete group:billing-*" in str(one.after)]
    assert acts == ["token.change" if kind == "token" else "rule.add"]


@pytest.mark.parametrize("kind", HOLDERS)
@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        ([{**RULE, "pattern": "literal", "name": ""}], "It is missing"),
        ([{**RULE, "name": "a\0b"}], "Null characters are not allowed"),
        ([{**RULE, "name": "x" * 256}], "at most 255"),
        ([{**RULE, "operation": "fly"}], "not one of the available choices"),
        ([RULE, RULE], "duplicate"),
    ],
)
def test_a_rule_that_cannot_be_stored_is_refused(
    admin: Client, kind: str, rules: list[dict[str, str]], complaint: str
) -> None:
    page, holder = made(kind)
    before = AccessRule.objects.count(), AuditRecord.objects.count()
    answer = admin.post(page, sent(kind, holder, *rules))
    assert answer.status_code == 200
    assert complaint in answer.content.decode()
    assert (AccessRule.objects.count(), AuditRecord.objects.count()) == before


@pytest.mark.parametrize("kind", ["user", "group"])
def test_a_role_is_given_in_one_step(admin: Client, kind: str) -> None:
    page, holder = made(kind)
    assert "Give a role" in admin.get(page).content.decode()
    refused = admin.post(page, sent(kind, holder, give_role="administrator", role_prefix="billing-"))
    assert "leave the prefix out" in refused.content.decode()
    assert "It belongs to a role" in admin.post(page, sent(kind, holder, role_prefix="x")).content.decode()
    assert store.rules_of(holder) == []
    for _ in range(2):  # what it has already is not added again
        answer = admin.post(page, sent(kind, holder, give_role="operator", role_prefix="billing-"))
        assert answer.status_code == 302, answer.content.decode()
    assert roles_of(store.rules_of(holder)) == [(OPERATOR, "billing-")]
    assert len(store.rules_of(holder)) == len(OPERATOR.rules("billing-"))
    principal = f"{kind.capitalize()}:{holder}"
    assert AuditRecord.objects.filter(act="rule.add", name=principal).count() == 1


def test_a_new_group_of_people_gets_a_role(admin: Client) -> None:
    name = f"group-given-{secrets.token_hex(4)}"
    inline = {"access_rules-TOTAL_FORMS": "0", "access_rules-INITIAL_FORMS": "0"}
    answer = admin.post("/admin/auth/group/add/", {"name": name, "give_role": "viewer", "role_prefix": "", **inline})
    assert answer.status_code == 302, answer.content.decode()
    assert [one.key for one, _ in roles_of(store.rules_of(Group.objects.get(name=name)))] == ["viewer"]
    page = admin.get("/admin/auth/group/").content.decode()
    assert page.count("Groups of people") >= 2, "the menu and the page itself"
    assert "Sets of permissions" not in page


def test_a_token_is_not_made_with_a_rule_that_cannot_be_stored(database: str) -> None:
    for rule in (
        Rule("fly", "group", "prefix", ""),
        Rule("read", "group", "literal", ""),
        Rule("read", "x", "prefix", ""),
    ):
        with pytest.raises(ValueError, match=r"^(operation|name|resource): "):
            create_token(f"token-given-{secrets.token_hex(4)}", [parse_rule("read:group:*"), rule])
    assert not ApiToken.objects.filter(name__startswith="token-given-").exists()
