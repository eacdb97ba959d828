"""The audit's page: what it says of each record, who sees what, and its filters and pages."""

from __future__ import annotations

import csv
import io
import re

import pytest
from django.db import transaction
from django.test import Client

from frontend.pages.audit.view import PAGE_SIZE, WHAT, acts_of
from kcoord.access.audit.acts import ACTS
from kcoord.access.audit.recording import Act, record_here
from kcoord.requests.current import Caller, Door, Kind
from tests.frontend.seed import Seed

MARA = Caller(Door.DASHBOARD, Kind.PERSON, "mara", "7", "10.1.2.3", "req-1")
DEPLOY = Caller(Door.HTTP, Kind.TOKEN, "deploy", "3", "10.1.2.4", "req-2")
NOBODY = Caller(Door.HTTP, address="203.0.113.9")


def rows(client: Client, address: str) -> list[str]:
    """The lines of the table as text, newest first, without when."""
    answer = client.get(address)
    assert answer.status_code == 200
    found = re.findall(r"<tr id=.*?</tr>", answer.content.decode(), re.DOTALL)
    cells = [row[row.index('data-label="Who"') :].partition(">")[2] for row in found]
    return [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in cells]


@pytest.fixture
def records(operator: Client) -> None:
    """Some records, after that of the sign-in."""
    for caller, act in (
        (MARA, Act("group.config", "group", "billing", {"a.ms": 1, "b": None}, {"a.ms": 2, "b": "x"}, "bug 17")),
        (MARA, Act("offsets.apply", "group", "billing", {"plan_id": "0f2a", "state": "planned"}, {"state": "applied"})),
        (DEPLOY, Act("topic.delete", "topic", "gone", before={"partitions": 3})),
        (NOBODY, Act("request", "path", "/v1/groups", error="SASL_AUTHENTICATION_FAILED", count=12)),
        (DEPLOY, Act("group.delete", "group", "other", error="GROUP_AUTHORIZATION_FAILED")),
    ):
        with transaction.atomic():
            record_here(act, caller)


def test_every_record_says_who_from_where_what_before_after_and_why(operator: Client, records: None) -> None:
    assert rows(operator, "/audit")[:5] == [
        "deploy API · 10.1.2.4 Group deleted: refused, GROUP_AUTHORIZATION_FAILED other group – –",
        "not signed in API · 203.0.113.9 Refused, SASL_AUTHENTICATION_FAILED, 12 times /v1/groups path – –",
        "deploy API · 10.1.2.4 Topic deleted gone topic partitions 3 –",
        "mara dashboard · 10.1.2.3 Plan applied billing group state planned → applied Plan –",
        "mara dashboard · 10.1.2.3 Settings changed billing group a.ms 1 → 2 b x bug 17",
    ]
    signed_in, created = rows(operator, "/audit")[5:]
    assert "Signed in root account" in signed_in
    assert "Account created root account" in created
    assert "/groups/billing/plans/0f2a" in operator.get("/audit").content.decode()


def test_values_are_written_for_people(operator: Client) -> None:
    hold = {"by": "mara", "reason": None, "until": 1_795_549_770_320}
    with transaction.atomic():
        record_here(
            Act("group.hold", "group", "billing", after={"hold": hold, "removed_members": 12_000, "clamp": True}), MARA
        )
    said = rows(operator, "/audit")[0]
    assert "clamp yes hold by mara, until 2026-11-24 19:49 UTC removed members 12,000" in said
    assert "None" not in said


@pytest.mark.parametrize(
    ("query", "acts"),
    [
        ("who=MARA", ["offsets.apply", "group.config"]),
        ("name=bill&what=offsets", ["offsets.apply"]),
        ("result=refused", ["group.delete", "request"]),
        ("what=topics&result=done", ["topic.delete"]),
        ("what=requests", ["request"]),
        ("to=2001-01-01T00:00", []),
        ("from=2001-01-01T00:00&what=groups&result=done", ["group.config"]),
    ],
)
def test_records_are_filtered_and_exported(operator: Client, records: None, query: str, acts: list[str]) -> None:
    assert len(rows(operator, f"/audit?{query}")) == len(acts)
    text = b"".join(operator.get(f"/audit.csv?{query}").streaming_content).decode()  # type: ignore[attr-defined]
    assert [row["act"] for row in csv.DictReader(io.StringIO(text))] == acts


def test_a_change_of_offsets_without_a_plan_leads_to_its_commits(operator: Client, seed: Seed) -> None:
    seed.group("billing", "Empty")
    seed.journal("billing", "reset", "orders", 1, 5, ms_ago=1_000, principal="mara")
    seed.journal("billing", "reset", "orders", 2, 6, ms_ago=86_400_000, principal="sam")
    with transaction.atomic():
        record_here(Act("offsets.restore", "group", "billing"), MARA)
    link = re.search(r'href="(/groups/billing/commits[^"]+)">Commit history', operator.get("/audit").content.decode())
    assert link
    page = operator.get(link[1].replace("&amp;", "&")).content.decode()
    assert "mara" in page
    assert "sam" not in page


def test_what_can_be_filtered_covers_every_act() -> None:
    assert sorted(act for what in WHAT for act in acts_of(what)) == sorted(ACTS)


def test_who_may_not_do_everything_sees_neither_refusals_nor_accounts_nor_addresses(
    person: Client, operator: Client, records: None
) -> None:
    from django.contrib.auth import get_user_model

    from kcoord.models import AccessRule

    client = Client()
    viewer = get_user_model().objects.create_user("viewer")
    for resource in ("group", "topic"):
        AccessRule.objects.create(user=viewer, operation="describe", resource=resource, pattern="prefix", name="")
    client.force_login(viewer)
    assert [row.split(" billing")[0] for row in rows(client, "/audit")] == [
        "deploy API Topic deleted gone topic partitions 3 –",
        "mara dashboard Plan applied",
        "mara dashboard Settings changed",
    ]


def test_pages_show_every_record_once(operator: Client, seed: Seed) -> None:
    with transaction.atomic():
        for number in range(PAGE_SIZE + 20):
            record_here(Act("group.hold", "group", f"g{number}"), MARA)
    found, address = [], "/audit?what=groups"
    while address:
        page = operator.get(address).content.decode()
        found += re.findall(r'class="row-link" href="/groups/([^"]+)"', page)
        older = re.search(r'rel="next" href="([^"]+)"', page)
        address = older[1].replace("&amp;", "&") if older else ""
    assert found == [f"g{number}" for number in reversed(range(PAGE_SIZE + 20))]


def test_what_is_not_recorded_is_said(person: Client, seed: Seed) -> None:
    page = person.get("/audit").content.decode()
    assert "Nothing to show yet" in page
    assert "What is not recorded" in page
    assert person.get("/audit?before=x").status_code == 400
    assert "Nothing matches" in person.get("/audit?who=x").content.decode()
