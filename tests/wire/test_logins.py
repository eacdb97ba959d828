"""Connections end when their token does, also those that only wait."""

from __future__ import annotations

import asyncio

import pytest

from groups.engine.service import GroupService
from kcoord.access.rights import Access, digest
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from tests.support.members import eventually
from tests.support.token_ends import ENDS, EXPIRE_AT, REVOKE, ROTATE, change, owned_token
from tests.wire.client import WireClient
from tests.wire.conftest import Connect
from tests.wire.support import join_fields, until_joining


@pytest.fixture
def brief(database: str) -> str:
    """The secret of a token that another process created, with an account as its owner."""
    return owned_token(database)


async def serves(client: WireClient) -> bool:
    answer = await client.ask("find_coordinator", 3, key="g", key_type=0)
    return answer.error_code == 0


@pytest.mark.parametrize("statement", ENDS.values(), ids=ENDS.keys())
async def test_an_idle_connection_ends_with_its_token_and_others_stay(
    connect: Connect, brief: str, database: str, statement: str
) -> None:
    first, second, other = await connect(brief), await connect(brief), await connect()
    change(database, statement, brief)
    assert await first.is_closed()
    assert await second.is_closed()
    assert await serves(other)


async def test_a_parked_join_ends_with_its_token(
    connect: Connect, brief: str, database: str, service: GroupService
) -> None:
    client = await connect(brief)
    pending = await client.ask("join_group", 9, **join_fields())
    client.send("join_group", 9, **join_fields(pending.member_id))
    await until_joining(service, "g")
    change(database, REVOKE, brief)
    assert await client.is_closed(), "it was answered"


async def test_an_idle_connection_ends_when_its_token_expires(
    connect: Connect, brief: str, database: str, clock: VirtualClock
) -> None:
    change(database, EXPIRE_AT, brief, until=clock.now_ms() + 500)
    client = await connect(brief)
    assert await serves(client)
    clock.advance(500)
    assert await client.is_closed()


async def test_after_a_rotation_the_secret_before_serves_until_its_end(
    connect: Connect, brief: str, database: str, clock: VirtualClock, runtime: Runtime
) -> None:
    client = await connect(brief)
    change(database, ROTATE, brief, fresh=digest("kc_new"), until=clock.now_ms() + 500)

    async def accepted() -> bool:
        try:
            await runtime.get(Access).authenticate("kc_new")
        except ProtocolError:
            return False
        return True

    await eventually(accepted, "the new secret is accepted")
    assert await serves(client)
    clock.advance(500)
    assert await client.is_closed()
    assert await serves(await connect("kc_new"))


async def test_while_tokens_cannot_be_looked_up_connections_stay(
    connect: Connect, brief: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, asked = await connect(brief), asyncio.Event()
    look_up = Access._look_up

    async def away(self: Access, key: str) -> object:
        asked.set()
        raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "away")

    monkeypatch.setattr(Access, "_look_up", away)
    change(database, "notify kcoord_tokens", brief)
    await asyncio.wait_for(asked.wait(), 30)
    monkeypatch.setattr(Access, "_look_up", look_up)
    assert await serves(client)
