"""Clients that go away: http-api.md 1, "Waiting"."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from structlog.testing import capture_logs

from groups.core.model.types import ClassicMember
from groups.engine.service import GroupService
from kcoord.database.clock import VirtualClock
from tests.support.api import SESSION_TIMEOUT_MS, Members, join_body
from tests.support.members import eventually


class Connection:
    """One HTTP connection, message by message, as a server hands it to the application."""

    def __init__(self, token: str, path: str, *parts: bytes) -> None:
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [(b"content-type", b"application/json"), (b"authorization", f"Bearer {token}".encode())],
            "client": ("192.0.2.1", 1),
            "server": ("testserver", 80),
        }
        self.sent: list[Any] = []
        self._incoming: asyncio.Queue[Any] = asyncio.Queue()
        for index, part in enumerate(parts):
            self._incoming.put_nowait({"type": "http.request", "body": part, "more_body": index < len(parts) - 1})

    def close(self) -> None:
        """The client goes away."""
        self._incoming.put_nowait({"type": "http.disconnect"})

    async def run(self) -> None:
        """Let the application serve the connection."""
        from kcoord.asgi import application

        async def send(message: Any) -> None:
            self.sent.append(message)

        await application(self.scope, self._incoming.get, send)


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


async def test_a_waiting_client_that_goes_away_is_noticed(
    members: Members, token: str, service: GroupService, clock: VirtualClock
) -> None:
    """Its request ends without an answer, and the session counts from then."""
    leader = await members.stable()
    body = msgspec.json.encode(join_body(leader["member_id"], max_wait_ms=60_000))
    newcomer = await members.parked_join()  # the group prepares: the leader's join will wait for nobody but itself
    other = await members.pending_id()  # … and for this one, who never comes
    connection = Connection(token, "/v1/groups/g/join", body)
    with capture_logs() as lines:
        serving = asyncio.create_task(connection.run())
        await members.until_parked("g", leader["member_id"], "awaiting_join")
        clock.advance(1_000)
        connection.close()
        await asyncio.wait_for(serving, 10)
    assert connection.sent == []
    assert [line["status"] for line in lines if line["event"] == "request"] == [499]

    await session_counts(service, leader["member_id"], clock)
    response = await members.api.post("/v1/groups/g/leave", json={"members": [{"member_id": other}]})
    assert response.json()["members"][0]["error_code"] == 0
    assert (await asyncio.wait_for(newcomer, 10)).status_code == 200


async def test_a_client_that_goes_away_while_it_sends_is_noticed(token: str, service: GroupService) -> None:
    connection = Connection(token, "/v1/groups/g/heartbeat", b'{"member_id"', b"")
    connection._incoming = asyncio.Queue()
    connection._incoming.put_nowait({"type": "http.request", "body": b'{"member_id"', "more_body": True})
    connection.close()
    with capture_logs() as lines:
        await asyncio.wait_for(connection.run(), 10)
    assert connection.sent == []
    assert [line["status"] for line in lines if line["event"] == "request"] == [499]


async def test_a_body_in_parts_is_put_together(token: str, service: GroupService) -> None:
    connection = Connection(token, "/v1/heartbeats", b'{"heart', b'beats": ', b"[]}")
    await asyncio.wait_for(connection.run(), 10)
    assert connection.sent[0]["status"] == 200
