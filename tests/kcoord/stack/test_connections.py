"""Connections with heartbeats: limits, phases and ends. For their order see `test_order`."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from prometheus_client import REGISTRY

from kcoord.config import Config
from kcoord.door.http.connection import HttpProtocol
from kcoord.door.http.peers import Phase, Reason
from kcoord.requests import current
from tests.support.doors import (
    CLOSE,
    LAST,
    TOKEN,
    Client,
    Door,
    all_of,
    beat,
    heartbeat,
    run,
    statuses,
    until,
    without_ids,
)  # fmt: skip


def test_nothing_is_answered_while_writing_is_paused() -> None:
    async def work(door: Door, protocol: HttpProtocol, client: Client) -> None:
        protocol.pause_writing()
        client.writer.write(beat("ok") + LAST)
        await until(lambda: protocol._cut.waiting > 0)
        assert protocol.peer.phase is Phase.WORK
        assert len(door.service.at_once) == 2
        protocol.resume_writing()

    door, read = with_connection(work)
    assert statuses(read) == [200, 200]
    assert len(door.service.at_once) == 4


@pytest.mark.parametrize("value", [b"close", b"Close", b"x, close"])
def test_a_client_that_wants_to_close_gets_no_second_answer(value: bytes) -> None:
    read = all_of(Door(Config({})), beat("ok"), beat("ok", b"Connection: " + value) + beat("ok"))
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
    assert len(door.service.at_once) == 3


def test_http_1_0() -> None:
    door = Door(Config({}))
    read = all_of(door, beat("ok"), beat("ok").replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert statuses(read) == [200, 200]
    assert b"connection: close" in read
    assert len(door.service.at_once) == 2


def test_a_broken_request_ends_the_connection() -> None:
    read = all_of(Door(Config({})), beat("ok"), beat("ok") + b"GARBAGE\r\n\r\n" + beat("ok"))
    assert statuses(read) == [200, 200, 400]


def with_connection(
    work: Callable[[Door, HttpProtocol, Client], Awaitable[None]], **settings: Any
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


def gone() -> float:
    """Requests whose clients went away or were given up."""
    labels = {"route": "/v1/groups/{group_id}/heartbeat", "method": "POST", "status": "499"}
    return REGISTRY.get_sample_value("kcoord_http_requests_total", labels) or 0


HALF = beat("ok", CLOSE)[:-5]


def test_what_is_expected_of_the_peer() -> None:
    """Its limits of time follow the phases."""
    door, phases = Door(Config({})), list[Phase]()

    async def conversation() -> None:
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

    run(conversation())
    assert phases == [Phase.SILENT, Phase.WORK, Phase.WORK, Phase.HEAD, Phase.BODY, Phase.WORK]


def test_a_peer_that_sent_its_head_in_pieces_owes_nothing_afterwards() -> None:
    async def work(door: Door, protocol: HttpProtocol, client: Client) -> None:
        client.writer.write(beat("ok")[:20])
        await until(lambda: protocol.peer.phase is Phase.HEAD)
        await client.ask(beat("ok")[20:])
        assert protocol.peer.phase is Phase.WORK
        client.writer.write(LAST)

    with_connection(work)


def test_a_body_that_does_not_come_is_given_up() -> None:
    before = gone()

    async def work(door: Door, protocol: HttpProtocol, client: Client) -> None:
        client.writer.write(HALF)
        await until(lambda: protocol.peer.phase is Phase.BODY)
        protocol.give_up(Reason.BODY)
        await until(lambda: gone() == before + 1)

    assert statuses(with_connection(work)[1]) == [408]


def test_a_client_that_goes_away_before_its_body_has_come_is_counted() -> None:
    before = gone()

    async def work(door: Door, protocol: HttpProtocol, client: Client) -> None:
        client.writer.write(HALF)
        await until(lambda: protocol.peer.phase is Phase.BODY)
        client.writer.transport.abort()
        await until(lambda: gone() == before + 1)

    with_connection(work)


def test_a_client_that_goes_away_after_its_request() -> None:
    async def work(door: Door, protocol: HttpProtocol, client: Client) -> None:
        client.writer.write(beat("ok"))
        await until(lambda: len(door.service.at_once) == 3)
        client.writer.transport.abort()
        await until(lambda: not door.peers.open)

    with_connection(work)


def test_a_server_that_stops_answers_the_request_whose_body_is_coming() -> None:
    async def work(door: Door, protocol: HttpProtocol, client: Client) -> None:
        client.writer.write(beat("ok")[:-5])
        await until(lambda: protocol.peer.phase is Phase.BODY)
        protocol.shutdown()
        client.writer.write(beat("ok")[-5:])

    door, read = with_connection(work)
    assert statuses(read) == [200]
    assert b"connection: close" in read
    assert len(door.service.at_once) == 3


def test_a_server_that_stops_closes_idle_connections() -> None:
    async def work(door: Door, protocol: HttpProtocol, client: Client) -> None:
        protocol.shutdown()

    assert with_connection(work)[1] == b""


def test_the_body_is_waited_for_only_if_the_token_is_known() -> None:
    async def work(door: Door, protocol: HttpProtocol, client: Client) -> None:
        door.tokens.clear()
        client.writer.write(HALF.replace(TOKEN.encode(), b"kc_other"))
        assert (await client.answer()).startswith(b"HTTP/1.1 401 ")
        client.writer.write(HALF[-5:])

    assert with_connection(work)[1] == b""


def test_who_a_trusted_proxy_speaks_for() -> None:
    """The client of a request is whom the proxy names, on this request and not on the next one."""
    seen = []

    async def work(door: Door, protocol: HttpProtocol, client: Client) -> None:
        call = {"call": b"consumer-heartbeat"}
        body = b'{"member_id":"ok","member_epoch":1}'
        for headers in ([b"X-Forwarded-For: 10.1.1.1"], [b"X-Forwarded-For: 10.1.1.1"], [], [CLOSE]):
            await client.ask(heartbeat(body, *headers, **call))  # type: ignore[arg-type]
        seen.extend(command.client_host for command in door.service.at_once[2:])

    with_connection(work)
    assert seen == ["10.1.1.1", "10.1.1.1", "127.0.0.1", "127.0.0.1"]


@pytest.mark.parametrize("member", ["ok", "later"])
def test_a_request_is_as_old_as_its_head(member: str) -> None:
    """Whichever way it goes: a client that waited for its body to be sent has waited for an answer, too."""
    seen = []

    async def work(door: Door, protocol: HttpProtocol, client: Client) -> None:
        door.service.seen = lambda: seen.append(current.receipt())
        request = beat(member, CLOSE)
        client.writer.write(request[:-5])
        await until(lambda: protocol.peer.phase is Phase.BODY)
        seen.append(time.monotonic())
        client.writer.write(request[-5:])

    door, _ = with_connection(work)
    head_at, receipt = seen
    assert receipt.at <= head_at
    assert len(door.service.at_once) == (3 if member == "ok" else 2)
