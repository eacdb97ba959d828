"""Committed offsets and lag of a group over the REST API."""

from __future__ import annotations

from typing import Any

import httpx
import psycopg
import pytest

from groups.core.model.types import ClassicGroup
from groups.engine.service import GroupService
from groups.topics import TopicService, Watermark
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.protocol.errors import Error
from tests.conftest import START_MS
from tests.support.api import Members, assert_problem
from tests.support.fixtures import ClientWith

OFFSETS = "/v1/groups/g/offsets"


@pytest.fixture(autouse=True)
async def orders(topics: TopicService) -> None:
    """A topic with three partitions."""
    await topics.create("orders", 3)


async def commit(api: httpx.AsyncClient, *offsets: tuple[int, int], topic: str = "orders", **who: Any) -> None:
    """Commit (partition, offset)s."""
    partitions = [{"partition": p, "committed_offset": o, "committed_metadata": f"at {o}"} for p, o in offsets]
    body = {"topics": [{"name": topic, "partitions": partitions}], **who}
    response = await api.post(f"{OFFSETS}/commit", json=body)
    assert response.status_code == 200, response.text
    assert {p["error_code"] for t in response.json()["topics"] for p in t["partitions"]} == {0}


async def test_a_committed_offset_with_owner_and_lag(
    api: httpx.AsyncClient, members: Members, topics: TopicService, clock: VirtualClock
) -> None:
    joined = await members.stable()
    who = {"member_id": joined["member_id"], "generation_id_or_member_epoch": joined["generation_id"]}
    await commit(api, (0, 40), (1, 7), **who)
    committed_at = rfc3339(clock.now_ms())
    clock.advance(1_000)
    await topics.set_watermarks("orders", [Watermark(0, 10, 100)])
    sampled_at = rfc3339(clock.now_ms())
    assert (await api.get(OFFSETS)).json() == {
        "group_id": "g",
        "offsets": [
            {
                "topic": "orders",
                "partition": 0,
                "committed_offset": 40,
                "committed_leader_epoch": -1,
                "metadata": "at 40",
                "committed_at": committed_at,
                "owner": joined["member_id"],
                "log_start_offset": 10,
                "log_end_offset": 100,
                "lag": 60,
                "sampled_at": sampled_at,
                "expires_at": None,
                "kept": "subscribed",
                "pinned": False,
                "pending": False,
            },
            {
                "topic": "orders",
                "partition": 1,
                "committed_offset": 7,
                "committed_leader_epoch": -1,
                "metadata": "at 7",
                "committed_at": committed_at,
                "owner": None,
                "log_start_offset": None,
                "log_end_offset": None,
                "lag": None,
                "sampled_at": None,
                "expires_at": None,
                "kept": "subscribed",
                "pinned": False,
                "pending": False,
            },
        ],
        "next_cursor": None,
    }


@pytest.mark.parametrize(
    ("committed", "start", "end", "lag"),
    [
        (40, 10, 100, 60),
        (100, 10, 100, 0),
        (120, 10, 100, 0),  # the sample is older than the commit
        (5, 10, 100, 90),  # what was deleted cannot be read any more
        (5, 100, 100, 0),
        (0, 0, 2**63 - 1, 2**63 - 1),
    ],
)
async def test_lag_differs_from_kafka_in_never_being_negative(
    api: httpx.AsyncClient, topics: TopicService, committed: int, start: int, end: int, lag: int
) -> None:
    await commit(api, (0, committed))
    await topics.set_watermarks("orders", [Watermark(0, start, end)])
    (entry,) = (await api.get(OFFSETS)).json()["offsets"]
    assert (entry["committed_offset"], entry["lag"]) == (committed, lag)


async def test_pages_follow_each_other_by_topic_and_partition(api: httpx.AsyncClient, topics: TopicService) -> None:
    await topics.create("alpha", 2)
    await commit(api, (1, 1), (0, 1), (2, 1))
    await commit(api, (1, 1), (0, 1), topic="alpha")
    seen: list[tuple[str, int]] = []
    cursor = ""
    while cursor is not None:
        page = (await api.get(f"{OFFSETS}?limit=2{cursor}")).json()
        seen += [(entry["topic"], entry["partition"]) for entry in page["offsets"]]
        cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"
    assert seen == [("alpha", 0), ("alpha", 1), ("orders", 0), ("orders", 1), ("orders", 2)]
    only = (await api.get(f"{OFFSETS}?topic=alpha")).json()["offsets"]
    assert [entry["topic"] for entry in only] == ["alpha", "alpha"]


async def test_a_retention_that_differs_from_kafka_in_never_wrapping_into_the_past(
    api: httpx.AsyncClient, database: str
) -> None:
    await commit(api, (0, 5), retention_time_ms=2**63 - 1)
    with psycopg.connect(database) as connection:
        row = connection.execute("select expire_timestamp from offsets_committedoffset").fetchone()
    assert row == (2**63 - 1,)


async def test_neither_offsets_nor_watermarks_outlive_their_topic(api: httpx.AsyncClient, topics: TopicService) -> None:
    await commit(api, (0, 5))
    await topics.set_watermarks("orders", [Watermark(0, 0, 9)])
    await topics.delete("orders")
    await topics.create("orders", 3)
    assert (await api.get(OFFSETS)).json()["offsets"] == []
    await commit(api, (0, 1))
    (entry,) = (await api.get(OFFSETS)).json()["offsets"]
    assert (entry["committed_offset"], entry["lag"]) == (1, None)


async def test_a_group_without_offsets_and_no_group(api: httpx.AsyncClient, service: GroupService) -> None:
    assert_problem(await api.get(OFFSETS), Error.GROUP_ID_NOT_FOUND)
    await service.put(ClassicGroup("g", state_since=START_MS))
    assert (await api.get(OFFSETS)).json() == {"group_id": "g", "offsets": [], "next_cursor": None}
    assert (await api.get(f"{OFFSETS}?topic=nope")).json()["offsets"] == []
    assert_problem(await api.get(f"{OFFSETS}?cursor=WyJ4Il0"), Error.INVALID_REQUEST, field="cursor")


async def test_topics_that_the_caller_may_not_describe_are_left_out(
    api: httpx.AsyncClient, topics: TopicService, client_with: ClientWith
) -> None:
    for name in ("audit", "order-notes"):
        await topics.create(name, 1)
        await commit(api, (0, 3), topic=name)
        assert (await api.post("/v1/groups/g/pins", json={"topic": name})).status_code == 200
    await api.post("/v1/groups/g/pins", json={"topic": None})
    await commit(api, (1, 7))
    limited = await client_with("describe:group:g", "describe:topic:order*")
    assert (await api.get(OFFSETS, params={"limit": 1})).json()["offsets"][0]["topic"] == "audit"
    first = (await limited.get(OFFSETS, params={"limit": 1})).json()
    rest = (await limited.get(OFFSETS, params={"cursor": first["next_cursor"]})).json()
    assert [offset["topic"] for offset in first["offsets"] + rest["offsets"]] == ["order-notes", "orders"]
    assert rest["next_cursor"] is None
    assert (await limited.get(OFFSETS, params={"topic": "audit"})).json()["offsets"] == []
    pins = (await limited.get("/v1/groups/g/pins")).json()["pins"]
    assert [pin["topic"] for pin in pins] == [None, "order-notes"]
