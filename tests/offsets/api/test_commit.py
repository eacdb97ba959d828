"""POST /v1/groups/{group_id}/offsets/commit."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import httpx
import pytest

from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.commits import store
from tests.support.api import SESSION_TIMEOUT_MS, Members, abandon, assert_problem
from tests.support.fixtures import ClientWith

COMMIT = "/v1/groups/g/offsets/commit"
FETCH = "/v1/groups/g/offsets/fetch"


def commit_body(*partitions: dict[str, Any], topic: str = "orders", **changes: Any) -> dict[str, Any]:
    """The body of a commit of one topic by nobody in particular."""
    return {"topics": [{"name": topic, "partitions": list(partitions)}], **changes}


def of_member(joined: dict[str, Any]) -> dict[str, Any]:
    """What a commit says of the member that `joined`."""
    return {"member_id": joined["member_id"], "generation_id_or_member_epoch": joined["generation_id"]}


async def fetched(api: httpx.AsyncClient, *partitions: int, topic: str = "orders") -> list[int]:
    """Committed offsets."""
    response = await api.post(FETCH, json={"topics": [{"name": topic, "partitions": list(partitions)}]})
    assert response.status_code == 200, response.text
    return [entry["committed_offset"] for entry in response.json()["topics"][0]["partitions"]]


async def test_a_member_commits(
    members: Members, api: httpx.AsyncClient, runtime: Runtime, topic: str, clock: VirtualClock
) -> None:
    member = await members.stable()
    body = commit_body(
        {"partition": 1, "committed_offset": 42, "committed_leader_epoch": 3, "committed_metadata": "é"},
        {"partition": 0, "committed_offset": 7},
        **of_member(member),
    )
    response = await api.post(COMMIT, json=body)
    assert response.status_code == 200
    topic_id = str((await runtime.get(TopicService).get(topic)).topic_id)
    assert response.json() == {
        "topics": [
            {
                "name": "orders",
                "topic_id": topic_id,
                "partitions": [
                    {"partition": 1, "error_code": 0, "error": "NONE"},
                    {"partition": 0, "error_code": 0, "error": "NONE"},
                ],
            }
        ],
        "session_expires_at": rfc3339(clock.now_ms() + SESSION_TIMEOUT_MS),
        "error_code": 0,
    }
    assert await fetched(api, 0, 1, 2) == [7, 42, -1]


async def test_numbers_of_64_bits_travel_as_text_too(api: httpx.AsyncClient, topic: str) -> None:
    biggest = 9_223_372_036_854_775_807
    body = commit_body(
        {"partition": 0, "committed_offset": str(biggest)},
        {"partition": 1, "committed_offset": biggest},
        {"partition": 2, "committed_offset": "-1"},
        retention_time_ms="-1",
    )
    assert (await api.post(COMMIT, json=body)).status_code == 200
    assert await fetched(api, 0, 1, 2) == [biggest, biggest, -1]


@pytest.mark.parametrize(
    "offset",
    [2**63, str(2**63), str(-(2**63) - 1), "1.0", "0x1", "", " 1", "1\n", "١", 1.5, "1" * 5_000],
)
async def test_numbers_of_more_bits_and_other_texts_are_refused(api: httpx.AsyncClient, offset: Any) -> None:
    response = await api.post(COMMIT, json=commit_body({"partition": 0, "committed_offset": offset}))
    assert_problem(response, Error.INVALID_REQUEST, field="topics[0].partitions[0].committed_offset")


async def test_topics_go_by_id_too(api: httpx.AsyncClient, runtime: Runtime, topic: str) -> None:
    topic_id, stranger = str((await runtime.get(TopicService).get(topic)).topic_id), str(uuid.uuid4())
    entry = {"partition": 0, "committed_offset": 5}
    response = await api.post(
        COMMIT,
        json={"topics": [{"topic_id": stranger, "partitions": [entry]}, {"topic_id": topic_id, "partitions": [entry]}]},
    )
    unknown, known = response.json()["topics"]
    assert unknown == {
        "name": None,
        "topic_id": stranger,
        "partitions": [{"partition": 0, "error_code": 100, "error": "UNKNOWN_TOPIC_ID"}],
    }
    assert (known["name"], known["topic_id"], known["partitions"][0]["error_code"]) == (topic, topic_id, 0)
    assert await fetched(api, 0) == [5]


@pytest.mark.parametrize(
    ("names", "field"),
    [
        ({}, "topics[0]"),
        ({"name": "orders", "topic_id": str(uuid.uuid4())}, "topics[0]"),
        ({"topic_id": "orders"}, "topics[0].topic_id"),
        ({"name": ""}, "topics[0].name"),
    ],
)
async def test_a_topic_has_one_name(api: httpx.AsyncClient, names: dict[str, str], field: str) -> None:
    response = await api.post(COMMIT, json={"topics": [{**names, "partitions": []}]})
    assert_problem(response, Error.INVALID_REQUEST, field=field)


async def test_partitions_are_refused_one_by_one_in_the_order_asked(client_with: ClientWith, topic: str) -> None:
    client = await client_with("read:group:*", f"read:topic:{topic}", "read:topic:ghost")
    good, far = {"partition": 0, "committed_offset": 1}, {"partition": 3, "committed_offset": 1}
    long = {"partition": 0, "committed_offset": 2, "committed_metadata": "x" * 4097}
    body = {
        "topics": [
            {"name": "secret", "partitions": [good]},
            {"name": topic, "partitions": [far, good, {**good, "partition": -1}]},
            {"name": "ghost", "partitions": [good]},
            {"name": topic, "partitions": [long]},
        ]
    }
    response = await client.post(COMMIT, json=body)
    assert response.status_code == 200
    errors = [[entry["error"] for entry in found["partitions"]] for found in response.json()["topics"]]
    assert errors == [
        ["TOPIC_AUTHORIZATION_FAILED"],
        ["UNKNOWN_TOPIC_OR_PARTITION", "NONE", "UNKNOWN_TOPIC_OR_PARTITION"],
        ["UNKNOWN_TOPIC_OR_PARTITION"],
        ["OFFSET_METADATA_TOO_LARGE"],
    ]


async def test_the_id_of_a_topic_that_may_not_be_seen_is_unknown(
    client_with: ClientWith, runtime: Runtime, topic: str
) -> None:
    topic_id = str((await runtime.get(TopicService).get(topic)).topic_id)
    body = {"topics": [{"topic_id": topic_id, "partitions": [{"partition": 0, "committed_offset": 1}]}]}
    blind = await client_with("read:group:*")
    answer = (await blind.post(COMMIT, json=body)).json()["topics"][0]
    assert (answer["name"], answer["partitions"][0]["error"]) == (None, "UNKNOWN_TOPIC_ID")
    seeing = await client_with("read:group:*", f"describe:topic:{topic}")
    answer = (await seeing.post(COMMIT, json=body)).json()["topics"][0]
    assert (answer["name"], answer["partitions"][0]["error"]) == (topic, "TOPIC_AUTHORIZATION_FAILED")


async def test_who_may_commit_on_a_topic_but_not_see_it_is_not_told_its_id(client_with: ClientWith, topic: str) -> None:
    client = await client_with("read:group:*", f"read:topic:{topic}", f"deny:describe:topic:{topic}")
    answer = (await client.post(COMMIT, json=commit_body({"partition": 0, "committed_offset": 1}))).json()["topics"][0]
    assert (answer["name"], answer["topic_id"], answer["partitions"][0]["error"]) == (topic, None, "NONE")


async def test_what_concerns_the_member_fails_the_whole_request(
    members: Members, api: httpx.AsyncClient, topic: str
) -> None:
    member = await members.stable()
    entry = {"partition": 0, "committed_offset": 1}
    for changes, error in [
        ({**of_member(member), "generation_id_or_member_epoch": 9}, Error.ILLEGAL_GENERATION),
        ({**of_member(member), "member_id": "stranger"}, Error.UNKNOWN_MEMBER_ID),
        ({}, Error.UNKNOWN_MEMBER_ID),
        ({**of_member(member), "group_instance_id": ""}, Error.UNKNOWN_MEMBER_ID),
        ({**of_member(member), "group_instance_id": "i"}, Error.UNKNOWN_MEMBER_ID),
    ]:
        assert_problem(await api.post(COMMIT, json=commit_body(entry, **changes)), error)
    response = await api.post("/v1/groups/ghost/offsets/commit", json=commit_body(entry, **of_member(member)))
    assert_problem(response, Error.GROUP_ID_NOT_FOUND)
    assert await fetched(api, 0) == [-1]


async def test_a_commit_before_the_sync_is_refused(members: Members, api: httpx.AsyncClient, topic: str) -> None:
    (leader,) = await members.joined(1)
    response = await api.post(COMMIT, json=commit_body({"partition": 0, "committed_offset": 1}, **of_member(leader)))
    assert_problem(response, Error.REBALANCE_IN_PROGRESS, action="rejoin")


async def test_a_commit_during_a_rebalance_counts_for_the_running_generation(
    members: Members, api: httpx.AsyncClient, topic: str
) -> None:
    member = await members.stable()
    newcomer = await members.parked_join()
    body = commit_body({"partition": 0, "committed_offset": 1}, **of_member(member))
    assert (await api.post(COMMIT, json=body)).status_code == 200
    await abandon(newcomer)


async def test_nothing_to_commit_asks_no_coordinator(api: httpx.AsyncClient, service: GroupService) -> None:
    """offsets.md 2.2."""
    service.active = False
    response = await api.post(COMMIT, json=commit_body({"partition": 0, "committed_offset": 1}, topic="ghost"))
    assert response.json()["topics"][0]["partitions"][0]["error"] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert (await api.post(COMMIT, json={"topics": []})).json()["topics"] == []


async def test_the_last_of_two_entries_is_stored(api: httpx.AsyncClient, topic: str) -> None:
    body = commit_body({"partition": 0, "committed_offset": 1}, {"partition": 0, "committed_offset": 2})
    response = await api.post(COMMIT, json=body)
    assert [entry["error_code"] for entry in response.json()["topics"][0]["partitions"]] == [0, 0]
    assert await fetched(api, 0) == [2]


@pytest.mark.parametrize("is_large", [False, True])
async def test_a_large_commit_is_written_as_a_small_one_but_in_a_thread(
    api: httpx.AsyncClient, runtime: Runtime, monkeypatch: pytest.MonkeyPatch, is_large: bool
) -> None:
    """Whatever texts look like to Postgres, which reads them in arrays."""
    texts = ["", "null", "NULL", '"', "\\", '\\"', "{}", "a,b", " x ", "é😀", "\t\n", "'", "%s"]
    await runtime.get(TopicService).create("wide", len(texts))
    threads = set()
    columns = store._columns

    def noted(*args: Any) -> dict[str, Any]:
        threads.add(threading.get_ident())
        return columns(*args)

    monkeypatch.setattr(store, "_columns", noted)
    if is_large:
        monkeypatch.setattr(off_loop, "ABOVE", -1)
    partitions = [
        {"partition": number, "committed_offset": 2**63 - 1 - number, "committed_metadata": text}
        for number, text in enumerate(texts)
    ]
    # With a retention of its own it does not take the lane.
    answer = await api.post(COMMIT, json=commit_body(*partitions, topic="wide", retention_time_ms=60_000))
    assert {entry["error"] for entry in answer.json()["topics"][0]["partitions"]} == {"NONE"}
    found = await api.post(FETCH, json={"topics": [{"name": "wide", "partitions": list(range(len(texts)))}]})
    read = found.json()["topics"][0]["partitions"]
    assert [(entry["committed_offset"], entry["metadata"]) for entry in read] == [
        (2**63 - 1 - number, text) for number, text in enumerate(texts)
    ]
    assert (threads != {threading.get_ident()}) is is_large
