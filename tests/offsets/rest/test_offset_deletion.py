"""OffsetDelete over the REST API."""

from __future__ import annotations

from typing import Any

import httpx
import psycopg
import pytest

from groups.core.model.types import GroupState
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.metrics import OFFSETS_DELETED
from kcoord.protocol.errors import Error
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith
from tests.support.rest_groups import group, member, stable_group

DELETE = "/v1/groups/g/offsets/delete"


@pytest.fixture(autouse=True)
async def catalogue(topics: TopicService) -> None:
    """Two topics with three partitions each."""
    await topics.create("orders", 3)
    await topics.create("stock", 3)


async def commit(api: httpx.AsyncClient, topic: str, *partitions: int, **who: Any) -> None:
    """Commit offset 7 on some partitions, as a simple consumer does unless `who` names a member."""
    entries = [{"partition": partition, "committed_offset": 7} for partition in partitions]
    body = {"topics": [{"name": topic, "partitions": entries}], **who}
    response = await api.post("/v1/groups/g/offsets/commit", json=body)
    assert response.status_code == 200, response.text


def body(**topics: list[Any]) -> dict[str, Any]:
    """A request."""
    return {"topics": [{"name": name, "partitions": partitions} for name, partitions in topics.items()]}


async def errors(response: httpx.Response) -> dict[str, list[tuple[int, str]]]:
    """The answer: partition and error by topic."""
    assert response.status_code == 200, response.text
    return {
        topic["name"]: [(entry["partition"], entry["error"]) for entry in topic["partitions"]]
        for topic in response.json()["topics"]
    }


def stored(database: str) -> list[tuple[Any, ...]]:
    """What is committed."""
    with psycopg.connect(database) as connection:
        return connection.execute("select topic, partition from offsets_committedoffset order by 1, 2").fetchall()


async def test_results_stand_in_the_order_of_the_request(api: httpx.AsyncClient, database: str) -> None:
    await commit(api, "orders", 0, 1)
    await commit(api, "stock", 0)
    before = OFFSETS_DELETED._value.get()
    response = await api.post(DELETE, json=body(stock=[0, 9], nope=[0], orders=[2, 1, -1]))
    assert await errors(response) == {
        "stock": [(0, "NONE"), (9, "UNKNOWN_TOPIC_OR_PARTITION")],
        "nope": [(0, "UNKNOWN_TOPIC_OR_PARTITION")],
        "orders": [(2, "NONE"), (1, "NONE"), (-1, "UNKNOWN_TOPIC_OR_PARTITION")],
    }
    assert [entry["error_code"] for entry in response.json()["topics"][0]["partitions"]] == [0, 3]
    assert stored(database) == [("orders", 0)]
    assert OFFSETS_DELETED._value.get() == before + 2, "only offsets that there were count"


async def test_it_is_in_the_journal_and_on_the_timeline(api: httpx.AsyncClient) -> None:
    await commit(api, "orders", 0, 1, 2)
    await api.post(DELETE, json=body(orders=[0, 1]))
    lines = (await api.get("/v1/groups/g/commits?kind=delete")).json()["commits"]
    assert {(line["topic"], line["partition"], line["committed_offset"]) for line in lines} == {
        ("orders", 0, None),
        ("orders", 1, None),
    }
    assert all(line["principal"].startswith("test-") for line in lines)
    (event,) = (await api.get("/v1/groups/g/events?kind=offsets_deleted")).json()["events"]
    assert event["detail"] == {"partitions": 2, "topics": ["orders"], "principal": lines[0]["principal"]}


async def test_what_is_not_there_is_no_error_and_no_event(api: httpx.AsyncClient) -> None:
    await commit(api, "orders", 0)
    assert await errors(await api.post(DELETE, json=body(orders=[1]))) == {"orders": [(1, "NONE")]}
    assert (await api.get("/v1/groups/g/events?kind=offsets_deleted")).json()["events"] == []
    assert (await api.get("/v1/groups/g/commits?kind=delete")).json()["commits"] == []


async def test_a_partition_named_twice_is_answered_twice(api: httpx.AsyncClient, database: str) -> None:
    await commit(api, "orders", 0)
    body_ = {"topics": [{"name": "orders", "partitions": [0, 0]}, {"name": "orders", "partitions": [0]}]}
    answered = (await api.post(DELETE, json=body_)).json()["topics"]
    assert [[entry["error"] for entry in topic["partitions"]] for topic in answered] == [["NONE", "NONE"], ["NONE"]]
    assert stored(database) == []
    assert len((await api.get("/v1/groups/g/commits?kind=delete")).json()["commits"]) == 1


