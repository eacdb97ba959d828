"""The page of who may what: everybody's rights for administrators, one's own for the others, and what it reads."""

from __future__ import annotations

import csv
import io
import json
import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from frontend.pages.access.words import PAGE_SIZE, RULES_SHOWN
from kcoord.access import store
from kcoord.access.roles import ADMINISTRATOR, OPERATOR, VIEWER
from kcoord.access.store import HolderName
from kcoord.access.tokens import Rule, create_token, parse_rule
from kcoord.models import AccessRule, ApiToken
from tests.frontend.seed import Seed
from tests.frontend.viewers import allow

TAGS = re.compile(r"<[^>]+>")


def text_of(answer: Any) -> str:
    """What a reader reads, without markup."""
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", unescape(TAGS.sub(" ", answer.content.decode())))


def table_of(answer: Any) -> list[list[str]]:
    """The cells of the table."""
    assert answer.status_code == 200
    body = re.search(r"<tbody>(.*)</tbody>", answer.content.decode(), re.S)
    found = [] if body is None else re.findall(r"<tr>(.*?)</tr>", body[1], re.S)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in found]
    return [[re.sub(r"\s+", " ", unescape(TAGS.sub(" ", cell))).strip() for cell in row] for row in cells]


@pytest.fixture
def team(operator: Client, seed: Seed) -> Client:
    """An administrator, and: an account in a group of people, an account without rules, and two tokens."""
    seed.connection.execute("truncate auth_group cascade")
    people = get_user_model().objects
    ada = people.create_user("ada")
    people.create_user("zoe")
    people.create_user("gone", is_active=False)
    billing = Group.objects.create(name="billing-team")
    ada.groups.add(billing)
    store.add_rules(HolderName("Group", "billing-team"), OPERATOR.rules("billing-"))
    store.add_rules(HolderName("Group", "billing-team"), [parse_rule("deny:delete:group:billing-eu*")])
    store.add_rules(HolderName("User", "ada"), [*VIEWER.rules(), parse_rule("read:group:ada")])
    create_token("billing-service", [parse_rule("read:group:billing-eu"), parse_rule("read:topic:orders")])
    create_token("root-token", list(ADMINISTRATOR.rules()))
    create_token("old", [parse_rule("read:group:*")], expires_at_ms=1)
    return operator


def test_people_come_first_then_groups_then_tokens_in_words(team: Client) -> None:
    found = table_of(team.get("/access"))
    assert [row[0].split(" ")[0] for row in found] == [
        "ada", "gone", "root", "zoe", "billing-team", "billing-service", "old", "root-token",
    ]  # fmt: skip
    ada, gone, root, zoe, billing, service, old, administrator = (row[1] for row in found)
    of_team = (
        "not delete groups that begin with billing-eu, with all committed offsets Operator of all groups, topics and"
        " transactional ids that begin with billing-"
    )
    assert ada == (
        "Viewer of everything be a member of, and commit and fetch offsets of, group ada"
        f" as one of billing-team {of_team}"
    )
    assert billing == of_team
    assert gone == "nothing: the account is not active"
    assert root.startswith("do everything")
    assert zoe == "nothing: no rule"
    assert service == (
        "be a member of, and commit and fetch offsets of, group billing-eu commit and fetch offsets on topic orders"
    )
    assert old == "nothing: it has expired"
    assert administrator.startswith("Administrator of everything, with tokens")
    assert [row[0] for row in found if "administrator" in row[0]] == [
        "root person administrator", "root-token token administrator",
    ]  # fmt: skip
    assert "billing-team group of people ada" in found[4][0]


def test_who_may_what_with_one_group(team: Client) -> None:
    """Rules of a group of people count for those in it, and a denial wins over every rule that allows."""
    found = {row[0].split(" ")[0]: row[1:] for row in table_of(team.get("/access?name=billing-eu"))}
    assert set(found) == {"ada", "root", "billing-team", "billing-service", "old", "root-token"}
    ada, because = found["ada"]
    assert ada == (
        "not delete group billing-eu, with all committed offsets see group billing-eu, with members, offsets and lag"
        " reset the offsets of group billing-eu, but on no topic: none may be read remove members of, and"
        " hold, group billing-eu"
    )
    assert because.startswith("deny:delete:group:billing-eu* of billing-team")
    assert "describe:group:*" in because
    assert found["root-token"][0] == "do everything with group billing-eu"
    assert found["old"][0] == "nothing: it has expired"
    assert "Show all" in text_of(team.get("/access?name=billing-eu"))
    nobody = table_of(team.get("/access?name=other&resource=transactional-id&kind=Token"))
    assert [row[0] for row in nobody] == ["root-token token"]


