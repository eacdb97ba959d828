"""POST /v1/groups/{group_id}/share-heartbeat, and what else is asked about a share group."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from groups.core.model.consumer_group import ShareGroup
from groups.engine.service import GroupService
from groups.store.store import GroupStore
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith

GROUP = "/v1/groups/g"
HEARTBEAT = f"{GROUP}/share-heartbeat"


def joining(member_id: str = "worker-1", **changes: Any) -> dict[str, Any]:
    """The body of a first heartbeat."""
    return {"member_id": member_id, "member_epoch": 0, "subscribed_topic_names": ["orders"], **changes}


@pytest.fixture
async def topic(api: httpx.AsyncClient) -> str:
    """A topic `orders` of two partitions; its id."""
    response = await api.post("/v1/topics", json={"name": "orders", "partitions": 2})
    assert response.status_code == 201, response.text
    topic_id: str = response.json()["topic_id"]
    return topic_id


async def beat(api: httpx.AsyncClient, member_id: str, epoch: int, **fields: Any) -> dict[str, Any]:
    response = await api.post(HEARTBEAT, json={"member_id": member_id, "member_epoch": epoch, **fields})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def test_members_share_partitions(api: httpx.AsyncClient, topic: str, clock: VirtualClock) -> None:
    both = {"topic_partitions": [{"topic_id": topic, "topic": "orders", "partitions": [0, 1]}]}
    response = await api.post(HEARTBEAT, json=joining())
    assert response.status_code == 200, response.text
    assert response.json() == {
        "error_code": 0,
        "member_id": "worker-1",
        "member_epoch": 1,
        "heartbeat_interval_ms": 5_000,
        "session_expires_at": rfc3339(clock.now_ms() + 45_000),
        "assignment": both,
    }
    assert (await beat(api, "worker-1", 1))["assignment"] is None
    for number in (2, 3):
        clock.advance(1_000)  # one target a second
        assert (await beat(api, f"worker-{number}", 0, subscribed_topic_names=["orders"]))["member_epoch"] == number
    left = await beat(api, "worker-3", -1)
    assert (left["member_epoch"], left["heartbeat_interval_ms"], left["session_expires_at"]) == (-1, 0, None)
    described = (await api.get(GROUP)).json()
    assert (described["type"], described["state"], described["assignor"]) == ("share", "Stable", "simple")
    assert [member["member_id"] for member in described["members"]] == ["worker-1", "worker-2"]
    assert described["members"][0]["assignment"] == both["topic_partitions"], "until its next heartbeat"
    assert "rebalance_timeout_ms" not in described["members"][0]


async def test_the_group_is_read_back_as_it_was_decided(
    api: httpx.AsyncClient, topic: str, clock: VirtualClock, runtime: Runtime
) -> None:
    store = runtime.get(GroupStore)

    async def compare() -> ShareGroup:
        copy = store.copy_of("g")
        assert copy is not None
        store.forget_all()
        loaded = (await store.read("g")).group
        assert loaded == copy.stored.group
        assert isinstance(loaded, ShareGroup)
        await store.load(["g"])
        again = store.copy_of("g")
        assert again is not None
        assert again.stored.group == loaded
        return loaded

    await beat(api, "a", 0, subscribed_topic_names=["orders"], rack_id="r1")
    await compare()
    clock.advance(1_000)
    await beat(api, "b", 0, subscribed_topic_names=["orders"])
    await compare()
    await beat(api, "a", 1)
    group = await compare()
    assert [sorted(member.assigned[topic]) for member in group.members.values()] == [[0], [1]]
    clock.advance(1_000)
    await beat(api, "b", -1)
    await beat(api, "a", 2)
    assert {p for has in (await compare()).members["a"].assigned.values() for p in has} == {0, 1}
    await runtime.get(GroupService).kick("g", "a", principal="ann")
    assert not (await compare()).members


async def test_sessions_end_by_the_timers(
    api: httpx.AsyncClient, topic: str, clock: VirtualClock, runtime: Runtime
) -> None:
    await beat(api, "a", 0, subscribed_topic_names=["orders"])
    clock.advance(45_000)
    await runtime.get(GroupService).tick("g")
    described = (await api.get(GROUP)).json()
    assert (described["state"], described["members"]) == ("Empty", [])
    events = (await api.get(f"{GROUP}/events")).json()["events"]
    assert {"group_created", "member_joined", "member_expired"} <= {event["kind"] for event in events}


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (joining(""), Error.INVALID_REQUEST),
        (joining("x" * 37), Error.INVALID_REQUEST),
        (joining(subscribed_topic_names=[]), Error.INVALID_REQUEST),
        (joining(member_epoch=-2), Error.INVALID_REQUEST),
        (joining(member_epoch=3), Error.GROUP_ID_NOT_FOUND),
    ],
)
async def test_refusals(api: httpx.AsyncClient, body: dict[str, Any], error: Error) -> None:
    assert_problem(await api.post(HEARTBEAT, json=body), error)
    assert (await api.get(GROUP)).status_code == 404


async def test_requests_of_other_types_are_refused_with_the_type(api: httpx.AsyncClient, topic: str) -> None:
    await beat(api, "a", 0, subscribed_topic_names=["orders"])
    join = {"member_id": "", "session_timeout_ms": 10_000, "protocol_type": "consumer"}
    join["protocols"] = [{"name": "range", "subscription": {"topics": ["orders"]}}]  # type: ignore[assignment]
    assert_problem(await api.post(f"{GROUP}/join", json=join), Error.INCONSISTENT_GROUP_PROTOCOL)
    commit = {"topics": [{"name": "orders", "partitions": [{"partition": 0, "committed_offset": 1}]}]}
    refused = await api.post(f"{GROUP}/offsets/commit", json=commit)
    assert_problem(refused, Error.GROUP_ID_NOT_FOUND)
    assert "share group" in refused.json()["detail"]
    consumer = {"member_id": "c", "member_epoch": 0, "rebalance_timeout_ms": 1_000, "topic_partitions": []}
    consumer["subscribed_topic_names"] = ["orders"]
    refused = await api.post(f"{GROUP}/consumer-heartbeat", json=consumer)
    assert_problem(refused, Error.GROUP_ID_NOT_FOUND)
    assert "share group" in refused.json()["detail"]
    fetched = await api.post(f"{GROUP}/offsets/fetch", json={"topics": None})
    assert fetched.json()["topics"] == []
    (lag,) = (await api.get(f"{GROUP}/lag")).json()["topics"]
    assert (lag["topic"], lag["lag"], lag["unknown_partitions"]) == ("orders", None, len(lag["partitions"]))
    assert_problem(await api.delete(GROUP), Error.NON_EMPTY_GROUP)
    simulated = await api.post("/v1/assignments/simulate", json={"group_id": "g"})
    assert_problem(simulated, Error.INVALID_REQUEST)
    assert "share group" in simulated.json()["detail"]


async def test_it_is_listed_filtered_held_and_deleted(api: httpx.AsyncClient, topic: str) -> None:
    await beat(api, "a", 0, subscribed_topic_names=["orders"])
    for query in ({"type": "share"}, {"topic": "orders"}, {"state": "Stable", "type": "share"}):
        (line,) = (await api.get("/v1/groups", params=query)).json()["groups"]
        assert (line["type"], line["state"], line["members"]) == ("share", "Stable", 1)
        assert (line["protocol_type"], line["topics"]) == ("share", ["orders"])
    assert (await api.get("/v1/groups", params={"type": "consumer"})).json()["groups"] == []
    held = await api.post(f"{GROUP}/hold", json={"duration_ms": 60_000, "reason": "test"})
    assert held.status_code == 200, held.text
    assert_problem(await api.post(HEARTBEAT, json=joining("a")), Error.COORDINATOR_LOAD_IN_PROGRESS)
    assert (await api.delete(GROUP)).status_code == 204
    assert (await api.get(GROUP)).status_code == 404


async def test_settings_of_the_group_apply_to_its_members(api: httpx.AsyncClient, topic: str) -> None:
    settings = {"share.heartbeat.interval.ms": 6_000, "share.assignment.interval.ms": 0}
    assert (await api.patch(f"{GROUP}/config", json=settings)).status_code == 200
    assert (await beat(api, "a", 0, subscribed_topic_names=["orders"]))["heartbeat_interval_ms"] == 6_000
    assert (await beat(api, "b", 0, subscribed_topic_names=["orders"]))["member_epoch"] == 2
    wrong = await api.patch(f"{GROUP}/config", json={"share.session.timeout.ms": 1})
    assert_problem(wrong, Error.INVALID_CONFIG)


@pytest.mark.parametrize(
    ("rule", "fields", "error"),
    [
        ("describe:topic:orders", {"member_id": "m" * 37}, Error.GROUP_AUTHORIZATION_FAILED),
        ("read:group:g", {"member_id": "m" * 37}, Error.INVALID_REQUEST),
        ("read:group:g", {"member_id": ""}, Error.INVALID_REQUEST),
        ("read:group:g", {"member_id": " "}, Error.TOPIC_AUTHORIZATION_FAILED),
        ("read:group:g", {"member_epoch": -2}, Error.TOPIC_AUTHORIZATION_FAILED),
        ("read:group:g", {"member_epoch": -1}, Error.TOPIC_AUTHORIZATION_FAILED),
        ("read:group:g", {"subscribed_topic_names": []}, Error.INVALID_REQUEST),
    ],
)
async def test_rights_and_member_ids_in_the_order_of_the_checks(
    client_with: ClientWith, topic: str, rule: str, fields: dict[str, Any], error: Error
) -> None:
    """share.md 2.2, rows 2 to 8."""
    client = await client_with(rule)
    assert_problem(await client.post(HEARTBEAT, json=joining(**fields)), error)
