"""Connections with commits, which are answered later: order, turns, ends. See `offset_doors`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from kcoord.door.http.connection import HttpProtocol
from kcoord.door.http.door import Asked
from kcoord.door.http.peers import Phase
from kcoord.requests.turnstile import Kind, Turnstile
from tests.kcoord.stack.test_timers import wired
from tests.support.doors import CLOSE, LAST, Client, Door, all_of, beat, one_by_one, run, statuses, until, without_ids
from tests.support.offset_doors import (
    LAST_COMMIT,
    TASKS,
    Offsets,
    commit,
    fetch,
    give_offsets,
    offset_door,
    request_ids,
)
from tests.support.selection import sample

COMMIT = commit("ok")


EVERY = 8


@pytest.mark.parametrize("start", sample(range(EVERY), "the bytes between those of the default"))
def test_requests_cut_at_every_byte(start: int) -> None:
    requests = commit("ok1"), fetch(), commit("slow", b"X-Request-Id: mine"), beat("ok")
    expected = one_by_one(offset_door()[0], *requests, LAST_COMMIT)
    whole = b"".join(requests)
    for at in range(start, len(whole), EVERY):
        door, offsets = offset_door()
        assert all_of(door, whole[:at], whole[at:] + LAST_COMMIT) == expected, whole[:at]
        assert [plain.member_id for plain in offsets.begun] == ["ok1", "slow", "ok-last"]


KINDS = {
    "commit": lambda name: commit("ok", name),
    "slow": lambda name: commit("slow", name),
    "error": lambda name: commit("who", name),
    "down": lambda name: commit("down", name),
    "fetch": lambda name: fetch(name),
    "heartbeat": lambda name: beat("ok", name),
    "late heartbeat": lambda name: beat("later", name),
}


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(sorted(KINDS)), max_size=40), st.lists(st.integers(1, 600), max_size=40))
def test_pipelined_requests_are_answered_in_order(kinds: list[str], sizes: list[int]) -> None:
    """However they are cut, and whichever way each of them goes."""
    requests = [*(KINDS[kind](b"X-Request-Id: %d" % number) for number, kind in enumerate(kinds)), LAST_COMMIT]
    stream = b"".join(requests)
    parts = []
    for size in sizes:
        parts.append(stream[:size])
        stream = stream[size:]
    found = all_of(offset_door()[0], *parts, stream)
    assert found == one_by_one(offset_door()[0], *requests)
    assert request_ids(found)[:-1] == [b"%d" % number for number in range(len(kinds))]


Work = Callable[[Door, Offsets, HttpProtocol, Client], Awaitable[None]]


def with_commit(work: Work) -> tuple[Offsets, bytes]:
    """What the server says on a connection with a commit that does not land until `work` lets it, and afterwards."""
    door, offsets = offset_door()

    async def conversation() -> bytes:
        async with door.open() as connect:
            client = await connect()
            await client.ask(COMMIT)
            await client.ask(COMMIT)
            offsets.may_land.clear()
            client.writer.write(commit("ok-held", b"X-Request-Id: held"))
            protocol = door.protocols[0]
            await until(lambda: len(offsets.begun) == 3)
            assert isinstance(protocol.request, Asked)
            assert protocol.peer.phase is Phase.WORK
            await work(door, offsets, protocol, client)
            return await client.rest()

    return offsets, run(conversation())


def test_the_next_request_waits_for_the_answer() -> None:
    async def work(door: Door, offsets: Offsets, protocol: HttpProtocol, client: Client) -> None:
        client.writer.write(commit("ok-next", b"X-Request-Id: held"))  # alone, and with the same headers
        await until(lambda: protocol._cut.waiting > 0)
        client.writer.write(beat("ok") + LAST)
        for _ in range(10):
            await asyncio.sleep(0)
        assert [plain.member_id for plain in offsets.begun] == ["ok", "ok", "ok-held"]
        assert door.service.at_once == []
        offsets.may_land.set()

    offsets, read = with_commit(work)
    assert statuses(read) == [200] * 4
    assert request_ids(read)[:2] == [b"held", b"held"]
    assert [plain.member_id for plain in offsets.begun] == ["ok", "ok", "ok-held", "ok-next"]


def test_a_peer_that_sends_on_is_not_read_without_end() -> None:
    async def work(door: Door, offsets: Offsets, protocol: HttpProtocol, client: Client) -> None:
        client.writer.write(COMMIT * 2_000 + LAST_COMMIT)
        await until(lambda: not protocol._reads)
        assert protocol._cut.waiting < len(COMMIT) * 2_000
        offsets.may_land.set()

    offsets, read = with_commit(work)
    assert statuses(read) == [200] * 2_002
    assert len(offsets.begun) == 2_004


def test_a_client_that_goes_away_loses_nothing() -> None:
    """Its commit is carried out, once, in the lane or off it, and counted."""
    labels = {"route": "/v1/groups/{group_id}/offsets/commit", "method": "POST", "status": "200"}

    def counted() -> float:
        return REGISTRY.get_sample_value("kcoord_http_requests_total", labels) or 0

    for member in ("ok-gone", "slow-gone"):
        door, offsets = offset_door()
        ended: list[int] = []

        async def conversation(
            door: Door = door, offsets: Offsets = offsets, member: str = member, ended: list[int] = ended
        ) -> None:
            async with door.open() as connect:
                client = await connect()
                await client.ask(COMMIT)
                offsets.may_land.clear()
                client.writer.write(commit(member))
                await until(lambda: len(offsets.begun) == 2)
                before = counted()
                offsets.seen = lambda: ended.append(1)
                client.writer.transport.abort()
                await until(lambda: not door.peers.open)
                offsets.may_land.set()
                await until(lambda: counted() == before + 1)

        run(conversation())
        assert [plain.member_id for plain in offsets.begun] == ["ok", member]
        assert len(ended) == (1 if member.startswith("slow") else 0)


@pytest.mark.parametrize("member", ["ok-held", "slow-held"])
def test_a_server_that_stops_answers_what_was_begun(member: str) -> None:
    door, offsets = offset_door()

    async def conversation() -> bytes:
        async with door.open() as connect:
            client = await connect()
            await client.ask(COMMIT)
            offsets.may_land.clear()
            client.writer.write(commit(member) + COMMIT)
            await until(lambda: len(offsets.begun) == 2)
            door.protocols[0].shutdown()
            assert not door.protocols[0].transport.is_closing()
            offsets.may_land.set()
            return await client.rest()

    read = run(conversation())
    assert statuses(read) == [200]
    assert b"\r\nconnection: close\r\n\r\n" in read
    assert len(offsets.begun) == 2, "nothing is begun after that"


def test_a_server_that_cannot_wait_any_longer_says_that_the_outcome_is_not_known() -> None:
    """Uvicorn cancels what runs after its grace."""
    door, _ = offset_door()

    async def conversation() -> bytes:
        async with door.open() as connect:
            client = await connect()
            await client.ask(COMMIT)
            tasks = door.protocols[0]._server.tasks
            tasks.clear()
            client.writer.write(commit("slow", CLOSE))
            await until(lambda: bool(tasks))
            for task in tasks:
                task.cancel()
            return without_ids(await client.rest())

    read = run(conversation())
    assert statuses(read) == [503]
    assert b"outcome is not known" in read


@pytest.mark.parametrize(("member", "status"), [("ok", 200), ("slow", 200), ("who", 404)])
def test_a_client_that_wants_to_close(member: str, status: int) -> None:
    found = all_of(offset_door()[0], COMMIT, commit(member, CLOSE) + COMMIT)
    assert statuses(found) == [200, status]
    assert found.count(b"connection: close") == 1


def test_a_broken_request_after_a_commit_ends_the_connection() -> None:
    found = all_of(offset_door()[0], COMMIT, COMMIT + b"GARBAGE\r\n\r\n" + COMMIT)
    assert statuses(found) == [200, 200, 400]


def test_those_that_arrive_together_begin_a_few_each_round() -> None:
    """Thousands of connections whose commits are read at once leave the loop to others in between."""
    door, offsets = offset_door()
    connections, turns = 4 * Kind.HOT.at_once, [0]

    async def conversation() -> list[bytes]:
        loop = asyncio.get_running_loop()

        def turn() -> None:
            turns.append(0)
            loop.call_soon(turn)

        def begun() -> None:
            turns[-1] += 1

        async with door.open() as connect:
            clients = [await connect() for _ in range(connections)]
            for client in clients:
                await client.ask(COMMIT)
                await client.ask(COMMIT)
            offsets.begun.clear()
            offsets.seen = begun
            loop.call_soon(turn)
            for protocol in door.protocols:
                protocol.data_received(COMMIT)  # as if all were read in one round
            for client in clients:
                client.writer.write(LAST_COMMIT)
            return [await client.rest() for client in clients]

    for read in run(conversation()):
        assert statuses(read) == [200, 200]
    assert len(offsets.begun) == 2 * connections
    assert max(turns) <= Kind.HOT.at_once
    assert sum(turns) == 2 * connections


@pytest.mark.parametrize("kind", [Kind.READ, Kind.HOT])
def test_a_request_that_waits_for_its_turn_when_its_client_goes_away_or_the_server_stops(kind: Kind) -> None:
    for stops in (False, True):
        door, offsets = offset_door()

        async def conversation(door: Door = door, stops: bool = stops) -> bytes:
            async with door.open() as connect:
                client = await connect()
                await client.ask(COMMIT)
                protocol = door.protocols[0]
                turnstile = door.runtime.get(Turnstile)
                turnstile._goes_round = True  # as if it were later in the same round
                turnstile._begun[kind] = kind.at_once
                protocol.data_received(COMMIT)
                assert protocol.peer.phase is Phase.WORK
                if stops:
                    protocol.shutdown()
                    turnstile._next()
                    return await client.rest()
                client.writer.transport.abort()
                protocol.transport.abort()
                await until(lambda: not door.peers.open)
                turnstile._next()
                assert not turnstile.waiting(kind)
                return b""

        read = run(conversation())
        assert statuses(read) == ([200] if stops else [])
        assert len(offsets.begun) == (2 if stops else 1), "nobody waits for it"


def test_a_commit_under_way_is_not_ended_by_the_timer_of_idle_connections() -> None:
    with wired() as (door, protocol, wire, clock):
        offsets = give_offsets(door)
        protocol.data_received(beat("ok"))
        seconds = protocol.timeout_keep_alive
        loop = asyncio.new_event_loop()

        async def conversation() -> None:
            offsets.may_land.clear()
            protocol.data_received(COMMIT)
            protocol.data_received(COMMIT)
            offsets.may_land.set()
            await until(lambda: wire.written.count(b"HTTP/1.1 200 OK") == 3)
            offsets.may_land.clear()
            protocol.data_received(COMMIT)  # like the one before: the timer stays
            assert clock.ring() == seconds
            assert not wire.closed, "its answer is still to come"
            clock.now += seconds - 1
            offsets.may_land.set()
            await until(lambda: wire.written.count(b"HTTP/1.1 200 OK") == 4)
            assert clock.ring() == 2 * seconds
            assert not wire.closed, "it was answered just before"
            assert clock.ring() == 3 * seconds - 1
            assert wire.closed
            await asyncio.gather(*TASKS)

        loop.run_until_complete(conversation())
        loop.close()
