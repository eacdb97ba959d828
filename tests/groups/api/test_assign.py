"""POST /v1/assign."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from kcoord.protocol.consumer_protocol import Subscription, encode_subscription
from kcoord.protocol.errors import Error
from tests.support.api import Members, assert_problem, b64, sync_body
from tests.support.fixtures import ClientWith


def request(*members: dict[str, Any], assignor: str = "range") -> dict[str, Any]:
    """The body of an assign."""
    return {"assignor": assignor, "members": list(members)}


async def test_a_leader_without_an_assignor(members: Members, api: httpx.AsyncClient, topic: str) -> None:
    """What a join returns goes in, what comes out goes into the sync."""
    leader, follower = await members.joined(2)
    assigned = await api.post("/v1/assign", json={"assignor": "range", "members": leader["members"]})
    assert assigned.status_code == 200, assigned.text
    by_member = {entry["member_id"]: entry["partitions"] for entry in assigned.json()["assignments"]}
    assert sorted(number for found in by_member.values() for number in found[topic]) == [0, 1, 2]
    response = await api.post("/v1/groups/g/sync", json=sync_body(leader, *assigned.json()["assignments"]))
    assert response.json()["partitions"] == by_member[leader["member_id"]]
    response = await api.post("/v1/groups/g/sync", json=sync_body(follower))
    assert response.json()["partitions"] == by_member[follower["member_id"]]


async def test_metadata_is_read_where_no_subscription_is_given(api: httpx.AsyncClient, topic: str) -> None:
    metadata = b64(encode_subscription(Subscription((topic,))))
    response = await api.post("/v1/assign", json=request({"member_id": "m", "metadata": metadata}))
    assert response.json()["assignments"] == [{"member_id": "m", "partitions": {topic: [0, 1, 2]}}]


async def test_topics_that_may_not_be_seen_look_as_if_not_there(client_with: ClientWith, topic: str) -> None:
    member = {"member_id": "m", "subscription": {"topics": [topic, "ghost"]}}
    blind = await client_with("read:group:*")
    assert (await blind.post("/v1/assign", json=request(member))).json()["assignments"][0]["partitions"] == {}
    seeing = await client_with(f"describe:topic:{topic}")
    found = (await seeing.post("/v1/assign", json=request(member))).json()["assignments"][0]["partitions"]
    assert found == {topic: [0, 1, 2]}


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (request(assignor="nosuch"), Error.UNSUPPORTED_ASSIGNOR),
        (request({"member_id": "m", "metadata": ""}), Error.INVALID_REQUEST),
        (request({"member_id": "m"}), Error.INVALID_REQUEST),
        (request(*[{"member_id": "m", "subscription": {"topics": []}}] * 2), Error.INVALID_REQUEST),
        ({"members": []}, Error.INVALID_REQUEST),
    ],
)
async def test_errors(api: httpx.AsyncClient, body: dict[str, Any], error: Error) -> None:
    assert_problem(await api.post("/v1/assign", json=body), error)
