"""Connections on the short path: order, pieces, limits, turns, and ends. See `tests.support.doors`."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from kcoord.access.rights import Access
from kcoord.config import Config
from kcoord.database import request_age
from kcoord.http.peers import Phase, Reason
from kcoord.stack.protocol_httptools import MOST_AT_ONCE, HttpToolsPeerProtocol
from tests.support.doors import TOKEN, Client, Door, heartbeat, run, ways, without_ids

CLOSE = b"Connection: close"
BODY = b'{"member_id":"ok","generation_id":1}'


def beat(member: str, *headers: bytes, group: bytes = b"g") -> bytes:
    """A heartbeat; those of members `ok…` are short, those of `later…` are not, and others are errors."""
    return heartbeat(b'{"member_id":"%s","generation_id":1}' % member.encode(), *headers, group=group)


LAST = beat("ok-last", CLOSE)


def all_of(door: Door, *parts: bytes) -> bytes:
    """What comes back for parts, each sent when the server has read the one before, until it closes the connection."""

    async def conversation() -> bytes:
        async with door.open() as connect:
            client = await connect()
            await door.runtime.get(Access).authenticate(TOKEN)
            for part in parts:
                client.writer.write(part)
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            return without_ids(await client.rest())

    return run(conversation())


def statuses(read: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1.1 (\d{3})", read)]


def test_requests_cut_at_every_byte() -> None:
    whole = beat("ok1") + beat("later") + beat("ok2", b"X-Request-Id: mine")
    expected = all_of(Door(Config({}), is_short=False), whole + LAST)
    for at in range(len(whole)):
        door = Door(Config({}))
        assert all_of(door, whole[:at], whole[at:] + LAST) == expected, whole[:at]
        assert [command.member_id for command in door.service.at_once] == ["ok1", "ok2", "ok-last"]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(["ok", "later", "none", ""]), max_size=40), st.lists(st.integers(1, 400), max_size=60))
def test_pipelined_requests_are_answered_in_order(members: list[str], sizes: list[int]) -> None:
    """However they are cut, and whichever way each of them goes."""
    stream = b"".join(beat(name, b"X-Request-Id: %d" % number) for number, name in enumerate(members)) + LAST
    parts = []
    for size in sizes:
        parts.append(stream[:size])
        stream = stream[size:]
    found = [all_of(door, *parts, stream) for door in ways()]
    assert found[0] == found[1]
    assert re.findall(rb"x-request-id: (\d+)", found[0]) == [b"%d" % number for number in range(len(members))]


def test_one_connection_does_not_keep_the_loop() -> None:
    """After some answers to pipelined requests everybody else has a turn, and the answers go on by themselves."""
    door, answers, turns = Door(Config({})), 5 * MOST_AT_ONCE, [0]

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
    assert max(turns) == MOST_AT_ONCE


def test_a_peer_that_does_not_read_is_not_answered_at_once() -> None:
    """What is unread stays bounded: the application waits until the peer has read, as for every other request."""
    door, requests = Door(Config({})), 20_000

    async def conversation() -> tuple[int, int, bytes]:
        async with door.open() as connect:
            client = await connect()
            first = await client.ask(beat("ok"))
            stream = asyncio.create_task(_send(client, beat("ok") * requests + LAST))
            client.reader._transport.pause_reading()  # type: ignore[attr-defined]
            protocol = door.protocols[0]
            await until(lambda: protocol.flow.write_paused)
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


@pytest.mark.parametrize("value", [b"close", b"Close", b"x, close"])
def test_a_client_that_wants_to_close_gets_no_second_answer(value: bytes) -> None:
    for door in ways():
        read = all_of(door, beat("ok"), beat("ok", b"Connection: " + value) + beat("ok"))
        assert statuses(read) == [200, 200]
        assert re.findall(rb"connection: (\w+)\r\n\r\n", read) == [b"close"]


def test_closing_again_and_again_with_the_same_headers() -> None:
    """The second request is known by its headers, and closes its connection too."""
    door = Door(Config({}))

    async def conversation() -> list[bytes]:
        async with door.open() as connect:
            found = []
            for _ in range(3):
                client = await connect()
                found.append(without_ids(await client.ask(LAST)))
                assert await client.rest() == b""
            return found

    first, second, third = run(conversation())
    assert first == second == third
    assert len(door.service.at_once) == 2


def test_http_1_0_goes_the_usual_way() -> None:
    for door in ways():
        read = all_of(door, beat("ok"), beat("ok").replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert statuses(read) == [200, 200]
        assert b"connection: close" in read
        assert len(door.service.at_once) == (1 if door.is_short else 0)


def test_a_broken_request_after_short_ones_ends_the_connection() -> None:
    for door in ways():
        assert statuses(all_of(door, beat("ok"), beat("ok") + b"GARBAGE\r\n\r\n" + beat("ok"))) == [200, 200, 400]


def with_connection(
    work: Callable[[Door, HttpToolsPeerProtocol, Client], Awaitable[None]], **settings: Any
) -> tuple[Door, bytes]:
    """What the server says on a connection that has had an answer, while and after `work` is done with it."""
    door = Door(Config(settings))

    async def conversation() -> bytes:
        async with door.open() as connect:
            client = await connect()
            await client.ask(beat("ok"))
            await client.ask(beat("ok"))
            await work(door, door.protocols[0], client)
            return await client.rest()

    return door, run(conversation())


async def until(condition: Callable[[], bool]) -> None:
    """Turns of the loop until something is so."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0)


