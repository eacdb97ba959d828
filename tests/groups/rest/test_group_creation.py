"""Making an empty group with start offsets and settings over the REST API."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from groups.core.model.types import GroupState
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.config import Config
from kcoord.protocol.errors import Error
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith
from tests.support.rest_groups import group, stable_group

GROUPS = "/v1/groups"


@pytest.fixture(autouse=True)
async def catalogue(topics: TopicService) -> None:
    """Two topics with three partitions each."""
    await topics.create("orders", 3)
    await topics.create("stock", 3)


def wanted(*offsets: Any, topic: str = "orders", group_id: str = "g", **more: Any) -> dict[str, Any]:
    """A request with (partition, offset)s of one topic."""
    partitions = [{"partition": partition, "committed_offset": offset} for partition, offset in offsets]
    return {"group_id": group_id, "topics": [{"name": topic, "partitions": partitions}], **more}


async def committed(api: httpx.AsyncClient) -> list[tuple[str, int, int, str]]:
    """What the group has committed."""
    found = (await api.get(f"{GROUPS}/g/offsets")).json()["offsets"]
    return [(line["topic"], line["partition"], line["committed_offset"], line["metadata"]) for line in found]


async def nothing_was_made(api: httpx.AsyncClient) -> None:
    """There is no group, and no setting of one."""
    assert_problem(await api.get(f"{GROUPS}/g"), Error.GROUP_ID_NOT_FOUND)
    settings = (await api.get(f"{GROUPS}/g/config")).json()["settings"]
    assert {setting["source"] for setting in settings} == {"default"}


async def test_a_group_with_offsets_and_settings(api: httpx.AsyncClient) -> None:
    request = {
        "group_id": "g",
        "topics": [
            {
                "name": "orders",
                "partitions": [
                    {"partition": 0, "committed_offset": "9223372036854775807", "committed_metadata": "since 2026"},
                    {"partition": 2, "committed_offset": 0},
                ],
            },
            {"name": "stock", "partitions": [{"partition": 1, "committed_offset": 5}]},
        ],
        "config": {"consumer.session.timeout.ms": 50_000},
    }
    response = await api.post(GROUPS, json=request)
    assert response.status_code == 201, response.text
    assert response.headers["location"] == "/v1/groups/g"
    answer = response.json()
    assert (answer["group_id"], answer["created"]) == ("g", True)
    assert answer["config"] == {"consumer.session.timeout.ms": 50_000}
    assert answer["topics"][0]["partitions"][0] == {
        "partition": 0,
        "committed_offset": 2**63 - 1,
        "committed_metadata": "since 2026",
    }
    described = (await api.get(f"{GROUPS}/g")).json()
    assert (described["state"], described["type"], described["members"]) == ("Empty", "classic", [])
    assert await committed(api) == [
        ("orders", 0, 2**63 - 1, "since 2026"),
        ("orders", 2, 0, ""),
        ("stock", 1, 5, ""),
    ]
    settings = {setting["name"]: setting for setting in (await api.get(f"{GROUPS}/g/config")).json()["settings"]}
    assert settings["consumer.session.timeout.ms"]["value"] == 50_000


async def test_it_is_in_the_journal_and_on_the_timeline(api: httpx.AsyncClient) -> None:
    await api.post(GROUPS, json=wanted((0, 7), (1, 8)))
    lines = (await api.get(f"{GROUPS}/g/commits")).json()["commits"]
    assert [(line["kind"], line["partition"], line["committed_offset"]) for line in lines] == [
        ("reset", 1, 8),
        ("reset", 0, 7),
    ]
    principal = lines[0]["principal"]
    assert principal.startswith("test-")
    events = (await api.get(f"{GROUPS}/g/events")).json()["events"]
    assert [event["kind"] for event in events] == ["offsets_reset", "group_created"]
    assert events[0]["detail"] == {"partitions": 2, "topics": ["orders"], "principal": principal}


async def test_without_offsets_and_settings(api: httpx.AsyncClient) -> None:
    response = await api.post(GROUPS, json={"group_id": "g"})
    assert response.json() == {"group_id": "g", "created": True, "topics": [], "config": {}}
    assert (await api.get(f"{GROUPS}/g")).json()["state"] == "Empty"


async def test_the_first_member_begins_where_it_was_told(api: httpx.AsyncClient) -> None:
    await api.post(GROUPS, json=wanted((0, 7)))
    body = {"topics": [{"name": "orders", "partitions": [0, 1]}]}
    (topic,) = (await api.post(f"{GROUPS}/g/offsets/fetch", json=body)).json()["topics"]
    assert [entry["committed_offset"] for entry in topic["partitions"]] == [7, -1]


async def test_the_same_request_again_changes_nothing(api: httpx.AsyncClient) -> None:
    request = wanted((0, 7), (1, 8), config={"consumer.session.timeout.ms": 50_000})
    await api.post(GROUPS, json=request)
    again = await api.post(GROUPS, json=request)
    assert (again.status_code, again.json()["created"]) == (201, False)
    assert len((await api.get(f"{GROUPS}/g/commits")).json()["commits"]) == 2
    assert len((await api.get(f"{GROUPS}/g/events?kind=offsets_reset")).json()["events"]) == 1


@pytest.mark.parametrize(
    "other", [wanted((0, 8), (1, 8)), wanted((0, 7)), wanted((0, 7), (1, 8), (2, 9)), {"group_id": "g"}]
)
async def test_a_group_with_other_offsets_is_refused(api: httpx.AsyncClient, other: dict[str, Any]) -> None:
    await api.post(GROUPS, json=wanted((0, 7), (1, 8)))
    other = {**other, "config": {"consumer.session.timeout.ms": 50_000}}
    problem = assert_problem(await api.post(GROUPS, json=other), Error.NON_EMPTY_GROUP)
    assert "plan" in problem["detail"]
    assert await committed(api) == [("orders", 0, 7, ""), ("orders", 1, 8, "")]
    settings = (await api.get(f"{GROUPS}/g/config")).json()["settings"]
    assert {setting["source"] for setting in settings} == {"default"}


async def test_a_group_with_members_is_refused(api: httpx.AsyncClient, service: GroupService) -> None:
    await service.put(stable_group("g"))
    assert_problem(await api.post(GROUPS, json=wanted((0, 7))), Error.NON_EMPTY_GROUP)
    assert await committed(api) == []


async def test_an_empty_group_without_offsets_gets_them(api: httpx.AsyncClient, service: GroupService) -> None:
    await service.put(group("g", GroupState.EMPTY, generation_id=4))
    response = await api.post(GROUPS, json=wanted((0, 7)))
    assert (response.status_code, response.json()["created"]) == (201, False)
    assert await committed(api) == [("orders", 0, 7, "")]


async def test_of_many_at_once_one_makes_it(api: httpx.AsyncClient) -> None:
    """Two different wishes: all of one of them is there, and the other is refused."""
    wishes = [wanted((0, offset), (1, offset)) for offset in (7, 8)] * 4
    answers = await asyncio.gather(*(api.post(GROUPS, json=wish) for wish in wishes))
    assert sorted(answer.status_code for answer in answers) == [201] * 4 + [409] * 4
    assert [answer.json().get("created") for answer in answers].count(True) == 1
    found = await committed(api)
    assert len({offset for *_, offset, _ in found}) == 1
    assert len((await api.get(f"{GROUPS}/g/commits")).json()["commits"]) == 2


async def test_permissions(api: httpx.AsyncClient, client_with: ClientWith) -> None:
    request = wanted((0, 7))
    for rules in (["read:group:g", "read:topic:*"], ["alter-offsets:group:other", "read:topic:*"]):
        refused = await (await client_with(*rules)).post(GROUPS, json=request)
        assert_problem(refused, Error.GROUP_AUTHORIZATION_FAILED)
    no_topic = await client_with("alter-offsets:group:g", "describe:topic:*")
    for topic in ("orders", "nope"):
        refused = await no_topic.post(GROUPS, json=wanted((0, 7), topic=topic))
        assert_problem(refused, Error.TOPIC_AUTHORIZATION_FAILED, field="topics[0].name")
    client = await client_with("alter-offsets:group:g", "read:topic:orders")
    with_config = {**request, "config": {"consumer.session.timeout.ms": 50_000}}
    assert_problem(await client.post(GROUPS, json=with_config), Error.GROUP_AUTHORIZATION_FAILED)
    await nothing_was_made(api)
    assert (await client.post(GROUPS, json=request)).status_code == 201
    config_only = await client_with("admin:group:h")
    assert (await config_only.post(GROUPS, json={**with_config, "group_id": "h", "topics": []})).status_code == 201


BAD_REQUESTS: list[tuple[dict[str, Any], str]] = [
    ({}, "group_id"),
    ({"group_id": 7}, "group_id"),
    ({"group_id": "g", "offsets": []}, "offsets"),
    (wanted((0, -1)), "topics[0].partitions[0].committed_offset"),
    (wanted((0, 2**63)), "topics[0].partitions[0].committed_offset"),
    (wanted((0, "9223372036854775808")), "topics[0].partitions[0].committed_offset"),
    (wanted((0, "7x")), "topics[0].partitions[0].committed_offset"),
    (wanted((0, 1.5)), "topics[0].partitions[0].committed_offset"),
    (wanted((0, None)), "topics[0].partitions[0].committed_offset"),
    (wanted((-1, 0)), "topics[0].partitions[0].partition"),
    (wanted(("0", 0)), "topics[0].partitions[0].partition"),
    (wanted((2**31, 0)), "topics[0].partitions[0].partition"),
    (wanted((0, 1), (1, 1), (0, 2)), "topics[0].partitions[2].partition"),
    (wanted((0, 1), (0, 1)), "topics[0].partitions[1].partition"),
    ({"group_id": "g", "topics": [{"name": "orders"}]}, "topics[0].partitions"),
    ({"group_id": "g", "topics": [{"topic": "orders", "partitions": []}]}, "topics[0].topic"),
    ({"group_id": "g", "topics": "orders"}, "topics"),
    ({"group_id": "g", "config": [1]}, "config"),
]


async def test_bad_requests_name_the_field(api: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    for content, field in BAD_REQUESTS:
        with subtests.test(f"{content} {field}"):
            assert_problem(await api.post(GROUPS, json=content), Error.INVALID_REQUEST, field=field)
            await nothing_was_made(api)


@pytest.mark.parametrize("group_id", ["", "a/b", "a\nb", "x" * 256])
async def test_bad_group_ids(api: httpx.AsyncClient, group_id: str) -> None:
    assert_problem(await api.post(GROUPS, json=wanted((0, 1), group_id=group_id)), Error.INVALID_GROUP_ID)


@pytest.mark.parametrize(
    ("content", "error", "field"),
    [
        (wanted((0, 1), (3, 1)), Error.UNKNOWN_TOPIC_OR_PARTITION, "topics[0].partitions[1].partition"),
        (wanted((0, 1), topic="nope"), Error.UNKNOWN_TOPIC_OR_PARTITION, "topics[0].partitions[0].partition"),
        (wanted((0, 1), config={"consumer.session": 1}), Error.INVALID_CONFIG, "consumer.session"),
        (
            wanted((0, 1), config={"consumer.session.timeout.ms": 1}),
            Error.INVALID_CONFIG,
            "consumer.session.timeout.ms",
        ),
    ],
)
async def test_what_cannot_be_is_refused_as_a_whole(
    api: httpx.AsyncClient, content: dict[str, Any], error: Error, field: str
) -> None:
    assert_problem(await api.post(GROUPS, json=content), error, field=field)
    await nothing_was_made(api)


async def test_metadata_over_the_limit(api: httpx.AsyncClient) -> None:
    """The limit counts UTF-16 code units, as that of a commit does."""
    request = wanted((0, 1))
    entry = request["topics"][0]["partitions"][0]
    entry["committed_metadata"] = "😀" * 2_048 + "x"
    field = "topics[0].partitions[0].committed_metadata"
    assert_problem(await api.post(GROUPS, json=request), Error.OFFSET_METADATA_TOO_LARGE, field=field)
    await nothing_was_made(api)
    entry["committed_metadata"] = "😀" * 2_048
    assert (await api.post(GROUPS, json=request)).status_code == 201


class TestSettingsThatDoNotGoTogether:
    @pytest.fixture
    def config(self) -> Config:
        return Config({"group.consumer.max.heartbeat.interval.ms": 60_000})

    async def test_they_are_found_before_anything_is_made(self, api: httpx.AsyncClient) -> None:
        request = wanted((0, 1), config={"consumer.heartbeat.interval.ms": 46_000})
        assert_problem(
            await api.post(GROUPS, json=request), Error.INVALID_CONFIG, field="consumer.heartbeat.interval.ms"
        )
        await nothing_was_made(api)
