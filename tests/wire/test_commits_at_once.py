"""Commits that wait for nothing but their batch: no task waits with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from groups.topics import TopicService
from kcoord.door.kafka.connection import Connection
from kcoord.door.kafka.gateway import Gateway
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.commits.service import OffsetService
from offsets.core.types import OffsetCommitReply
from tests.support.members import eventually
from tests.support.told import told
from tests.wire.client import WireClient

Reply = OffsetCommitReply | None


def fields(version: int = 9, topic_id: str = "", **changes: Any) -> dict[str, Any]:
    partitions = [{"partition_index": number, "committed_offset": 7 + number} for number in (2, 0)]
    topic = {"topic_id": topic_id} if version >= 10 else {"name": "orders"}
    return {
        "group_id": "g",
        "member_id": "",
        "generation_id_or_member_epoch": -1,
        "topics": [{**topic, "partitions": partitions}],
        **changes,
    }


def codes(answer: Any) -> list[int]:
    return [partition["error_code"] for topic in answer.topics for partition in topic["partitions"]]


@pytest.fixture
async def topic_id(runtime: Runtime) -> str:
    return (await runtime.get(TopicService).create("orders", 3)).topic_id


@pytest.fixture
async def warm(wire: WireClient, runtime: Runtime, topic_id: str, monkeypatch: pytest.MonkeyPatch) -> WireClient:
    """Token and topics are in memory, and from now on requests that need a task fail."""
    await told(runtime)
    assert codes(await wire.ask("offset_commit", 9, **fields())) == [0, 0]

    def fails(*arguments: object, **named: object) -> None:
        raise AssertionError("it needs a task")

    monkeypatch.setattr(Connection, "_serve", fails)
    return wire


@pytest.fixture
def under_way(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> list[asyncio.Future[Reply]]:
    """The futures of the commits that come from now on, which nothing is done about."""
    found: list[asyncio.Future[Reply]] = []

    def write(_commit: object) -> asyncio.Future[Reply]:
        found.append(asyncio.get_running_loop().create_future())
        return found[-1]

    monkeypatch.setattr(runtime.get(OffsetService), "write", write)
    return found


@pytest.mark.parametrize("version", range(2, 11))
async def test_each_version_is_answered_without_a_task(warm: WireClient, topic_id: str, version: int) -> None:
    nobody = {"member_id": "x", "generation_id_or_member_epoch": 3}
    for _ in range(2):
        assert codes(await warm.ask("offset_commit", version, **fields(version, topic_id))) == [0, 0]
    assert codes(await warm.ask("offset_commit", version, **fields(version, topic_id, **nobody))) == [25, 25]


async def test_many_that_come_together_are_answered_in_order(warm: WireClient) -> None:
    sent = [warm.send("offset_commit", 9, **fields()) for _ in range(20)]
    assert [int.from_bytes((await warm.receive_raw())[:4], "big") for _ in sent] == sent


@pytest.mark.parametrize(
    ("fail", "code"),
    [
        (lambda future: future.set_exception(ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "")), 15),
        (lambda future: future.set_exception(RuntimeError("a fault")), -1),
        (lambda future: future.set_result(OffsetCommitReply(Error.ILLEGAL_GENERATION)), 22),
    ],
)
async def test_what_fails_is_the_error_of_each_partition(
    warm: WireClient, under_way: list[asyncio.Future[Reply]], fail: Callable[[asyncio.Future[Reply]], None], code: int
) -> None:
    warm.send("offset_commit", 9, **fields())
    await eventually(lambda: len(under_way) == 1, "it is under way")
    fail(under_way[0])
    assert codes(await warm.receive("offset_commit", 9)) == [code, code]


async def test_ids_that_mean_something_else_by_now_are_looked_up(
    wire: WireClient, topic_id: str, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert codes(await wire.ask("offset_commit", 10, **fields(10, topic_id))) == [0, 0]
    service = runtime.get(OffsetService)
    write, written = service.write, list[object]()

    def first_in_vain(commit: Any) -> asyncio.Future[Reply]:
        written.append(commit)
        if len(written) > 1:
            return write(commit)
        nothing: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        nothing.set_result(None)
        return nothing

    monkeypatch.setattr(service, "write", first_in_vain)
    assert codes(await wire.ask("offset_commit", 10, **fields(10, topic_id))) == [0, 0]
    assert len(written) == 2


async def test_a_client_that_goes_away_leaves_nothing_behind(
    warm: WireClient, gateway: Gateway, under_way: list[asyncio.Future[Reply]]
) -> None:
    warm.send("offset_commit", 9, **fields())
    await eventually(lambda: len(under_way) == 1, "it is under way")
    free = gateway.requests._free
    warm.writer.transport.abort()
    await eventually(lambda: not len(gateway.peers), "the connection is closed")
    assert not under_way[0].done(), "it is carried out"
    under_way[0].set_result(OffsetCommitReply(Error.NONE))
    await eventually(lambda: gateway.requests._free == free + 1, "its place is free")


async def test_a_server_that_stops_answers_first(
    warm: WireClient, gateway: Gateway, under_way: list[asyncio.Future[Reply]]
) -> None:
    warm.send("offset_commit", 9, **fields())
    await eventually(lambda: len(under_way) == 1, "it is under way")
    await gateway.drain()
    under_way[0].set_result(OffsetCommitReply(Error.NONE))
    assert codes(await warm.receive("offset_commit", 9)) == [0, 0]
    assert await warm.reader.read() == b"", "the connection is closed"
