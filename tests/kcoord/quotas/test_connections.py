"""Connections over their limit: what a member sends on one is carried out, so that no membership is lost by it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest

from kcoord.access.quotas.budgets import Budget
from kcoord.access.quotas.connections import Connections
from kcoord.access.rights import Access, Principal
from kcoord.database.clock import VirtualClock
from kcoord.door.http.local_transport import InProcessTransport
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.kcoord.quotas.test_over_http import BEATS, COMMITS, assert_throttled, commit_body
from tests.support.api import SESSION_TIMEOUT_MS, Members, assert_problem, identity, join_body, sync_body
from tests.support.quotas import limit


@dataclass
class Held:
    """A connection."""

    holder: int = 0


class Second(InProcessTransport):
    """Its connections are one more than their token may have."""

    def __init__(self, connections: Connections, principal: Principal) -> None:
        from kcoord.asgi import application, state

        super().__init__(application, state)
        self._connections, self._principal = connections, principal

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        first = Held()
        self._connections.claim(first, self._principal)
        try:
            return await super().handle_async_request(request)
        finally:
            self._connections.release(first)


@pytest.fixture
async def second(api: httpx.AsyncClient, runtime: Runtime) -> AsyncIterator[httpx.AsyncClient]:
    """A client with the token of `api`, whose connection is one more than the token may have."""
    limit(runtime, connections=1)
    principal = await runtime.get(Access).authenticate(api.headers["authorization"].partition(" ")[2])
    transport = Second(runtime.get(Connections), principal)
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver", headers=api.headers) as client:
        yield client


def assert_refused(answer: httpx.Response) -> None:
    assert_throttled(answer, Budget.CONNECTIONS, 1)
    assert answer.headers["connection"] == "close"


async def test_a_heartbeat_is_carried_out_and_then_refused(
    second: httpx.AsyncClient, members: Members, clock: VirtualClock, topic: str
) -> None:
    member = await members.stable()
    many = {"heartbeats": [{"group_id": "g", **identity(member)}]}
    for path, body in ((BEATS, identity(member)), ("/v1/heartbeats", many), (COMMITS, commit_body(member))):
        for _ in range(2):
            clock.advance(SESSION_TIMEOUT_MS - 1_000)
            assert_refused(await second.post(path, json=body))
            await members.service.tick("g")
    group = (await members.service.describe("g")).group
    assert group is not None
    assert list(group.members) == [member["member_id"]]


async def test_what_a_member_has_to_know_is_answered_and_the_connection_closed(
    second: httpx.AsyncClient, members: Members, topic: str
) -> None:
    member = await members.stable()
    stale = await second.post(BEATS, json={**identity(member), "generation_id": member["generation_id"] + 7})
    assert_problem(stale, Error.ILLEGAL_GENERATION)
    again = await second.post("/v1/groups/g/join", json=join_body(member["member_id"]))
    synced = await second.post("/v1/groups/g/sync", json=sync_body(again.json()))
    for answer in (again, synced):
        assert answer.status_code == 200, answer.text
        assert answer.headers["connection"] == "close"


async def test_all_other_requests_are_refused(second: httpx.AsyncClient, topic: str) -> None:
    assert_refused(await second.get("/v1/coordinator", params={"group_id": "g"}))
    assert_refused(await second.post("/v1/groups/g/offsets/fetch", json={"topics": None}))
