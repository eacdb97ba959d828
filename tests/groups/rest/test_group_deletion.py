"""Deleting many groups at once over the REST API."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from groups.core.model.commands import DeleteGroup
from groups.core.model.types import GroupState
from groups.engine.service import GroupService
from kcoord.protocol.errors import Error
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith
from tests.support.rest_groups import group, stable_group

GROUPS = "/v1/groups"


@pytest.fixture(autouse=True)
async def three(service: GroupService) -> None:
    """Two groups without members and one with."""
    await service.put(group("idle", GroupState.EMPTY))
    await service.put(group("old", GroupState.EMPTY))
    await service.put(stable_group("busy"))


async def deleted(client: httpx.AsyncClient, *group_ids: str) -> list[tuple[str, str]]:
    """Group id and error of each result."""
    response = await client.delete(GROUPS, params={"group_id": group_ids})
    assert response.status_code == 200, response.text
    return [(result["group_id"], result["error"]) for result in response.json()["groups"]]


async def test_each_has_a_result_and_twice_is_once(api: httpx.AsyncClient) -> None:
    asked = ["busy", "idle", "ghost", "idle", "a/b", ""]
    response = await api.delete(GROUPS, params={"group_id": asked})
    results = response.json()["groups"]
    assert [(result["group_id"], result["error_code"], result["error"]) for result in results] == [
        ("busy", 68, "NON_EMPTY_GROUP"),
        ("idle", 0, "NONE"),
        ("ghost", 69, "GROUP_ID_NOT_FOUND"),
        ("a/b", 24, "INVALID_GROUP_ID"),
        ("", 69, "GROUP_ID_NOT_FOUND"),
    ]
    assert [result["detail"] is None for result in results] == [False, True, False, False, False]
    left = (await api.get(GROUPS)).json()["groups"]
    assert [line["group_id"] for line in left] == ["busy", "old"]


async def test_who_deleted_it_is_in_the_journal(api: httpx.AsyncClient) -> None:
    await api.post("/v1/topics", json={"name": "orders", "partitions": 1, "labels": {}})
    body = {"topics": [{"name": "orders", "partitions": [{"partition": 0, "committed_offset": 7}]}]}
    assert (await api.post(f"{GROUPS}/simple/offsets/commit", json=body)).status_code == 200
    assert await deleted(api, "simple") == [("simple", "NONE")]
    line = (await api.get(f"{GROUPS}/simple/commits")).json()["commits"][0]
    assert (line["kind"], line["committed_offset"]) == ("group_delete", None)
    assert line["principal"].startswith("test-")


async def test_permission_is_asked_for_each(client_with: ClientWith) -> None:
    client = await client_with("delete:group:idle", "describe:group:old")
    assert await deleted(client, "idle", "old", "busy") == [
        ("idle", "NONE"),
        ("old", "GROUP_AUTHORIZATION_FAILED"),
        ("busy", "GROUP_ID_NOT_FOUND"),
    ]


async def test_what_fails_for_one_is_not_felt_by_the_others(
    api: httpx.AsyncClient, service: GroupService, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = service.execute

    async def broken(command: Any, *rest: Any, **named: Any) -> Any:
        if isinstance(command, DeleteGroup) and command.group_id == "idle":
            raise RuntimeError("a bug")
        return await execute(command, *rest, **named)

    monkeypatch.setattr(service, "execute", broken)
    assert await deleted(api, "idle", "old") == [("idle", "UNKNOWN_SERVER_ERROR"), ("old", "NONE")]


async def test_a_stopped_service(api: httpx.AsyncClient, service: GroupService) -> None:
    service.active = False
    assert await deleted(api, "idle", "old") == [
        ("idle", "COORDINATOR_NOT_AVAILABLE"),
        ("old", "COORDINATOR_NOT_AVAILABLE"),
    ]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "group_id"),
        ("?group=idle", "group"),
        ("?" + "group_id=a&" * 1_001, "group_id"),
        ("?group_id=a%00", "group_id"),
    ],
    ids=["none", "another", "too many", "NUL"],
)
async def test_bad_queries_delete_nothing(api: httpx.AsyncClient, query: str, field: str) -> None:
    assert_problem(await api.delete(f"{GROUPS}{query}"), Error.INVALID_REQUEST, field=field)
    assert len((await api.get(GROUPS)).json()["groups"]) == 3


@pytest.mark.whole("writes many rows to see that what is read is bounded")
async def test_a_thousand_at_once(api: httpx.AsyncClient) -> None:
    results = await deleted(api, *(str(number) for number in range(1_000)))
    assert len(results) == 1_000
    assert {error for _, error in results} == {"GROUP_ID_NOT_FOUND"}
