"""POST /v1/groups/{group_id}/heartbeat and POST /v1/heartbeats."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from groups.engine.service import GroupService
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.protocol.errors import Error
from tests.support.api import SESSION_TIMEOUT_MS, Members, abandon, assert_problem, identity
from tests.support.fixtures import ClientWith

HEARTBEAT = "/v1/groups/g/heartbeat"


async def test_a_heartbeat_renews_the_session(members: Members, api: httpx.AsyncClient, clock: VirtualClock) -> None:
    member = await members.stable()
    clock.advance(5_000)
    response = await api.post(HEARTBEAT, json=identity(member))
    assert response.status_code == 200
    assert response.json() == {"error_code": 0, "session_expires_at": rfc3339(clock.now_ms() + SESSION_TIMEOUT_MS)}


async def test_a_heartbeat_during_a_rebalance_renews_the_session_too(
    members: Members, api: httpx.AsyncClient, clock: VirtualClock
) -> None:
    member = await members.stable()
    newcomer = await members.parked_join()
    body = assert_problem(
        await api.post(HEARTBEAT, json=identity(member)), Error.REBALANCE_IN_PROGRESS, action="rejoin"
    )
    assert body["retriable"] is False
    assert body["session_expires_at"] == rfc3339(clock.now_ms() + SESSION_TIMEOUT_MS)
    await abandon(newcomer)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"member_id": "stranger"}, Error.UNKNOWN_MEMBER_ID),
        ({"member_id": ""}, Error.UNKNOWN_MEMBER_ID),
        ({"generation_id": 2}, Error.ILLEGAL_GENERATION),
        ({"generation_id": -1}, Error.ILLEGAL_GENERATION),
        ({"group_instance_id": "i"}, Error.UNKNOWN_MEMBER_ID),
    ],
)
async def test_errors(members: Members, api: httpx.AsyncClient, changes: dict[str, Any], error: Error) -> None:
    member = await members.stable()
    body = assert_problem(await api.post(HEARTBEAT, json={**identity(member), **changes}), error)
    assert "session_expires_at" not in body


async def test_many_heartbeats_are_answered_each_on_its_own(
    members: Members, api: httpx.AsyncClient, clock: VirtualClock
) -> None:
    first, second = await members.stable("g1"), await members.stable("g2")
    response = await api.post(
        "/v1/heartbeats",
        json={
            "heartbeats": [
                {"group_id": "g1", **identity(first)},
                {"group_id": "g2", **identity(second), "generation_id": 9},
                {"group_id": "ghost", **identity(first)},
                {"group_id": "a/b", **identity(first)},
                {"group_id": "g1", "member_id": "stranger", "generation_id": 1},
            ]
        },
    )
    assert response.status_code == 200
    results = response.json()["heartbeats"]
    assert [result["error"] for result in results] == [
        "NONE",
        "ILLEGAL_GENERATION",
        "UNKNOWN_MEMBER_ID",
        "INVALID_GROUP_ID",
        "UNKNOWN_MEMBER_ID",
    ]
    assert [result["error_code"] for result in results] == [0, 22, 25, 24, 25]
    assert results[0] == {
        "group_id": "g1",
        "member_id": first["member_id"],
        "error_code": 0,
        "error": "NONE",
        "detail": None,
        "session_expires_at": rfc3339(clock.now_ms() + SESSION_TIMEOUT_MS),
    }
    assert all(result["detail"] and result["session_expires_at"] is None for result in results[1:])


async def test_many_heartbeats_check_the_rules_of_each_group(client_with: ClientWith) -> None:
    client = await client_with("read:group:mine")
    entry = {"member_id": "m", "generation_id": 1}
    response = await client.post(
        "/v1/heartbeats", json={"heartbeats": [{"group_id": "mine", **entry}, {"group_id": "theirs", **entry}]}
    )
    errors = [result["error"] for result in response.json()["heartbeats"]]
    assert errors == ["UNKNOWN_MEMBER_ID", "GROUP_AUTHORIZATION_FAILED"]


async def test_one_group_that_fails_does_not_silence_the_others(
    members: Members, api: httpx.AsyncClient, service: GroupService, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = await members.stable()
    heartbeat = service.heartbeat

    async def broken_for_some(command: Any) -> Any:
        if command.group_id == "broken":
            raise ZeroDivisionError
        return await heartbeat(command)

    monkeypatch.setattr(service, "heartbeat", broken_for_some)
    response = await api.post(
        "/v1/heartbeats",
        json={"heartbeats": [{"group_id": "broken", **identity(member)}, {"group_id": "g", **identity(member)}]},
    )
    errors = [result["error"] for result in response.json()["heartbeats"]]
    assert errors == ["UNKNOWN_SERVER_ERROR", "NONE"]


async def test_no_heartbeats_are_answered_with_none(api: httpx.AsyncClient) -> None:
    response = await api.post("/v1/heartbeats", json={"heartbeats": []})
    assert response.json() == {"heartbeats": [], "error_code": 0}
