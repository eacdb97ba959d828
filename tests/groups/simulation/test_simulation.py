"""Simulations over REST, of groups that really exist."""

from __future__ import annotations

from typing import Any

import httpx

from groups.topics import TopicService
from kcoord.protocol.errors import Error
from tests.support.api import Members, assert_problem, sync_body
from tests.support.api_consumers import joining
from tests.support.fixtures import ClientWith

SIMULATE = "/v1/assignments/simulate"


async def simulated(api: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await api.post(SIMULATE, json={"group_id": "g", **body})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def test_a_classic_group(api: httpx.AsyncClient, members: Members, topics: TopicService) -> None:
    await topics.create("orders", 4)
    leader, follower = await members.joined(2)
    waiting = await members.parked_sync(follower)
    assignments = [
        {"member_id": leader["member_id"], "partitions": {"orders": [0, 1]}},
        {"member_id": follower["member_id"], "partitions": {"orders": [2, 3]}},
    ]
    assert (await api.post("/v1/groups/g/sync", json=sync_body(leader, *assignments))).status_code == 200
    assert (await waiting).status_code == 200
    before = (await api.get("/v1/groups/g")).json()

    found = await simulated(api, add_members=2, assignor="sticky")
    assert (found["assignor"], found["partitions"], found["moved"]) == ("sticky", 4, 2)
    assert [(m["before"], m["after"], m["is_new"]) for m in found["members"]] == [
        (2, 1, False),
        (2, 1, False),
        (0, 1, True),
        (0, 1, True),
    ]
    assert {move["new_owner"] for move in found["moves"]} == {"new-1", "new-2"}
    assert (await simulated(api))["assignor"] == "range", "the one in use"
    alone = await simulated(api, remove_members=[follower["member_id"]], topics=[{"name": "orders", "partitions": 5}])
    assert [m["after"] for m in alone["members"]] == [5, 0]
    assert (await api.get("/v1/groups/g")).json() == before, "nothing was changed"
    refused = await api.post(SIMULATE, json={"group_id": "g", "assignor": "uniform"})
    assert "cooperative-sticky" in assert_problem(refused, Error.UNSUPPORTED_ASSIGNOR, field="assignor")["detail"]


async def test_a_consumer_group(api: httpx.AsyncClient, topics: TopicService, client_with: ClientWith) -> None:
    await topics.create("orders", 4)
    await api.post("/v1/groups/g/consumer-heartbeat", json=joining("m1"))
    found = await simulated(api, add_members=1)
    assert (found["assignor"], found["moved"], [m["after"] for m in found["members"]]) == ("range", 2, [2, 2])
    assert (await simulated(api, add_members=1, assignor="uniform"))["moved"] == 2
    blind = await client_with("describe:group:g")
    assert_problem(await blind.post(SIMULATE, json={"group_id": "g"}), Error.TOPIC_AUTHORIZATION_FAILED)
    stranger = await client_with("describe:group:h")
    assert_problem(await stranger.post(SIMULATE, json={"group_id": "g"}), Error.GROUP_ID_NOT_FOUND)
    assert_problem(await api.post(SIMULATE, json={"group_id": "none"}), Error.GROUP_ID_NOT_FOUND)


async def test_hidden_topics_of_a_classic_group_do_not_exist(
    api: httpx.AsyncClient, members: Members, topics: TopicService, client_with: ClientWith
) -> None:
    await topics.create("orders", 2)
    await topics.create("secret", 7)
    names = [{"name": "range", "subscription": {"topics": ["orders", "secret"]}}]
    await members.stable(protocols=names)
    limited = await client_with("describe:group:*", "describe:topic:orders")
    assert (await simulated(limited))["partitions"] == 2
    hidden = await limited.post(SIMULATE, json={"group_id": "g", "topics": [{"name": "secret", "partitions": 9}]})
    missing = await limited.post(SIMULATE, json={"group_id": "g", "topics": [{"name": "nothing", "partitions": 9}]})
    texts = [assert_problem(answer, Error.INVALID_REQUEST, field="topics")["detail"] for answer in (hidden, missing)]
    assert texts[0].replace("secret", "nothing") == texts[1]


async def test_bad_requests_name_the_field(api: httpx.AsyncClient, members: Members) -> None:
    await members.stable()
    for body, field in (
        ({"add_members": -1}, "add_members"),
        ({"topics": [{"name": "orders", "partitions": 0}]}, "topics[0].partitions"),
        ({"remove_members": ["ghost"]}, "remove_members[0]"),
        ({"members": 3}, "members"),
    ):
        assert_problem(await api.post(SIMULATE, json={"group_id": "g", **body}), Error.INVALID_REQUEST, field=field)
    twice = [{"name": "orders", "partitions": 2}] * 2
    assert_problem(await api.post(SIMULATE, json={"group_id": "g", "topics": twice}), Error.INVALID_REQUEST)


async def test_numbers_of_a_member_that_cannot_be_read_are_null(api: httpx.AsyncClient, members: Members) -> None:
    await members.joined(1, protocols=[{"name": "range", "metadata": "AA=="}])
    (found,) = (await simulated(api))["members"]
    assert [found[name] for name in ("before", "after", "gained", "lost")] == [None] * 4


async def test_members_of_another_protocol_type_cannot_be_simulated(api: httpx.AsyncClient, members: Members) -> None:
    await members.joined(1, protocol_type="connect", protocols=[{"name": "range", "metadata": "AA=="}])
    refused = assert_problem(await api.post(SIMULATE, json={"group_id": "g"}), Error.INVALID_REQUEST, field="group_id")
    assert "'connect'" in refused["detail"]
