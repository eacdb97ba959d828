"""Find anything: what the search finds, in which order, what it leaves out, and how much it reads."""

from __future__ import annotations

import re
import uuid
from html import unescape

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client

from frontend.pages.search import view as reads
from frontend.pages.search.view import VERBS, asked
from kcoord.access.tokens import create_token, parse_rule
from kcoord.database.pool import Database
from kcoord.models import ApiToken
from tests.frontend.seed import Seed, now_ms, working_group
from tests.frontend.test_group_labels import label
from tests.frontend.viewers import ALL, allow

BOX = {"headers": {"Kcoord-Search": "1"}}


def found(client: Client, q: str) -> dict[str, list[tuple[str, str]]]:
    """Sections of the box: text and address of each option."""
    answer = client.get("/search", {"q": q}, **BOX)
    assert answer.status_code == 200
    sections: dict[str, list[tuple[str, str]]] = {}
    pattern = r'class="find-title"[^>]*>([^<]*)<|href="([^"]*)"[^>]*><span class="find-text">(.*?)</span>'
    for title, url, text in re.findall(pattern, answer.content.decode()):
        if title:
            sections[title] = []
        else:
            sections[list(sections)[-1]].append((unescape(text), unescape(url)))
    return sections


def plan(seed: Seed, group_id: str, reason: str = "") -> uuid.UUID:
    """A plan of a group."""
    row = seed.connection.execute(
        "insert into offsets_offsetplan (id, group_name, strategy, parameters, totals, state, reason, created_at,"
        " created_by)"
        " values (gen_random_uuid(), %s, 'to-earliest', '{}', '{}', 'planned', %s, %s, 'mara') returning id",
        [group_id, reason, now_ms()],
    ).fetchone()
    assert row is not None
    return row[0]  # type: ignore[no-any-return]


def test_everything_with_the_words_in_its_name(operator: Client, seed: Seed) -> None:
    members = working_group(seed)
    seed.group("old-billing", "Empty")
    seed.topic("billing-events", 3)
    chosen = plan(seed, "billing", "replay of ticket 7")
    token = ApiToken.objects.create(name="Billing readers", digest="d", prefix="kc_1", created_at=0)
    sections = found(operator, "billing")
    assert sections["Groups"] == [("billing", "/groups/billing"), ("old-billing", "/groups/old-billing")]
    assert sections["Client ids"] == [("billing", "/groups?client=billing")]
    assert sorted(sections["Members"]) == [
        (f"billing@10.0.0.{number}", f"/groups/billing/members/{member}")
        for number, member in enumerate(members, start=1)
    ]
    assert sections["Topics"] == [("billing-events", "/topics/billing-events")]
    assert sections["Offset plans"] == [
        ("billing to-earliest: replay of ticket 7", f"/groups/billing/plans/{chosen}"),
    ]
    assert sections["Tokens"] == [("Billing readers", f"/tokens/{token.pk}")]
    assert list(found(operator, str(chosen)[:9])) == ["Offset plans"]
    assert found(operator, "10.0.0.2")["Hosts"] == [("10.0.0.2", "/groups?host=10.0.0.2")]


def test_what_an_account_may_not_see_is_not_found(person: Client, seed: Seed) -> None:
    seed.group("billing")
    plan(seed, "billing")
    ApiToken.objects.create(name="Billing readers", digest="d", prefix="kc_1", created_at=0)
    assert list(found(person, "billing")) == ["Groups", "Offset plans"]
    assert found(person, "hold billing")["Actions and pages"] == []
    assert found(person, "create token")["Actions and pages"] == []
    user = get_user_model().objects.get(username="mara")
    allow(user, "kick:group:billing")
    assert found(person, "hold billing")["Actions and pages"] == [
        ("Hold billing", "/groups/billing/hold"),
        ("End the hold of billing", "/groups/billing/hold"),
    ]


def test_what_an_account_may_not_do_is_shown_with_what_it_lacks(person: Client, seed: Seed) -> None:
    seed.group("billing")
    held = person.get("/search", {"q": "hold billing"}, **BOX).content.decode()
    assert held.count('aria-disabled="true"') == 2
    assert "your account needs kick on group billing" in held
    assert "/groups/billing/hold" not in held
    page = person.get("/search?q=reset").content.decode()
    assert "your account needs alter-offsets on a group" in page
    assert page.index("/plans") < page.index("To plan a reset"), "what can be done comes first"
    assert "your account needs admin" in person.get("/search?q=create+token").content.decode()


def test_names_that_begin_with_the_words_come_first(person: Client, seed: Seed) -> None:
    for name in ("a-pay", "payments", "PAYROLL", "pay", "pay%s"):
        seed.group(name)
    assert [text for text, _ in found(person, "pay")["Groups"]] == ["pay", "pay%s", "payments", "PAYROLL", "a-pay"]
    assert [text for text, _ in found(person, "y%")["Groups"]] == ["pay%s"]
    assert found(person, "\\") == {}


