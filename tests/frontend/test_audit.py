"""The audit: every recorded act of people and tokens, by who, what, name and time, and what it reads of many events."""

from __future__ import annotations

import csv
import io
import re

import psycopg
import pytest
from django.test import Client

from frontend.audit.presenters import WHAT
from frontend.audit.reads import AFTER_ALL, PAGE_SIZE, SOURCES
from kcoord.sql import queries
from tests.conftest import START_MS
from tests.frontend.plan_seed import put_plan
from tests.frontend.seed import Seed, now_ms
from tests.support.database import cloned_database
from tests.support.plans import executed_plan
from tests.support.spark_runs import put_run


def listed(client: Client, address: str) -> list[str]:
    """The lines of the table as text, newest first, without when."""
    answer = client.get(address)
    assert answer.status_code == 200
    rows = re.findall(r"<tr id=.*?</tr>", answer.content.decode(), re.DOTALL)
    texts = [" ".join(re.sub(r"<[^>]+>", " ", row[row.index("Who") - 12 :]).split()) for row in rows]
    return [text.removeprefix('data-label="Who">').strip() for text in texts]


@pytest.fixture
def acts(seed: Seed, operator: Client) -> str:
    """One act of every kind; returns the id of the plan."""
    now = now_ms()
    plan = put_plan(seed.connection, "billing", made_at=now - 90_000, reason="bug 17")
    seed.event(
        "billing", "offsets_reset", 4, ms_ago=80_000, partitions=3, topics=["orders"], principal="mara",
        plan_id=str(plan), reason="bug 17",
    )  # fmt: skip
    seed.event("billing", "member_removed", 4, "worker-1", ms_ago=70_000, cause="member_kicked", principal="deploy")
    seed.event("billing", "member_removed", 4, "worker-2", ms_ago=69_000, cause="join_timed_out")
    seed.event("billing", "config_changed", 4, ms_ago=60_000, settings={"a.ms": [1, 2]}, principal="mara")
    seed.event("old", "group_deleted", 0, ms_ago=50_000)
    at = seed.connection.execute("select at from groups_event where kind = 'group_deleted'").fetchone()
    seed.journal("old", "group_delete", "orders", 0, None, principal="janitor")
    seed.connection.execute("update offset_commit_log set at = %s", at)
    seed.event("empty", "group_deleted", 0, ms_ago=45_000)
    seed.connection.execute(
        "insert into offsets_deletedtopic (topic, deleted_at, principal, record_offset, swept)"
        " values ('gone', %s, 'janitor', 0, false)",
        [now - 40_000],
    )
    put_run(seed.connection, "reconcile", ago_ms=30_000)
    # Accounts and their groups outlive a test.
    seed.connection.execute("delete from auth_group where name = 'readers'")
    operator.post("/admin/auth/group/add/", {"name": "readers"})
    return str(plan)


def test_every_act_is_listed_with_who_what_and_why(operator: Client, acts: str) -> None:
    lines = listed(operator, "/audit")
    said = [
        "root Added group readers group – –",
        "Run started: Reconcile reconcile run – –",
        "janitor Topic deleted with its watermarks and offsets gone topic – –",
        "not recorded Group deleted with its offsets empty group – Commit history",
        "janitor Group deleted with its offsets old group – Commit history",
        "mara Settings changed: a.ms 1 → 2 billing group – –",
        "deploy worker-1 was removed by an operator billing group – –",
        "mara Offsets set: 3 partitions of orders billing group bug 17 Plan",
        "mara Plan made: to-earliest, 3 partitions; nothing is changed yet billing group bug 17 Plan",
    ]
    assert len(lines) == len(said)
    for line, expected in zip(lines, said, strict=True):
        assert expected in line
    assert f"/groups/billing/plans/{acts}" in operator.get("/audit").content.decode()


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("who=MARA", ["config_changed", "offsets_reset", "plan_made"]),
        ("who=janitor", ["topic_deleted", "group_deleted"]),
        ("name=bill&what=offsets", ["offsets_reset"]),
        ("what=members", ["member_removed"]),
        ("what=deletions", ["topic_deleted", "group_deleted", "group_deleted"]),
        ("what=admin", ["admin_1"]),
        ("what=runs", ["run_requested"]),
        ("to=2001-01-01T00:00", []),
        ("from=2001-01-01T00:00&what=settings", ["config_changed"]),
    ],
)
def test_acts_are_filtered_and_exported(operator: Client, acts: str, query: str, kinds: list[str]) -> None:
    assert len(listed(operator, f"/audit?{query}")) == len(kinds)
    text = b"".join(operator.get(f"/audit.csv?{query}").streaming_content).decode()  # type: ignore[attr-defined]
    assert [row["act"] for row in csv.DictReader(io.StringIO(text))] == kinds


def test_what_the_admin_calls_a_group_is_not_linked_as_a_consumer_group(operator: Client, acts: str) -> None:
    assert 'href="/groups/readers"' not in operator.get("/audit").content.decode()


def test_pages_show_every_act_once_although_instants_are_the_same(person: Client, seed: Seed) -> None:
    now = now_ms()
    for number in range(60):
        seed.event(f"g{number}", "group_held", 1, principal="mara")
        put_plan(seed.connection, f"p{number}", made_at=now, lines=0)
    seed.connection.execute("update groups_event set at = %s", [now])
    found, address = [], "/audit"
    while address:
        page = person.get(address).content.decode()
        found += re.findall(r'class="row-link" href="/groups/([^"]+)"', page)
        older = re.search(r'rel="next" href="([^"]+)"', page)
        address = older[1].replace("&amp;", "&") if older else ""
    assert sorted(found) == sorted([f"g{n}" for n in range(60)] + [f"p{n}" for n in range(60)])


def test_what_is_not_recorded_is_said(person: Client, seed: Seed) -> None:
    page = person.get("/audit").content.decode()
    assert "Nobody has changed anything yet" in page
    assert "What is not recorded" in page
    assert person.get("/audit?before=x").status_code == 400
    assert "Nothing matches" in person.get("/audit?who=x").content.decode()


def test_what_can_be_filtered_covers_every_source() -> None:
    assert {source for _, sources, _ in WHAT.values() for source in sources} == set(SOURCES)


@pytest.mark.parametrize("generic", [False, True], ids=["these values", "any values"])
def test_acts_are_found_beside_other_events(postgres: str, generic: bool) -> None:
    with cloned_database(postgres) as conninfo, psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(
            "insert into groups_event (group_name, at, kind, generation_id, member_id, detail)"
            " select 'g' || i %% 1000, %s + i, 'member_joined', 1, 'm',"
            " case when i %% 1000 = 0 then '{\"principal\": \"mara\"}'::jsonb else '{}' end"
            " from generate_series(1, 200000) i",
            [START_MS],
        )
        connection.execute(b"vacuum analyze groups_event")
        at, source, key = AFTER_ALL
        nothing = {"kinds": None, "who": None, "name": None, "since": 0, "limit": PAGE_SIZE + 1}
        parameters = {**nothing, "sources": list(SOURCES), "before_at": at, "before_source": source, "before_key": key}
        plan = executed_plan(connection, queries("frontend").audit_page, parameters, generic=generic)
        assert "groups_event_of_people" in plan, plan
        rows = re.findall(r" on groups_event e\b.*\(actual rows=([\d.]+)", plan)
        assert [float(number) for number in rows] == [PAGE_SIZE + 1], plan
