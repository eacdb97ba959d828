"""Heartbeats that are answered where they are read, without a task."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from groups.store.store import GroupStore
from kcoord.access.rights import Access
from kcoord.database.clock import VirtualClock
from kcoord.door.kafka import connection, dispatch
from kcoord.door.kafka.gateway import Gateway
from kcoord.process.runtime import Runtime
from kcoord.requests.turnstile import Kind
from tests.groups.lane.support import Process, from_memory, joined_consumer, register
from tests.support.members import eventually, stable_member
from tests.wire.client import WireClient, request_frame

VERSIONS = [("heartbeat", version) for version in range(5)] + [
    ("consumer_group_heartbeat", version) for version in range(2)
]
Beat = Callable[[str], Awaitable[dict[str, Any]]]


@pytest.fixture
async def beat(runtime: Runtime, database: str, clock: VirtualClock) -> Beat:
    """Makes the heartbeat of the only member of group g; it can be answered from memory."""
    process: Process = register(runtime, database, "one")
    await process.open()

    async def fields(name: str) -> dict[str, Any]:
        if name == "heartbeat":
            member = await stable_member(process.groups, clock)
            found = {"group_id": "g", "generation_id": member.generation_id, "member_id": member.member_id}
        else:
            command = await joined_consumer(process)
            found = {"group_id": "g", "member_id": command.member_id, "member_epoch": command.member_epoch}
            found |= {"rebalance_timeout": -1}
        await process.notified()
        return found

    return fields


async def warm(wire: WireClient, name: str, version: int, fields: dict[str, Any]) -> None:
    """Return when heartbeats are answered from memory: the group is there, and its member has its assignment."""

    async def is_from_memory() -> bool:
        answered = from_memory()
        assert (await wire.ask(name, version, **fields)).error_code == 0
        return from_memory() > answered

    await eventually(is_from_memory, "heartbeats are answered from memory")


def forbid_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on requests that need a task fail."""

    def fails(*arguments: object, **named: object) -> None:
        raise AssertionError("it was not answered at once")

    monkeypatch.setattr(connection.Connection, "_serve", fails)


@pytest.mark.parametrize(("name", "version"), VERSIONS)
async def test_a_heartbeat_needs_no_task(
    wire: WireClient, beat: Beat, monkeypatch: pytest.MonkeyPatch, name: str, version: int
) -> None:
    fields = await beat(name)
    await warm(wire, name, version, fields)
    forbid_tasks(monkeypatch)
    answered = from_memory()
    for _ in range(2):
        assert (await wire.ask(name, version, **fields)).error_code == 0
    assert from_memory() == answered + 2


@pytest.mark.parametrize(("name", "wrong"), [("heartbeat", {"member_id": "x"}), ("consumer_group_heartbeat", {})])
async def test_one_that_has_to_wait_is_begun_once(
    wire: WireClient, beat: Beat, gateway: Gateway, monkeypatch: pytest.MonkeyPatch, name: str, wrong: dict[str, Any]
) -> None:
    fields = await beat(name)
    await warm(wire, name, 1, fields)
    key, api = next((key, api) for key, api in gateway.apis.items() if api.name == name)
    begun: list[object] = []

    def handler(call: Any, request: Any) -> Any:
        begun.append(request)
        return api.handler(call, request)

    monkeypatch.setitem(gateway.apis, key, replace(api, handler=handler))
    gateway.decoded.cache_clear()
    gateway.runtime.get(GroupStore).forget("g")
    await wire.ask(name, 1, **fields | wrong)
    assert len(begun) == 1


async def test_many_that_come_together_are_answered_in_order(wire: WireClient, beat: Beat) -> None:
    fields = await beat("heartbeat")
    sent = [wire.send("heartbeat", version % 5, **fields) for version in range(3 * Kind.READ.at_once)]
    sent.append(wire.send("describe_cluster", 1))
    sent.append(wire.send("heartbeat", 4, **fields))
    found = [int.from_bytes((await wire.receive_raw())[:4], "big") for _ in sent]
    assert found == sent