def link_of(answer: Any, label: str) -> str:
    """The address of a link."""
    assert answer.status_code == 200
    found = re.search(rf'<a [^>]*href="([^"]+)">{label}</a>', answer.content.decode())
    assert found is not None, label
    return unescape(found[1])


def test_the_pages_of_a_group_and_of_a_topic_lead_to_who_may_do_what_with_them(team: Client, seed: Seed) -> None:
    seed.group("billing-eu")
    seed.topic("orders & more", 1)
    of_group = link_of(team.get("/groups/billing-eu"), "Who may do what")
    assert {row[0].split(" ")[0] for row in table_of(team.get(of_group))} == {
        "ada", "root", "billing-team", "billing-service", "old", "root-token",
    }  # fmt: skip
    of_topic = link_of(team.get("/topics/orders%20%26%20more"), "Who may do what")
    assert {row[0].split(" ")[0] for row in table_of(team.get(of_topic))} == {"ada", "root", "root-token"}
    # Somebody who does not administer everything is led to rights of their own, and so it is called.
    ada = Client()
    ada.force_login(get_user_model().objects.get(username="ada"))
    for page, phrase in (
        ("/groups/billing-eu", "group billing-eu"),
        ("/topics/orders%20%26%20more", "topic orders & more"),
    ):
        link = link_of(ada.get(page), "What you may do")
        ((who, may, *_),) = table_of(ada.get(link))
        assert who == "ada person"
        assert f"see {phrase}" in may


def test_who_may_what_with_the_service(team: Client) -> None:
    found = {row[0].split(" ")[0]: row[1] for row in table_of(team.get("/access?resource=cluster"))}
    assert set(found) == {"ada", "root", "root-token"}
    assert found["ada"] == "see the nodes and health of the service, and the names of all groups"
    page = unescape(team.get("/access?resource=cluster").content.decode())
    assert ".venv/bin/python manage.py acl --list --cluster --resource-pattern-type match" in page
    assert "/v1/acls?resource=cluster&name=kafka-cluster&pattern=match" in page


def test_filters(team: Client) -> None:
    assert [row[0] for row in table_of(team.get("/access?kind=Group"))] == ["billing-team group of people ada"]
    assert [row[0].split(" ")[0] for row in table_of(team.get("/access?q=BILL"))] == ["billing-team", "billing-service"]
    assert [row[0].split(" ")[0] for row in table_of(team.get("/access?resource=topic&kind=Token"))] == [
        "billing-service", "root-token",
    ]  # fmt: skip
    assert "No rule is about topic" not in text_of(team.get("/access?resource=topic&name=orders"))
    assert "Nobody" in text_of(team.get("/access?q=nobody-of-this-name"))
    for wrong in ("kind=Robot", "resource=disk", "after=xyz", "name=a%00b"):
        assert team.get(f"/access?{wrong}").status_code == 400


def test_others_see_their_own_rights_whatever_they_ask_for(person: Client, seed: Seed) -> None:
    get_user_model().objects.create_superuser("root")
    allow(get_user_model().objects.create_user("ada"), "read:group:billing-*")
    create_token("secret-token", [parse_rule("read:group:billing-eu")])
    Group.objects.get_or_create(name="secret-team")
    store.add_rules(HolderName("Group", "secret-team"), VIEWER.rules("billing-"))
    seed.group("billing-eu")
    assert [row[0] for row in table_of(person.get("/access"))] == ["mara person"]
    whole = text_of(person.get("/access?kind=Token"))
    assert "secret" not in whole
    assert "ada" not in whole
    assert "/v1/acls" not in whole
    for query in ("q={}", "kind=User&q={}", "resource=group&name={}", "name={}", "resource=topic&name={}"):
        there, missing = (
            text_of(person.get(f"/access?{query.format(name)}")).replace(name, "NAME")
            for name in ("billing-eu", "billing-xx")
        )
        assert there == missing
    for name in ("ada", "secret-token", "secret-team", "root"):
        assert "No rule of yours" in text_of(person.get(f"/access?q={name}"))
        rows = csv.DictReader(io.StringIO(b"".join(person.get(f"/access.csv?q={name}")).decode()))  # type: ignore[call-overload]
        assert list(rows) == []
    rows = csv.DictReader(io.StringIO(b"".join(person.get("/access.csv")).decode()))  # type: ignore[call-overload]
    assert {row["name"] for row in rows} == {"mara"}


