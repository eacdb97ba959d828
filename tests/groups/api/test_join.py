"""POST /v1/groups/{group_id}/join."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from groups.engine.service import GroupService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.process.runtime import Runtime
from kcoord.protocol.consumer_protocol import Subscription, encode_subscription
from kcoord.protocol.errors import Error
from tests.support.api import SESSION_TIMEOUT_MS, Members, abandon, assert_problem, b64, client_of, join_body
from tests.support.members import eventually

JOIN = "/v1/groups/g/join"


async def test_a_new_member_is_told_its_id(api: httpx.AsyncClient) -> None:
    body = assert_problem(await api.post(JOIN, json=join_body()), Error.MEMBER_ID_REQUIRED)
    assert body["member_id"].startswith("billing-")


async def test_the_first_member_leads(members: Members, clock: VirtualClock) -> None:
    (joined,) = await members.joined(1)
    member_id = joined["member_id"]
    metadata = encode_subscription(Subscription(("orders",)))
    assert joined == {
        "generation_id": 1,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "leader": member_id,
        "skip_assignment": False,
        "member_id": member_id,
        "members": [
            {
                "member_id": member_id,
                "group_instance_id": None,
                "metadata": b64(metadata),
                "subscription": {
                    "topics": ["orders"],
                    "owned_partitions": {},
                    "generation_id": -1,
                    "rack_id": None,
                    "user_data": None,
                },
            }
        ],
        "session_expires_at": rfc3339(clock.now_ms() + SESSION_TIMEOUT_MS),
        "error_code": 0,
    }


async def test_the_client_host_is_that_of_the_connection(token: str, members: Members, service: GroupService) -> None:
    async with client_of(token, client=("192.0.2.7", 40_000)) as elsewhere:
        there = Members(elsewhere, service, members.clock)
        (joined,) = await there.joined(1)
    group = (await service.describe("g")).group
    assert group is not None
    assert group.members[joined["member_id"]].client_host == "192.0.2.7"


async def test_json_and_binary_members_share_a_group(members: Members) -> None:
    """A subscription in JSON is the same bytes that a Kafka client sends."""
    binary = encode_subscription(Subscription(("orders",), {"orders": (0, 1)}, 4, "rack", b"\x00\xff"))
    as_json = {
        "topics": ["orders"],
        "owned_partitions": {"orders": [0, 1]},
        "generation_id": 4,
        "rack_id": "rack",
        "user_data": "AP8=",
    }
    first = await members.parked_join(protocols=[{"name": "range", "metadata": b64(binary)}])
    second = await members.parked_join(protocols=[{"name": "range", "subscription": as_json}])
    answers = await members.complete_joins(first, second)
    leader = next(answer for answer in answers if answer["members"])
    assert [member["metadata"] for member in leader["members"]] == [b64(binary)] * 2
    assert [member["subscription"] for member in leader["members"]] == [as_json] * 2


async def test_bytes_that_are_no_subscription_are_passed_on_as_they_are(members: Members) -> None:
    (joined,) = await members.joined(1, protocols=[{"name": "range", "metadata": b64(b"\xff")}])
    assert joined["members"][0]["metadata"] == b64(b"\xff")
    assert "subscription" not in joined["members"][0]


async def test_other_protocol_types_are_never_decoded(members: Members) -> None:
    metadata = b64(encode_subscription(Subscription(("orders",))))
    (joined,) = await members.joined(1, protocol_type="connect", protocols=[{"name": "v1", "metadata": metadata}])
    assert "subscription" not in joined["members"][0]


async def test_followers_are_not_told_the_members(members: Members) -> None:
    leader, follower = await members.joined(2)
    assert len(leader["members"]) == 2
    assert follower["members"] == []
    assert follower["leader"] == leader["member_id"]


async def test_a_wait_that_runs_out_loses_nothing(members: Members, api: httpx.AsyncClient) -> None:
    member_id = await members.pending_id()
    response = await api.post(JOIN, json=join_body(member_id, max_wait_ms=0))
    body = assert_problem(response, Error.REBALANCE_IN_PROGRESS, action="retry")
    assert body["member_id"] == member_id
    assert body["retriable"] is True
    again = await members.parked_join(member_id=member_id)
    (joined,) = await members.complete_joins(again)
    assert joined["member_id"] == member_id


class TestCap:
    @pytest.fixture
    def config(self) -> Config:
        return Config({"http.max.wait.ms": 20})

    async def test_the_setting_caps_the_wait(self, members: Members, api: httpx.AsyncClient) -> None:
        member_id = await members.pending_id()
        response = await asyncio.wait_for(api.post(JOIN, json=join_body(member_id, max_wait_ms=3_600_000)), 10)
        assert_problem(response, Error.REBALANCE_IN_PROGRESS, action="retry")


async def test_who_waits_is_answered_when_the_process_stops(members: Members, runtime: Runtime) -> None:
    task = await members.parked_join()
    await runtime.drain()
    body = assert_problem(await asyncio.wait_for(task, 10), Error.REBALANCE_IN_PROGRESS, action="retry")
    assert body["member_id"]


async def test_without_a_rebalance_timeout_the_session_timeout_counts(members: Members, service: GroupService) -> None:
    task = await members.parked_join(rebalance_timeout_ms=None)
    group = (await service.describe("g")).group
    assert group is not None
    assert [member.rebalance_timeout_ms for member in group.members.values()] == [SESSION_TIMEOUT_MS]
    await abandon(task)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"session_timeout_ms": 5_999}, Error.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, Error.INVALID_SESSION_TIMEOUT),
        ({"protocols": []}, Error.INCONSISTENT_GROUP_PROTOCOL),
        (
            {"protocol_type": "", "protocols": [{"name": "range", "metadata": ""}]},
            Error.INCONSISTENT_GROUP_PROTOCOL,
        ),
        ({"member_id": "stranger"}, Error.UNKNOWN_MEMBER_ID),
    ],
)
async def test_errors_carry_the_member_id(api: httpx.AsyncClient, changes: dict[str, Any], error: Error) -> None:
    body = assert_problem(await api.post(JOIN, json=join_body(**changes)), error)
    assert body["member_id"] == changes.get("member_id", "")


@pytest.mark.parametrize(
    ("protocol", "field"),
    [
        ({"name": "range"}, "protocols[0]"),
        ({"name": "range", "metadata": "", "subscription": {"topics": []}}, "protocols[0]"),
        ({"name": "range", "metadata": None}, "protocols[0].metadata"),
        ({"name": "range", "metadata": "no base64"}, "protocols[0].metadata"),
        ({"name": "range", "subscription": {"topics": ["t"], "rack": "r"}}, "protocols[0].subscription.rack"),
        ({"name": "range", "subscription": {"topics": ["t"], "user_data": "?"}}, "protocols[0].subscription.user_data"),
        ({"name": "", "metadata": ""}, "protocols[0].name"),
        ({"metadata": ""}, "protocols[0].name"),
    ],
)
async def test_malformed_protocols_are_named(api: httpx.AsyncClient, protocol: dict[str, Any], field: str) -> None:
    response = await api.post(JOIN, json=join_body(protocols=[protocol]))
    assert_problem(response, Error.INVALID_REQUEST, field=field)


async def test_a_subscription_is_for_consumers(api: httpx.AsyncClient) -> None:
    response = await api.post(JOIN, json=join_body(protocol_type="connect"))
    assert_problem(response, Error.INVALID_REQUEST, field="protocols[0].subscription")


@pytest.mark.parametrize("instance_id", ["", ".", "..", "a b", "a/b", "é", "a\n", "x" * 250])
async def test_instance_ids_that_kafka_clients_refuse_are_refused(api: httpx.AsyncClient, instance_id: str) -> None:
    response = await api.post(JOIN, json=join_body(group_instance_id=instance_id))
    body = assert_problem(response, Error.INVALID_REQUEST, field="group_instance_id")
    assert "1 to 249 characters" in body["detail"]


@pytest.mark.parametrize("instance_id", ["a", "...", "A.b_c-9", "x" * 249])
async def test_static_members_join_at_once(members: Members, instance_id: str, service: GroupService) -> None:
    task = asyncio.create_task(members.api.post(JOIN, json=join_body(group_instance_id=instance_id)))

    async def arrived() -> bool:
        group = (await service.describe("g")).group
        return bool(group and group.members)

    await eventually(arrived, "the static member is in the group")
    (joined,) = await members.complete_joins(task)
    assert joined["members"][0]["group_instance_id"] == instance_id


async def test_differs_from_kafka_a_negative_rebalance_timeout_is_refused(api: httpx.AsyncClient) -> None:
    response = await api.post(JOIN, json=join_body(rebalance_timeout_ms=-1))
    assert_problem(response, Error.INVALID_REQUEST, field="rebalance_timeout_ms")