def test_more_of_a_kind_are_a_list_away(person: Client, seed: Seed) -> None:
    seed.many_groups(20)
    answer = person.get("/search", {"q": "service"}, **BOX).content.decode()
    assert len(re.findall("find-groups-[0-9]", answer)) == reads.SHOWN
    assert 'href="/groups?q=service"' in answer
    assert f"At least {reads.SHOWN} results." in answer, "there are 20, of which the first are shown"
    seed.group("alone")
    assert "<p data-status hidden>1 result." in person.get("/search", {"q": "alone"}, **BOX).content.decode()


@pytest.mark.parametrize(
    ("q", "labels"),
    [
        ("reset offsets of billing", ["Reset offsets of:billing"]),
        ("reset", ["Reset offsets of:", "Plans:"]),
        ("hold X", ["Hold:X", "End the hold of:X"]),
        ("end the hold of X", ["End the hold of:X"]),
        ("create token", ["Create a token:"]),
        ("time zone", ["Time zone: UTC or local:"]),
        ("dark", ["Colours: light, dark or those of the system:"]),
        ("billing", []),
        ("delete x y", []),
        ("", []),
    ],
)
def test_verbs(q: str, labels: list[str]) -> None:
    assert sorted(f"{one.verb.label}:{one.about}" for one in asked(q)) == sorted(labels)


def test_every_verb_finds_itself_by_its_words() -> None:
    for verb in VERBS:
        assert verb in [one.verb for one in asked(verb.words.split()[0])], verb.label


def test_fields_are_completed_with_names_of_their_kind(operator: Client, seed: Seed) -> None:
    working_group(seed)
    seed.members(seed.group("orders"), ["orders-1", "orders-2"], client_id="Orders", static=True)
    label(seed, "billing", owner="payments", team="ops")
    label(seed, "orders", owner="ops", rows="")
    label(seed, "gone", owner="operators")
    Group.objects.create(name="owls")
    create_token("owls' reader", [parse_rule("read:group:billing")])

    def offered(kind: str, q: str, **about: str) -> list[str]:
        return operator.get("/search", {"q": q, **about}, headers={"Kcoord-Search": kind}).json()  # type: ignore[no-any-return]

    assert offered("labels", "ow") == ["owner", "owner=ops", "owner=payments", "rows", "rows="]
    assert offered("labels", "=OPS") == ["owner=ops", "team=ops"]
    assert offered("label-names", "ow") == ["owner", "rows"]
    assert offered("members", "orders") == ["orders-1", "orders-2", "Orders", "Orders-0", "Orders-1"]
    assert offered("clients", "or") == ["Orders"]
    assert offered("hosts", "0.0.2") == ["10.0.0.2"]
    assert offered("member-ids", "0", group="orders") == []
    assert offered("member-ids", "-1", group="orders") == ["orders-1"]
    assert offered("people", "root") == ["root"]
    assert offered("principals", "owl") == ["owls' reader"]
    assert offered("principals", "root") == ["root"]
    assert offered("holders", "owl") == ["owls", "owls' reader"]


def test_the_page_without_javascript(person: Client, seed: Seed) -> None:
    working_group(seed)
    page = person.get("/search?q=bill").content.decode()
    assert '<a href="/groups/billing">billing</a>' in page
    assert "Find anything" in person.get("/search").content.decode()
    assert "Nothing has “zebra” in its name." in person.get("/search?q=zebra").content.decode()
    assert person.get("/search?q=a%00b").status_code == 400


def test_names_are_escaped(person: Client, seed: Seed) -> None:
    seed.group("<b>&\"'")
    assert found(person, "<b>")["Groups"] == [("<b>&\"'", "/groups/%3Cb%3E%26%22%27")]
    assert "<b>" not in person.get("/search", {"q": "<b>"}, **BOX).content.decode()


async def test_a_part_that_takes_too_long_is_named_and_the_others_are_shown(
    db: Database, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    working_group(seed)
    slow = "select g.*, null, null, null, null from (select pg_sleep(30)) s, (select '') g"
    monkeypatch.setattr(reads.Q, "members_containing", slow + " where %(q)s <> '' and %(most)s + %(limit)s > 0")
    monkeypatch.setattr(reads, "PART_SECONDS", 0.2)
    hits = await reads.find(db, ALL, "billing")
    assert hits.unfinished == ("members",)
    assert [hit.group_id for hit in hits.groups] == ["billing"]
    monkeypatch.setattr(reads, "ALL_SECONDS", 0.0)
    assert (await reads.find(db, ALL, "billing")).unfinished == ("groups", "labels", "topics", "members", "plans")
