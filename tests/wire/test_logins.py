"""Connections end when their token does, also those that only wait."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from groups.engine.service import GroupService
from kcoord.access.rights import Access, digest
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from tests.support.http_members import make_token
from tests.support.members import eventually
from tests.wire.client import WireClient
from tests.wire.conftest import Connect
from tests.wire.support import join_fields, until_joining

REVOKE = """
with rules as (
    delete from kcoord_accessrule r using kcoord_apitoken t where r.token_id = t.id and t.digest = %(digest)s)
delete from kcoord_apitoken where digest = %(digest)s
"""
GIVE_OWNER = """
with owner as (
    insert into auth_user (username, password, is_superuser, first_name, last_name, email, is_staff, is_active,
                           date_joined)
    values (%(digest)s, '', false, '', '', '', false, true, now()) returning id)
update kcoord_apitoken set owner_id = (select id from owner) where digest = %(digest)s
"""
DEACTIVATE = """
update auth_user set is_active = false where id = (select owner_id from kcoord_apitoken where digest = %(digest)s)
"""
EXPIRE = "update kcoord_apitoken set expires_at = 1 where digest = %(digest)s"


@pytest.fixture
def brief(database: str) -> str:
    """The secret of a token that another process created, with an account as its owner."""
    secret = make_token(database)
    change(database, GIVE_OWNER, secret)
    return secret


def change(database: str, statement: str, secret: str, **parameters: object) -> None:
    """As another process does it."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(statement.encode(), {"digest": digest(secret), **parameters})


async def serves(client: WireClient) -> bool:
    answer = await client.ask("find_coordinator", 3, key="g", key_type=0)
    return answer.error_code == 0


@pytest.mark.parametrize("statement", [REVOKE, EXPIRE, DEACTIVATE], ids=["revoked", "expired", "owner deactivated"])
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
    soon = "update kcoord_apitoken set expires_at = %(until)s where digest = %(digest)s"
    change(database, soon, brief, until=clock.now_ms() + 500)
    client = await connect(brief)
    assert await serves(client)
    clock.advance(500)
    assert await client.is_closed()


async def test_after_a_rotation_the_secret_before_serves_until_its_end(
    connect: Connect, brief: str, database: str, clock: VirtualClock, runtime: Runtime
) -> None:
    client = await connect(brief)
    rotate = """
    update kcoord_apitoken set previous_digest = digest, digest = %(fresh)s, previous_until = %(until)s
     where digest = %(digest)s
    """
    change(database, rotate, brief, fresh=digest("kc_new"), until=clock.now_ms() + 500)

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
