"""A group's page as a file: what it says, and that nothing from outside becomes markup in it."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from frontend.ui.page import group_url
from frontend.ui.report import code, escaped
from tests.frontend.seed import Seed, working_group
from tests.frontend.test_pages import STRANGE_IDS

CELL = re.compile(r"(?<!\\)(?:\\\\)*\|")


@pytest.fixture
def billing(seed: Seed) -> None:
    """A group at work with lag."""
    working_group(seed)
    seed.topic("orders", 12, [12_000] * 12)


def test_json_has_what_the_page_shows(person: Client, billing: None) -> None:
    answer = person.get("/groups/billing/snapshot.json")
    assert answer.headers["Content-Type"] == "application/json"
    assert re.fullmatch(
        r'attachment; filename="billing-\d{4}-\d\d-\d\dT\d{6}\.json"', answer.headers["Content-Disposition"]
    )
    taken = json.loads(answer.content)
    assert (taken["group_id"], taken["state"], taken["generation_id"]) == ("billing", "Stable", 7)
    assert taken["url"].endswith("/groups/billing")
    assert [len(member["partitions"]["orders"]) for member in taken["members"]] == [4, 4, 4]
    assert len(taken["partitions"]) == 18
    assert taken["partitions"][0]["lag"] == 12_000 - taken["partitions"][0]["committed_offset"]
    assert taken["lag"]["measured"] == 12
    assert taken["rebalances"][0]["phases"].keys() == {"joining", "assigning"}
    assert taken["events"][0]["kind"] == "assignment_stored"
    assert taken["explanation"] in person.get("/groups/billing").content.decode()


def test_markdown_is_made_of_well_formed_tables(person: Client, billing: None) -> None:
    answer = person.get("/groups/billing/snapshot.md")
    assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
    text = answer.content.decode()
    assert text.startswith("# Consumer group `billing`\n\nTaken at ")
    for title in ("## Members", "## Partitions", "## Rebalances", "## Events"):
        assert f"\n{title}\n\n| " in text
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(CELL.findall(row)) for row in table.splitlines()}) == 1, table
    assert "| orders-0 |" in text


def test_what_needs_attention_is_told(person: Client, seed: Seed) -> None:
    pk = seed.group("late", "PreparingRebalance", since_ms_ago=7_200_000, join_deadline_in=60_000)
    assert pk
    taken = json.loads(person.get("/groups/late/snapshot.json").content)
    assert [verdict["kind"] for verdict in taken["verdicts"]] == ["stuck"]
    assert "## Needs attention\n\n- **stuck** since " in person.get("/groups/late/snapshot.md").content.decode()


@pytest.mark.parametrize("group_id", STRANGE_IDS)
@pytest.mark.parametrize("kind", ["json", "md"])
def test_every_group_id_has_a_snapshot(person: Client, seed: Seed, group_id: str, kind: str) -> None:
    seed.group(group_id)
    answer = person.get(f"{group_url(group_id)}/snapshot.{kind}")
    assert answer.status_code == 200
    assert "\n" not in answer.headers["Content-Disposition"]
    if kind == "json":
        assert json.loads(answer.content)["group_id"] == group_id


def test_what_does_not_exist(person: Client, seed: Seed) -> None:
    seed.group("idle", "Empty")
    assert person.get("/groups/none/snapshot.md").status_code == 404
    assert person.get("/groups/idle/snapshot.pdf").status_code == 400
    assert "/groups/idle/snapshot.md" in person.get("/groups/idle").content.decode()


@given(st.text(max_size=40))
def test_text_from_outside_stays_in_its_cell(written: str) -> None:
    for cell in (escaped(written), code(written)):
        assert len(cell.splitlines()) <= 1
        assert not CELL.search(cell.strip("`") if cell.startswith("`") else cell)
