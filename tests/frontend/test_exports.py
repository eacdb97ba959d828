"""The tables of the pages as CSV files: all rows, the page's filters, and nothing that a spreadsheet executes."""

from __future__ import annotations

import csv
import io
import json
import uuid
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from frontend.pages.archive import view as archive_exports
from frontend.pages.groups import view as exports
from frontend.pages.topics import topic as topic_reads
from frontend.ui import table as csv_pages
from frontend.ui.table import FORMULA, LINES_A_PIECE, pieces
from tests.frontend.node_seed import four_nodes, node
from tests.frontend.seed import Seed, working_group
from tests.frontend.test_episodes import CLASSIC
from tests.support.spark_runs import put_finding, put_run

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def table(client: Client, url: str) -> list[dict[str, str]]:
    """The rows of a file by the names of its columns."""
    answer = client.get(url)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="')
    content = b"".join(answer.streaming_content).decode()  # type: ignore[arg-type]
    return list(csv.DictReader(io.StringIO(content, newline="")))


@given(st.lists(st.tuples(TEXT, st.none() | st.integers()), max_size=20))
def test_what_is_written_can_be_read_and_is_no_formula(rows: list[tuple[str, int | None]]) -> None:
    content = b"".join(pieces(("name", "number"), rows)).decode()
    head, *found = csv.reader(io.StringIO(content, newline=""))
    assert head == ["name", "number"]
    assert [number for _, number in found] == ["" if number is None else str(number) for _, number in rows]
    for (written, _), (name, _) in zip(found, rows, strict=True):
        assert not FORMULA.match(written)
        assert written.removeprefix("'") == name.removeprefix("'")


def test_a_file_comes_in_pieces() -> None:
    assert len(list(pieces(("n",), ([n] for n in range(LINES_A_PIECE * 2 + 1))))) == 3


def test_groups_are_filtered_as_on_the_page_and_come_whole(
    person: Client, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "MAX_LIMIT", 7)
    for number in range(20):
        seed.group(f"g{number:02}", "Empty" if number % 2 else "Stable")
    assert [row["group_id"] for row in table(person, "/groups.csv")] == [f"g{n:02}" for n in range(20)]
    for sort in ("", "changed", "lag"):
        found = {row["group_id"] for row in table(person, f"/groups.csv?state=Empty&sort={sort}")}
        assert found == {f"g{n:02}" for n in range(1, 20, 2)}
    monkeypatch.setattr(csv_pages, "MOST_ROWS", 11)
    assert len(table(person, "/groups.csv")) == 11
    assert 'href="/groups.csv?state=Empty"' in person.get("/groups?state=Empty").content.decode()


def test_the_tables_of_a_group(person: Client, seed: Seed) -> None:
    working_group(seed)
    seed.topic("orders", 12, [12_000] * 12)
    members = table(person, "/groups/billing/members.csv")
    assert [row["partitions"] for row in members] == ["6", "6", "6"]
    offsets = table(person, "/groups/billing/offsets.csv")
    first = offsets[0]
    assert (first["topic"], first["partition"], first["log_end_offset"]) == ("orders", "0", "12000")
    assert int(first["lag"]) == 12_000 - int(first["committed_offset"])
    topics = table(person, "/topics.csv?q=ord")
    assert [(row["topic"], row["read_by"]) for row in topics] == [("orders", "billing")]


def test_the_history_of_a_group(person: Client, seed: Seed) -> None:
    seed.group("idle", "Empty")
    for partition in range(3):
        seed.journal("idle", "commit", "orders", partition, 10, ms_ago=60_000)
    seed.journal("idle", "reset", "orders", 0, 3, principal="=mara")
    commits = table(person, "/groups/idle/commits.csv")
    assert [row["kind"] for row in commits] == ["reset", "commit", "commit", "commit"]
    assert commits[0]["principal"] == "'=mara"
    assert len(table(person, "/groups/idle/commits.csv?kind=changes")) == 1
    for event in CLASSIC:
        ago = 120_000 - event.at
        seed.event("idle", event.kind, event.generation_id, event.member_id, ms_ago=ago, **event.detail)
    rebalances = table(person, "/groups/idle/rebalances.csv")
    assert [row["generation"] for row in rebalances] == ["3", "2", "1"]
    assert [phase.partition(":")[0] for phase in rebalances[-1]["phases_ms"].split()] == ["joining", "assigning"]


def test_the_lines_of_a_plan(operator: Client, seed: Seed) -> None:
    seed.topic("orders", 2, [100, 200])
    seed.commit(seed.group("idle", "Empty"), {("orders", 0): 10, ("orders", 1): 20})
    made: Any = operator.post("/groups/idle/reset", {"strategy": "to-latest"})
    lines = table(operator, f"{made.headers['Location']}.csv")
    assert [(row["partition"], row["old_offset"], row["new_offset"]) for row in lines] == [
        ("0", "10", "100"),
        ("1", "20", "200"),
    ]


@pytest.mark.parametrize("name", ["members", "offsets", "commits", "rebalances"])
def test_a_group_that_does_not_exist_is_told_before_a_file_begins(person: Client, seed: Seed, name: str) -> None:
    assert person.get(f"/groups/none/{name}.csv").status_code == 404


