"""Quotas of what members send all the time; and of connections."""

from __future__ import annotations

import asyncio

import pytest

from kcoord.access.quotas.budgets import Budget
from kcoord.access.quotas.quotas import Quotas
from kcoord.access.rights import Access
from kcoord.config import Config
from kcoord.door.http.peers import PeerLimits, Peers
from tests.support.doors import TOKEN, Client, Door, beat, post, run, statuses, until
from tests.support.quotas import limit

SLOW = 0.000_1
"""Per second: nothing comes back while a test runs. One is admitted at once."""


async def begun(door: Door, client: Client) -> None:
    """The token is known from now on."""
    await door.runtime.get(Access).authenticate(TOKEN)


@pytest.mark.parametrize("limits", [{"heartbeats": SLOW}, {"bytes": SLOW}, {"commits": SLOW}])
def test_heartbeats_are_counted_and_refused_alike(limits: dict[str, float]) -> None:
    door = Door(Config({}))

    async def conversation() -> tuple[list[int], float]:
        async with door.open() as connect:
            client = await connect()
            await begun(door, client)
            quotas = limit(door.runtime, **limits)
            answers = [await client.ask(beat("ok")) for _ in range(5)]
            assert await client.ask(beat("unknown"))
            (name,) = limits
            principal = door.runtime.get(Access).known(next(iter(door.tokens)))
            assert principal is not None
            return statuses(b"".join(answers)), quotas.meter(principal)[Budget[name.upper()]].bucket.used(quotas._now())

    answered, used = run(conversation())
    assert answered == ([200] + [429] * 4 if "heartbeats" in limits else [200] * 5)
    if "bytes" in limits:
        body = len(b'{"member_id":"ok","generation_id":1}')
        assert used > 5 * body, "answers count, too"
    elif "commits" in limits:
        assert used == 0
    else:
        assert 1 < used < 1.01, "what is owed is bounded"


def test_a_request_with_many_heartbeats_weighs_as_many() -> None:
    door = Door(Config({}))
    one = b'{"group_id":"g","member_id":"ok","generation_id":1}'
    many = post(b"/v1/heartbeats", b'{"heartbeats":[' + b",".join([one] * 7) + b"]}")

    async def conversation() -> list[int]:
        async with door.open() as connect:
            client = await connect()
            await begun(door, client)
            limit(door.runtime, heartbeats=1)
            return statuses(b"".join([await client.ask(request) for request in (many, beat("ok"), many, beat("ok"))]))

    assert run(conversation()) == [200, 200, 429, 429]


def test_a_token_has_so_many_connections_and_may_open_another_when_one_ends() -> None:
    door = Door(Config({}))

    async def conversation() -> None:
        async with door.open() as connect:
            first, second = await connect(), await connect()
            await begun(door, first)
            limit(door.runtime, connections=1)
            assert statuses(await first.ask(beat("ok")) + await first.ask(beat("ok"))) == [200, 200]
            refused = await second.ask(beat("ok"))
            assert statuses(refused) == [429]
            assert b"connection: close" in refused
            assert b'"budget":"connections"' in refused
            assert await second.rest() == b""
            assert statuses(await first.ask(beat("ok"))) == [200]
            first.writer.close()
            await until(lambda: not door.peers.open)
            assert statuses(await (await connect()).ask(beat("ok"))) == [200]

    run(conversation())


def test_an_address_has_so_many_connections() -> None:
    config = Config({"quota.connections.per.address": 2})
    door = Door(config)
    assert isinstance(door.peers, Peers)
    assert PeerLimits.of(config).from_one == 2

    async def conversation() -> None:
        async with door.open() as connect:
            clients = [await connect() for _ in range(3)]
            await begun(door, clients[0])
            assert statuses(await clients[0].ask(beat("ok")) + await clients[1].ask(beat("ok"))) == [200, 200]
            assert statuses(await clients[2].rest()) == [503]
            clients[0].writer.close()
            await until(lambda: len(door.peers.open) == 1)
            assert statuses(await (await connect()).ask(beat("ok"))) == [200]
            assert sum(door.peers._addresses._open.values()) == 2

    run(conversation())


def test_without_limits_nothing_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: object) -> object:
        raise AssertionError("a heartbeat asked for a meter")

    door = Door(Config({}))

    async def conversation() -> list[int]:
        async with door.open() as connect:
            client = await connect()
            await begun(door, client)
            monkeypatch.setattr(Quotas, "meter", fails)
            await asyncio.sleep(0)
            return statuses(await client.ask(beat("ok")))

    assert run(conversation()) == [200]