async def test_topics_by_id(api: httpx.AsyncClient, topics: TopicService, database: str) -> None:
    await commit(api, "orders", 0)
    topic_id = str((await topics.get("orders")).topic_id)
    nobody = "00000000-0000-0000-0000-000000000001"
    entries = [{"topic_id": topic_id, "partitions": [0]}, {"topic_id": nobody, "partitions": [0]}]
    first, second = (await api.post(DELETE, json={"topics": entries})).json()["topics"]
    assert (first["name"], first["topic_id"], first["partitions"][0]["error"]) == ("orders", topic_id, "NONE")
    assert (second["name"], second["topic_id"]) == (None, nobody)
    assert second["partitions"][0]["error"] == "UNKNOWN_TOPIC_ID"
    assert stored(database) == []


async def test_offsets_of_what_members_read_stay(api: httpx.AsyncClient, service: GroupService, database: str) -> None:
    await service.put(stable_group("g"))
    who = {"member_id": "m0", "generation_id_or_member_epoch": 1}
    await commit(api, "orders", 0, **who)
    await commit(api, "stock", 0, **who)
    answer = await errors(await api.post(DELETE, json=body(orders=[0, 7], stock=[0])))
    assert answer == {
        "orders": [(0, "GROUP_SUBSCRIBED_TO_TOPIC"), (7, "UNKNOWN_TOPIC_OR_PARTITION")],
        "stock": [(0, "NONE")],
    }
    assert stored(database) == [("orders", 0)]


async def test_members_that_do_not_say_what_they_read_keep_everything(
    api: httpx.AsyncClient, service: GroupService
) -> None:
    await service.put(group("g", GroupState.STABLE, member("m", protocol_type="connect"), protocol_type="connect"))
    assert_problem(await api.post(DELETE, json=body(nope=[0])), Error.NON_EMPTY_GROUP)


async def test_an_error_of_the_group_wins(api: httpx.AsyncClient) -> None:
    assert_problem(await api.post(DELETE, json=body(nope=[0])), Error.GROUP_ID_NOT_FOUND)
    assert_problem(await api.post(DELETE, json={"topics": []}), Error.GROUP_ID_NOT_FOUND)
    assert_problem(await api.post("/v1/groups//offsets/delete", json=body(nope=[0])), Error.INVALID_GROUP_ID)


async def test_a_stopped_service(api: httpx.AsyncClient, service: GroupService) -> None:
    service.active = False
    assert_problem(await api.post(DELETE, json=body(orders=[0])), Error.COORDINATOR_NOT_AVAILABLE)


async def test_permissions(api: httpx.AsyncClient, client_with: ClientWith, database: str) -> None:
    await commit(api, "orders", 0)
    await commit(api, "stock", 0)
    both = body(orders=[0], stock=[0], nope=[0])
    assert_problem(await (await client_with("delete:topic:*")).post(DELETE, json=both), Error.GROUP_ID_NOT_FOUND)
    for rule in ("read", "alter-offsets", "kick"):
        refused = await (await client_with(f"{rule}:group:g", "read:topic:*")).post(DELETE, json=both)
        assert_problem(refused, Error.GROUP_AUTHORIZATION_FAILED)
    answer = await (await client_with("delete:group:g", "read:topic:stock", "describe:topic:orders")).post(
        DELETE, json=both
    )
    assert await errors(answer) == {
        "orders": [(0, "TOPIC_AUTHORIZATION_FAILED")],
        "stock": [(0, "NONE")],
        "nope": [(0, "TOPIC_AUTHORIZATION_FAILED")],
    }
    assert stored(database) == [("orders", 0)]


BAD_REQUESTS: list[tuple[dict[str, Any], str]] = [
    ({}, "topics"),
    ({"topics": None}, "topics"),
    ({"topics": [], "group": "g"}, "group"),
    ({"topics": [{"name": "orders"}]}, "topics[0].partitions"),
    ({"topics": [{"partitions": [0]}]}, "topics[0]"),
    ({"topics": [{"name": "orders", "topic_id": "x", "partitions": []}]}, "topics[0]"),
    ({"topics": [{"topic_id": "x", "partitions": [0]}]}, "topics[0].topic_id"),
    ({"topics": [{"name": "orders", "partitions": [0, "1"]}]}, "topics[0].partitions[1]"),
    ({"topics": [{"name": "orders", "partitions": [True]}]}, "topics[0].partitions[0]"),
    ({"topics": [{"name": "orders", "partitions": [2**31]}]}, "topics[0].partitions[0]"),
    ({"topics": [{"name": "orders", "partitions": [2**63]}]}, "topics[0].partitions[0]"),
    ({"topics": [{"name": "orders", "partitions": 0}]}, "topics[0].partitions"),
    ({"topics": [{"name": "o" * 250, "partitions": [0]}]}, "topics[0].name"),
]


async def test_bad_requests_name_the_field(api: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    for content, field in BAD_REQUESTS:
        with subtests.test(f"{content} {field}"):
            await commit(api, "orders", 0)
            assert_problem(await api.post(DELETE, json=content), Error.INVALID_REQUEST, field=field)
