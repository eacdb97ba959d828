"""The HTTP API as members see it that behave in ways the client does not allow."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

TIMEOUT_SECONDS = 60.0
WAIT_MS = 30_000
HALF_AN_HOUR_MS = 1_800_000
SESSION_MS = 60_000
LIMITS = httpx.Limits(max_connections=2_000, max_keepalive_connections=200)


class Refused(Exception):
    """The service answered with an error. `name`: its name in Kafka; `member_id`: the one that it gives, or ""."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        super().__init__(f"{problem.get('error')}: {problem.get('detail')}")
        self.name = str(problem.get("error"))
        self.member_id = str(problem.get("member_id") or "")


class Api:
    """Requests to one service. An async context manager."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token
        self._tls = httpx.create_ssl_context()
        self._http = self.client()

    async def __aenter__(self) -> Api:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    def client(self) -> httpx.AsyncClient:
        """An HTTP client for one consumer: httpx searches its pool for each request, so a pool of all is slow."""
        return httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(verify=self._tls, limits=LIMITS))

    async def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """One request to `/v1/PATH`, decoded. Raises Refused, and httpx.TransportError if no answer arrives."""
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = await self._http.request(
            method, f"{self.url}/v1/{path}", json=body, headers=headers, timeout=TIMEOUT_SECONDS
        )
        content = answer.json() if answer.content else {}
        if answer.is_success:
            return content
        raise Refused(content)

    async def post(self, group_id: str, call: str, body: Mapping[str, Any]) -> Any:
        """POST to a group. Raises as `request` does."""
        return await self.request("POST", f"groups/{quote(group_id, safe='')}/{call}", body)


@dataclass(slots=True)
class ClassicMember:
    """A member of a classic group, one request at a time. Session and rebalance timeouts are in ms."""

    api: Api
    group_id: str
    client_id: str
    topics: list[str]
    assignor: str
    session_timeout_ms: int = SESSION_MS
    rebalance_timeout_ms: int = HALF_AN_HOUR_MS
    protocol_type: str = "consumer"
    member_id: str = ""
    generation_id: int = -1
    joined: dict[str, Any] = field(default_factory=dict)

    async def join(self) -> None:
        """Join, however long the others take. Raises Refused."""
        while True:
            try:
                self.joined = await self.api.post(self.group_id, "join", self._join_body())
            except Refused as refused:
                if refused.name not in ("MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS"):
                    raise
                self.member_id = refused.member_id or self.member_id
                continue
            self.member_id = self.joined["member_id"]
            self.generation_id = self.joined["generation_id"]
            return

    def _join_body(self) -> dict[str, Any]:
        if self.protocol_type == "consumer":
            protocol: dict[str, Any] = {"name": self.assignor, "subscription": {"topics": self.topics}}
        else:
            protocol = {"name": "default", "metadata": "AAE="}
        return {
            "member_id": self.member_id,
            "client_id": self.client_id,
            "session_timeout_ms": self.session_timeout_ms,
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "protocol_type": self.protocol_type,
            "protocols": [protocol],
            "max_wait_ms": WAIT_MS,
        }

    @property
    def leads(self) -> bool:
        """Whether this member assigns."""
        return bool(self.joined) and self.joined["leader"] == self.member_id

    async def sync(self, assignments: list[dict[str, Any]] | None = None) -> Any:
        """Sync; a leader gives the assignments. Raises Refused."""
        return await self.api.post(
            self.group_id,
            "sync",
            {
                "member_id": self.member_id,
                "generation_id": self.generation_id,
                "protocol_type": self.protocol_type,
                "protocol_name": self.joined["protocol_name"],
                "assignments": assignments or [],
                "max_wait_ms": WAIT_MS,
            },
        )

    async def heartbeat(self) -> None:
        """One heartbeat. Raises Refused, for example REBALANCE_IN_PROGRESS."""
        await self.api.post(
            self.group_id, "heartbeat", {"member_id": self.member_id, "generation_id": self.generation_id}
        )

    async def leave(self, reason: str) -> None:
        """Leave the group. Raises Refused."""
        await self.api.post(self.group_id, "leave", {"members": [{"member_id": self.member_id, "reason": reason}]})


@dataclass(slots=True)
class ConsumerMember:
    """A member of a consumer group (KIP-848), one heartbeat at a time."""

    api: Api
    group_id: str
    topics: list[str]
    regex: str | None = None
    rebalance_timeout_ms: int = HALF_AN_HOUR_MS
    member_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    epoch: int = 0
    owned: list[dict[str, Any]] = field(default_factory=list)
    assigned: list[dict[str, Any]] | None = None
    heartbeat_seconds: float = 5.0

    async def heartbeat(self) -> None:
        """One full heartbeat, which reports what is owned; takes what is assigned into `assigned`. Raises Refused."""
        body: dict[str, Any] = {
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "topic_partitions": self.owned,
        }
        if self.regex is None:
            body["subscribed_topic_names"] = self.topics
        else:
            body["subscribed_topic_regex"] = self.regex
        answer = await self.api.post(self.group_id, "consumer-heartbeat", body)
        self.epoch = answer["member_epoch"]
        self.heartbeat_seconds = answer["heartbeat_interval_ms"] / 1000
        if answer["assignment"] is not None:
            self.assigned = [
                {"topic": entry["topic"], "partitions": entry["partitions"]}
                for entry in answer["assignment"]["topic_partitions"]
            ]

    def reconcile(self) -> None:
        """Own what is assigned, at once. The next heartbeat reports it."""
        if self.assigned is not None:
            self.owned = self.assigned

    async def leave(self) -> None:
        """Leave the group. Raises Refused."""
        self.epoch, self.owned = -1, []
        await self.api.post(self.group_id, "consumer-heartbeat", {"member_id": self.member_id, "member_epoch": -1})
