"""Topics and watermarks over the REST API."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import httpx
import pytest

from groups.topics import TopicService
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.protocol.errors import Error
from tests.conftest import START_MS
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith

TOPICS = "/v1/topics"


def new_topic(name: str = "orders", partitions: Any = 3, **fields: Any) -> dict[str, Any]:
    """The body that makes a topic."""
    return {"name": name, "partitions": partitions, **fields}


def watermark(partition: int, start: Any = 0, end: Any = 10) -> dict[str, Any]:
    """One entry of a report."""
    return {"partition": partition, "log_start_offset": start, "log_end_offset": end}


async def names(client: httpx.AsyncClient, query: str = "") -> list[str]:
    """Names of a list of topics."""
    response = await client.get(f"{TOPICS}{query}")
    assert response.status_code == 200, response.text
    return [topic["name"] for topic in response.json()["topics"]]


async def test_a_topic_is_made_and_read(api: httpx.AsyncClient) -> None:
    made = await api.post(TOPICS, json=new_topic(labels={"team": "billing"}))
    assert made.status_code == 201
    assert made.headers["location"] == "/v1/topics/orders"
    assert made.json() == {
        "name": "orders",
        "topic_id": str(uuid.UUID(made.json()["topic_id"], version=4)),
        "partitions": 3,
        "labels": {"team": "billing"},
        "created_at": rfc3339(START_MS),
    }
    assert (await api.get(f"{TOPICS}/orders")).json() == made.json()


async def test_a_name_is_taken_once_and_a_topic_made_again_has_another_id(api: httpx.AsyncClient) -> None:
    first = (await api.post(TOPICS, json=new_topic())).json()
    assert_problem(await api.post(TOPICS, json=new_topic(partitions=9)), Error.TOPIC_ALREADY_EXISTS)
    assert (await api.delete(f"{TOPICS}/orders")).status_code == 204
    assert_problem(await api.get(f"{TOPICS}/orders"), Error.UNKNOWN_TOPIC_OR_PARTITION)
    assert_problem(await api.delete(f"{TOPICS}/orders"), Error.UNKNOWN_TOPIC_OR_PARTITION)
    again = (await api.post(TOPICS, json=new_topic())).json()
    assert again["topic_id"] != first["topic_id"]


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ä", "a\n", "x" * 250])
async def test_names_follow_kafkas_rules(api: httpx.AsyncClient, name: str) -> None:
    assert_problem(await api.post(TOPICS, json=new_topic(name)), Error.INVALID_TOPIC_EXCEPTION, field="name")


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "x" * 249])
async def test_names_that_kafka_takes(api: httpx.AsyncClient, name: str) -> None:
    assert (await api.post(TOPICS, json=new_topic(name))).status_code == 201
    assert (await api.get(f"{TOPICS}/{name}")).json()["name"] == name


@pytest.mark.parametrize("partitions", [0, -1, 100_001, 2**70])
async def test_a_topic_has_1_to_100000_partitions(api: httpx.AsyncClient, partitions: int) -> None:
    assert_problem(
        await api.post(TOPICS, json=new_topic(partitions=partitions)), Error.INVALID_PARTITIONS, field="partitions"
    )


@pytest.mark.parametrize("partitions", ["3", 3.0, True, None, [3]])
async def test_a_number_is_a_json_number(api: httpx.AsyncClient, partitions: object) -> None:
    response = await api.post(TOPICS, json=new_topic(partitions=partitions))
    assert_problem(response, Error.INVALID_REQUEST, field="partitions")


@pytest.mark.parametrize(
    ("labels", "field"),
    [
        ([], "labels"),
        ({"a": 1}, "labels.a"),
        ({"a": "x" * 256}, "labels.a"),
        ({"": "x"}, "labels"),
        ({"x" * 64: ""}, "labels"),
        ({str(number): "" for number in range(65)}, "labels"),
        ({"a": "\0"}, "labels.a"),
    ],
)
async def test_labels_are_short_texts(api: httpx.AsyncClient, labels: object, field: str) -> None:
    assert_problem(await api.post(TOPICS, json=new_topic(labels=labels)), Error.INVALID_REQUEST, field=field)


async def test_the_number_of_partitions_only_grows(api: httpx.AsyncClient) -> None:
    await api.post(TOPICS, json=new_topic(labels={"a": "1"}))
    for partitions in (2, 3):
        response = await api.patch(f"{TOPICS}/orders", json={"partitions": partitions})
        assert_problem(response, Error.INVALID_PARTITIONS, field="partitions")
    grown = await api.patch(f"{TOPICS}/orders", json={"partitions": 5})
    assert (grown.json()["partitions"], grown.json()["labels"]) == (5, {"a": "1"})
    relabelled = await api.patch(f"{TOPICS}/orders", json={"labels": {"b": "2"}})
    assert (relabelled.json()["partitions"], relabelled.json()["labels"]) == (5, {"b": "2"})
    assert (await api.get(f"{TOPICS}/orders")).json() == relabelled.json()
    assert_problem(await api.patch(f"{TOPICS}/nope", json={}), Error.UNKNOWN_TOPIC_OR_PARTITION)


async def test_growing_at_the_same_time_never_shrinks(topics: TopicService) -> None:
    await topics.create("orders", 1)
    wanted = range(2, 12)
    await asyncio.gather(*(topics.update("orders", partitions=n) for n in wanted), return_exceptions=True)
    assert (await topics.get("orders")).partitions == 11


async def test_pages_follow_each_other_by_name(api: httpx.AsyncClient, topics: TopicService) -> None:
    for number in range(5):
        await topics.create(f"t{number}", 1)
    seen: list[str] = []
    cursor = ""
    while True:
        page = (await api.get(f"{TOPICS}?limit=2{cursor}")).json()
        seen += [topic["name"] for topic in page["topics"]]
        if page["next_cursor"] is None:
            break
        await topics.create(f"a{len(seen)}", 1)  # before the cursor: repeats and hides nothing
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == ["t0", "t1", "t2", "t3", "t4"]
    assert await names(api, "?q=T3") == ["t3"]
    assert await names(api, "?q=%25") == []


async def test_a_list_is_filtered_and_never_refused(
    api: httpx.AsyncClient, topics: TopicService, client_with: ClientWith
) -> None:
    for name in ("billing-a", "billing-b", "orders", "stock"):
        await topics.create(name, 1)
    reader = await client_with("describe:topic:billing-*", "admin:topic:orders", "describe:group:*")
    assert await names(reader) == ["billing-a", "billing-b", "orders"]
    assert await names(reader, "?limit=1") == ["billing-a"]
    assert await names(await client_with("read:group:*")) == []


async def test_what_one_may_not_see_looks_like_what_does_not_exist(
    topics: TopicService, client_with: ClientWith
) -> None:
    await topics.create("orders", 1)
    await topics.create("stock", 1)
    reader = await client_with("describe:topic:stock")
    for path in ("orders", "nope", "orders/watermarks", "nope/watermarks"):
        assert_problem(await reader.get(f"{TOPICS}/{path}"), Error.UNKNOWN_TOPIC_OR_PARTITION)
    for name in ("orders", "nope"):
        assert_problem(await reader.delete(f"{TOPICS}/{name}"), Error.UNKNOWN_TOPIC_OR_PARTITION)
        assert_problem(await reader.patch(f"{TOPICS}/{name}", json={}), Error.UNKNOWN_TOPIC_OR_PARTITION)
    assert (await topics.get("orders")).name == "orders"


async def test_writes_need_admin(topics: TopicService, client_with: ClientWith) -> None:
    await topics.create("stock", 1)
    reader = await client_with("read:topic:*", "delete:topic:*", "admin:topic:orders")
    refused = Error.TOPIC_AUTHORIZATION_FAILED
    assert_problem(await reader.post(TOPICS, json=new_topic("stock2")), refused)
    assert_problem(await reader.patch(f"{TOPICS}/stock", json={"partitions": 9}), refused)
    assert_problem(await reader.delete(f"{TOPICS}/stock"), refused)
    report = {"partitions": [watermark(0)]}
    assert_problem(await reader.post(f"{TOPICS}/stock/watermarks", json=report), refused)
    assert (await topics.get("stock")).partitions == 1
    assert (await reader.post(TOPICS, json=new_topic("orders"))).status_code == 201


async def test_each_watermark_keeps_when_it_was_sampled(api: httpx.AsyncClient, clock: VirtualClock) -> None:
    await api.post(TOPICS, json=new_topic())
    path = f"{TOPICS}/orders/watermarks"
    first = await api.post(path, json={"partitions": [watermark(2, "5", "9223372036854775807"), watermark(0)]})
    assert first.status_code == 200
    assert [entry["partition"] for entry in first.json()["partitions"]] == [0, 2]
    clock.advance(60_000)
    await api.post(path, json={"partitions": [watermark(0, 1, 20)]})
    page = (await api.get(path)).json()
    earlier, later = rfc3339(START_MS), rfc3339(START_MS + 60_000)
    lower = {"lower_end_offset": None, "lower_at": None, "lower_by": ""}
    assert page == {
        "name": "orders",
        "partitions": [
            {"partition": 0, "log_start_offset": 1, "log_end_offset": 20, "sampled_at": later, **lower},
            {"partition": 2, "log_start_offset": 5, "log_end_offset": 2**63 - 1, "sampled_at": earlier, **lower},
        ],
        "next_cursor": None,
    }
    rest = (await api.get(f"{path}?limit=1")).json()
    assert [entry["partition"] for entry in rest["partitions"]] == [0]
    rest = (await api.get(f"{path}?limit=1&cursor={rest['next_cursor']}")).json()
    assert [entry["partition"] for entry in rest["partitions"]] == [2]


@pytest.mark.parametrize(
    ("entries", "error", "field"),
    [
        ([watermark(3)], Error.UNKNOWN_TOPIC_OR_PARTITION, "partitions[1].partition"),
        ([watermark(0, 11, 10)], Error.INVALID_REQUEST, "partitions[1].log_end_offset"),
        ([watermark(1)], Error.INVALID_REQUEST, "partitions[1].partition"),
        ([watermark(0, -1, 10)], Error.INVALID_REQUEST, "partitions[1].log_start_offset"),
        ([watermark(0, 0, 2**63)], Error.INVALID_REQUEST, "partitions[1].log_end_offset"),
        ([watermark(0, "0x1", 5)], Error.INVALID_REQUEST, "partitions[1].log_start_offset"),
        ([watermark(0, "", 5)], Error.INVALID_REQUEST, "partitions[1].log_start_offset"),
        ([watermark(0, 1.5, 5)], Error.INVALID_REQUEST, "partitions[1].log_start_offset"),
        ([{"partition": 0}], Error.INVALID_REQUEST, "partitions[1].log_start_offset"),
        ([{**watermark(0), "offset": 1}], Error.INVALID_REQUEST, "partitions[1].offset"),
    ],
)
async def test_a_report_is_recorded_whole_or_not_at_all(
    api: httpx.AsyncClient, entries: list[dict[str, Any]], error: Error, field: str
) -> None:
    await api.post(TOPICS, json=new_topic())
    path = f"{TOPICS}/orders/watermarks"
    body = assert_problem(await api.post(path, json={"partitions": [watermark(1), *entries]}), error, field=field)
    if error is Error.UNKNOWN_TOPIC_OR_PARTITION:
        assert "partition 3" in body["detail"]
    assert (await api.get(path)).json()["partitions"] == []


async def test_watermarks_of_nothing(api: httpx.AsyncClient) -> None:
    path = f"{TOPICS}/orders/watermarks"
    assert_problem(await api.post(path, json={"partitions": [watermark(0)]}), Error.UNKNOWN_TOPIC_OR_PARTITION)
    await api.post(TOPICS, json=new_topic())
    assert_problem(await api.post(path, json={"partitions": []}), Error.INVALID_REQUEST, field="partitions")
    await api.post(path, json={"partitions": [watermark(0)]})
    await api.delete(f"{TOPICS}/orders")
    await api.post(TOPICS, json=new_topic())
    assert (await api.get(path)).json()["partitions"] == []


async def test_an_earlier_end_is_kept_apart_unless_the_log_was_truncated(api: httpx.AsyncClient) -> None:
    path = "/v1/topics/orders/watermarks"
    await api.post("/v1/topics", json={"name": "orders", "partitions": 1})

    async def report(end: int, **more: bool) -> dict[str, Any]:
        sent = {"partitions": [{"partition": 0, "log_start_offset": 0, "log_end_offset": end}], **more}
        answer = await api.post(path, json=sent)
        assert answer.status_code == 200, answer.text
        return dict(answer.json()["partitions"][0])

    assert (await report(12_001))["lower_at"] is None
    kept = await report(300)
    assert (kept["log_end_offset"], kept["lower_end_offset"]) == (12_001, 300)
    assert kept["lower_by"], "the finding says who reported it"
    assert (await api.get(path)).json()["partitions"] == [kept]
    assert (await report(12_002))["lower_end_offset"] == 300, "it stays to be looked at"
    cut = await report(300, truncated=True)
    assert (cut["log_end_offset"], cut["lower_end_offset"], cut["lower_by"]) == (300, None, "")


async def test_names_that_collide_in_metrics_of_kafka(api: httpx.AsyncClient) -> None:
    """Differs from Kafka (docs/differences.md, "topics `a.b` and `a_b`"): both exist, each with its own watermarks."""
    for name, end in ("a.b", 1), ("a_b", 2):
        assert (await api.post("/v1/topics", json={"name": name, "partitions": 1})).status_code == 201
        marks = [{"partition": 0, "log_start_offset": 0, "log_end_offset": end}]
        assert (await api.post(f"/v1/topics/{name}/watermarks", json={"partitions": marks})).status_code == 200
    for name, end in ("a.b", 1), ("a_b", 2):
        (mark,) = (await api.get(f"/v1/topics/{name}/watermarks")).json()["partitions"]
        assert mark["log_end_offset"] == end
