"""POST /v1/groups/{group_id}/sync."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.protocol.consumer_protocol import Assignment, encode_assignment
from kcoord.protocol.errors import Error
from tests.support.api import SESSION_TIMEOUT_MS, Members, assert_problem, b64, sync_body
from tests.support.fixtures import ClientWith

SYNC = "/v1/groups/g/sync"


async def test_the_leader_assigns_and_everybody_gets_theirs(
    members: Members, api: httpx.AsyncClient, clock: VirtualClock
) -> None:
    leader, follower = await members.joined(2)
    waiting = await members.parked_sync(follower)
    response = await api.post(
        SYNC,
        json=sync_body(
            leader,
            {"member_id": leader["member_id"], "partitions": {"orders": [2, 0]}},
            {"member_id": follower["member_id"], "partitions": {"orders": [1]}, "user_data": "AP8="},
        ),
    )
    assert response.status_code == 200
    expires = rfc3339(clock.now_ms() + SESSION_TIMEOUT_MS)
    assert response.json() == {
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignment": b64(encode_assignment(Assignment({"orders": (0, 2)}))),
        "partitions": {"orders": [0, 2]},
        "session_expires_at": expires,
        "error_code": 0,
    }
    answer = (await asyncio.wait_for(waiting, 10)).json()
    assert answer["assignment"] == b64(encode_assignment(Assignment({"orders": (1,)}, b"\x00\xff")))
    assert answer["partitions"] == {"orders": [1]}
    assert answer["session_expires_at"] == expires


async def synced(members: Members, *assignments: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """What the only member of a group gets when it assigns; "me" stands for its id."""
    (leader,) = await members.joined(1, **changes)
    entries = [
        {**entry, "member_id": leader["member_id"]} if entry["member_id"] == "me" else entry for entry in assignments
    ]
    response = await members.api.post(SYNC, json=sync_body(leader, *entries))
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def test_of_two_entries_the_last_counts_and_strangers_are_dropped(members: Members) -> None:
    """classic.md 3.2."""
    body = await synced(
        members,
        {"member_id": "me", "partitions": {"orders": [0]}},
        {"member_id": "stranger", "partitions": {"orders": [2]}},
        {"member_id": "me", "assignment": b64(encode_assignment(Assignment({"orders": (1,)})))},
    )
    assert body["partitions"] == {"orders": [1]}


async def test_who_is_not_listed_gets_nothing(members: Members) -> None:
    body = await synced(members)
    assert body["assignment"] == ""
    assert body["partitions"] == {}


async def test_bytes_that_are_no_assignment_are_passed_on_as_they_are(members: Members) -> None:
    body = await synced(members, {"member_id": "me", "assignment": b64(b"\x00")})
    assert body["assignment"] == b64(b"\x00")
    assert body["partitions"] is None


async def test_other_protocol_types_are_never_decoded(members: Members) -> None:
    assignment = b64(encode_assignment(Assignment({"orders": (1,)})))
    protocols = [{"name": "v1", "metadata": ""}]
    body = await synced(
        members, {"member_id": "me", "assignment": assignment}, protocol_type="connect", protocols=protocols
    )
    assert body["assignment"] == assignment
    assert body["partitions"] is None


async def test_a_wait_that_runs_out_loses_nothing(members: Members, api: httpx.AsyncClient) -> None:
    leader, follower = await members.joined(2)
    response = await api.post(SYNC, json=sync_body(follower, max_wait_ms=0))
    body = assert_problem(response, Error.REBALANCE_IN_PROGRESS, action="retry")
    assert "member_id" not in body
    again = await members.parked_sync(follower)
    await api.post(SYNC, json=sync_body(leader))
    assert (await asyncio.wait_for(again, 10)).status_code == 200


@pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
async def test_a_null_protocol_is_refused_before_authorization(client_with: ClientWith, missing: str) -> None:
    """classic.md 3.1 row 1."""
    nobody = await client_with("read:group:other")
    body = {"member_id": "m", "generation_id": 1, "protocol_type": "consumer", "protocol_name": "range"}
    response = await nobody.post(SYNC, json={**body, missing: None})
    assert_problem(response, Error.INCONSISTENT_GROUP_PROTOCOL)


async def test_an_error_names_no_member(members: Members, api: httpx.AsyncClient) -> None:
    leader = await members.stable()
    response = await api.post(SYNC, json=sync_body(leader, generation_id=7))
    assert_problem(response, Error.ILLEGAL_GENERATION)


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"member_id": "m"}, "assignments[0]"),
        ({"member_id": "m", "assignment": "", "partitions": {}}, "assignments[0]"),
        ({"member_id": "m", "assignment": "", "user_data": ""}, "assignments[0].user_data"),
        ({"member_id": "m", "assignment": "%%%"}, "assignments[0].assignment"),
        ({"member_id": "m", "partitions": {"orders": [2147483648]}}, "assignments[0].partitions"),
        ({"partitions": {}}, "assignments[0].member_id"),
        ({"member_id": "m", "partition": {}}, "assignments[0].partition"),
    ],
)
async def test_malformed_entries_are_named(api: httpx.AsyncClient, entry: dict[str, Any], field: str) -> None:
    joined = {"member_id": "m", "generation_id": 1, "protocol_type": "consumer", "protocol_name": "range"}
    body = assert_problem(await api.post(SYNC, json=sync_body(joined, entry)), Error.INVALID_REQUEST)
    assert body["field"].startswith(field)


async def test_partitions_are_for_consumers(api: httpx.AsyncClient) -> None:
    joined = {"member_id": "m", "generation_id": 1, "protocol_type": "connect", "protocol_name": "v1"}
    response = await api.post(SYNC, json=sync_body(joined, {"member_id": "m", "partitions": {}}))
    assert_problem(response, Error.INVALID_REQUEST, field="assignments[0].partitions")
