"""Requests on one connection: pieces, order, turns. See `tests.support.doors`."""

from __future__ import annotations

import asyncio
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groups.core.model.commands import Heartbeat
from groups.core.model.replies import HeartbeatReply
from kcoord.config import Config
from kcoord.requests import current
from kcoord.requests.turnstile import Kind
from tests.support.doors import LAST, Client, Door, Service, all_of, beat, heartbeat, one_by_one, run, statuses, until
from tests.support.selection import sample

AT_ONCE = Kind.READ.at_once

BODY = b'{"member_id":"ok","generation_id":1}'


EVERY = 8


@pytest.mark.parametrize("start", sample(range(EVERY), "the bytes between those of the default"))
def test_requests_cut_at_every_byte(start: int) -> None:
    requests = beat("ok1"), beat("later"), beat("ok2", b"X-Request-Id: mine")
    expected = one_by_one(Door(Config({})), *requests, LAST)
    whole = b"".join(requests)
    for at in range(start, len(whole), EVERY):
        door = Door(Config({}))
        assert all_of(door, whole[:at], whole[at:] + LAST) == expected, whole[:at]
        assert [command.member_id for command in door.service.at_once] == ["ok1", "ok2", "ok-last"]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(["ok", "later", "none", ""]), max_size=40), st.lists(st.integers(1, 400), max_size=60))
def test_pipelined_requests_are_answered_in_order(members: list[str], sizes: list[int]) -> None:
    """However they are cut, and whichever way each of them goes."""
    requests = [*(beat(name, b"X-Request-Id: %d" % number) for number, name in enumerate(members)), LAST]
    stream = b"".join(requests)
    parts = []
    for size in sizes:
        parts.append(stream[:size])
        stream = stream[size:]
    found = all_of(Door(Config({})), *parts, stream)
    assert found == one_by_one(Door(Config({})), *requests)
    assert re.findall(rb"x-request-id: (\d+)", found) == [b"%d" % number for number in range(len(members))]


def test_one_connection_does_not_keep_the_loop() -> None:
    """After some answers to pipelined requests everybody else has a turn, and the answers go on by themselves."""
    door, answers, turns = Door(Config({})), 5 * AT_ONCE, [0]

    async def conversation() -> bytes:
        loop = asyncio.get_running_loop()

        def turn() -> None:
            turns.append(0)
            loop.call_soon(turn)

        def answered() -> None:
            turns[-1] += 1

        async with door.open() as connect:
            client = await connect()
            await client.ask(beat("ok"))
            door.service.seen = answered
            loop.call_soon(turn)
            client.writer.write(beat("ok") * answers + LAST)
            return await client.rest()

    assert statuses(run(conversation())) == [200] * (answers + 1)
    assert sum(turns) == answers + 1
    assert max(turns) == AT_ONCE


def test_many_connections_together_do_not_keep_the_loop_either() -> None:
    """Of what they sent together a few are read each round, and each is as old as when it came."""
    door, connections, turns = Door(Config({})), 3 * AT_ONCE, [0]
    ages: list[float] = []

    async def conversation() -> list[bytes]:
        loop = asyncio.get_running_loop()

        def turn() -> None:
            turns.append(0)
            loop.call_soon(turn)

        def answered() -> None:
            turns[-1] += 1
            receipt = current.receipt()
            assert receipt is not None
            ages.append(receipt.at)

        async with door.open() as connect:
            clients = [await connect() for _ in range(connections)]
            for client in clients:
                await client.ask(beat("ok"))
            door.service.seen = answered
            loop.call_soon(turn)
            for protocol in door.protocols:
                protocol.data_received(beat("ok") + beat("ok")[:9])  # as if all were read in one round
            came = time.monotonic()
            for protocol in door.protocols:
                protocol.data_received(beat("ok")[9:])
            await until(lambda: len(ages) == 2 * connections)
            assert all(at <= came for at in ages[:connections])
            for client in clients:
                client.writer.write(LAST)
            return [await client.rest() for client in clients]

    for read in run(conversation()):
        assert statuses(read) == [200] * 3
    assert max(turns) == AT_ONCE


