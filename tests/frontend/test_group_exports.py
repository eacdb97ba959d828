"""CSV files of the tables around a group, and of tokens and runs: the rows that do not fit on a page are in them."""

from __future__ import annotations

import uuid
from pathlib import Path
from urllib.parse import quote

import pytest
from django.test import Client
from pytest_django.fixtures import SettingsWrapper

from frontend.pages.access.tokens import SHOWN as TOKENS_SHOWN
from frontend.pages.actions.simulation import MOST_MEMBERS, MOST_MOVES
from frontend.pages.archive import view as archive
from frontend.pages.archive.reports import DAYS_SHOWN
from frontend.pages.archive.view import PAGE_SIZE as RUNS_SHOWN
from frontend.pages.group import view as exports
from frontend.pages.history import events
from frontend.pages.member import view as member
from frontend.pages.member.view import PARTITIONS
from frontend.pages.offsets import edit
from kcoord.access.tokens import ALL_RULES, create_token, parse_rule
from kcoord.protocol.consumer_protocol import Subscription, encode_subscription
from offsets.runs.reports import MOST_MEMBERS as REPORTED_MEMBERS
from tests.frontend.seed import Seed, member_id, reconciling_group, working_group
from tests.frontend.test_exports import table
from tests.support.spark_reports import busy_report
from tests.support.spark_runs import put_run

SLASHED = "a/b c-1"


