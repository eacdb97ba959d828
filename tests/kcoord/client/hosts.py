"""Servers by name, and links to them in virtual time."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine
from typing import Any

import httpx

from kcoord.client.config import ConsumerConfig
from kcoord.client.core import http
from kcoord.client.core.link import Link
from kcoord.client.core.wire import HeartbeatAnswer
from kcoord.protocol.errors import Error
from tests.kcoord.client.virtual import Virtual

Answer = httpx.Response | Callable[[httpx.Request], httpx.Response]


class InOrder(random.Random):
    """Asks servers in the order in which they are given, and never delays."""

    def random(self) -> float:
        return 0.0


class Hosts:
    """Each server answers discovery with `announces`, other requests with `{}`, or is down.

    `answers` replaces all answers of a server, `refusals` those that are not of discovery.
    """

    def __init__(self) -> None:
        self.announces: dict[str, str] = {}
        self.down: set[str] = set()
        self.answers: dict[str, Answer] = {}
        self.refusals: dict[str, Answer] = {}
        self.asked: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        host, is_discovery = request.url.host, request.url.path == "/v1/coordinator"
        self.asked.append(f"{host}{request.url.path.removeprefix('/v1')}")
        if host in self.down:
            raise httpx.ConnectError("refused", request=request)
        answer = self.answers.get(host) or (None if is_discovery else self.refusals.get(host))
        if answer is not None:
            return answer if isinstance(answer, httpx.Response) else answer(request)
        if is_discovery:
            return named(self.announces.get(host, ""))
        return httpx.Response(200, json={})

    def taken(self) -> list[str]:
        """What was asked since the last look."""
        asked, self.asked = self.asked, []
        return asked


class DrivenLink(Link):
    """A link of group g whose requests `hosts` answer; `driver.now` is the time."""

    def __init__(self, hosts: Hosts, url: str, rng: random.Random | None = None, **settings: Any) -> None:
        self.driver = Virtual(hosts)
        self.config = ConsumerConfig.of({"group_id": "g", "url": url, **settings})
        super().__init__(self.config, http.Http("", 1_000), self.driver.condition, rng or InOrder())

    def run(self, main: Coroutine[Any, Any, Any]) -> Any:
        """Run until `main` has ended."""
        return self.driver.run(main)

    def beat(self) -> HeartbeatAnswer:
        """One heartbeat, without a retry."""
        answer: HeartbeatAnswer = self.run(self.call("heartbeat", {}, HeartbeatAnswer))
        return answer


def named(url: str | None, error: Error = Error.NONE) -> httpx.Response:
    """A discovery that names the coordinator, or says why it does not."""
    return httpx.Response(200, json={"coordinators": [{"key": "g", "url": url, "error_code": error.code}]})


def elsewhere(url: str) -> httpx.Response:
    """NOT_COORDINATOR, naming the coordinator."""
    body = {
        "error": "NOT_COORDINATOR",
        "error_code": 16,
        "detail": "This node does not coordinate the group.",
        "action": "rediscover",
        "coordinator": {"node_id": "n", "host": "h", "port": 80, "url": url},
    }
    return httpx.Response(421, json=body, headers={"Content-Type": "application/problem+json"})