async def test_one_that_comes_in_pieces_is_answered(
    wire: WireClient, beat: Beat, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = await beat("heartbeat")
    await warm(wire, "heartbeat", 4, fields)
    forbid_tasks(monkeypatch)
    wire.send("heartbeat", 4, **fields)
    assert (await wire.receive("heartbeat", 4)).error_code == 0
    wire.writer.write(b"\0\0")
    await wire.writer.drain()
    frame = request_frame("heartbeat", 4, fields)
    wire.writer.write(len(frame).to_bytes(4, "big")[2:] + frame[:9])
    await wire.writer.drain()
    wire.writer.write(frame[9:])
    assert (await wire.receive("heartbeat", 4)).error_code == 0


@pytest.mark.parametrize(
    ("wrong", "code"), [({"generation_id": 9}, 22), ({"member_id": "x"}, 25), ({"group_id": ""}, 24)]
)
async def test_errors_are_those_of_the_usual_way(
    wire: WireClient, beat: Beat, wrong: dict[str, Any], code: int
) -> None:
    fields = await beat("heartbeat")
    assert (await wire.ask("heartbeat", 4, **fields)).error_code == 0
    assert (await wire.ask("heartbeat", 4, **fields | wrong)).error_code == code
    assert (await wire.ask("heartbeat", 4, **fields)).error_code == 0


async def test_a_deleted_token_is_not_served_from_memory(
    wire: WireClient, beat: Beat, runtime: Runtime, database: str
) -> None:
    fields = await beat("heartbeat")
    assert (await wire.ask("heartbeat", 4, **fields)).error_code == 0
    with psycopg.connect(database, autocommit=True) as rows:
        rows.execute("delete from kcoord_accessrule")
        rows.execute("delete from kcoord_apitoken")
    runtime.get(Access)._cache.clear()
    wire.send("heartbeat", 4, **fields)
    assert await wire.is_closed()


async def test_rights_are_looked_at_each_time(wire: WireClient, beat: Beat, gateway: Gateway) -> None:
    fields = await beat("heartbeat")
    assert (await wire.ask("heartbeat", 4, **fields)).error_code == 0
    access = gateway.runtime.get(Access)
    for key, (principal, until) in access._cache.items():
        access._cache[key] = type(principal)(principal.token_id, principal.name, type(principal.rules)(())), until
    assert (await wire.ask("heartbeat", 4, **fields)).error_code == 30


async def test_a_request_is_decoded_once(wire: WireClient, beat: Beat, gateway: Gateway) -> None:
    fields = await beat("heartbeat")
    await warm(wire, "heartbeat", 4, fields)  # news of the token's creation may follow the login
    gateway.decoded.cache_clear()
    for _ in range(4):
        assert (await wire.ask("heartbeat", 4, **fields)).error_code == 0
    known = gateway.decoded.cache_info()
    assert (known.misses, known.hits) == (1, 3)
    assert known.maxsize is not None
    assert known.maxsize * dispatch.LONGEST_QUICK < 16_000_000, "bytes of requests"


async def test_a_request_with_lists_is_not_remembered(wire: WireClient, beat: Beat, gateway: Gateway) -> None:
    """Sixteen bytes of a frame are a list and a mapping when they are decoded."""
    fields = await beat("consumer_group_heartbeat")
    await warm(wire, "consumer_group_heartbeat", 1, fields)
    gateway.decoded.cache_clear()
    assert (await wire.ask("consumer_group_heartbeat", 1, **fields)).error_code == 0
    owned = [{"topic_id": uuid.uuid4(), "partitions": [0]}]
    assert (await wire.ask("consumer_group_heartbeat", 1, **fields, topic_partitions=owned)).error_code == 100
    assert gateway.decoded.cache_info().currsize == 1