@pytest.fixture(autouse=True)
def _short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read a few rows at a time."""
    for module in (archive, edit, events, exports, member):
        monkeypatch.setattr(module, "MAX_LIMIT", 7)


def offered(client: Client, page: str, file: str) -> None:
    """The page leads to the file."""
    assert f'href="{file}"' in client.get(page).content.decode()


def test_pins(operator: Client, seed: Seed) -> None:
    for topic in ("", *(f"topic-{number:03}" for number in range(20))):
        operator.post("/groups/billing/pins", {"act": "pin", "topic": topic, "reason": "=1+1"})
    found = table(operator, "/groups/billing/pins.csv")
    assert [row["topic"] for row in found] == ["", *(f"topic-{number:03}" for number in range(20))]
    assert {(row["pinned_by"], row["reason"]) for row in found} == {("root", "'=1+1")}
    offered(operator, "/groups/billing/pins", "/groups/billing/pins.csv")


def test_the_partitions_of_a_member(person: Client, seed: Seed) -> None:
    size = PARTITIONS + 20
    pk = seed.group("wide")
    seed.members(pk, [SLASHED])
    seed.topic("orders", size, [12_000] * (size - 1))
    seed.assign(pk, {("orders", p): SLASHED for p in range(size)})
    seed.commit(pk, {("orders", p): 11_000 for p in range(size - 2)})
    found = table(person, f"/groups/wide/member.csv?member={quote(SLASHED, safe='')}")
    assert [int(row["partition"]) for row in found] == list(range(size))
    assert [row["lag"] for row in found] == ["1000"] * (size - 2) + ["", ""]
    assert (found[-1]["committed_offset"], found[-1]["log_end_offset"]) == ("", "")
    offered(person, f"/groups/wide/members/{quote(SLASHED, safe='')}", "/groups/wide/member.csv?member=a%2Fb%20c-1")
    for nobody in (
        "/groups/wide/member.csv?member=none",
        "/groups/none/member.csv?member=m",
        "/groups/wide/member.csv",
    ):
        assert person.get(nobody).status_code == 404, nobody


def test_what_a_member_of_a_consumer_group_is_to_give_up(person: Client, seed: Seed) -> None:
    first, second = reconciling_group(seed)
    found = table(person, f"/groups/ledger/member.csv?member={first}")
    assert [(row["partition"], row["owned"], row["change"]) for row in found[3:]] == [
        ("3", "True", ""),
        ("4", "True", "must give up"),
        ("5", "True", "must give up"),
    ]
    found = table(person, f"/groups/ledger/member.csv?member={second}")
    assert [(row["partition"], row["owned"], row["change"]) for row in found] == [
        ("4", "False", "is to get"),
        ("5", "False", "is to get"),
        ("6", "True", ""),
        ("7", "True", ""),
    ]


def test_what_changes_hands(person: Client, seed: Seed) -> None:
    first, second = reconciling_group(seed)
    found = table(person, "/groups/ledger/hand-overs.csv")
    assert [(row["topic"], row["partition"], row["holder"], row["heir"], row["was_told"]) for row in found] == [
        ("entries", "4", first, second, "True"),
        ("entries", "5", first, second, "True"),
    ]
    assert all(row["deadline"].endswith("Z") for row in found)
    offered(person, "/groups/ledger", "/groups/ledger/hand-overs.csv")
    working_group(seed)
    assert table(person, "/groups/billing/hand-overs.csv") == []
    assert person.get("/groups/none/hand-overs.csv").status_code == 404


def test_a_simulation(person: Client, seed: Seed) -> None:
    members = [member_id("fleet", number) for number in range(MOST_MEMBERS + 30)]
    pk = seed.group("fleet")
    seed.members(pk, members)
    size = MOST_MOVES + 40
    seed.topic("telemetry", size)
    seed.connection.execute(
        "update groups_member set protocol_metadata = array[%s::bytea]",
        [encode_subscription(Subscription(("telemetry",)))],
    )
    query = "add=2&remove=&topics=&assignor="
    page = person.get(f"/groups/fleet/simulate?{query}").content.decode()
    assert "which the file has" in page
    for name in ("members", "moves"):
        assert f'href="/groups/fleet/simulated-{name}.csv?add=2&amp;remove=&amp;topics=&amp;assignor="' in page
    found = table(person, f"/groups/fleet/simulated-members.csv?{query}")
    assert len(found) == len(members) + 2
    assert [row["member_id"] for row in found if row["is_new"] == "True"] == ["new-1", "new-2"]
    moves = table(person, f"/groups/fleet/simulated-moves.csv?{query}")
    assert [int(row["partition"]) for row in moves] == list(range(size))
    assert {row["owner"] for row in moves} == {""}
    assert person.get("/groups/fleet/simulated-moves.csv?add=x").status_code == 400
    assert person.get("/groups/none/simulated-members.csv?add=1").status_code == 404


def test_lag_by_topic_and_events(person: Client, seed: Seed) -> None:
    working_group(seed)
    pk = seed.group("many", "Empty")
    seed.commit(pk, {(f"topic-{number:02}", 0): 5 for number in range(20)})
    seed.topic("topic-00", 1, [12])
    found = table(person, "/groups/many/lag.csv")
    assert [row["topic"] for row in found] == [f"topic-{number:02}" for number in range(20)]
    assert [(row["lag"], row["deleted"]) for row in found[:2]] == [("7", "False"), ("", "True")]
    offered(person, "/groups/many", "/groups/many/lag.csv")
    events = table(person, "/groups/billing/events.csv")
    ids = [int(row["id"]) for row in events]
    assert len(ids) == 12
    assert ids == sorted(ids, reverse=True)
    assert events[0]["kind"] == "assignment_stored"
    assert all(row["text"] for row in events)
    offered(person, "/groups/billing/events", "/groups/billing/events.csv")
    assert table(person, "/groups/billing/events.csv?from=2001-01-01%2000:00&to=2001-01-02%2000:00") == []
    for nobody in ("/groups/none/events.csv", "/groups/none/lag.csv"):
        assert person.get(nobody).status_code == 404


def test_the_report_of_a_group_and_of_a_run(
    person: Client, seed: Seed, settings: SettingsWrapper, tmp_path: Path
) -> None:
    folder = tmp_path / "archive"
    settings.KCOORD = settings.KCOORD.override({"archive.path": str(folder), "data.dir": str(tmp_path)})
    run_id = busy_report(seed.connection, folder, "billing", days=40)
    days = table(person, "/groups/billing/report-days.csv")
    assert len(days) == 40 > DAYS_SHOWN
    assert (days[0]["commits"], days[0]["records_consumed"], days[-1]["rebalances"]) == ("622", "360000", "")
    members = table(person, f"/groups/billing/report-members.csv?run={run_id}")
    assert len(members) == 60 > REPORTED_MEMBERS
    offered(person, "/groups/billing/report", "/groups/billing/report-days.csv")
    offered(person, f"/groups/billing/report?run={run_id}", f"/groups/billing/report-members.csv?run={run_id}")
    totals = table(person, f"/archive/runs/{run_id}/days.csv")
    assert len(totals) == 40
    offered(person, f"/archive/runs/{run_id}", f"/archive/runs/{run_id}/days.csv")
    for nothing in (f"/archive/runs/{uuid.uuid4()}/days.csv", "/groups/none/report-days.csv"):
        assert person.get(nothing).status_code == 404


def test_runs_and_tokens(operator: Client, seed: Seed) -> None:
    for number in range(RUNS_SHOWN + 20):
        put_run(seed.connection, "reconcile" if number % 2 else "archive", ago_ms=60_000 * number, rows=number)
    found = table(operator, "/archive/runs.csv")
    assert [int(row["rows"]) for row in found] == list(range(RUNS_SHOWN + 20))
    assert {row["kind"] for row in table(operator, "/archive/runs.csv?kind=archive")} == {"archive"}
    offered(operator, "/archive?kind=archive", "/archive/runs.csv?kind=archive")
    for number in range(TOKENS_SHOWN + 10):
        create_token(f"service-{number:03}", [parse_rule(f"read:group:g{number}")])
    create_token("everything", ALL_RULES)
    tokens = table(operator, "/tokens.csv")
    assert len(tokens) == TOKENS_SHOWN + 11
    assert tokens[1]["rules"] == "read:group:g0"
    assert [row["name"] for row in table(operator, "/tokens.csv?q=every")] == ["everything"]
    offered(operator, "/tokens", "/tokens.csv")


def test_files_of_what_one_may_not_see(person: Client, seed: Seed) -> None:
    assert person.get("/tokens.csv").status_code == 403
