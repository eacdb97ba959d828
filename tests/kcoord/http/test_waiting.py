"""Requests that wait end when their token does: http-api.md 1, "Waiting"."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from groups.engine.service import GroupService
from kcoord.access.rights import Access
from kcoord.database.clock import VirtualClock
from kcoord.door.http.door import Admission
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from tests.support.api import SESSION_TIMEOUT_MS, Members, assert_problem, client_of, sync_body
from tests.support.api_consumers import BEAT, joining
from tests.support.members import eventually
from tests.support.token_ends import ENDS, EXPIRE_AT, REVOKE, change, owned_token
from tests.support.told import told

PATIENCE_SECONDS = 30


@pytest.fixture
async def brief(database: str, runtime: Runtime) -> str:
    """The secret of a token with an owner."""
    secret = owned_token(database)
    await told(runtime)
    return secret


@pytest.fixture
async def mine(brief: str, service: GroupService, clock: VirtualClock) -> AsyncIterator[Members]:
    """Members that use that token."""
    async with client_of(brief) as api:
        yield Members(api, service, clock)


async def refused(waiting: asyncio.Task[httpx.Response]) -> dict[str, Any]:
    """The problem that a request ends with."""
    return assert_problem(await asyncio.wait_for(waiting, PATIENCE_SECONDS), Error.SASL_AUTHENTICATION_FAILED)


async def test_a_waiting_join_ends_with_its_token_as_if_its_client_had_gone(
    members: Members, mine: Members, brief: str, database: str, service: GroupService, clock: VirtualClock
) -> None:
    """Its session counts from then. Requests under other tokens wait on."""
    leader = await mine.stable()
    newcomer = await members.parked_join()  # the group prepares: the leader's join will wait for nobody but itself
    other = await members.pending_id()  # … and for this one, who never comes
    waiting = await mine.parked_join(member_id=leader["member_id"])
    clock.advance(1_000)
    change(database, REVOKE, brief)
    assert "create a token" in (await refused(waiting))["detail"]

    async def session_counts() -> bool:
        group = (await service.describe("g")).group
        assert group is not None
        member = group.members[leader["member_id"]]
        return bool(member.session_deadline == clock.now_ms() + SESSION_TIMEOUT_MS)

    await eventually(session_counts, "the session counts from the end of the request")
    assert not newcomer.done()
    response = await members.api.post("/v1/groups/g/leave", json={"members": [{"member_id": other}]})
    assert response.json()["members"][0]["error_code"] == 0
    assert (await asyncio.wait_for(newcomer, PATIENCE_SECONDS)).status_code == 200


@pytest.mark.parametrize("statement", ENDS.values(), ids=ENDS.keys())
async def test_a_waiting_sync_ends_however_its_token_ends(
    members: Members, mine: Members, brief: str, database: str, statement: str
) -> None:
    _leader, follower = await members.joined(2)
    waiting = await mine.parked_sync(follower)
    change(database, statement, brief)
    await refused(waiting)


async def test_a_waiting_consumer_heartbeat_ends_with_its_token(
    mine: Members, brief: str, database: str, topic: str, service: GroupService
) -> None:
    joined = (await mine.api.post(BEAT, json=joining())).json()
    body = {"member_id": "m1", "member_epoch": joined["member_epoch"], "max_wait_ms": 60_000}
    waiting = asyncio.create_task(mine.api.post(BEAT, json=body))
    await eventually(lambda: service._parked.has_waiters("g"), "the heartbeat waits")
    change(database, REVOKE, brief)
    await refused(waiting)
    assert not service._parked.has_waiters("g")


async def test_a_waiting_request_ends_when_its_token_expires(
    members: Members, mine: Members, brief: str, database: str, runtime: Runtime, clock: VirtualClock
) -> None:
    _leader, follower = await members.joined(2)
    change(database, EXPIRE_AT, brief, until=clock.now_ms() + 500)
    await told(runtime)
    waiting = await mine.parked_sync(follower)
    clock.advance(500)
    assert "expired" in (await refused(waiting))["detail"]


async def test_while_tokens_cannot_be_looked_up_requests_wait_on(
    members: Members, mine: Members, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, follower = await members.joined(2)
    waiting, asked = await mine.parked_sync(follower), asyncio.Event()
    look_up = Access._look_up

    async def away(self: Access, key: str) -> object:
        asked.set()
        raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "away")

    monkeypatch.setattr(Access, "_look_up", away)
    runtime.get(Access).forget()
    await asyncio.wait_for(asked.wait(), PATIENCE_SECONDS)
    monkeypatch.setattr(Access, "_look_up", look_up)
    body = sync_body(leader, {"member_id": follower["member_id"], "partitions": {"orders": [0]}})
    assert (await members.api.post("/v1/groups/g/sync", json=body)).status_code == 200
    assert (await asyncio.wait_for(waiting, PATIENCE_SECONDS)).status_code == 200


async def test_what_was_answered_is_watched_no_longer(mine: Members, runtime: Runtime) -> None:
    await mine.stable()
    assert not runtime.get(Admission).waiting
