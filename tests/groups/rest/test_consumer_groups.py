"""Consumer groups over REST: description while a partition is handed over, list, deletion."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from kcoord.protocol.errors import Error
from tests.support.api import assert_problem

HEARTBEAT = "/v1/groups/g/consumer-heartbeat"


def joining(member_id: str) -> dict[str, Any]:
    """The body of a first heartbeat."""
    return {
        "member_id": member_id,
        "member_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ["orders"],
        "server_assignor": "range",
        "topic_partitions": [],
    }


@pytest.fixture
async def topic_id(api: httpx.AsyncClient) -> str:
    """A topic `orders` of four partitions, of which m1 must give two to m2."""
    topic_id: str = (await api.post("/v1/topics", json={"name": "orders", "partitions": 4})).json()["topic_id"]
    await api.post(HEARTBEAT, json=joining("m1"))
    await api.post(HEARTBEAT, json=joining("m2"))
    told = await api.post(HEARTBEAT, json={"member_id": "m1", "member_epoch": 1})
    assert told.status_code == 200, told.text
    return topic_id


def listed(topic_id: str, *partitions: int) -> list[dict[str, Any]]:
    """How partitions of `orders` are shown."""
    return [{"topic_id": topic_id, "topic": "orders", "partitions": list(partitions)}] if partitions else []


async def test_the_description_says_who_still_has_to_give_up_what(api: httpx.AsyncClient, topic_id: str) -> None:
    response = await api.get("/v1/groups/g")
    assert response.status_code == 200, response.text
    group = response.json()
    assert {key: group[key] for key in ("type", "state", "group_epoch", "assignment_epoch", "assignor")} == {
        "type": "consumer",
        "state": "Reconciling",
        "group_epoch": 2,
        "assignment_epoch": 2,
        "assignor": "range",
    }
    first, second = group["members"]
    assert (first["member_id"], first["state"], first["member_epoch"]) == ("m1", "unrevoked_partitions", 1)
    assert first["assignment"] == listed(topic_id, 0, 1, 2, 3)
    assert first["pending_revocation"] == listed(topic_id, 2, 3)
    assert first["rebalance_expires_at"] is not None
    assert (second["member_id"], second["state"], second["member_epoch"]) == ("m2", "unreleased_partitions", 2)
    assert second["assignment"] == []
    assert second["target_assignment"] == listed(topic_id, 2, 3)
    assert group["wake_at"] is not None


async def test_the_list_counts_members_and_filters_by_type(api: httpx.AsyncClient, topic_id: str) -> None:
    consumer = (await api.get("/v1/groups", params={"type": "consumer"})).json()["groups"]
    assert [(group["group_id"], group["state"], group["members"]) for group in consumer] == [("g", "Reconciling", 2)]
    assert (await api.get("/v1/groups", params={"type": "classic"})).json()["groups"] == []
    assert len((await api.get("/v1/groups", params={"member": "m2"})).json()["groups"]) == 1


async def test_only_an_empty_group_can_be_deleted(api: httpx.AsyncClient, topic_id: str) -> None:
    assert_problem(await api.delete("/v1/groups/g"), Error.NON_EMPTY_GROUP)
    for member_id in ("m1", "m2"):
        await api.post(HEARTBEAT, json={"member_id": member_id, "member_epoch": -1})
    assert (await api.delete("/v1/groups/g")).status_code == 204
    assert_problem(await api.get("/v1/groups/g"), Error.GROUP_ID_NOT_FOUND)
