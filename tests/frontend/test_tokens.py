"""Pages of tokens: presets, what a token allows in words, the secret once, rotation, revocation, permissions."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from frontend.pages.access.tokens import rules_of
from frontend.pages.access.words import allows
from kcoord.access.rights import digest
from kcoord.access.roles import ADMINISTRATOR, OPERATOR, VIEWER
from kcoord.access.tokens import ALL_RULES, Rule, create_token, parse_rule
from kcoord.models import ApiToken
from tests.frontend.seed import Seed

BILLING = {"name": "billing", "preset": "consumer", "groups": "billing", "topics": "orders, pay*", "expires": "0"}


def secret_in(page: str) -> str:
    found = re.search(r"kc_[A-Za-z0-9_-]{40,}", page)
    assert found is not None
    return found[0]


def test_a_token_for_a_new_service(operator: Client, seed: Seed) -> None:
    page = operator.post("/tokens/new", BILLING).content.decode()
    secret = secret_in(page)
    token = ApiToken.objects.get(digest=digest(secret))
    assert {str(rule) for rule in token.rules.all()} == {"read group:billing", "read topic:orders", "read topic:pay*"}
    assert "be a member of, and commit and fetch offsets of, group billing" in page
    for address in ("/tokens", f"/tokens/{token.pk}"):
        assert secret not in operator.get(address).content.decode()
    again = operator.post("/tokens/new", BILLING)
    assert again.status_code == 409
    assert "already exists" in again.content.decode()


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"preset": ""}, "Choose what the rules are for."),
        ({"groups": " "}, "Groups: name at least one"),
        ({"topics": "x" * 300}, "at most 255"),
        ({"name": ""}, "Name: 1 to 200 characters"),
        ({"preset": "custom", "rules": "fly:group:x"}, "the operation must be one of"),
        ({"preset": "custom", "rules": ""}, "write at least one"),
    ],
)
def test_what_is_wrong_is_said(operator: Client, seed: Seed, fields: dict[str, str], complaint: str) -> None:
    answer = operator.post("/tokens/new", {**BILLING, **fields})
    assert answer.status_code == 400
    assert complaint in answer.content.decode()
    assert not ApiToken.objects.exists()


def test_a_preview_creates_nothing(operator: Client, seed: Seed) -> None:
    page = operator.post("/tokens/new", {**BILLING, "act": "preview"}, HTTP_HX_REQUEST="true").content.decode()
    assert "topics that begin with pay" in page
    assert "curl" in page
    assert "<form" not in page
    assert not ApiToken.objects.exists()


def test_the_command_denies_what_the_form_would_deny(operator: Client, seed: Seed) -> None:
    given = {**BILLING, "preset": "custom", "rules": "read:group:*\ndeny:read:group:secret-*", "act": "preview"}
    page = unescape(operator.post("/tokens/new", given, HTTP_HX_REQUEST="true").content.decode())
    assert '"name": "secret-", "effect": "deny"' in page


def test_rotation_keeps_the_secret_before_for_a_while(operator: Client, seed: Seed) -> None:
    made = create_token("billing", [parse_rule("read:group:billing")])
    token = ApiToken.objects.get()
    page = operator.post(f"/tokens/{token.pk}", {"act": "rotate", "overlap": "3600000"}).content.decode()
    assert "The secret before stays valid for 1 hour." in page
    rotated = ApiToken.objects.get()
    assert rotated.digest == digest(secret_in(page))
    assert rotated.previous_digest == digest(made.secret)
    assert rotated.previous_until is not None
    assert "The secret before" in operator.get(f"/tokens/{token.pk}").content.decode()


def test_revoking_takes_the_name(operator: Client, seed: Seed) -> None:
    create_token("billing", [parse_rule("read:group:billing")])
    url = f"/tokens/{ApiToken.objects.get().pk}"
    assert operator.post(url, {"act": "revoke", "confirm": "other"}).status_code == 400
    assert ApiToken.objects.exists()
    assert (
        "Revoked billing." in operator.post(url, {"act": "revoke", "confirm": "billing"}, follow=True).content.decode()
    )
    assert operator.get(url).status_code == 404


def test_who_may_not_is_told_what_is_missing(person: Client, seed: Seed) -> None:
    create_token("billing", [parse_rule("read:group:billing")])
    url = f"/tokens/{ApiToken.objects.get().pk}"
    for address in ("/tokens", "/tokens/new", url):
        assert person.get(address).status_code == 403
    assert "your account needs admin on every group" in person.get("/tokens").content.decode()
    for act in ("rotate", "revoke"):
        assert person.post(url, {"act": act, "confirm": "billing"}).status_code == 403
    assert ApiToken.objects.get().previous_digest is None


def test_many_tokens_come_in_pages_of_few_queries(
    operator: Client, seed: Seed, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(60):
        create_token(f"service-{number:02d}", [parse_rule("read:group:a*"), parse_rule("read:topic:*")])
    with django_assert_max_num_queries(8):
        first = operator.get("/tokens").content.decode()
    assert first.count('class="row-link"') == 50
    following = re.search(r'rel="next" href="([^"]+)"', first)
    assert following is not None
    assert operator.get(following[1].replace("&amp;", "&")).content.decode().count('class="row-link"') == 10
    assert operator.get("/tokens?q=service-07").content.decode().count('class="row-link"') == 1


def test_words() -> None:
    assert allows(ALL_RULES)[0].startswith("do everything")
    assert allows([Rule("read", "group", "prefix", ""), Rule("describe", "cluster", "literal", "kafka-cluster")]) == [
        "be a member of, and commit and fetch offsets of, all groups",
        "see the nodes and health of the service, and the names of all groups",
    ]
    assert allows(
        [Rule("read", "topic", "literal", name) for name in "ab"] + [Rule("read", "topic", "prefix", "c")]
    ) == ["commit and fetch offsets on topics a and b and topics that begin with c"]


def test_words_of_denials_say_no_more_and_no_less_than_is_denied() -> None:
    written = ("read:group:*", "deny:admin:group:pay*", "deny:kick:topic:orders", "deny:describe:topic:salaries")
    assert allows(map(parse_rule, (*written, "deny:admin:cluster:*"))) == [
        "be a member of, and commit and fetch offsets of, all groups",
        "not do anything with groups that begin with pay",
        "not see topic salaries",
        "not kick on topic orders",
        "not see or administer the service",
    ]


def test_a_star_in_a_preset_means_all_that_begin_so() -> None:
    found = rules_of({"preset": "lag", "groups": "*", "topics": "orders,pay*"})
    assert found == [
        Rule("describe", "group", "prefix", ""),
        Rule("describe", "topic", "literal", "orders"),
        Rule("describe", "topic", "prefix", "pay"),
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"preset": "viewer-role", "prefix": "billing-"}, VIEWER.rules("billing-")),
        ({"preset": "operator-role", "prefix": "billing-*"}, OPERATOR.rules("billing-")),
        ({"preset": "viewer-role", "prefix": "*"}, VIEWER.rules()),
        ({"preset": "administrator"}, ADMINISTRATOR.rules()),
    ],
)
def test_roles_are_presets(given: dict[str, str], expected: tuple[Rule, ...]) -> None:
    assert rules_of(given) == list(expected)


def test_a_token_with_a_role_is_called_by_it(operator: Client, seed: Seed) -> None:
    """An empty prefix stands for nothing, not for everything."""
    given = {"name": "ops", "preset": "operator-role", "prefix": " ", "expires": "0"}
    refused = operator.post("/tokens/new", given)
    assert refused.status_code == 400
    assert "Prefix: write how the names begin" in refused.content.decode()
    operator.post("/tokens/new", {**given, "prefix": "billing-"})
    assert "Operator of all groups" in operator.get("/access?q=ops").content.decode()
