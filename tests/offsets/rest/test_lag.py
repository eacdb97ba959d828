"""Lag of a group over the REST API: now and over time."""

from __future__ import annotations

from typing import Any

import httpx
import psycopg
import pytest

from groups.core.model.types import ClassicGroup, GroupState
from groups.engine.service import GroupService
from groups.topics import TopicService, Watermark
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.lag.samples import SampleService
from tests.conftest import START_MS
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith
from tests.support.rest_groups import group, member

LAG = "/v1/groups/g/lag"
HISTORY = f"{LAG}/history"


@pytest.fixture(autouse=True)
async def orders(topics: TopicService) -> None:
    """A topic with three partitions."""
    await topics.create("orders", 3)


@pytest.fixture
def samples(runtime: Runtime) -> SampleService:
    """The sampler of this process."""
    return runtime.get(SampleService)


async def commit(api: httpx.AsyncClient, *offsets: tuple[int, int], topic: str = "orders", **who: Any) -> None:
    """Commit (partition, offset)s."""
    partitions = [{"partition": p, "committed_offset": o} for p, o in offsets]
    body = {"topics": [{"name": topic, "partitions": partitions}], **who}
    response = await api.post("/v1/groups/g/offsets/commit", json=body)
    assert {p["error_code"] for t in response.json()["topics"] for p in t["partitions"]} == {0}, response.text


def brief(page: dict[str, Any]) -> dict[str, list[tuple[Any, ...]]]:
    """Topic -> (partition, committed offset, lag)s."""
    return {
        topic["topic"]: [(p["partition"], p["committed_offset"], p["lag"]) for p in topic["partitions"]]
        for topic in page["topics"]
    }


async def test_lag_by_partition_topic_and_in_all(
    api: httpx.AsyncClient,
    topics: TopicService,
    samples: SampleService,
    service: GroupService,
    clock: VirtualClock,
) -> None:
    await topics.set_watermarks("orders", [Watermark(0, 0, 100)])
    await samples.sample()
    clock.advance(60_000)
    await topics.set_watermarks("orders", [Watermark(0, 10, 200)])
    committed_at = rfc3339(clock.now_ms())
    await service.put(group("g", GroupState.STABLE, member("m1", 0, 1, session_deadline=START_MS + 600_000)))
    await commit(api, (0, 150), member_id="m1", generation_id_or_member_epoch=1)
    clock.advance(30_000)
    content = (await api.get(LAG)).json()
    total = {
        "lag": 50,
        "unknown_partitions": 2,
        "time_lag_ms": 60_000,
        "time_lag_at_least_ms": None,
        "sampled_at": committed_at,
        "stale": False,
    }
    nothing = {
        "committed_offset": None,
        "log_start_offset": None,
        "log_end_offset": None,
        "lag": None,
        "time_lag_ms": None,
        "time_lag_at_least_ms": None,
        "committed_at": None,
        "sampled_at": None,
        "stale": False,
    }
    assert content == {
        "group_id": "g",
        **total,
        "topics": [
            {
                "topic": "orders",
                "read": True,
                "deleted": False,
                **total,
                "partitions": [
                    {
                        "partition": 0,
                        "committed_offset": 150,
                        "log_start_offset": 10,
                        "log_end_offset": 200,
                        "lag": 50,
                        "time_lag_ms": 60_000,
                        "time_lag_at_least_ms": None,
                        "committed_at": committed_at,
                        "sampled_at": committed_at,
                        "stale": False,
                        "member_id": "m1",
                    },
                    {"partition": 1, **nothing, "member_id": "m1"},
                    {"partition": 2, **nothing, "member_id": None},
                ],
            }
        ],
        "next_cursor": None,
    }


async def test_what_is_not_read_any_more_and_what_is_gone(
    api: httpx.AsyncClient, topics: TopicService, database: str
) -> None:
    for name in ("left", "gone"):
        await topics.create(name, 1)
        await topics.set_watermarks(name, [Watermark(0, 0, 10)])
        await commit(api, (0, 4), topic=name)
    with psycopg.connect(database) as connection:  # the moment between its deletion and that of its offsets
        connection.execute(
            "delete from groups_watermark w using groups_topic t where t.id = w.topic_id and name = 'gone'"
        )
        connection.execute("delete from groups_topic where name = 'gone'")
    await commit(api, (0, 1))
    found = (await api.get(LAG)).json()
    marks = {topic["topic"]: (topic["read"], topic["deleted"], topic["lag"]) for topic in found["topics"]}
    assert marks == {"gone": (False, True, None), "left": (False, False, 6), "orders": (False, False, None)}
    assert (found["lag"], found["unknown_partitions"]) == (6, 2), "a group without members reads nothing"