def test_what_comes_after_a_turn_of_others_is_read() -> None:
    door, stream = Door(Config({})), beat("ok") * AT_ONCE
    assert statuses(all_of(door, beat("ok"), stream + LAST[:20], LAST[20:])) == [200] * (AT_ONCE + 2)


def test_a_request_waits_for_the_answer_to_the_one_before() -> None:
    """Even if it comes alone and with the same headers, while that goes the usual way."""

    class Slow(Service):
        async def in_a_task(self, command: Heartbeat) -> HeartbeatReply:
            begun.set()
            await may_end.wait()
            return await Service.in_a_task(self, command)

    door, begun, may_end = Door(Config({}), Slow()), asyncio.Event(), asyncio.Event()

    async def conversation() -> bytes:
        async with door.open() as connect:
            client = await connect()
            may_end.set()
            await client.ask(beat("ok"))
            may_end.clear()
            begun.clear()
            client.writer.write(beat("later", b"X-Request-Id: 1"))
            await begun.wait()
            client.writer.write(beat("ok-ab", b"X-Request-Id: 1"))
            await until(lambda: door.protocols[0]._cut.waiting > 0)
            assert len(door.service.at_once) == 1
            may_end.set()
            client.writer.write(LAST)
            return await client.rest()

    assert re.findall(rb"x-request-id: (1|\w+)", run(conversation()))[:2] == [b"1", b"1"]
    assert [command.member_id for command in door.service.at_once] == ["ok", "ok-ab", "ok-last"]


CHUNKED = beat("ok").replace(b"Content-Length: 36", b"Transfer-Encoding: chunked")
OTHERS = {
    "in a head": (beat("ok", group=b"outer").partition(b"\r\n")[0] + b"\r\nX: ", beat("ok")),
    "in a body": (heartbeat(b" " * len(beat("ok")))[: -len(beat("ok"))], beat("ok")),
    "in chunks": (
        CHUNKED.replace(BODY, b"%x\r\n" % len(beat("ok"))),
        beat("ok"),
        b"\r\n0\r\n\r\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("where", "status", "groups"),
    [("in a head", 200, ["g", "g", "outer", "g"]), ("in a body", 400, ["g"] * 3), ("in chunks", 400, ["g"] * 3)],
)
def test_what_looks_like_a_request_and_is_none(where: str, status: int, groups: list[str]) -> None:
    door = Door(Config({}))
    assert statuses(all_of(door, beat("ok"), beat("ok"), *OTHERS[where], LAST)) == [200, 200, status, 200]
    assert [command.group_id for command in (*door.service.at_once, *door.service.awaited)] == groups


def test_a_peer_that_does_not_read_is_not_answered() -> None:
    """What is unread stays bounded: the next request waits until the peer has read."""
    door, requests = Door(Config({})), 20_000

    async def conversation() -> tuple[int, int, bytes]:
        async with door.open() as connect:
            client = await connect()
            first = await client.ask(beat("ok"))
            stream = asyncio.create_task(_send(client, beat("ok") * requests + LAST))
            client.reader._transport.pause_reading()  # type: ignore[attr-defined]
            protocol = door.protocols[0]
            await until(lambda: protocol._writable.is_paused)
            for _ in range(100):
                await asyncio.sleep(0)
            unread, soon = protocol.unread(), len(door.service.at_once)
            client.reader._transport.resume_reading()  # type: ignore[attr-defined]
            rest = await client.rest()
            await stream
            return unread, soon, first + rest

    unread, soon, read = run(conversation())
    assert 0 < unread < 1_000_000
    assert soon < requests
    assert statuses(read) == [200] * (requests + 2)
    assert len(door.service.at_once) + len(door.service.awaited) == requests + 2


async def _send(client: Client, data: bytes) -> None:
    client.writer.write(data)
    await client.writer.drain()
