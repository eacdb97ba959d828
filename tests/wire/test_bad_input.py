"""What is no Kafka, or too much of it: one line in the log, the connection closed, others undisturbed."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from kcoord.door.http.peers import Phase
from kcoord.door.kafka.connection import LARGEST_BEFORE_LOGIN, READ_AHEAD
from kcoord.door.kafka.gateway import Gateway
from kcoord.process.runtime import Runtime
from kcoord.requests.turnstile import Kind, Places
from tests.support.members import eventually
from tests.wire.client import WireClient, request_frame
from tests.wire.conftest import Connect


@pytest.fixture
def lines() -> Iterator[list[Any]]:
    """What is logged about connections that were closed."""
    with capture_logs() as found:
        yield found


def closed(lines: list[Any]) -> list[str]:
    return [line["detail"] for line in lines if line["event"] == "kafka_connection_closed"]


@pytest.fixture
async def bystander(connect: Connect) -> AsyncIterator[WireClient]:
    """A connection that goes on as if nothing had happened."""
    client = await connect()
    yield client
    assert (await client.ask("heartbeat", 4, group_id="g", generation_id=1, member_id="m")).error_code == 25


GARBAGE = [
    (b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n", "HTTP on the port for Kafka clients"),
    (b"POST /v1/groups HTTP/1.1\r\n\r\n", "HTTP on the port for Kafka clients"),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(50), "TLS on a port without TLS"),
    (b"\xff\xff\xff\xff" + bytes(20), "-1 is not the size of a request"),
    (b"\x80\x00\x00\x00" + bytes(20), f"{-(2**31)} is not the size of a request"),
    (bytes(20), "0 is not the size of a request"),
    (b"\x7f\xff\xff\xff" + bytes(20), f"{2**31 - 1} is not the size of a request"),
    (struct.pack(">i", LARGEST_BEFORE_LOGIN + 1), f"{LARGEST_BEFORE_LOGIN + 1} is not the size of a request"),
    (struct.pack(">i", 3) + b"abc", "the header is cut off"),
    (struct.pack(">ihhih", 10, 18, 3, 1, 99), "the client id exceeds the frame"),
    (struct.pack(">ihhih", 10, 999, 0, 1, -1), "API key 999 version 0 is not served"),
    (struct.pack(">ihhih", 10, -1, -1, 1, -1), "API key -1 version -1 is not served"),
    (struct.pack(">ihhih", 10, 18, 3, 1, -1), "the header is cut off"),
]


@pytest.mark.parametrize(("sent", "detail"), GARBAGE, ids=[detail for _, detail in GARBAGE])
async def test_what_is_no_request(
    bystander: WireClient, connect: Connect, lines: list[Any], sent: bytes, detail: str
) -> None:
    client = await connect(None)
    client.writer.write(sent)
    assert await client.is_closed()
    assert closed(lines) == [detail]


async def test_a_count_that_would_abort_kio(bystander: WireClient, connect: Connect, lines: list[Any]) -> None:
    client = await connect()
    head = request_frame("metadata", 12, {"topics": None})[:12]
    client.send_raw(head + b"\xff\xff\xff\xff\x0f" + b"\0" * 12)
    assert await client.is_closed()
    assert closed(lines) == ["a list has more entries than the frame can hold"]


async def test_bytes_after_a_request_are_not_looked_at(connect: Connect, lines: list[Any]) -> None:
    """As in Kafka. The frame is what `list_topics` of confluent-kafka 2.16 sends."""
    client = await connect()
    client.send_raw(bytes.fromhex("0003000c00000005000772646b61666b61") + bytes.fromhex("0000000000010000"))
    assert (await client.receive("metadata", 12)).brokers
    client.send_raw(request_frame("heartbeat", 4, {"group_id": "g", "member_id": "m"}) + b"x")
    assert (await client.receive("heartbeat", 4)).error_code == 25
    assert not closed(lines)


async def test_many_bad_requests_of_one_connection_are_one_line(connect: Connect, lines: list[Any]) -> None:
    client = await connect(None)
    for _ in range(20):
        client.send_raw(b"abc")
    assert await client.is_closed()
    assert len(closed(lines)) == 1


async def test_an_answer_before_bad_bytes_is_still_sent(connect: Connect) -> None:
    client = await connect(None)
    client.send("api_versions", 0)
    client.writer.write(b"\xff\xff\xff\xff")
    assert (await client.receive("api_versions", 0)).error_code == 0
    assert await client.is_closed()


async def test_a_frame_that_comes_byte_by_byte(connect: Connect) -> None:
    client = await connect(None)
    frame = request_frame("api_versions", 0, {})
    for byte in struct.pack(">i", len(frame)) + frame:
        client.writer.write(bytes([byte]))
        await client.writer.drain()
        await asyncio.sleep(0)
    assert (await client.receive("api_versions", 0)).error_code == 0


async def test_answers_come_in_the_order_of_requests(connect: Connect) -> None:
    client = await connect()
    sent = [client.send("metadata", 12, topics=[]) for _ in range(50)]
    found = [struct.unpack_from(">i", await client.receive_raw())[0] for _ in sent]
    assert found == sent


@pytest.mark.parametrize(
    ("phase", "begun", "reason"),
    [(Phase.LOGIN, b"", "login_timeout"), (Phase.LOGIN, b"\0\0", "login_timeout")],
)
async def test_a_silent_peer(
    gateway: Gateway, connect: Connect, lines: list[Any], phase: Phase, begun: bytes, reason: str
) -> None:
    limits = gateway.peers.limits
    gateway.peers.limits = replace(limits, times={**limits.times, phase: limits.times[phase]._replace(seconds=0.1)})
    client = await connect(None)
    client.writer.write(begun)
    assert await client.is_closed()
    assert [line["reason"] for line in lines if line["event"] == "kafka_connection_closed"] == [reason]


@pytest.mark.parametrize(
    ("phase", "begun", "reason"), [(Phase.IDLE, b"", "idle"), (Phase.FRAME, b"\0\0", "request_timeout")]
)
async def test_a_peer_that_goes_silent(
    gateway: Gateway, connect: Connect, lines: list[Any], phase: Phase, begun: bytes, reason: str
) -> None:
    limits = gateway.peers.limits
    gateway.peers.limits = replace(limits, times={**limits.times, phase: limits.times[phase]._replace(seconds=0.1)})
    client = await connect()
    client.writer.write(begun)
    assert await client.is_closed()
    assert [line["reason"] for line in lines if line["event"] == "kafka_connection_closed"] == [reason]


async def test_a_peer_that_does_not_read(gateway: Gateway, connect: Connect, topics: Any, lines: list[Any]) -> None:
    limits = gateway.peers.limits
    gateway.peers.limits = replace(limits, write=limits.write._replace(seconds=0.1))
    await topics.create("wide", 10_000)
    client = await connect()
    client.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.reader._transport.pause_reading()  # type: ignore[attr-defined]
    for _ in range(40):  # 10 MB of answers
        client.send("metadata", 12, topics=None)
    await eventually(lambda: [line for line in lines if line.get("reason") == "write_timeout"], "it is closed")


async def test_too_many_connections(gateway: Gateway, connect: Connect) -> None:
    first = await connect(None)
    await first.ask("api_versions", 0)
    gateway.peers.limits = replace(gateway.peers.limits, connections=1)
    second = await connect(None)
    assert await second.is_closed()
    assert (await first.ask("api_versions", 0)).error_code == 0


async def test_requests_under_way_are_bounded(gateway: Gateway, connect: Connect) -> None:
    """Of all connections together; the others wait, heartbeats too."""
    gateway.requests = Places(1)
    first, second = await connect(), await connect()
    async with gateway.requests.place():
        first.send("metadata", 12, topics=[])
        second.send("heartbeat", 4, group_id="g", generation_id=1, member_id="m")
        answers = [asyncio.create_task(first.receive_raw()), asyncio.create_task(second.receive_raw())]
        await eventually(lambda: sum(c.is_busy for c in gateway.peers.open) == 2, "both have been read")
        assert not any(answer.done() for answer in answers)
    async with asyncio.timeout(30):
        await asyncio.gather(*answers)


async def test_what_comes_together_is_read_in_its_turn(gateway: Gateway, connect: Connect) -> None:
    """And is as old as when it came. A connection that ends meanwhile takes nobody's turn."""
    clients, turnstile = [await connect() for _ in range(3)], gateway.turnstile
    turnstile._goes_round = True  # as if all of it were in one round
    turnstile._begun[Kind.READ] = Kind.READ.at_once
    for client in clients:
        client.send("heartbeat", 4, group_id="g", generation_id=1, member_id="m")
    await eventually(lambda: turnstile.waiting(Kind.READ) == 3, "all wait")
    waiting = [connection for connection in gateway.peers.open if connection.is_busy]
    came = time.monotonic()
    assert [c._receipt.at <= came for c in waiting if c._receipt is not None] == [True] * 3
    clients[0].writer.transport.abort()
    await eventually(lambda: len(gateway.peers.open) == 2, "one is gone")
    turnstile._next()
    async with asyncio.timeout(30):
        for client in clients[1:]:
            await client.receive_raw()


