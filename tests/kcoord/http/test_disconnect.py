"""Clients that go away: http-api.md 1, "Waiting"."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from structlog.testing import capture_logs

from groups.core.model.types import ClassicMember
from groups.engine.service import GroupService
from kcoord.database.clock import VirtualClock
from tests.support.api import SESSION_TIMEOUT_MS, Members, join_body
from tests.support.members import eventually


async def member_of(service: GroupService, member_id: str) -> ClassicMember:
    """The stored member."""
    group = (await service.describe("g")).group
    assert group is not None
    return group.members[member_id]


async def session_counts(service: GroupService, member_id: str, clock: VirtualClock) -> None:
    """Wait until the session of a member counts from now."""

    async def counts() -> bool:
        return (await member_of(service, member_id)).session_deadline == clock.now_ms() + SESSION_TIMEOUT_MS

    await eventually(counts, "the session counts from the end of the connection")


async def goes_away(request: asyncio.Task[httpx.Response]) -> None:
    """The client of a request does, before it is answered."""
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request


async def test_a_waiting_client_that_goes_away_is_noticed(
    members: Members, service: GroupService, clock: VirtualClock
) -> None:
    """Its request ends without an answer, and the session counts from then."""
    leader = await members.stable()
    newcomer = await members.parked_join()  # the group prepares: the leader's join will wait for nobody but itself
    other = await members.pending_id()  # … and for this one, who never comes
    with capture_logs() as lines:
        waiting = asyncio.create_task(members.api.post("/v1/groups/g/join", json=join_body(leader["member_id"])))
        await members.until_parked("g", leader["member_id"], "awaiting_join")
        clock.advance(1_000)
        await goes_away(waiting)
        await eventually(lambda: "request" in [line["event"] for line in lines], "the request ends")
    assert [line["status"] for line in lines if line["event"] == "request"] == [499]

    await session_counts(service, leader["member_id"], clock)
    response = await members.api.post("/v1/groups/g/leave", json={"members": [{"member_id": other}]})
    assert response.json()["members"][0]["error_code"] == 0
    assert (await asyncio.wait_for(newcomer, 10)).status_code == 200


async def test_a_client_that_goes_away_while_it_sends_is_noticed(api: httpx.AsyncClient, service: GroupService) -> None:
    is_sent = asyncio.Event()

    async def part() -> AsyncIterator[bytes]:
        yield b'{"member_id"'
        is_sent.set()
        await asyncio.Event().wait()

    with capture_logs() as lines:
        sending = asyncio.create_task(api.post("/v1/groups/g/heartbeat", content=part()))
        await asyncio.wait_for(is_sent.wait(), 10)
        await goes_away(sending)
        await eventually(lambda: lines != [], "the request ends")
    assert [line["status"] for line in lines if line["event"] == "request"] == [499]


async def test_a_body_in_parts_is_put_together(api: httpx.AsyncClient, service: GroupService) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for piece in (b'{"heart', b'beats": ', b"[]}"):
            yield piece

    answer = await api.post("/v1/heartbeats", content=parts(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 200
