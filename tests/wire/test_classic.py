"""The classic protocol over the wire, in all versions."""

from __future__ import annotations

import asyncio

import pytest

from groups.engine.service import GroupService
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from tests.support.api import Members
from tests.support.members import eventually
from tests.wire.client import WireClient
from tests.wire.conftest import Connect
from tests.wire.support import join_fields, joined, sync_fields, until_joining


@pytest.mark.parametrize("version", range(10))
async def test_every_version_of_join(
    wire: WireClient, service: GroupService, clock: VirtualClock, version: int
) -> None:
    answer = await joined(wire, service, clock, version)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (0, 1, "range")
    assert answer.leader == answer.member_id
    assert [(m.member_id, m.metadata) for m in answer.members] == [(answer.member_id, b"\x00\x01")]
    group = (await service.describe("g")).group
    assert group is not None
    member = group.members[answer.member_id]
    assert (member.client_id, member.client_host) == ("t", "127.0.0.1")
    assert member.rebalance_timeout_ms == (10_000 if version == 0 else 30_000)  # type: ignore[union-attr]


@pytest.mark.parametrize("version", range(6))
async def test_every_version_of_sync_of_a_leader(
    wire: WireClient, service: GroupService, clock: VirtualClock, version: int
) -> None:
    answer = await joined(wire, service, clock)
    fields = sync_fields(answer, {answer.member_id: b"mine"})
    synced = await wire.ask("sync_group", version, **fields)
    assert (synced.error_code, synced.assignment) == (0, b"mine")
    again = await wire.ask("sync_group", version, **sync_fields(answer))
    assert (again.error_code, again.assignment) == (0, b"mine")


async def test_a_sync_that_names_its_protocol_must_name_the_right_one(
    wire: WireClient, service: GroupService, clock: VirtualClock
) -> None:
    answer = await joined(wire, service, clock)
    for wrong in ({"protocol_name": "sticky"}, {"protocol_name": None}, {"protocol_type": None}):
        assert (await wire.ask("sync_group", 5, **sync_fields(answer, **wrong))).error_code == 23


@pytest.mark.parametrize("version", range(5))
async def test_every_version_of_heartbeat(
    wire: WireClient, service: GroupService, clock: VirtualClock, version: int
) -> None:
    answer = await joined(wire, service, clock)
    await wire.ask("sync_group", 5, **sync_fields(answer, {answer.member_id: b"mine"}))
    beat = {"group_id": "g", "generation_id": 1, "member_id": answer.member_id}
    assert (await wire.ask("heartbeat", version, **beat)).error_code == 0
    assert (await wire.ask("heartbeat", version, **{**beat, "generation_id": 7})).error_code == 22
    assert (await wire.ask("heartbeat", version, **{**beat, "member_id": "nobody"})).error_code == 25


@pytest.mark.parametrize("version", range(6))
async def test_every_version_of_leave(
    wire: WireClient, service: GroupService, clock: VirtualClock, version: int
) -> None:
    answer = await joined(wire, service, clock)
    entry = {"member_id": answer.member_id}
    left = await wire.ask("leave_group", version, group_id="g", members=[entry], **entry)
    assert left.error_code == 0
    group = (await service.describe("g")).group
    assert group is not None
    assert not group.members
    again = await wire.ask("leave_group", version, group_id="g", members=[entry], **entry)
    assert (again.error_code if version < 3 else again.members[0].error_code) == 25


async def test_a_static_member_comes_back_without_a_rebalance(
    wire: WireClient, connect: Connect, service: GroupService, clock: VirtualClock
) -> None:
    first = await joined(wire, service, clock, group_instance_id="rack-1")
    await wire.ask("sync_group", 5, **sync_fields(first, {first.member_id: b"mine"}, group_instance_id="rack-1"))
    wire.abort()
    again = await (await connect()).ask("join_group", 9, **join_fields(group_instance_id="rack-1"))
    assert (again.error_code, again.generation_id) == (0, 1)
    assert again.member_id != first.member_id


async def test_a_parked_join_keeps_nobody_waiting(
    wire: WireClient, connect: Connect, service: GroupService, clock: VirtualClock
) -> None:
    pending = await wire.ask("join_group", 9, **join_fields())
    wire.send("join_group", 9, **join_fields(pending.member_id))
    await until_joining(service, "g")
    other = await connect()
    assert (await other.ask("heartbeat", 4, group_id="g", generation_id=0, member_id="x")).error_code == 25


async def test_a_parked_join_ends_with_its_connection(wire: WireClient, service: GroupService) -> None:
    pending = await wire.ask("join_group", 9, **join_fields())
    wire.send("join_group", 9, **join_fields(pending.member_id))
    await until_joining(service, "g")
    assert service._parked._waiters["g"]
    wire.abort()
    await eventually(lambda: not service._parked._waiters.get("g"), "nobody waits any more")


async def test_a_join_outlives_the_longest_wait(
    wire: WireClient, service: GroupService, clock: VirtualClock, runtime: Runtime
) -> None:
    """Over HTTP the client would send it again; in Kafka it has one answer."""
    runtime.config = runtime.config.override({"http.max.wait.ms": 50})
    answer = await joined(wire, service, clock)
    assert answer.error_code == 0


async def test_a_stop_answers_parked_joins(wire: WireClient, service: GroupService, runtime: Runtime) -> None:
    pending = await wire.ask("join_group", 9, **join_fields())
    wire.send("join_group", 9, **join_fields(pending.member_id))
    await until_joining(service, "g")
    await runtime.drain()
    async with asyncio.timeout(30):
        answer = await wire.receive("join_group", 9)
    assert (answer.error_code, answer.member_id) == (15, pending.member_id)
    assert await wire.is_closed()


async def test_members_over_http_and_over_the_wire_share_a_group(
    wire: WireClient, members: Members, service: GroupService, clock: VirtualClock
) -> None:
    over_http = await members.parked_join()
    pending = await wire.ask("join_group", 9, **join_fields())
    wire.send("join_group", 9, **join_fields(pending.member_id))
    await until_joining(service, "g", 2)
    for _ in range(2):  # the second member prolongs the delay
        clock.advance(3_000)
        await service.tick("g")
    by_http = (await asyncio.wait_for(over_http, 30)).json()
    by_wire = await wire.receive("join_group", 9)
    assert by_wire.generation_id == by_http["generation_id"]
    assert by_wire.leader == by_http["leader"] == by_http["member_id"]
    assert {member["member_id"] for member in by_http["members"]} == {by_wire.member_id, by_http["member_id"]}


@pytest.mark.parametrize(
    ("wrong", "code"),
    [({"group_id": ""}, 24), ({"session_timeout": 1}, 26), ({"group_instance_id": "a b"}, 42), ({"protocols": []}, 23)],
)
async def test_a_join_that_is_not_valid(wire: WireClient, wrong: dict[str, object], code: int) -> None:
    assert (await wire.ask("join_group", 9, **join_fields(**wrong))).error_code == code


async def test_rules_of_tokens_apply(connect: Connect, client_with: object) -> None:
    from kcoord.access.tokens import create_token, parse_rule

    secret = (await asyncio.to_thread(create_token, "limited", [parse_rule("read:group:mine")])).secret
    client = await connect(secret)
    assert (await client.ask("join_group", 9, **join_fields())).error_code == 30
    assert (await client.ask("join_group", 9, **join_fields(group_id="mine"))).error_code == 79