def test_a_bad_filter_is_refused(person: Client, seed: Seed) -> None:
    assert person.get("/groups.csv?state=Sleeping").status_code == 400
    assert person.get("/groups/idle/commits.csv?from=x").status_code == 400


def test_all_partitions_and_groups_of_a_topic_come_page_by_page(
    person: Client, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    working_group(seed)
    seed.topic("orders", 70, [12_000] * 60)
    for number in range(30):
        seed.commit(seed.group(f"g{number:02}", "Empty"), {("orders", number): number})
    monkeypatch.setattr(topic_reads.topic_partitions_from, "__defaults__", (7,))
    monkeypatch.setattr(topic_reads, "FILE_ROWS", 7)
    partitions = table(person, "/topics/orders/partitions.csv")
    assert [int(row["partition"]) for row in partitions] == list(range(70))
    assert [row["log_end_offset"] for row in partitions] == ["12000"] * 60 + [""] * 10
    groups = table(person, "/topics/orders/groups.csv")
    assert [row["group_id"] for row in groups] == ["billing", *(f"g{number:02}" for number in range(30))]
    assert [(row["owned"], row["committed"]) for row in groups[:2]] == [("12", "12"), ("0", "1")]
    page = person.get("/topics/orders").content.decode()
    assert 'href="/topics/orders/partitions.csv"' in page
    assert 'href="/topics/orders/groups.csv"' in page
    assert person.get("/topics/none/groups.csv").status_code == 404
    assert person.get("/topics/none/partitions.csv").status_code == 404


def test_findings_are_those_of_one_run_with_the_filters_of_the_page(
    person: Client, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert table(person, "/archive/findings.csv") == []
    older = put_run(seed.connection, "reconcile", findings=1, ago_ms=900_000)
    put_finding(seed.connection, older, 1, group="of-the-older-run")
    run_id = put_run(seed.connection, "reconcile", findings=20)
    for number in range(20):
        kind = "rewind" if number % 2 else "missing_in_view"
        put_finding(seed.connection, run_id, number + 1, kind, f"g{number:02}", "orders")
    monkeypatch.setattr(archive_exports, "MAX_LIMIT", 3)
    found = table(person, "/archive/findings.csv")
    assert [row["group_id"] for row in found] == [f"g{number:02}" for number in range(20)]
    assert json.loads(found[0]["evidence"])
    assert len(table(person, f"/archive/findings.csv?run={run_id}&kind=rewind")) == 10
    assert len(table(person, f"/archive/findings.csv?run={older}")) == 1
    assert person.get(f"/archive/findings.csv?run={uuid.uuid4()}").status_code == 404
    page = person.get("/archive/findings?kind=rewind").content.decode()
    assert f'href="/archive/findings.csv?run={run_id}&amp;kind=rewind"' in page


def test_all_runs_come_page_by_page(person: Client, seed: Seed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_exports, "MAX_LIMIT", 7)
    for number in range(30):
        put_run(seed.connection, ("archive", "reconcile")[number % 2], rows=number, ago_ms=1_000_000 * (number + 1))
    found = table(person, "/archive/runs.csv")
    assert [int(row["rows"]) for row in found] == list(range(30))
    assert {row["kind"] for row in table(person, "/archive/runs.csv?kind=archive")} == {"archive"}
    assert 'href="/archive/runs.csv?kind=archive"' in person.get("/archive?kind=archive").content.decode()


def test_all_days_of_a_report(person: Client, seed: Seed) -> None:
    days = [
        {"date": f"2026-01-{day:02}", "groups": day, "commits": 5, "consumed": 100, "rewinds": 0}
        for day in range(1, 31)
    ]
    run_id = put_run(seed.connection, "report", result={"days": days, "written": []})
    found = table(person, f"/archive/runs/{run_id}/days.csv")
    assert [row["day"] for row in found] == [day["date"] for day in reversed(days)]
    assert found[0]["rebalances"] == ""
    assert f'href="/archive/runs/{run_id}/days.csv"' in person.get(f"/archive/runs/{run_id}").content.decode()
    assert person.get(f"/archive/runs/{uuid.uuid4()}/days.csv").status_code == 404


def test_all_nodes_partitions_and_hand_overs(person: Client, seed: Seed) -> None:
    four_nodes(seed)
    for number in range(120):
        node(seed, f"old-{number}", ended_ms_ago=100_000_000 + 1_000 * number, reason="stopped")
    found = table(person, "/nodes.csv")
    assert len(found) == 127
    assert {row["node"] for row in found if row["live"] == "True"} == {f"node-{number}" for number in range(4)}
    assert found[-1]["node"] == "old-119"
    partitions = table(person, "/nodes/partitions.csv")
    assert [int(row["partition"]) for row in partitions] == list(range(50))
    assert {row["node"] for row in partitions} == {f"node-{number}" for number in range(4)}
    changes = table(person, "/nodes/hand-overs.csv")
    counted = seed.connection.execute("select count(*) from groups_partitionchange").fetchone()
    assert (len(changes),) == counted
    assert changes[0]["to_node"] == "node-2"
    page = person.get("/nodes").content.decode()
    for name in ("nodes.csv", "nodes/partitions.csv", "nodes/hand-overs.csv"):
        assert f'href="/{name}"' in page