def test_a_rule_for_the_only_cluster_makes_an_administrator_on_pages_as_in_the_api(client: Client) -> None:
    mara = get_user_model().objects.create_user("mara")
    allow(mara, *(f"admin:{kind}:*" for kind in ("group", "topic", "transactional-id")), "admin:cluster:kafka-cluster")
    client.force_login(mara)
    assert client.get("/tokens").status_code == 200
    assert "administrator" in table_of(client.get("/access?q=mara"))[0][0]


def test_the_file_has_every_rule(team: Client) -> None:
    many = [Rule("read", "topic", "literal", f"topic-{number:03}") for number in range(RULES_SHOWN + 5)]
    create_token("wide", many)
    assert "and more: the CSV has all rules" in text_of(team.get("/access?q=wide"))
    rows = list(csv.DictReader(io.StringIO(b"".join(team.get("/access.csv")).decode())))  # type: ignore[call-overload]
    assert [row["resource_name"] for row in rows if row["name"] == "wide"] == [rule.name for rule in many]
    ada = [
        (row["through_group"], row["effect"], row["operation"], row["resource"]) for row in rows if row["name"] == "ada"
    ]
    assert ("billing-team", "deny", "delete", "group") in ada
    assert ("", "allow", "read", "group") in ada
    assert [row["state"] for row in rows if row["name"] == "root"] == ["superuser"]
    assert next(row["in_words"] for row in rows if row["name"] == "billing-service") == (
        "be a member of, and commit and fetch offsets of, group billing-eu"
    )


@pytest.fixture
def crowd(operator: Client, seed: Seed) -> Client:
    """An administrator, and 10,000 tokens with two rules each."""
    seed.connection.execute("truncate auth_group cascade")
    made = ApiToken.objects.bulk_create(
        ApiToken(name=f"service-{number:05}", digest=f"{number:064}", prefix="kc_", created_at=1)
        for number in range(10_000)
    )
    AccessRule.objects.bulk_create(
        AccessRule(token=token, operation="read", resource=resource, pattern="literal", name=token.name)
        for token in made
        for resource in ("group", "topic")
    )
    seed.connection.execute("analyze kcoord_apitoken, kcoord_accessrule")
    return operator


def most_rows(sql: str) -> float:
    """The most rows that a step of a statement reads."""
    with connection.cursor() as cursor:
        cursor.execute(f"explain (analyze, timing off, format json) {sql}")
        found = cursor.fetchone()[0]
    plan = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]

    def of(node: dict[str, Any]) -> float:
        read = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        return max([float(read), *(of(child) for child in node.get("Plans", ()))])

    return of(plan)


@pytest.mark.whole("writes many rows to see that what is read is bounded")
def test_a_page_of_ten_thousand_tokens_reads_what_it_shows(crowd: Client) -> None:
    with CaptureQueriesContext(connection) as first:
        page = crowd.get("/access")
    following = re.search(r'rel="next" href="([^"]+)"', page.content.decode())
    assert following is not None
    with CaptureQueriesContext(connection) as second:
        deep = crowd.get(unescape(following[1]))
    assert len(table_of(page)) == len(table_of(deep)) == PAGE_SIZE
    assert table_of(deep)[0][0].startswith("service-00049")
    assert len(first) <= 12
    assert len(second) <= 8
    read = {query["sql"]: most_rows(query["sql"]) for query in second if "kcoord_a" in query["sql"]}
    assert len(read) == 2
    assert max(read.values()) <= 4 * PAGE_SIZE, read


@pytest.mark.whole("writes many rows to see that what is read is bounded")
def test_one_resource_among_ten_thousand_tokens_takes_as_few_statements(crowd: Client) -> None:
    with CaptureQueriesContext(connection) as taken:
        found = table_of(crowd.get("/access?name=service-09999"))
    assert [row[0].split(" ")[0] for row in found] == ["root", "service-09999"]
    assert len(taken) <= 12
