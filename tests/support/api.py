"""Requests with sensible defaults, and the shape that every problem response has."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from dataclasses import dataclass
from typing import Any

import httpx

from groups.engine.service import GroupService
from kcoord.database.clock import VirtualClock
from kcoord.door.http.local_transport import InProcessTransport
from kcoord.protocol.errors import Error
from tests.support.members import eventually

REBALANCE_DELAY_MS = 3_000
SESSION_TIMEOUT_MS = 10_000


def client_of(secret: str | None, **transport: Any) -> httpx.AsyncClient:
    """A client of the real application in process; None: without a token."""
    from kcoord.asgi import application, state

    return httpx.AsyncClient(
        transport=InProcessTransport(application, state, **transport),
        base_url="http://testserver",
        headers={} if secret is None else {"Authorization": f"Bearer {secret}"},
    )


def b64(data: bytes) -> str:
    """Bytes as JSON carries them."""
    return base64.b64encode(data).decode()


def join_body(member_id: str = "", **changes: Any) -> dict[str, Any]:
    """The body of a join."""
    body = {
        "member_id": member_id,
        "group_instance_id": None,
        "client_id": "billing",
        "session_timeout_ms": SESSION_TIMEOUT_MS,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "subscription": {"topics": ["orders"]}}],
        "max_wait_ms": 60_000,
    }
    return {**body, **changes}


def sync_body(joined: dict[str, Any], *assignments: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The body of a sync after a join that was answered with `joined`."""
    body = {name: joined[name] for name in ("member_id", "generation_id", "protocol_type", "protocol_name")}
    return {**body, "assignments": list(assignments), "max_wait_ms": 60_000, **changes}


def identity(joined: dict[str, Any]) -> dict[str, Any]:
    """What a heartbeat says of the member that `joined`."""
    return {"member_id": joined["member_id"], "generation_id": joined["generation_id"]}


def assert_problem(
    response: httpx.Response, error: Error, *, status: int | None = None, action: str | None = None, field: str = ""
) -> dict[str, Any]:
    """Every member that the contract promises of a problem; returns its body."""
    body: dict[str, Any] = response.json()
    assert body["error"] == error.name, body
    assert response.status_code == (status or error.status), body
    assert response.headers["content-type"] == "application/problem+json"
    assert body["type"] == f"https://kcoord.dev/errors/{error.name}"
    assert body["title"] == error.name
    assert body["status"] == response.status_code
    assert body["error_code"] == error.code
    assert body["action"] == (action or error.value.action.value)
    assert isinstance(body["retriable"], bool)
    assert body["detail"]
    assert body["request_id"] == response.headers["x-request-id"]
    if response.status_code in (429, 503):
        assert int(response.headers["retry-after"]) >= 1
    if field:
        assert body["field"] == field
        assert field in body["detail"]
    return body


@dataclass
class Members:
    """Joins and syncs that take their whole course."""

    api: httpx.AsyncClient
    service: GroupService
    clock: VirtualClock

    async def pending_id(self, group: str = "g", **changes: Any) -> str:
        """A member id handed out with MEMBER_ID_REQUIRED."""
        response = await self.api.post(f"/v1/groups/{group}/join", json=join_body(**changes))
        return str(assert_problem(response, Error.MEMBER_ID_REQUIRED)["member_id"])

    async def parked_join(self, group: str = "g", member_id: str = "", **changes: Any) -> asyncio.Task[httpx.Response]:
        """A join that waits on the server."""
        wanted = member_id or await self.pending_id(group, **changes)
        body = join_body(wanted, **changes)
        task = asyncio.create_task(self.api.post(f"/v1/groups/{group}/join", json=body))
        await self.until_parked(group, wanted, "awaiting_join")
        return task

    async def parked_sync(self, joined: dict[str, Any], group: str = "g") -> asyncio.Task[httpx.Response]:
        """A follower's sync that waits on the server."""
        task = asyncio.create_task(self.api.post(f"/v1/groups/{group}/sync", json=sync_body(joined)))
        await self.until_parked(group, joined["member_id"], "awaiting_sync")
        return task

    async def until_parked(self, group: str, member_id: str, barrier: str) -> None:
        """Return when the member's wait is committed."""

        async def is_parked() -> bool:
            found = (await self.service.describe(group)).group
            return bool(found and member_id in found.members and getattr(found.members[member_id], barrier))

        await eventually(is_parked, f"{member_id} is {barrier}")

    async def complete_joins(self, *tasks: asyncio.Task[httpx.Response], group: str = "g") -> list[dict[str, Any]]:
        """Let the initial delay pass, twice since a second member prolongs it; the answers of the joins."""
        for _ in range(min(len(tasks), 2)):
            self.clock.advance(REBALANCE_DELAY_MS)
            await self.service.tick(group)
        responses = await asyncio.wait_for(asyncio.gather(*tasks), 10)
        assert [response.status_code for response in responses] == [200] * len(tasks), [r.text for r in responses]
        return [response.json() for response in responses]

    async def joined(self, count: int = 1, group: str = "g", **changes: Any) -> list[dict[str, Any]]:
        """The join answers of a group of `count` new members, the leader first."""
        tasks = [await self.parked_join(group, **changes) for _ in range(count)]
        answers = await self.complete_joins(*tasks, group=group)
        return sorted(answers, key=lambda answer: answer["leader"] != answer["member_id"])

    async def stable(self, group: str = "g", **changes: Any) -> dict[str, Any]:
        """The only member of a Stable group; it was assigned partition 0 of orders."""
        (leader,) = await self.joined(1, group, **changes)
        body = sync_body(leader, {"member_id": leader["member_id"], "partitions": {"orders": [0]}})
        response = await self.api.post(f"/v1/groups/{group}/sync", json=body)
        assert response.status_code == 200, response.text
        return leader


async def abandon(task: asyncio.Task[httpx.Response]) -> None:
    """End a request that nobody waits for any more."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
