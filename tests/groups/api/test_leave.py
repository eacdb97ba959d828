"""POST /v1/groups/{group_id}/leave."""

from __future__ import annotations

import asyncio

import httpx

from groups.engine.service import GroupService
from kcoord.protocol.errors import Error
from tests.support.api import Members, assert_problem, join_body
from tests.support.members import eventually

LEAVE = "/v1/groups/g/leave"


async def test_each_entry_is_answered_on_its_own(members: Members, api: httpx.AsyncClient) -> None:
    member = await members.stable()
    entries = [
        {"member_id": "stranger", "group_instance_id": None, "reason": "none"},
        {"member_id": member["member_id"], "group_instance_id": None, "reason": "bye"},
        {"member_id": member["member_id"]},
    ]
    response = await api.post(LEAVE, json={"members": entries})
    assert response.status_code == 200
    assert response.json() == {
        "error_code": 0,
        "members": [
            {"member_id": "stranger", "group_instance_id": None, "error_code": 25, "error": "UNKNOWN_MEMBER_ID"},
            {"member_id": member["member_id"], "group_instance_id": None, "error_code": 0, "error": "NONE"},
            {
                "member_id": member["member_id"],
                "group_instance_id": None,
                "error_code": 25,
                "error": "UNKNOWN_MEMBER_ID",
            },
        ],
    }


async def test_a_static_member_is_removed_by_its_instance_id(
    members: Members, api: httpx.AsyncClient, service: GroupService
) -> None:
    joining = asyncio.create_task(api.post("/v1/groups/g/join", json=join_body(group_instance_id="i")))

    async def arrived() -> bool:
        group = (await service.describe("g")).group
        return bool(group and group.members)

    await eventually(arrived, "the static member is in the group")
    response = await api.post(LEAVE, json={"members": [{"group_instance_id": "i"}]})
    assert response.json()["members"] == [{"member_id": "", "group_instance_id": "i", "error_code": 0, "error": "NONE"}]
    assert_problem(await asyncio.wait_for(joining, 10), Error.UNKNOWN_MEMBER_ID)


async def test_a_group_that_does_not_exist_has_no_such_member(api: httpx.AsyncClient) -> None:
    response = await api.post("/v1/groups/ghost/leave", json={"members": [{"member_id": "m"}]})
    assert response.status_code == 200
    assert [entry["error_code"] for entry in response.json()["members"]] == [25]


async def test_an_empty_batch_does_nothing(members: Members, api: httpx.AsyncClient) -> None:
    await members.stable()
    response = await api.post(LEAVE, json={"members": []})
    assert response.json() == {"error_code": 0, "members": []}


async def test_a_stopped_coordinator_says_so(api: httpx.AsyncClient, service: GroupService) -> None:
    service.active = False
    response = await api.post(LEAVE, json={"members": [{"member_id": "m"}]})
    body = assert_problem(response, Error.COORDINATOR_NOT_AVAILABLE)
    assert body["retriable"] is True
