"""Tables and files for an account with few rights: hidden, unknown, none and zero are told apart in each cell."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import transaction
from django.test import Client

from kcoord.access.audit.recording import Act, record_here
from kcoord.access.tokens import create_token, parse_rule
from kcoord.protocol.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from kcoord.requests.current import Caller, Door, Kind
from tests.frontend.node_seed import four_nodes
from tests.frontend.plan_seed import put_plan
from tests.frontend.seed import Seed, now_ms
from tests.frontend.test_exports import table
from tests.frontend.test_hidden_is_not_none import FEW, cell, dark, number_in, sign_in
from tests.frontend.viewers import LOOK
from tests.support.spark_runs import put_run

__all__ = ["dark"]
DEPLOY = Caller(Door.HTTP, Kind.TOKEN, "deploy", "3", "10.1.2.4", "req-2")


def v1(client: Client, path: str, *rules: str) -> Any:
    secret = create_token(f"few {path}", [parse_rule(rule) for rule in rules]).secret
    return client.get(f"/v1/{path}", headers={"Authorization": f"Bearer {secret}"}).json()


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def someone_else(client: Client, *rules: str) -> None:
    get_user_model().objects.all().delete()
    sign_in(client, *rules)


def test_the_values_of_a_record_are_hidden_and_not_none(client: Client, dark: Seed) -> None:
    with transaction.atomic():
        record_here(Act("group.config", "group", "seen-dark", {"a.ms": 1}, {"a.ms": 2}, "bug 17"), DEPLOY)
        record_here(Act("group.delete", "group", "seen-empty"), DEPLOY)
    sign_in(client, *FEW)
    said = v1(client, "audit", *FEW)["records"]
    assert [(one["before"], one["after"], one["reason"]) for one in said] == [(None, None, "")] * 2
    page = client.get("/audit").content.decode()
    rows = re.findall(r'<tr id="record.*?</tr>', page, re.S)
    assert len(rows) == 2
    for row in rows:
        for label in ("Before and after", "Reason"):
            found = cell(row, "<tr", label)
            assert text_of(found) == "hidden", "whether or not it has any"
            assert "describe on every topic" in found
    file = table(client, "/audit.csv")
    assert [[row[name] for name in ("before", "after", "reason")] for row in file] == [["hidden"] * 3] * 2

    someone_else(client, *LOOK)
    file = {row["name"]: row for row in table(client, "/audit.csv")}
    assert [file["seen-dark"]["reason"], file["seen-empty"]["reason"]] == ["bug 17", ""]
    page = client.get("/audit").content.decode()
    assert "hidden</span>" not in page
    deleted = next(row for row in re.findall(r'<tr id="record.*?</tr>', page, re.S) if "seen-empty" in row)
    assert "No reason was given" in cell(deleted, "<tr", "Reason")
    assert "It changed no value" in cell(deleted, "<tr", "Before and after")


@pytest.fixture
def subscribed(dark: Seed) -> Seed:
    """The member of `seen-dark` as its client describes itself: all it reads is hidden."""
    dark.connection.execute(
        "update groups_member set protocol_metadata = array[%s::bytea], assignment = %s",
        [
            encode_subscription(Subscription(("dark-orders",))),
            encode_assignment(Assignment({"dark-orders": [0]})),
        ],
    )
    return dark


def test_a_simulation_says_of_which_topics_it_is(client: Client, subscribed: Seed) -> None:
    sign_in(client, *FEW)
    page = client.get("/groups/seen-dark/simulate?add=0").content.decode()
    said = text_of(page[page.index('role="status"') :])
    assert "no topic that exists" not in said
    assert "The members subscribe to no topic that you may see." in said
    assert "Partitions are counted on the topics that you may see ." in said
    (row,) = table(client, "/groups/seen-dark/simulated-members.csv?add=0")
    assert (row["before"], row["counted"]) == ("0", "on the topics that you may see")
    someone_else(client, *LOOK)
    page = client.get("/groups/seen-dark/simulate?add=0").content.decode()
    assert "you may see" not in text_of(page[page.index('role="status"') :])
    (row,) = table(client, "/groups/seen-dark/simulated-members.csv?add=0")
    assert (row["before"], row["after"], row["counted"]) == ("1", "4", "on all topics")


def test_owners_that_cannot_be_read_are_not_nobody(client: Client, dark: Seed) -> None:
    group = dark.group("seen-mixed", "Stable", generation=2)
    dark.members(group, ["a", "b"])
    dark.connection.execute(
        "update groups_member set protocol_metadata = array[%s::bytea] where member_id = 'a'",
        [encode_subscription(Subscription(("seen-idle",)))],
    )
    sign_in(client, *LOOK)
    said = text_of(client.get("/groups/seen-mixed/simulate?add=0").content.decode())
    assert "4 partitions without a known owner would get one" in said
    assert "nobody that is known" in said
    assert " nobody a" not in said


def test_a_member_page_says_beside_the_number_what_it_counts(client: Client, dark: Seed) -> None:
    sign_in(client, *FEW)
    page = client.get("/groups/seen-dark/members/m").content.decode()
    fact = re.search(r"<dt>Owned partitions</dt><dd>(.*?)</dd>", page, re.S)
    assert fact is not None
    assert text_of(fact[1]) == "0 that you may see"
    assert "Partitions, offsets and lag are counted on the topics that you may see ." in text_of(page)
    said = v1(client, "groups/seen-dark", *FEW)["members"]
    assert [len(one["assignment"] or {}) for one in said] == [0]
    someone_else(client, *LOOK)
    assert "you may see" not in text_of(client.get("/groups/seen-dark/members/m").content.decode())


def test_partitions_of_a_topic_have_the_watermarks_of_v1(client: Client, dark: Seed) -> None:
    dark.connection.execute("delete from groups_watermark where partition = 3")
    sign_in(client, *FEW)
    said = {one["partition"]: one for one in v1(client, "topics/seen-idle/watermarks", *FEW)["partitions"]}
    page = client.get("/topics/seen-idle").content.decode()
    rows = re.findall(r"<tr class=\"first\">(<th[^>]*><span class=\"narrow-only\">Partition.*?)</tr>", page, re.S)
    assert len(rows) == 4
    for number, row in enumerate(rows):
        for label, name in (("Log start", "log_start_offset"), ("Log end", "log_end_offset")):
            found = cell(row, "<th", label)
            if number in said:
                assert number_in(found) == said[number][name]
                assert "As of" in found
            else:
                assert number_in(found) is None
                assert "No watermark was reported yet" in found
    assert "never reported" in cell(rows[3], "<th", "Watermark")


def test_beyond_the_last_page_groups_are_not_counted_as_none(client: Client, dark: Seed) -> None:
    sign_in(client, *FEW)
    page = client.get("/topics/seen-idle?skip=500").content.decode()
    fact = re.search(r"<dt>Groups</dt><dd>(.*?)</dd>", page, re.S)
    assert fact is not None
    assert "0" not in text_of(fact[1])


def test_the_remedy_of_an_earlier_end_can_be_read_without_a_mouse(client: Client, dark: Seed) -> None:
    dark.connection.execute(
        "update groups_watermark w set lower_end_offset = 3, lower_at = w.sampled_at, lower_by = 'toy'"
        " from groups_topic t where t.id = w.topic_id and t.name = 'seen-idle' and w.partition = 0"
    )
    sign_in(client, *FEW)
    said = text_of(client.get("/topics/seen-idle").content.decode())
    assert "Earlier ends 1 not counted, by toy" in said
    assert "If the log was truncated, report that it was;" in said


def test_runs_that_did_not_count_are_not_runs_that_found_nothing(client: Client, dark: Seed) -> None:
    dark.connection.execute("delete from offsets_sparkrun")
    put_run(dark.connection, "reconcile", rows=None, findings=None)
    sign_in(client, "describe:cluster:*")
    page = client.get("/archive").content.decode()
    said = text_of(page)
    assert "an unknown number of rows" in said
    assert "Findings not known" in said
    assert "offsets are what the commits said" not in said
    assert "does not count them" in cell(page, '<tr id="r', "Findings")
    dark.connection.execute("update offsets_sparkrun set findings = 0, rows = 1")
    said = text_of(client.get("/archive").content.decode())
    assert "1 row in" in said
    assert "Findings 0 offsets are what the commits said" in said


def test_who_lists_all_groups_does_not_see_all_of_them(client: Client, dark: Seed) -> None:
    """`describe` on the cluster lists names; members and plans are of the groups that one may describe."""
    put_plan(dark.connection, "seen-dark", made_at=now_ms())
    sign_in(client, "describe:cluster:*")
    assert "No plans yet" not in client.get("/plans").content.decode()
    assert "No group that you may see has a member with" in text_of(client.get("/groups?member=m").content.decode())


@pytest.mark.parametrize(
    ("path", "counted"),
    [
        ("/groups.csv", "on the topics that you may see"),
        ("/groups/seen-dark/members.csv", "on the topics that you may see"),
        ("/topics.csv", "of the groups that you may see"),
    ],
)
def test_sums_in_files_say_what_they_are_of(client: Client, dark: Seed, path: str, counted: str) -> None:
    sign_in(client, *FEW)
    assert {row["counted"] for row in table(client, path)} == {counted}
    someone_else(client, *LOOK)
    assert {row["counted"] for row in table(client, path)} == {
        counted.replace("the", "all").removesuffix(" that you may see")
    }


def test_a_topic_whose_groups_were_not_sampled_has_not_none(client: Client, dark: Seed) -> None:
    dark.connection.execute("delete from offsets_topiclag")
    sign_in(client, *LOOK)
    found = {row["topic"]: row["groups"] for row in table(client, "/topics.csv")}
    assert (found["seen-idle"], found["seen-none"]) == ("", "0")


def test_a_reset_says_what_it_counts(client: Client, dark: Seed) -> None:
    sign_in(client, *FEW, "alter-offsets:group:seen-*")
    said = text_of(client.get("/groups/seen-empty/reset").content.decode())
    assert "Every partition with a committed offset 0 that you may see" in said


def test_the_protocol_of_hidden_members_is_known(client: Client, dark: Seed) -> None:
    """Only which assignor they use is not."""
    sign_in(client, *FEW)
    said = text_of(client.get("/groups/seen-consumers").content.decode())
    assert "Protocol consumer" in said
    assert "Assignor hidden" in said


def test_nodes_and_runs_are_those_of_v1(client: Client, dark: Seed) -> None:
    """For who may describe the cluster alone: what is not known is unknown there too."""
    four_nodes(dark)
    put_run(dark.connection, "reconcile", rows=None, findings=None)
    put_run(dark.connection, "archive", rows=0)
    sign_in(client, "describe:cluster:*")
    page = client.get("/nodes").content.decode()
    for node in v1(client, "nodes", "describe:cluster:*")["nodes"]:
        if node["ended_at"] is None:
            row = f'<tr id="n{node["incarnation"]}">'
            assert number_in(cell(page, row, "Partitions")) == (len(node["partitions"]) or None), node
    page = client.get("/archive").content.decode()
    runs = v1(client, "archive/runs", "describe:cluster:*")["runs"]
    assert {run["rows"] for run in runs} == {None, 0}
    for run in runs:
        row = f'<tr id="r{run["id"]}">'
        for label, name in (("Rows", "rows"), ("Findings", "findings")):
            assert number_in(cell(page, row, label)) == run[name], (run, label)
