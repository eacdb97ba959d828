"""Writes down what a member was told: an httpx transport under its client, which sees every request and answer."""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import unquote

import httpx

from kcoord.client.http import LIMITS
from kcoord.protocol.errors import BY_CODE
from tests.chaos.history import Writer

APIS = ("join", "sync", "heartbeat", "leave", "consumer-heartbeat", "offsets/commit", "offsets/fetch")


class Recorded(httpx.AsyncBaseTransport):
    """Sends requests of one member without a proxy and without TLS, and writes a line for each answer."""

    def __init__(self, member: str, history: Writer) -> None:
        self._member = member
        self._history = history
        self._inner = httpx.AsyncHTTPTransport(limits=LIMITS, verify=False)
        self._topics: dict[str, str] = {}
        """Names by id: commits have only the ids, which the client has from answers to fetches and heartbeats."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The response, read to its end."""
        sent = time.monotonic()
        try:
            response = await self._inner.handle_async_request(request)
            try:
                await response.aread()
            finally:
                await response.aclose()
        except httpx.RequestError as error:
            self._write(request, sent, None, {"title": type(error).__name__})
            raise
        self._write(request, sent, response.status_code, _decoded(response))
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    def _write(self, request: httpx.Request, sent: float, status: int | None, told: dict[str, Any]) -> None:
        parts = request.url.path.split("/", 4)
        if len(parts) < 5 or parts[2] != "groups" or parts[4] not in APIS:
            return
        api, asked = parts[4], json.loads(request.content)
        self._topics |= {
            t["topic_id"]: t["name"] for t in told.get("topics", ()) if t.get("name") and t.get("topic_id")
        }
        line = {"m": self._member, "g": unquote(parts[3]), "api": api, "sent": round(sent, 6)}
        line |= {"error": _error(status, told), "member_id": told.get("member_id") or asked.get("member_id")}
        self._history.write("answer", **line, **self._details(api, asked, told, status))

    def _details(self, api: str, asked: dict[str, Any], told: dict[str, Any], status: int | None) -> dict[str, Any]:
        """The generation or epoch, and offsets."""
        offsets: list[list[Any]] = []
        gen = asked.get("generation_id")
        if api == "join":
            gen = told.get("generation_id")
        elif api == "consumer-heartbeat":
            gen = told.get("member_epoch", asked["member_epoch"]) if status == 200 else asked["member_epoch"]
        elif api == "offsets/commit":
            gen = asked["generation_id_or_member_epoch"]
            offsets = [
                [self._name(t), p["partition"], p["committed_offset"]] for t in asked["topics"] for p in t["partitions"]
            ]
        elif api == "offsets/fetch" and status == 200:
            offsets = [
                [self._name(t), p["partition"], p["committed_offset"]] for t in told["topics"] for p in t["partitions"]
            ]
        return {"gen": gen, "offsets": offsets} if offsets else {"gen": gen}

    def _name(self, topic: dict[str, Any]) -> str:
        return str(topic.get("name") or self._topics[topic["topic_id"]])


def _decoded(response: httpx.Response) -> dict[str, Any]:
    try:
        found = json.loads(response.content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _error(status: int | None, told: dict[str, Any]) -> str:
    if status is None:
        return "disconnected"
    if status in (200, 201):
        codes = [p.get("error_code", 0) for t in told.get("topics", []) for p in t.get("partitions", [])]
        code = next(filter(None, [told.get("error_code") or 0, *codes]), 0)
        return BY_CODE[code].name if code else "NONE"
    return str(told.get("error", f"HTTP {status}"))
