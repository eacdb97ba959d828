"""Hold and kick over HTTP: what operators are told, what members are told, and who may do it."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from groups.core.model.types import ClassicGroup, GroupState
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.protocol.errors import Error
from tests.conftest import START_MS
from tests.support.api import Members, assert_problem, identity, join_body
from tests.support.fixtures import ClientWith
from tests.support.rest_groups import group, member, stable_group

G = "/v1/groups/g"
COMMIT: dict[str, Any] = {
    "topics": [{"name": "orders", "partitions": [{"partition": 0, "committed_offset": 5}]}],
}


async def test_hold_removes_everybody_and_is_described(
    api: httpx.AsyncClient, service: GroupService, clock: VirtualClock
) -> None:
    await service.put(stable_group("g"))
    held = await api.post(f"{G}/hold", json={"duration_ms": 60_000, "reason": "bug 17"})
    until = rfc3339(START_MS + 60_000)
    assert held.status_code == 200
    name = held.json()["hold"]["by"]
    assert held.json() == {
        "group_id": "g",
        "hold": {"until": until, "by": name, "reason": "bug 17"},
        "removed_members": 2,
    }
    described = (await api.get(G)).json()
    assert (described["state"], described["members"], described["hold"]) == ("Empty", [], held.json()["hold"])
    assert described["wake_at"] == until
    clock.advance(60_000)
    assert (await api.get(G)).json()["hold"] is None, "also before anybody looks at the group"


async def test_members_are_refused_until_the_hold_ends(
    api: httpx.AsyncClient, members: Members, clock: VirtualClock, topics: TopicService
) -> None:
    await topics.create("orders", 3)
    joined = await members.stable()
    await api.post(f"{G}/hold", json={"duration_ms": 7_000, "reason": "bug 17"})
    gone = assert_problem(await api.post(f"{G}/heartbeat", json=identity(joined)), Error.UNKNOWN_MEMBER_ID)
    assert gone["action"] == "rejoin"
    refused = await api.post(f"{G}/join", json=join_body())
    problem = assert_problem(refused, Error.COORDINATOR_LOAD_IN_PROGRESS)
    assert (problem["action"], problem["retriable"], refused.headers["retry-after"]) == ("retry", True, "7")
    assert "bug 17" in problem["detail"]
    assert rfc3339(START_MS)[:10] in problem["detail"]
    assert_problem(await api.post(f"{G}/offsets/commit", json=COMMIT), Error.COORDINATOR_LOAD_IN_PROGRESS)
    clock.advance(7_000)
    assert_problem(await api.post(f"{G}/join", json=join_body()), Error.MEMBER_ID_REQUIRED)


async def test_waiting_requests_are_answered_when_the_hold_is_placed(api: httpx.AsyncClient, members: Members) -> None:
    waiting = await members.parked_join()
    await api.post(f"{G}/hold", json={"duration_ms": 7_000})
    assert_problem(await asyncio.wait_for(waiting, 10), Error.UNKNOWN_MEMBER_ID)


async def test_release(api: httpx.AsyncClient, service: GroupService) -> None:
    await service.put(stable_group("g"))
    await api.post(f"{G}/hold", json={"duration_ms": 60_000})
    released = await api.delete(f"{G}/hold")
    assert (released.status_code, released.content) == (204, b"")
    assert (await api.delete(f"{G}/hold")).status_code == 204
    assert (await api.get(G)).json()["hold"] is None
    assert_problem(await api.post(f"{G}/join", json=join_body()), Error.MEMBER_ID_REQUIRED)
    kinds = [event["kind"] for event in (await api.get(f"{G}/events")).json()["events"]]
    assert kinds.count("hold_released") == 1
    assert kinds.index("hold_released") < kinds.index("group_held")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "duration_ms"),
        ({"duration_ms": 0}, "duration_ms"),
        ({"duration_ms": -5}, "duration_ms"),
        ({"duration_ms": 3_600_001}, "duration_ms"),
        ({"duration_ms": 2**63}, "duration_ms"),
        ({"duration_ms": "60000"}, "duration_ms"),
        ({"duration_ms": 1.5}, "duration_ms"),
        ({"duration_ms": True}, "duration_ms"),
        ({"duration_ms": 1, "reason": None}, "reason"),
        ({"duration_ms": 1, "reason": "x" * 1_001}, "reason"),
        ({"duration_ms": 1, "reason": "a\0"}, "reason"),
        ({"duration_ms": 1, "until": "tomorrow"}, "until"),
    ],
)
async def test_bad_holds_change_nothing(
    api: httpx.AsyncClient, service: GroupService, body: dict[str, Any], field: str
) -> None:
    await service.put(stable_group("g"))
    assert_problem(await api.post(f"{G}/hold", json=body), Error.INVALID_REQUEST, field=field)
    assert len((await api.get(G)).json()["members"]) == 2


async def test_longest_hold_is_named(api: httpx.AsyncClient, service: GroupService) -> None:
    await service.put(stable_group("g"))
    problem = assert_problem(await api.post(f"{G}/hold", json={"duration_ms": 3_600_001}), Error.INVALID_REQUEST)
    assert "3600000 (group.max.hold.ms)" in problem["detail"]
    assert (await api.post(f"{G}/hold", json={"duration_ms": 3_600_000})).status_code == 200


async def test_what_does_not_exist(api: httpx.AsyncClient, service: GroupService) -> None:
    for call in (
        api.post(f"{G}/hold", json={"duration_ms": 1}),
        api.delete(f"{G}/hold"),
        api.post(f"{G}/members/m/kick", json={}),
    ):
        assert_problem(await call, Error.GROUP_ID_NOT_FOUND)
    await service.put(stable_group("g"))
    problem = assert_problem(await api.post(f"{G}/members/nobody/kick", json={}), Error.UNKNOWN_MEMBER_ID)
    assert problem["detail"] == "group 'g' has no member 'nobody' (any more)"  # not: "join again", it is no member's


async def test_kick(api: httpx.AsyncClient, service: GroupService) -> None:
    await service.put(stable_group("g"))
    kicked = await api.post(f"{G}/members/m1/kick", json={"reason": "its host hangs"})
    assert (kicked.status_code, kicked.content) == (204, b"")
    described = (await api.get(G)).json()
    assert (described["state"], [m["member_id"] for m in described["members"]]) == ("PreparingRebalance", ["m0"])
    (event,) = (await api.get(f"{G}/events?kind=member_removed")).json()["events"]
    assert event["member_id"] == "m1"
    assert (event["detail"]["cause"], event["detail"]["reason"]) == ("member_kicked", "its host hangs")
    assert event["detail"]["principal"].startswith("test-")
    beat = {"member_id": "m1", "generation_id": 1}
    assert_problem(await api.post(f"{G}/heartbeat", json=beat), Error.UNKNOWN_MEMBER_ID)


@pytest.mark.parametrize("member_id", ["a b", "ä", "a/b", "%", "a?b#c", "kick", "x" * 300])
async def test_member_ids_are_any_text_percent_encoded(
    api: httpx.AsyncClient, service: GroupService, member_id: str
) -> None:
    await service.put(group("g", GroupState.STABLE, member(member_id, client_id="c")))
    kicked = await api.post(f"{G}/members/{quote(member_id, safe='')}/kick", json={})
    assert kicked.status_code == 204, kicked.text


@pytest.mark.parametrize("segment", ["", "%FF", "a%00", "x" * 301])
async def test_bad_member_ids(api: httpx.AsyncClient, service: GroupService, segment: str) -> None:
    await service.put(stable_group("g"))
    problem = assert_problem(await api.post(f"{G}/members/{segment}/kick", json={}), Error.INVALID_REQUEST)
    assert problem["field"] == "member_id"


async def test_both_take_the_right_to_kick(service: GroupService, client_with: ClientWith) -> None:
    await service.put(stable_group("g"))
    calls: list[tuple[str, str, Any]] = [
        ("POST", f"{G}/hold", {"duration_ms": 1_000}),
        ("DELETE", f"{G}/hold", None),
        ("POST", f"{G}/members/m0/kick", {}),
    ]
    for rule, error in (
        ("read:group:*", Error.GROUP_AUTHORIZATION_FAILED),
        ("alter-offsets:group:g", Error.GROUP_AUTHORIZATION_FAILED),
        ("kick:group:other", Error.GROUP_ID_NOT_FOUND),
    ):
        client = await client_with(rule)
        for method, path, body in calls:
            assert_problem(await client.request(method, path, json=body), error)
    assert len((await service.describe("g")).group.members) == 2  # type: ignore[union-attr]
    operator = await client_with("kick:group:g")
    for method, path, body in reversed(calls):
        assert (await operator.request(method, path, json=body)).status_code in (200, 204)


async def test_group_without_members_can_be_held_before_they_come(
    api: httpx.AsyncClient, service: GroupService
) -> None:
    await service.put(ClassicGroup("g"))
    assert (await api.post(f"{G}/hold", json={"duration_ms": 1_000})).json()["removed_members"] == 0
    assert_problem(await api.post(f"{G}/join", json=join_body()), Error.COORDINATOR_LOAD_IN_PROGRESS)
