"""POST /v1/groups/{group_id}/offsets/fetch and POST /v1/offsets/fetch."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith

FETCH = "/v1/groups/g/offsets/fetch"
MANY = "/v1/offsets/fetch"
NOTHING = {
    "committed_offset": -1,
    "committed_leader_epoch": -1,
    "metadata": "",
    "commit_timestamp": None,
    "error_code": 0,
    "error": "NONE",
}


@pytest.fixture
async def committed(api: httpx.AsyncClient, topic: str) -> str:
    """The topic, on which group g has committed offset 42 of partition 1."""
    entry = {"partition": 1, "committed_offset": 42, "committed_leader_epoch": 3, "committed_metadata": "é"}
    body = {"topics": [{"name": topic, "partitions": [entry]}]}
    assert (await api.post("/v1/groups/g/offsets/commit", json=body)).status_code == 200
    return topic


def stored(clock: VirtualClock) -> dict[str, Any]:
    """What `committed` committed."""
    return {
        "partition": 1,
        "committed_offset": 42,
        "committed_leader_epoch": 3,
        "metadata": "é",
        "commit_timestamp": clock.now_ms(),
        "error_code": 0,
        "error": "NONE",
    }


async def test_named_partitions_in_the_order_asked(
    api: httpx.AsyncClient, runtime: Runtime, committed: str, clock: VirtualClock
) -> None:
    asked = [{"name": "ghost", "partitions": [5]}, {"name": committed, "partitions": [2, 1]}]
    response = await api.post(FETCH, json={"member_id": None, "member_epoch": -1, "topics": asked})
    assert response.status_code == 200
    topic_id = str((await runtime.get(TopicService).get(committed)).topic_id)
    assert response.json() == {
        "topics": [
            {"name": "ghost", "topic_id": None, "partitions": [{"partition": 5, **NOTHING}]},
            {"name": committed, "topic_id": topic_id, "partitions": [{"partition": 2, **NOTHING}, stored(clock)]},
        ],
        "error_code": 0,
    }


async def test_everything(api: httpx.AsyncClient, runtime: Runtime, committed: str, clock: VirtualClock) -> None:
    topic_id = str((await runtime.get(TopicService).get(committed)).topic_id)
    for body in ({"topics": None}, {}):
        response = await api.post(FETCH, json=body)
        assert response.json()["topics"] == [{"name": committed, "topic_id": topic_id, "partitions": [stored(clock)]}]


async def test_an_empty_list_is_not_everything(api: httpx.AsyncClient, committed: str) -> None:
    assert (await api.post(FETCH, json={"topics": []})).json()["topics"] == []


async def test_a_group_that_does_not_exist_has_committed_nothing(api: httpx.AsyncClient) -> None:
    response = await api.post("/v1/groups/ghost/offsets/fetch", json={"topics": [{"name": "t", "partitions": [0]}]})
    assert response.json()["topics"][0]["partitions"] == [{"partition": 0, **NOTHING}]
    assert (await api.post("/v1/groups/ghost/offsets/fetch", json={"topics": None})).json()["topics"] == []


async def test_topics_go_by_id_too(
    api: httpx.AsyncClient, runtime: Runtime, committed: str, clock: VirtualClock
) -> None:
    topic_id, stranger = str((await runtime.get(TopicService).get(committed)).topic_id), str(uuid.uuid4())
    asked = [{"topic_id": topic_id, "partitions": [1]}, {"topic_id": stranger, "partitions": [1]}]
    known, unknown = (await api.post(FETCH, json={"topics": asked})).json()["topics"]
    assert known == {"name": committed, "topic_id": topic_id, "partitions": [stored(clock)]}
    assert unknown["partitions"] == [{"partition": 1, **NOTHING, "error_code": 100, "error": "UNKNOWN_TOPIC_ID"}]


async def test_topics_that_may_not_be_seen(client_with: ClientWith, committed: str) -> None:
    """Named: refused one by one. Everything: left out without a word (offsets.md 2)."""
    client = await client_with("describe:group:g", "describe:topic:other")
    asked = [{"name": committed, "partitions": [1]}, {"name": "other", "partitions": [0]}]
    denied, other = (await client.post(FETCH, json={"topics": asked})).json()["topics"]
    refusal = {"error_code": 29, "error": "TOPIC_AUTHORIZATION_FAILED"}
    assert denied == {"name": committed, "topic_id": None, "partitions": [{"partition": 1, **NOTHING, **refusal}]}
    assert other["partitions"] == [{"partition": 0, **NOTHING}]
    assert (await client.post(FETCH, json={"topics": None})).json()["topics"] == []


async def test_of_many_groups_one_may_have_the_empty_id(api: httpx.AsyncClient) -> None:
    """offsets.md 2.1: it is an ordinary id to OffsetFetch."""
    response = await api.post(MANY, json={"groups": [{"group_id": "", "topics": None}]})
    (group,) = response.json()["groups"]
    assert (group["group_id"], group["error"], group["topics"]) == ("", "NONE", [])


async def test_a_stopped_coordinator_says_so(api: httpx.AsyncClient, service: GroupService) -> None:
    service.active = False
    assert_problem(await api.post(FETCH, json={}), Error.COORDINATOR_NOT_AVAILABLE)
    assert_problem(await api.post(MANY, json={"groups": [{"group_id": "g"}]}), Error.COORDINATOR_NOT_AVAILABLE)


async def test_many_groups_are_answered_each_on_its_own(client_with: ClientWith, committed: str) -> None:
    client = await client_with("describe:group:g", "describe:topic:*")
    named = [{"name": committed, "partitions": [1]}]
    response = await client.post(
        MANY,
        json={
            "groups": [
                {"group_id": "g", "topics": named},
                {"group_id": "theirs", "topics": named},
                {"group_id": "a/b"},
                {"group_id": "g", "topics": None},
            ],
            "require_stable": True,
        },
    )
    assert response.status_code == 200
    groups = response.json()["groups"]
    assert [(group["group_id"], group["error"], group["error_code"]) for group in groups] == [
        ("g", "NONE", 0),
        ("theirs", "GROUP_AUTHORIZATION_FAILED", 30),
        ("a/b", "INVALID_GROUP_ID", 24),
        ("g", "NONE", 0),
    ]
    offsets = [[p["committed_offset"] for topic in group["topics"] for p in topic["partitions"]] for group in groups]
    assert offsets == [[42], [], [], [42]]
    assert [bool(group["detail"]) for group in groups] == [False, True, True, False]


@pytest.mark.parametrize(
    ("groups", "field"),
    [
        ([{"group_id": "g", "topics": [{"partitions": [0]}]}], "groups[0].topics[0]"),
        (
            [{"group_id": "g"}, {"group_id": "g", "topics": [{"topic_id": "x", "partitions": []}]}],
            "groups[1].topics[0]",
        ),
        ([{"topics": None}], "groups[0].group_id"),
    ],
)
async def test_a_malformed_entry_fails_the_whole_request(api: httpx.AsyncClient, groups: Any, field: str) -> None:
    body = assert_problem(await api.post(MANY, json={"groups": groups}), Error.INVALID_REQUEST)
    assert body["field"].startswith(field)
