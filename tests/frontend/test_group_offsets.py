"""Creating a group with start offsets, and deleting offsets of chosen partitions."""

from __future__ import annotations

import psycopg
import pytest
from django.test import Client

from tests.frontend.seed import Seed, working_group


def committed(database: str) -> dict[tuple[str, int], int]:
    with psycopg.connect(database) as connection:
        found = connection.execute("select topic, partition, committed_offset from offsets_committedoffset")
        return {(topic, partition): offset for topic, partition, offset in found}


def test_a_group_is_created_with_its_start_offsets(operator: Client, seed: Seed, database: str) -> None:
    seed.topic("orders", 2, [100, 100])
    fields = {"group_id": "billing", "offsets": "orders,0,42\norders,1,7"}
    page = operator.post("/create-group", fields, follow=True).content.decode()
    assert "Created billing." in page
    assert committed(database) == {("orders", 0): 42, ("orders", 1): 7}
    assert "existed already" in operator.post("/create-group", fields, follow=True).content.decode()


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"group_id": "a/b"}, "group_id"),
        ({"group_id": "billing", "offsets": "orders,x,1"}, "line 1"),
        ({"group_id": "billing", "offsets": "nothing,0,1"}, "no topic"),
    ],
)
def test_what_cannot_be_created_is_said(
    operator: Client, seed: Seed, database: str, fields: dict[str, str], complaint: str
) -> None:
    answer = operator.post("/create-group", fields)
    assert answer.status_code in (400, 404)
    assert complaint in answer.content.decode()
    assert committed(database) == {}


def test_offsets_of_chosen_partitions_go(operator: Client, seed: Seed, database: str) -> None:
    seed.topic("orders", 3, [100] * 3)
    seed.topic("bills", 2, [100] * 2)
    pk = seed.group("idle", "Empty", protocol=None)
    seed.commit(pk, {("orders", 0): 1, ("orders", 1): 2, ("orders", 2): 3, ("bills", 0): 4, ("bills", 1): 5})
    url = "/groups/idle/delete-offsets"
    chosen = {"t": ["bills"], "p": ["orders:1"]}
    assert "Type the group" in operator.post(url, {**chosen, "confirm": "other"}).content.decode()
    assert "tick at least one" in operator.post(url, {"confirm": "idle"}).content.decode()
    assert len(committed(database)) == 5
    page = operator.post(url, {**chosen, "confirm": "idle"}, follow=True).content.decode()
    assert "Deleted 3 committed offsets of idle." in page
    assert committed(database) == {("orders", 0): 1, ("orders", 2): 3}


def test_offsets_of_members_that_join_by_range_are_kept(operator: Client, seed: Seed, database: str) -> None:
    working_group(seed)
    before = committed(database)
    answer = operator.post("/groups/billing/delete-offsets", {"topics": "orders", "confirm": "billing"})
    assert answer.status_code >= 400
    assert committed(database) == before


def test_who_may_not_is_refused(person: Client, seed: Seed) -> None:
    seed.group("idle", "Empty")
    assert "needs alter-offsets on group x" in person.post("/create-group", {"group_id": "x"}).content.decode()
    assert "needs delete on group idle" in person.get("/groups/idle/delete-offsets").content.decode()
    assert "your account needs delete on group idle" in person.get("/groups/idle").content.decode()
