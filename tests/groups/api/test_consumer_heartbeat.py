"""POST /v1/groups/{group_id}/consumer-heartbeat."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

from groups.engine.service import GroupService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith
from tests.support.members import eventually

HEARTBEAT = "/v1/groups/g/consumer-heartbeat"


def joining(member_id: str = "m1", **changes: Any) -> dict[str, Any]:
    """The body of a first heartbeat."""
    body = {
        "member_id": member_id,
        "member_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ["orders"],
        "server_assignor": "range",
        "topic_partitions": [],
    }
    return {**body, **changes}


@pytest.fixture
async def topic(api: httpx.AsyncClient) -> str:
    """A topic `orders` of four partitions; its id."""
    response = await api.post("/v1/topics", json={"name": "orders", "partitions": 4})
    assert response.status_code == 201, response.text
    topic_id: str = response.json()["topic_id"]
    return topic_id


async def untouched(runtime: Runtime) -> object:
    """The group as it stands, to be compared."""
    return (await runtime.get(GroupService).describe("g")).group


async def test_the_first_heartbeat_joins_and_assigns(api: httpx.AsyncClient, topic: str, clock: VirtualClock) -> None:
    response = await api.post(HEARTBEAT, json=joining())
    assert response.status_code == 200, response.text
    assert response.json() == {
        "error_code": 0,
        "member_id": "m1",
        "member_epoch": 1,
        "heartbeat_interval_ms": 5_000,
        "session_expires_at": rfc3339(clock.now_ms() + 45_000),
        "assignment": {"topic_partitions": [{"topic_id": topic, "topic": "orders", "partitions": [0, 1, 2, 3]}]},
    }


async def test_a_join_sent_twice_is_one_member(api: httpx.AsyncClient, topic: str) -> None:
    first, again = [await api.post(HEARTBEAT, json=joining()) for _ in range(2)]
    assert first.json()["member_epoch"] == again.json()["member_epoch"]
    assert first.json()["assignment"] == again.json()["assignment"]


@pytest.mark.parametrize("by", ["topic", "topic_id"])
async def test_partitions_are_given_up_by_name_or_id(api: httpx.AsyncClient, topic: str, by: str) -> None:
    await api.post(HEARTBEAT, json=joining())
    second = (await api.post(HEARTBEAT, json=joining("m2"))).json()
    told = (await api.post(HEARTBEAT, json={"member_id": "m1", "member_epoch": 1})).json()
    assert told["assignment"]["topic_partitions"][0]["partitions"] == [0, 1]
    kept = [{by: {"topic": "orders", "topic_id": topic}[by], "partitions": [0, 1]}]
    given_up = await api.post(HEARTBEAT, json={"member_id": "m1", "member_epoch": 1, "topic_partitions": kept})
    assert given_up.json()["member_epoch"] == 2
    gained = (await api.post(HEARTBEAT, json={"member_id": "m2", "member_epoch": second["member_epoch"]})).json()
    assert gained["assignment"]["topic_partitions"][0]["partitions"] == [2, 3]


async def test_a_member_gives_up_a_topic_that_was_deleted(api: httpx.AsyncClient, topic: str) -> None:
    await api.post(HEARTBEAT, json=joining())
    assert (await api.delete("/v1/topics/orders")).status_code == 204
    owned = [{"topic_id": topic, "partitions": [0, 1, 2, 3]}]
    told = await api.post(HEARTBEAT, json={"member_id": "m1", "member_epoch": 1, "topic_partitions": owned})
    assert told.json()["assignment"] == {"topic_partitions": []}
    done = await api.post(HEARTBEAT, json={"member_id": "m1", "member_epoch": 1, "topic_partitions": []})
    assert done.json()["member_epoch"] == 2


async def test_leaving_answers_with_the_epoch_of_the_leave(api: httpx.AsyncClient, topic: str) -> None:
    await api.post(HEARTBEAT, json=joining())
    left = await api.post(HEARTBEAT, json={"member_id": "m1", "member_epoch": -1})
    assert (left.json()["member_epoch"], left.json()["session_expires_at"]) == (-1, None)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"subscribed_topic_names": None, "subscribed_topic_regex": "("}, Error.INVALID_REGULAR_EXPRESSION),
        ({"subscribed_topic_names": None, "subscribed_topic_regex": "a" * 10_000}, Error.INVALID_REGULAR_EXPRESSION),
        ({"server_assignor": "none-such"}, Error.UNSUPPORTED_ASSIGNOR),
        ({"topic_partitions": [{"topic": "orders", "partitions": [0]}]}, Error.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, Error.INVALID_REQUEST),
        ({"member_id": ""}, Error.INVALID_REQUEST),
        ({"member_id": " "}, Error.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, Error.INVALID_REQUEST),
        ({"member_epoch": -3}, Error.INVALID_REQUEST),
        ({"member_epoch": 7}, Error.UNKNOWN_MEMBER_ID),
        ({"member_epoch": -1}, Error.UNKNOWN_MEMBER_ID),
        ({"instance_id": " "}, Error.INVALID_REQUEST),
        ({"rack_id": " "}, Error.INVALID_REQUEST),
    ],
)
async def test_a_join_that_is_refused_changes_nothing(
    api: httpx.AsyncClient, runtime: Runtime, topic: str, changes: dict[str, Any], error: Error
) -> None:
    await api.post(HEARTBEAT, json=joining("other"))
    before = await untouched(runtime)
    assert_problem(await api.post(HEARTBEAT, json={**joining(), **changes}), error)
    assert await untouched(runtime) == before


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"member_epoch": 2}, Error.FENCED_MEMBER_EPOCH),
        ({"member_epoch": 2_147_483_647}, Error.FENCED_MEMBER_EPOCH),
        ({"instance_id": "i"}, Error.UNKNOWN_MEMBER_ID),
        ({"topic_partitions": [{"topic": "none-such", "partitions": [0]}]}, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic_partitions": [{"topic_id": str(uuid.UUID(int=7)), "partitions": [0]}]}, Error.UNKNOWN_TOPIC_ID),
        ({"topic_partitions": [{"topic_id": "x", "partitions": [0]}]}, Error.INVALID_REQUEST),
        ({"topic_partitions": [{"topic": "orders", "partitions": [4]}]}, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic_partitions": [{"topic": "orders", "partitions": [-1]}]}, Error.INVALID_REQUEST),
        ({"topic_partitions": [{"partitions": [0]}]}, Error.INVALID_REQUEST),
    ],
)
async def test_a_heartbeat_that_is_refused_changes_nothing(
    api: httpx.AsyncClient, runtime: Runtime, topic: str, changes: dict[str, Any], error: Error
) -> None:
    await api.post(HEARTBEAT, json=joining())
    before = await untouched(runtime)
    body = {"member_id": "m1", "member_epoch": 1, **changes}
    assert_problem(await api.post(HEARTBEAT, json=body), error)
    assert await untouched(runtime) == before


async def test_an_epoch_of_a_group_that_does_not_exist(api: httpx.AsyncClient) -> None:
    assert_problem(await api.post(HEARTBEAT, json={"member_id": "m", "member_epoch": 1}), Error.GROUP_ID_NOT_FOUND)


async def test_a_thousand_topics_in_one_subscription(api: httpx.AsyncClient, topic: str) -> None:
    names = ["orders", *(f"unknown-{number}" for number in range(1_000))]
    response = await api.post(HEARTBEAT, json=joining(subscribed_topic_names=names))
    assert response.status_code == 200
    assert [entry["topic"] for entry in response.json()["assignment"]["topic_partitions"]] == ["orders"]


async def test_rules_of_the_token_hold(client_with: ClientWith, topic: str) -> None:
    stranger = await client_with("read:group:other")
    assert_problem(await stranger.post(HEARTBEAT, json=joining()), Error.GROUP_AUTHORIZATION_FAILED)
    blind = await client_with("read:group:g")
    assert_problem(await blind.post(HEARTBEAT, json=joining()), Error.TOPIC_AUTHORIZATION_FAILED)
    member = await client_with("read:group:g", "describe:topic:orders")
    assert (await member.post(HEARTBEAT, json=joining())).status_code == 200


async def test_a_regular_expression_matches_only_what_the_token_may_describe(
    api: httpx.AsyncClient, client_with: ClientWith, runtime: Runtime, topic: str
) -> None:
    await api.post("/v1/topics", json={"name": "orders-secret", "partitions": 1})
    member = await client_with("read:group:g", "describe:topic:orders")
    body = joining(subscribed_topic_names=None, subscribed_topic_regex="orders.*")
    epoch = (await member.post(HEARTBEAT, json=body)).json()["member_epoch"]
    await eventually(lambda: not runtime.get(GroupService).busy, "the expression is resolved")
    told = (await member.post(HEARTBEAT, json={"member_id": "m1", "member_epoch": epoch})).json()
    assert [entry["topic"] for entry in told["assignment"]["topic_partitions"]] == ["orders"]


class TestSwitchedOff:
    """The setting that says which protocols groups may use."""

    @pytest.fixture
    def config(self, config: Config) -> Config:
        """The classic protocol alone."""
        return config.override({"group.coordinator.rebalance.protocols": "classic"})

    async def test_the_call_says_which_setting_switches_it_on(self, api: httpx.AsyncClient) -> None:
        body = assert_problem(await api.post(HEARTBEAT, json=joining()), Error.INVALID_REQUEST)
        assert "group.coordinator.rebalance.protocols" in body["detail"]