async def test_topics_of_members_are_read_and_others_are_not(
    api: httpx.AsyncClient, topics: TopicService, service: GroupService
) -> None:
    await topics.create("left", 1)
    await service.put(group("g", GroupState.STABLE, member("m1", 0), member("m2", topic="left")))
    found = (await api.get(LAG)).json()
    assert {topic["topic"]: topic["read"] for topic in found["topics"]} == {"orders": True, "left": True}
    assert brief(found) == {"left": [(0, None, None)], "orders": [(p, None, None) for p in range(3)]}
    assert (found["lag"], found["unknown_partitions"], found["sampled_at"]) == (None, 4, None)


async def test_groups_without_anything_and_no_group(api: httpx.AsyncClient, service: GroupService) -> None:
    assert_problem(await api.get(LAG), Error.GROUP_ID_NOT_FOUND)
    assert_problem(await api.get(HISTORY), Error.GROUP_ID_NOT_FOUND)
    await service.put(ClassicGroup("g", state_since=START_MS))
    found = (await api.get(LAG)).json()
    assert (found["lag"], found["topics"], found["unknown_partitions"], found["time_lag_ms"]) == (None, [], 0, None)
    assert (await api.get(HISTORY)).json() == {"group_id": "g", "samples": [], "next_cursor": None}


async def test_an_old_report_is_stale_and_what_waits_grows_later(
    api: httpx.AsyncClient, topics: TopicService, clock: VirtualClock
) -> None:
    await topics.set_watermarks("orders", [Watermark(0, 0, 100), Watermark(1, 0, 100)])
    await commit(api, (0, 100), (1, 99))
    clock.advance(300_000)
    assert (await api.get(LAG)).json()["stale"] is False
    clock.advance(1)
    found = (await api.get(LAG)).json()
    assert found["stale"] is True
    assert found["sampled_at"] == rfc3339(START_MS)
    (topic,) = found["topics"]
    times = [(p["time_lag_ms"], p["time_lag_at_least_ms"], p["stale"]) for p in topic["partitions"]]
    assert times == [(0, None, True), (None, 300_001, True)]
    assert (found["time_lag_ms"], found["time_lag_at_least_ms"]) == (None, 300_001)


async def test_a_topic_made_anew_knows_nothing_of_the_old_one(
    api: httpx.AsyncClient, topics: TopicService, samples: SampleService, clock: VirtualClock
) -> None:
    await topics.set_watermarks("orders", [Watermark(0, 0, 10)])
    await samples.sample()
    clock.advance(3_600_000)
    await topics.delete("orders")
    await topics.create("orders", 3)
    await topics.set_watermarks("orders", [Watermark(0, 0, 100)])
    await commit(api, (0, 50))
    clock.advance(5_000)
    (partition,) = (await api.get(LAG)).json()["topics"][0]["partitions"]
    assert (partition["lag"], partition["time_lag_ms"], partition["time_lag_at_least_ms"]) == (50, None, 5_000)


async def test_pages_of_partitions_and_of_topics(api: httpx.AsyncClient, topics: TopicService) -> None:
    await topics.create("alpha", 2)
    await topics.set_watermarks("alpha", [Watermark(0, 0, 10), Watermark(1, 0, 10)])
    await commit(api, (0, 1), (1, 2), topic="alpha")
    await commit(api, (0, 1), (1, 1), (2, 1))
    first = (await api.get(f"{LAG}?limit=3")).json()
    assert brief(first) == {"alpha": [(0, 1, 9), (1, 2, 8)], "orders": [(0, 1, None)]}
    assert (first["lag"], first["unknown_partitions"]) == (17, 3), "totals are those of all partitions"
    second = (await api.get(f"{LAG}?limit=3&cursor={first['next_cursor']}")).json()
    assert brief(second) == {"orders": [(1, 1, None), (2, 1, None)]}
    assert (second["lag"], second["next_cursor"]) == (17, None)

    first = (await api.get(f"{LAG}?partitions=false&limit=1")).json()
    assert [(t["topic"], t["lag"], t["partitions"]) for t in first["topics"]] == [("alpha", 17, [])]
    second = (await api.get(f"{LAG}?partitions=false&limit=1&cursor={first['next_cursor']}")).json()
    assert ([t["topic"] for t in second["topics"]], second["next_cursor"]) == (["orders"], None)

    only = (await api.get(f"{LAG}?topic=orders")).json()
    assert (brief(only).keys(), only["lag"], only["unknown_partitions"]) == ({"orders"}, None, 3)
    assert (await api.get(f"{LAG}?topic=nope")).json()["topics"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("partitions=yes", "partitions"),
        ("partitions=", "partitions"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("cursor=WyJ4Il0", "cursor"),
        ("partitions=false&cursor=WyJ4IiwxXQ", "cursor"),
        ("topic=a&topic=b", "topic"),
        ("topic=%00", "topic"),
        ("sort=lag", "sort"),
        (f"topic={'x' * 250}", "topic"),
    ],
)
async def test_bad_parameters_are_named(api: httpx.AsyncClient, query: str, field: str) -> None:
    await commit(api, (0, 1))
    assert_problem(await api.get(f"{LAG}?{query}"), Error.INVALID_REQUEST, field=field)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=yesterday", "from"),
        ("to=1700000000000", "to"),
        ("to=2026-13-01T00:00:00Z", "to"),
        ("cursor=WyJ4Il0", "cursor"),
        ("partitions=false", "partitions"),
    ],
)
async def test_bad_parameters_of_the_history_are_named(api: httpx.AsyncClient, query: str, field: str) -> None:
    await commit(api, (0, 1))
    assert_problem(await api.get(f"{HISTORY}?{query}"), Error.INVALID_REQUEST, field=field)


