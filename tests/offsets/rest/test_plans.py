"""Offset plans over the REST API: every strategy, and the way from plan to apply to undo."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import psycopg
import pytest

from groups.topics import TopicService, Watermark
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.protocol.errors import Error
from tests.conftest import START_MS
from tests.support.api import Members, assert_problem
from tests.support.rest_plans import GROUP, Plans, news, orders

WHOLE = {"topics": [{"name": "orders"}]}


@pytest.fixture
async def plans(api: httpx.AsyncClient, topics: TopicService) -> Plans:
    """Plans of the group g, with a topic of three partitions that have offsets 10 to 100."""
    await orders(topics)
    return Plans(api)


def journal(database: str) -> list[tuple[Any, ...]]:
    """Kind, partition, offset, principal and plan of each line, the oldest first."""
    with psycopg.connect(database) as connection:
        return connection.execute(
            "select kind, partition, committed_offset, principal, plan_id from offset_commit_log order by id"
        ).fetchall()


def view(database: str) -> dict[int, tuple[Any, ...]]:
    """All that is stored of each committed offset, but where the journal has it."""
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "select partition, committed_offset, leader_epoch, metadata, commit_timestamp, expire_timestamp"
            " from offsets_committedoffset"
        ).fetchall()
    return {row[0]: row[1:] for row in rows}


async def test_a_plan_shows_what_it_would_do_and_does_nothing(plans: Plans, token: str) -> None:
    await plans.commit((0, 40), (1, 95))
    made = await plans.made("shift-by", by=10, reason="skip the bad batch")
    assert uuid.UUID(made.pop("id"))
    assert made.pop("created_by").startswith("test-")
    assert made == {
        "group_id": "g",
        "strategy": "shift-by",
        "parameters": {"topics": None, "by": 10},
        "totals": {
            "partitions": 2,
            "changed": 2,
            "clamped": 1,
            "removed": 0,
            "unknown": 0,
            "outside": 0,
            "lag_change": -15,
        },
        "state": "planned",
        "reason": "skip the bad batch",
        "created_at": rfc3339(START_MS),
        "approved_at": None,
        "approved_by": None,
        "applied_at": None,
        "applied_by": None,
        "undone_at": None,
        "undone_by": None,
        "partitions": [
            {
                "topic": "orders",
                "partition": 0,
                "old_offset": 40,
                "new_offset": 50,
                "requested_offset": 50,
                "clamped": False,
                "log_start_offset": 10,
                "log_end_offset": 100,
                "old_lag": 60,
                "new_lag": 50,
                "note": "",
            },
            {
                "topic": "orders",
                "partition": 1,
                "old_offset": 95,
                "new_offset": 100,
                "requested_offset": 105,
                "clamped": True,
                "log_start_offset": 10,
                "log_end_offset": 100,
                "old_lag": 5,
                "new_lag": 0,
                "note": "105 is outside the log, which ends at 100",
            },
        ],
        "next_cursor": None,
    }
    assert await plans.committed() == {("orders", 0): 40, ("orders", 1): 95}


@pytest.mark.parametrize(
    ("strategy", "body", "expected"),
    [
        ("to-earliest", {}, {0: 10, 1: 10}),
        ("to-latest", {}, {0: 100, 1: 100}),
        ("to-latest", WHOLE, {0: 100, 1: 100, 2: 100}),
        ("to-latest", {"topics": [{"name": "orders", "partitions": [2]}]}, {2: 100}),
        ("to-offset", {"offset": 55}, {0: 55, 1: 55}),
        ("to-offset", {"offset": "55"}, {0: 55, 1: 55}),
        ("to-offset", {"offset": 2**63 - 1}, {0: 100, 1: 100}),
        ("to-offset", {"offset": 0}, {0: 10, 1: 10}),
        ("shift-by", {"by": -15}, {0: 25, 1: 80}),
        ("shift-by", {"by": "-9223372036854775807"}, {0: 10, 1: 10}),
        ("to-current", {}, {0: 40, 1: 95}),
        ("to-current", WHOLE, {0: 40, 1: 95, 2: 100}),
        ("from-file", {"csv": "orders,0,11\norders,2,500\n"}, {0: 11, 2: 100}),
        ("from-file", {"csv": "g,orders,1,12\r\nother,orders,0,3\r\n"}, {1: 12}),
    ],
)
async def test_strategies(plans: Plans, strategy: str, body: dict[str, Any], expected: dict[int, int]) -> None:
    await plans.commit((0, 40), (1, 95))
    made = await plans.made(strategy, **body)
    assert news(made) == {("orders", partition): offset for partition, offset in expected.items()}
    assert (await plans.apply(made)).status_code == 200
    assert await plans.committed() == {("orders", 0): 40, ("orders", 1): 95} | news(made)


async def test_to_a_time_by_samples_of_the_log(
    plans: Plans, topics: TopicService, clock: VirtualClock, database: str
) -> None:
    clock.advance(20_000)
    await topics.set_watermarks("orders", [Watermark(0, 10, 300), Watermark(1, 260, 300), Watermark(2, 10, 200)])
    at = START_MS + 10_000
    with psycopg.connect(database) as connection:
        connection.execute(
            "insert into offsets_watermarksample (topic_id, partition, at, until, log_start_offset, log_end_offset)"
            " select id, generate_series(0, 2), %s, %s, 10, 200 from groups_topic",
            (at, at),
        )
    for body in (
        {"strategy": "to-datetime", "at": rfc3339(START_MS + 15_000)},
        {"strategy": "by-duration", "duration": "PT5S"},
    ):
        made = await plans.made(**body, **WHOLE)
        assert news(made) == {("orders", 0): 250, ("orders", 1): 260, ("orders", 2): 200}
        assert [line["clamped"] for line in made["partitions"]] == [False, True, False]
        assert "no record was written at or after that time" in made["partitions"][2]["note"]
        assert made["parameters"]["at"] == rfc3339(START_MS + 15_000)
    future = await plans.made("to-datetime", at=rfc3339(START_MS + 3_600_000), **WHOLE)
    assert set(news(future).values()) == {300, 200}
    refused = await plans.ask("by-duration", duration="P1D", **WHOLE)
    body = assert_problem(refused, Error.INVALID_REQUEST)
    assert "no samples of its log from that time" in body["detail"]


async def test_copy_from_another_group(plans: Plans, api: httpx.AsyncClient) -> None:
    source = Plans(api, "/v1/groups/source")
    await source.commit((0, 70), (1, 5))
    await plans.commit((2, 33))
    made = await plans.made("copy-from-group", from_group="source")
    assert news(made) == {("orders", 0): 70, ("orders", 1): 5}
    assert "outside the log" in made["partitions"][1]["note"]
    assert (await plans.apply(made)).status_code == 200
    assert await plans.committed() == {("orders", 0): 70, ("orders", 1): 5, ("orders", 2): 33}
    lacking = assert_problem(await plans.ask("copy-from-group", from_group="source", **WHOLE), Error.INVALID_REQUEST)
    assert [p["partition"] for p in lacking["problems"]] == [2]
    assert_problem(
        await plans.ask("copy-from-group", from_group="nobody"), Error.GROUP_ID_NOT_FOUND, field="from_group"
    )


async def test_to_what_was_committed_at_an_instant(plans: Plans, clock: VirtualClock) -> None:
    await plans.commit((0, 40), (1, 41))
    clock.advance(1_000)
    at = rfc3339(clock.now_ms())
    await plans.commit((0, 50))
    clock.advance(86_400_000 * 4)
    await plans.commit((0, 60), (2, 62))
    body = {"topics": [{"name": "orders", "partitions": [1]}]}
    assert (await plans.api.post(f"{GROUP}/offsets/delete", json=body)).status_code == 200
    made = await plans.made("to-committed-at", at=at)
    assert news(made) == {("orders", 0): 50, ("orders", 1): 41, ("orders", 2): None}
    assert (await plans.apply(made)).status_code == 200
    assert await plans.committed() == {("orders", 0): 50, ("orders", 1): 41}
    clock.advance(1_000)
    # A removal is part of history too: before the last reset, partition 2 had an offset and partition 1 had none.
    assert (await plans.undo(made)).status_code == 200
    assert await plans.committed() == {("orders", 0): 60, ("orders", 2): 62}


async def test_risks_are_counted_listed_and_can_be_avoided(plans: Plans, clock: VirtualClock) -> None:
    await plans.commit((0, 500), (1, 41))
    clock.advance(1_000)
    at = rfc3339(clock.now_ms())
    clock.advance(1_000)
    await plans.commit((0, 60), (1, 42), (2, 62))
    made = await plans.made("to-committed-at", at=at)
    assert news(made) == {("orders", 0): 500, ("orders", 1): 41, ("orders", 2): None}
    assert {name: made["totals"][name] for name in ("removed", "unknown", "outside")} == {
        "removed": 1,
        "unknown": 1,
        "outside": 1,
    }
    listed = await plans.api.get(f"{GROUP}/offsets/plans/{made['id']}?risky=true")
    assert [line["partition"] for line in listed.json()["partitions"]] == [0, 2]
    assert_problem(
        await plans.api.get(f"{GROUP}/offsets/plans/{made['id']}?risky=yes"), Error.INVALID_REQUEST, field="risky"
    )
    careful = await plans.made("to-committed-at", at=at, clamp=True, keep_unknown=True)
    assert news(careful) == {("orders", 0): 100, ("orders", 1): 41}
    assert (await plans.apply(careful)).status_code == 200
    assert await plans.committed() == {("orders", 0): 100, ("orders", 1): 41, ("orders", 2): 62}
    nothing = await plans.ask(
        "to-committed-at", at=at, keep_unknown=True, topics=[{"name": "orders", "partitions": [2]}]
    )
    assert "no partition is left" in assert_problem(nothing, Error.INVALID_REQUEST)["detail"]
    assert_problem(await plans.ask("to-latest", clamp="true", **WHOLE), Error.INVALID_REQUEST, field="clamp")


async def test_apply_and_undo_are_in_view_journal_and_timeline(
    plans: Plans, database: str, clock: VirtualClock, api: httpx.AsyncClient
) -> None:
    await plans.commit((0, 40))
    before = view(database)
    clock.advance(5_000)
    made = await plans.applied("to-earliest", reason="replay", **WHOLE)
    assert (made["state"], made["applied_at"], made["undone_at"]) == ("applied", rfc3339(clock.now_ms()), None)
    assert view(database) == {p: (10, -1, "", clock.now_ms(), None) for p in range(3)}
    clock.advance(5_000)
    undone = (await plans.undo(made)).json()
    assert (undone["state"], undone["undone_at"]) == ("undone", rfc3339(clock.now_ms()))
    assert view(database) == before
    who, plan_id = made["applied_by"], uuid.UUID(made["id"])
    assert journal(database)[1:] == [
        *(("reset", p, 10, who, plan_id) for p in range(3)),
        ("restore", 0, 40, who, plan_id),
        ("restore", 1, None, who, plan_id),
        ("restore", 2, None, who, plan_id),
    ]
    events = (await api.get(f"{GROUP}/events")).json()["events"]
    told = {"partitions": 3, "topics": ["orders"], "principal": who, "plan_id": made["id"], "reason": "replay"}
    assert [(e["kind"], e["detail"]) for e in events[:2]] == [("offsets_restored", told), ("offsets_reset", told)]


async def test_a_group_that_does_not_exist_is_made_by_applying(plans: Plans, api: httpx.AsyncClient) -> None:
    made = await plans.made("to-latest", **WHOLE)
    assert_problem(await api.get(GROUP), Error.GROUP_ID_NOT_FOUND)
    assert (await plans.apply(made)).status_code == 200
    assert (await api.get(GROUP)).json()["state"] == "Empty"
    assert set((await plans.committed()).values()) == {100}
    assert (await plans.undo(made)).status_code == 200
    assert await plans.committed() == {}


async def test_a_busy_group_may_be_planned_and_not_reset(plans: Plans, members: Members) -> None:
    joined = await members.stable()
    who = {"member_id": joined["member_id"], "generation_id_or_member_epoch": joined["generation_id"]}
    await plans.commit((0, 40), **who)
    made = await plans.made("to-latest")
    body = assert_problem(await plans.apply(made), Error.NON_EMPTY_GROUP)
    assert "stop them" in body["detail"]
    assert await plans.committed() == {("orders", 0): 40}


async def test_a_busy_group_is_reset_while_it_is_held(plans: Plans, members: Members, api: httpx.AsyncClient) -> None:
    joined = await members.stable()
    who = {"member_id": joined["member_id"], "generation_id_or_member_epoch": joined["generation_id"]}
    await plans.commit((0, 40), **who)
    held = await api.post(f"{GROUP}/hold", json={"duration_ms": 60_000, "reason": "reset"})
    assert held.status_code == 200, held.text
    made = await plans.applied("to-latest")
    assert (await api.delete(f"{GROUP}/hold")).status_code in (200, 204)
    assert news(made) == await plans.committed() == {("orders", 0): 100}


async def test_import_and_reset_are_told_apart_in_the_journal(plans: Plans, database: str) -> None:
    await plans.applied("from-file", csv="orders,0,11")
    assert [line[:3] for line in journal(database)] == [("import", 0, 11)]