async def test_what_is_read_ahead_is_bounded(connect: Connect, gateway: Gateway) -> None:
    client = await connect()
    pending = await client.ask(
        "join_group", 9, group_id="g", session_timeout=10_000, rebalance_timeout=10_000, member_id="",
        protocol_type="consumer", protocols=[{"name": "range", "metadata": b""}],
    )  # fmt: skip
    client.send(
        "join_group", 9, group_id="g", session_timeout=10_000, rebalance_timeout=10_000, member_id=pending.member_id,
        protocol_type="consumer", protocols=[{"name": "range", "metadata": b""}],
    )  # fmt: skip
    for _ in range(2_000):
        client.send("metadata", 12, topics=[{"name": "x" * 1_000}])
    (connection,) = gateway.peers.open
    await eventually(lambda: not connection._reads, "it reads no more")
    assert len(connection._buffer) < READ_AHEAD + 300_000


async def test_an_outage_of_postgres_is_an_error_that_can_be_tried_again(
    connect: Connect, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    from groups.engine.service import GroupService
    from kcoord.protocol.errors import Error, ProtocolError

    async def fails(*_: Any, **__: Any) -> Any:
        raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "the database is not available")

    client = await connect()
    monkeypatch.setattr(runtime.get(GroupService), "heartbeat", fails)
    beat = {"group_id": "g", "generation_id": 1, "member_id": "m"}
    assert (await client.ask("heartbeat", 4, **beat)).error_code == 15
    monkeypatch.undo()
    assert (await client.ask("heartbeat", 4, **beat)).error_code == 25


async def test_a_failure_of_a_handler_is_an_error_of_the_answer(
    connect: Connect, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    from groups.engine.service import GroupService

    async def fails(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    client = await connect()
    monkeypatch.setattr(runtime.get(GroupService), "leave", fails)
    answer = await client.ask("leave_group", 5, group_id="g", members=[{"member_id": "m"}])
    assert answer.error_code == -1


async def test_a_token_that_was_deleted_ends_its_connection(
    connect: Connect, runtime: Runtime, lines: list[Any]
) -> None:
    from kcoord.access.rights import Access
    from kcoord.access.tokens import create_token, parse_rule
    from kcoord.models import ApiToken

    secret = (await asyncio.to_thread(create_token, "short", [parse_rule("read:group:*")])).secret
    client = await connect(secret)
    await asyncio.to_thread(ApiToken.objects.filter(name="short").delete)
    runtime.get(Access)._cache.clear()
    client.send("metadata", 12, topics=[])
    assert await client.is_closed()
    assert closed(lines) == [
        "the token of the connection is no longer valid: unknown token; create a token and send it"
    ]