def gone() -> float:
    """Requests whose clients went away or were given up."""
    labels = {"route": "/v1/groups/{group_id}/heartbeat", "method": "POST", "status": "499"}
    return REGISTRY.get_sample_value("kcoord_http_requests_total", labels) or 0


HALF = beat("ok", CLOSE)[:-5]


def test_what_is_expected_of_the_peer() -> None:
    """The phases, which its limits of time follow, are those of the usual way."""
    for is_short in (True, False):
        door, phases = Door(Config({}), is_short=is_short), []

        async def conversation(door: Door, phases: list[Phase]) -> None:
            async with door.open() as connect:
                client = await connect()
                await until(lambda: bool(door.protocols))
                (protocol,) = door.protocols
                phases.append(protocol.peer.phase)
                for part in (beat("ok"), beat("ok"), HALF[:20], HALF[20:], beat("ok", CLOSE)[-5:]):
                    client.writer.write(part)
                    if part.endswith(b"}"):
                        await client.answer()
                    else:
                        before = protocol.peer.phase
                        await until(lambda: protocol.peer.phase is not before)  # noqa: B023
                    phases.append(protocol.peer.phase)

        run(conversation(door, phases))
        assert phases == [Phase.SILENT, Phase.WORK, Phase.WORK, Phase.HEAD, Phase.BODY, Phase.WORK]


def test_a_body_that_does_not_come_is_given_up() -> None:
    before = gone()

    async def work(door: Door, protocol: HttpToolsPeerProtocol, client: Client) -> None:
        client.writer.write(HALF)
        await until(lambda: protocol.peer.phase is Phase.BODY)
        protocol.give_up(Reason.BODY)
        await until(lambda: gone() == before + 1)

    assert statuses(with_connection(work)[1]) == [408]


def test_a_client_that_goes_away_before_its_body_has_come_is_counted() -> None:
    before = gone()

    async def work(door: Door, protocol: HttpToolsPeerProtocol, client: Client) -> None:
        client.writer.write(HALF)
        await until(lambda: protocol.peer.phase is Phase.BODY)
        client.writer.transport.abort()
        await until(lambda: gone() == before + 1)

    with_connection(work)


def test_a_client_that_goes_away_after_its_request() -> None:
    async def work(door: Door, protocol: HttpToolsPeerProtocol, client: Client) -> None:
        client.writer.write(beat("ok"))
        await until(lambda: len(door.service.at_once) == 2)
        client.writer.transport.abort()
        await until(lambda: not door.peers._open)

    with_connection(work)


def test_a_server_that_stops_answers_the_request_whose_body_is_coming() -> None:
    async def work(door: Door, protocol: HttpToolsPeerProtocol, client: Client) -> None:
        client.writer.write(beat("ok")[:-5])
        await until(lambda: protocol.peer.phase is Phase.BODY)
        protocol.shutdown()
        client.writer.write(beat("ok")[-5:])

    door, read = with_connection(work)
    assert statuses(read) == [200]
    assert b"connection: close" in read
    assert len(door.service.awaited) == 2


def test_a_server_that_stops_closes_idle_connections() -> None:
    async def work(door: Door, protocol: HttpToolsPeerProtocol, client: Client) -> None:
        protocol.shutdown()

    assert with_connection(work)[1] == b""


def test_the_body_is_waited_for_only_if_the_token_is_known() -> None:
    async def work(door: Door, protocol: HttpToolsPeerProtocol, client: Client) -> None:
        door.tokens.clear()
        client.writer.write(HALF.replace(TOKEN.encode(), b"kc_other"))
        assert (await client.answer()).startswith(b"HTTP/1.1 401 ")
        client.writer.write(HALF[-5:])

    assert with_connection(work)[1] == b""


def test_who_a_trusted_proxy_speaks_for() -> None:
    """The client of a request is whom the proxy names, on this request and not on the next one."""
    seen = []

    async def work(door: Door, protocol: HttpToolsPeerProtocol, client: Client) -> None:
        call = {"call": b"consumer-heartbeat"}
        body = b'{"member_id":"ok","member_epoch":1}'
        for headers in ([b"X-Forwarded-For: 10.1.1.1"], [b"X-Forwarded-For: 10.1.1.1"], [], [CLOSE]):
            await client.ask(heartbeat(body, *headers, **call))  # type: ignore[arg-type]
        seen.extend(command.client_host for command in door.service.at_once[1:])

    with_connection(work)
    assert seen == ["10.1.1.1", "10.1.1.1", "127.0.0.1", "127.0.0.1"]


@pytest.mark.parametrize("member", ["ok", "later"])
def test_a_request_is_as_old_as_its_head(member: str) -> None:
    """Whichever way it goes: a client that waited for its body to be sent has waited for an answer, too."""
    seen = []

    async def work(door: Door, protocol: HttpToolsPeerProtocol, client: Client) -> None:
        door.service.seen = lambda: seen.append(request_age.current())
        request = beat(member, CLOSE)
        client.writer.write(request[:-5])
        await until(lambda: protocol.peer.phase is Phase.BODY)
        seen.append(time.monotonic())
        client.writer.write(request[-5:])

    door, _ = with_connection(work)
    head_at, receipt = seen
    assert receipt.at <= head_at
    assert len(door.service.at_once) == (2 if member == "ok" else 1)
