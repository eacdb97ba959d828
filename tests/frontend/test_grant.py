"""Granting rights in the dashboard: to people, groups of people and tokens, with a preview."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client

from kcoord.access import store
from kcoord.access.store import HolderName
from kcoord.access.tokens import create_token, parse_rule
from kcoord.models import AccessRule
from tests.frontend.seed import Seed

VIEWER = {"kind": "User", "holder": "ben", "preset": "viewer-role", "prefix": "billing-"}


@pytest.fixture
def ben(seed: Seed) -> object:
    """Somebody without rules."""
    return get_user_model().objects.create_user("ben")


def said(answer: object) -> str:
    """The text of a page without its tags."""
    html = answer.content.decode()  # type: ignore[attr-defined]
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", html)))


def preview(person: Client, **fields: str) -> str:
    """What the form says of the fields before anything is granted."""
    return said(person.post("/access/grant", {**VIEWER, **fields, "act": "preview"}, headers={"HX-Request": "true"}))


def rules(holder: str) -> list[str]:
    """The rules of a holder."""
    return sorted(str(row) for row in store.listed(store.RuleFilter([store.parse_holder(holder)])))


def test_a_person_gets_a_role_on_a_prefix(operator: Client, ben: object) -> None:
    answer = operator.post("/access/grant", VIEWER, follow=True)
    assert "ben has 3 new rules." in said(answer)
    assert rules("User:ben") == [
        f"describe {resource}:billing-*" for resource in ("group", "topic", "transactional-id")
    ]
    assert "ben has these rules already." in said(operator.post("/access/grant", VIEWER, follow=True))


def test_the_preview_counts_what_can_be_seen_and_grants_nothing(operator: Client, seed: Seed, ben: object) -> None:
    for name in ("billing-eu", "billing-us", "orders"):
        seed.group(name)
    seed.topic("orders", 1)
    own = {"preset": "custom", "rules": "describe:group:billing-*"}
    text = preview(operator, **own)
    assert "see groups that begin with billing-, with members, offsets and lag" in text
    assert "Of what exists now, they see 2 groups (billing-eu and billing-us) and 0 topics." in text
    assert not AccessRule.objects.exists()


def test_the_preview_includes_the_rules_of_groups_of_people(operator: Client, seed: Seed, ben: object) -> None:
    seed.group("orders")
    team = Group.objects.create(name="readers")
    team.user_set.add(ben)  # type: ignore[arg-type]
    store.add_rules(HolderName("Group", "readers"), [parse_rule("describe:group:orders")])
    assert "they see 1 group (orders)" in preview(operator, preset="custom", rules="read:group:billing")
    assert "they see 0 groups" in preview(operator, preset="custom", rules="deny:describe:group:orders")


def test_a_group_of_people_is_made_with_people_in_it(operator: Client, ben: object) -> None:
    fields = {**VIEWER, "kind": "Group", "holder": "billing team", "new": "yes", "people": "ben"}
    operator.post("/access/grant", fields)
    assert [person.get_username() for person in Group.objects.get(name="billing team").user_set.all()] == ["ben"]
    assert len(rules("Group:billing team")) == 3


def test_a_token_gets_rules(operator: Client, seed: Seed) -> None:
    create_token("ops", [parse_rule("read:group:a")])
    operator.post(
        "/access/grant", {**VIEWER, "kind": "Token", "holder": "ops", "preset": "custom", "rules": "kick:group:a"}
    )
    assert rules("Token:ops") == ["kick group:a", "read group:a"]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"holder": ""}, "Name: write who gets the rules."),
        ({"holder": "nobody"}, "Name: there is no account 'nobody'; create it first."),
        ({"kind": "Group", "holder": "team"}, "Name: there is no group of people 'team'; create it first."),
        ({"kind": "Group", "holder": "team", "people": "ben"}, "create it with the box below the name."),
        ({"kind": "Group", "holder": "team", "new": "yes", "people": "x"}, "People: there is no account 'x'"),
        ({"preset": ""}, "Choose what the rules are for."),
        ({"prefix": ""}, "Prefix: write how the names begin"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_changes(
    operator: Client, ben: object, fields: dict[str, str], complaint: str
) -> None:
    answer = operator.post("/access/grant", {**VIEWER, **fields})
    assert answer.status_code == 400
    assert complaint in said(answer)
    assert not AccessRule.objects.exists()
    assert not Group.objects.filter(name="team").exists()


def test_others_may_not_grant(person: Client, ben: object) -> None:
    assert person.post("/access/grant", VIEWER).status_code == 403
    assert 'href="/access/grant"' not in person.get("/access").content.decode()
