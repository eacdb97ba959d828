"""The page that simulates an assignment: its form, what it says, and what it refuses."""

from __future__ import annotations

import re
from html import unescape

from django.test import Client

from frontend.pages.actions.simulation import move_lines
from groups.simulation import Move
from kcoord.protocol.consumer_protocol import Subscription, encode_subscription
from tests.frontend.seed import Seed, working_group
from tests.frontend.test_exports import table


def plain(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page[page.index("<main") :]).split())


def test_what_would_move_is_told_by_member(person: Client, seed: Seed) -> None:
    working_group(seed)
    seed.topic("orders", 12)
    seed.connection.execute(
        "update groups_member set protocol_metadata = array[%s::bytea]",
        [encode_subscription(Subscription(("orders",)))],
    )
    page = plain(person.get("/groups/billing/simulate?add=1&topics=orders:13").content.decode())
    assert "Each member would have 3 to 4 partitions." in page
    assert "new-1 new – 3 +3 0" in page
    assert re.search(r"orders 12 nobody new-1|orders 10–12 nobody new-1", page)
    assert 'href="/groups/billing/simulate"' in person.get("/groups/billing").content.decode()


def test_members_that_cannot_be_read_have_no_numbers(person: Client, seed: Seed) -> None:
    members = working_group(seed)
    seed.topic("orders", 12)
    said = plain(person.get("/groups/billing/simulate?add=1").content.decode())
    assert "Nothing can be simulated: what the 3 members subscribe to cannot be read." in said
    assert "Gains" not in said
    seed.connection.execute(
        "update groups_member set protocol_metadata = array[%s::bytea] where member_id <> %s",
        [encode_subscription(Subscription(("orders",))), members[0]],
    )
    said = unescape(plain(person.get("/groups/billing/simulate?add=0").content.decode()))
    assert (
        "Each of the others would have 6 partitions: what 1 member subscribes to cannot be read. Its format is not that"
        " of Kafka's consumers." in said
    )
    assert len(re.findall("not known not known – –", said)) == 1, said
    rows = {row["member_id"]: row for row in table(person, "/groups/billing/simulated-members.csv?add=0")}
    numbers = {name: [row[of] for of in ("before", "after", "gained", "lost")] for name, row in rows.items()}
    assert [numbers[name] for name in members] == [[""] * 4, ["0", "6", "6", "0"], ["0", "6", "6", "0"]]


def test_a_group_without_members_and_bad_addresses(person: Client, seed: Seed) -> None:
    seed.group("idle", "Empty")
    assert person.get("/groups/idle/simulate").status_code == 200
    assert person.get("/groups/none/simulate").status_code == 404
    for query in ("add=x", "add=99999", "add=0&topics=orders", "add=0&topics=orders:0", "add=0&assignor=mine"):
        assert person.get(f"/groups/idle/simulate?{query}").status_code == 400


def test_moves_between_the_same_members_share_a_line() -> None:
    moves = (Move("a", 0, "m1", "m2"), Move("a", 1, "m1", "m2"), Move("a", 3, None, "m2"), Move("b", 1, "m1", "m2"))
    assert [(line.topic, line.partitions, line.owner) for line in move_lines(moves)] == [
        ("a", "0, 1", "m1"),
        ("a", "3", None),
        ("b", "1", "m1"),
    ]