async def test_history_of_lag(
    api: httpx.AsyncClient, topics: TopicService, samples: SampleService, clock: VirtualClock, service: GroupService
) -> None:
    await topics.create("alpha", 1)
    await topics.set_watermarks("alpha", [Watermark(0, 0, 5)])
    await commit(api, (0, 5), topic="alpha")
    await commit(api, (0, 5))
    for end in (10, 20, 30):
        await topics.set_watermarks("orders", [Watermark(0, 0, end)])
        await samples.sample()
        clock.advance(60_000)

    def at(minute: int) -> str:
        return rfc3339(START_MS + 60_000 * minute)

    orders = [
        {"at": at(0), "topic": "orders", "lag": 5, "time_lag_ms": None},
        {"at": at(1), "topic": "orders", "lag": 15, "time_lag_ms": None},
        {"at": at(2), "topic": "orders", "lag": 25, "time_lag_ms": None},
    ]
    assert (await api.get(f"{HISTORY}?topic=orders")).json()["samples"] == orders
    in_all = (await api.get(HISTORY)).json()["samples"]
    assert in_all == [{**sample, "topic": None} for sample in orders]
    alpha = (await api.get(f"{HISTORY}?topic=alpha&from={at(1)}&to={at(2)}")).json()["samples"]
    assert alpha == [{"at": at(1), "topic": "alpha", "lag": 0, "time_lag_ms": 0}]
    first = (await api.get(f"{HISTORY}?limit=2")).json()
    rest = (await api.get(f"{HISTORY}?limit=2&cursor={first['next_cursor']}")).json()
    assert (first["samples"] + rest["samples"], rest["next_cursor"]) == (in_all, None)
    await service.delete("g")
    assert len((await api.get(HISTORY)).json()["samples"]) == 3, "samples outlive their group"


async def test_topics_that_the_caller_may_not_describe_look_as_if_they_did_not_exist(
    client_with: ClientWith, api: httpx.AsyncClient, topics: TopicService, samples: SampleService
) -> None:
    await topics.create("secret", 1)
    for name in ("orders", "secret"):
        await topics.set_watermarks(name, [Watermark(0, 0, 10)])
        await commit(api, (0, 1), topic=name)
    await samples.sample()
    assert ((await api.get(LAG)).json()["lag"], (await api.get(HISTORY)).json()["samples"][0]["lag"]) == (18, 18)
    reader = await client_with("describe:group:g", "describe:topic:orders")
    found = (await reader.get(LAG)).json()
    assert (found["lag"], found["unknown_partitions"], [t["topic"] for t in found["topics"]]) == (9, 0, ["orders"])
    assert (await reader.get(f"{LAG}?topic=secret")).json()["topics"] == []
    assert (await reader.get(HISTORY)).json()["samples"][0]["lag"] == 9
    assert (await reader.get(f"{HISTORY}?topic=secret")).json()["samples"] == []
    stranger = await client_with("describe:topic:orders")
    assert_problem(await stranger.get(LAG), Error.GROUP_ID_NOT_FOUND)
    assert_problem(await stranger.get(HISTORY), Error.GROUP_ID_NOT_FOUND)
