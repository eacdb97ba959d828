"""The page of nodes, and what a group's page says of its coordinator."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from pytest_django.fixtures import SettingsWrapper

from frontend.pages.nodes import view as presenters
from frontend.pages.nodes.view import NODE_STATES, PARTITION_STATES, hand_overs
from frontend.ui.states import REASONS
from groups.core.model.group import partition_of
from groups.models import CoordinatorNode, CoordinatorPartition, PartitionChange
from groups.nodes.overview import CHANGE_REASONS, END_REASONS, NodeView, Overview, PartitionChangeView, SeenPartition
from tests.frontend.node_seed import LONG_LEASE_MS, change, four_nodes, node, outage, own
from tests.frontend.seed import Seed, working_group

NOW = 1_700_000_000_000


def plain(client: Client, address: str = "/nodes") -> str:
    """The text of a page."""
    answer = client.get(address)
    assert answer.status_code == 200
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def part(html: str, start: str, end: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html[html.index(start) : html.index(end, html.index(start))]).split())


def test_without_nodes_it_says_how_they_come(person: Client) -> None:
    text = plain(person)
    assert "No node has registered yet" in text
    assert "Celery runs the timers" in text
    assert "no live owner" not in text


def test_four_nodes_with_their_partitions(person: Client, seed: Seed, settings: SettingsWrapper) -> None:
    settings.KCOORD = settings.KCOORD.override({"node.id": "node-1"})
    four_nodes(seed)
    html = person.get("/nodes").content.decode()
    assert "4 live nodes, 50 coordinator partitions" in html
    row = part(html, '<tr id="n2"', "</tr>")
    assert row.startswith(
        "node-1 this server http://node-1:8000 Its groups Live 0.12.0 1 h ago now 13 1, 5, 9, 13, 17, 21 +7"
    )
    assert html.count("this server") == 1
    assert "48 of 50, 2 loading" in " ".join(re.sub(r"<[^>]+>", " ", html).split())
    cell = part(html, 'id="p8"', "</li>")
    assert cell.endswith("Partition 8 Active loaded in 4 ms epoch 5 3 min ago"), cell
    assert part(html, 'id="p9"', "</li>").endswith("Partition 9 Loading epoch 3 3 min ago")
    assert html.count('class="shard"') == 50
    ended = part(html, 'id="ended"', "</details>")
    assert "node-2 Lapsed" in ended
    assert "node-3 Stopped 0.11.2" in ended
    assert "node-1 Lapsed" in ended
    assert "no live owner" not in html


def test_an_outage_says_what_it_does_and_what_to_do(person: Client, seed: Seed) -> None:
    outage(seed)
    text = plain(person)
    assert "18 of 50 partitions have no live owner , the first for 3 min" in text
    assert "The live nodes take them over within 3 s." in text
    assert "Lapsed" in text
    assert "No live owner 18 Partition 2 No owner epoch 43 6 s ago" in text


def test_with_no_node_alive_a_server_has_to_be_started(person: Client, seed: Seed, settings: SettingsWrapper) -> None:
    dead = node(seed, "a", renewed_ms_ago=60_000, lease_ms=3_000)
    own(seed, dict.fromkeys(range(50), dead))
    settings.KCOORD = settings.KCOORD.override({"coordinator.routing": "owner"})
    text = plain(person)
    assert "No server holds a lease. Start one" in text
    assert "are told that nobody coordinates them, and try again" in text


def test_names_are_escaped_and_an_unknown_address_is_said(person: Client, seed: Seed) -> None:
    own(seed, dict.fromkeys(range(50), node(seed, "<b>&", url="")))
    html = person.get("/nodes").content.decode()
    assert "<b>&<" not in html
    assert "&lt;b&gt;&amp;" in html


def test_the_last_hand_overs(person: Client, seed: Seed) -> None:
    four_nodes(seed)
    text = plain(person)
    moves = text[text.index("Last hand-overs") :]
    assert "Balanced node-0 node-2 12 2, 6, 10, 14, 18, 22 +6 handed over directly 3 s ago" in moves
    assert "Lease ran out node-2 node-1 6 6, 14, 22, 30, 38, 46 640 ms 3 min ago" in moves
    assert "Nobody owned it nobody node-0 50 0–49 4.1 s" in moves


def seen(
    at: int, partition: int, before: str | None, after: str | None, reason: str, gap: int | None
) -> PartitionChangeView:
    return PartitionChangeView(at, partition, 1, 1, before, after, reason, gap)


def test_changes_of_one_instant_are_one_hand_over() -> None:
    changes = [
        seen(9, 5, "a", "b", "lapsed", 40),
        seen(9, 4, "a", "c", "lapsed", 40),
        seen(9, 3, "a", "b", "lapsed", 55),
        seen(8, 3, "b", "a", "balanced", None),
        seen(7, 3, "b", None, "stopped", 0),
        *(seen(6 - index, 0, None, "x", "taken", None) for index in range(50)),
    ]
    found = hand_overs(changes)
    assert len(found) == presenters.HAND_OVERS
    assert [(one.partitions, one.before, one.after, one.gap, one.tone) for one in found[:4]] == [
        ("3, 5", "a", "b", "55 ms", "warn"),
        ("4", "a", "c", "40 ms", "warn"),
        ("3", "b", "a", "", "idle"),
        ("3", "b", "", "", "bad"),
    ]


def test_a_hand_over_is_not_told_with_some_of_its_partitions_only() -> None:
    """What was read ends somewhere, which may be within one."""
    moved = [seen(9, number, "a", "b", "lapsed", 40) for number in range(300)]
    before = [seen(8, number, "b", "a", "lapsed", 40) for number in range(300)]
    assert [one.count for one in hand_overs((moved + before)[: presenters.CHANGES_READ])] == [300]
    assert [one.count for one in hand_overs(moved + before[:100])] == [300, 100], "all was read"


def test_nodes_are_in_their_natural_order_and_many_partitions_are_bounded() -> None:
    names = ["node-10", "node-2", "x", "node-1"]
    nodes = [
        NodeView(name, number + 1, None, "1", NOW, NOW, NOW + 1, name != "x", None, None, ())
        for number, name in enumerate(names)
    ]
    partitions = [
        SeenPartition(number, "ACTIVE", names[number % 2], number % 2 + 1, 1, 1, NOW, 1) for number in range(10_000)
    ]
    context = presenters.present_nodes(
        Overview(NOW, nodes, [*partitions, SeenPartition(10_000, "CLOSED", None, None, 1, 1, NOW, 1)], ()), "x"
    )
    assert [line.node.node_id for line in context["nodes"]] == ["node-1", "node-2", "node-10", "x"]
    assert not any(line.here for line in context["nodes"]), "x is not live"
    assert [(one.name, one.count) for one in context["holders"]] == [("", 1), ("node-2", 5_000), ("node-10", 5_000)]
    assert sum(len(one.cells) for one in context["holders"]) == presenters.CELLS
    assert sum(one.hidden for one in context["holders"]) == 10_001 - presenters.CELLS


def test_every_state_and_reason_has_words() -> None:
    assert set(REASONS) == set(CHANGE_REASONS) == set(PartitionChange.Reason.values)
    assert set(PARTITION_STATES) == set(CoordinatorPartition.State.values)
    assert set(END_REASONS) == set(CoordinatorNode.EndReason.values)
    assert set(NODE_STATES) == {*END_REASONS, "live"}


def test_a_group_names_its_coordinator(person: Client, seed: Seed) -> None:
    working_group(seed)
    partition = partition_of("billing", 50)
    assert f"Coordinator {partition} of 50" in plain(person, "/groups/billing"), "there were never any nodes"
    own(seed, dict.fromkeys(range(50), node(seed, "node-7")), loading=[partition])
    text = plain(person, "/groups/billing")
    assert f"Coordinator node-7 partition {partition} of 50, loading" in text
    assert "No live node" not in text


@pytest.mark.parametrize("lapsed", [True, False], ids=["lapsed", "nobody"])
def test_a_group_without_coordinator_says_that_nobody_expires(person: Client, seed: Seed, lapsed: bool) -> None:
    working_group(seed)
    owner = node(seed, "node-7", renewed_ms_ago=5_000, lease_ms=3_000) if lapsed else None
    own(seed, dict.fromkeys(range(50), owner))
    text = plain(person, "/groups/billing")
    partition = partition_of("billing", 50)
    assert f"Coordinator nobody partition {partition} of 50" in text
    assert "node-7" not in text


def test_a_panel_is_the_page_without_its_frame(person: Client, seed: Seed) -> None:
    own(seed, dict.fromkeys(range(50), node(seed, "a", lease_ms=LONG_LEASE_MS)))
    change(seed, range(50), "", "a", "taken", ms_ago=10, gap_ms=2)
    panel = person.get("/nodes", headers={"HX-Request": "true"}).content.decode()
    assert panel.lstrip().startswith("<div data-now=")
    assert 'data-every="2000"' in panel
    whole = person.get("/nodes").content.decode()
    assert "/live?of=nodes" in whole
    assert 'aria-current="page">Nodes' in whole
