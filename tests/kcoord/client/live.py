"""A real service for tests of the client: topics, consumers, and polling several of them in turn."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from kcoord.client import Consumer, Record, TopicPartition
from tests.support.http_members import make_token
from tests.support.processes import Running, start_server

DEADLINE_S = 40.0
SESSION_MS = 6_000
"""The shortest session that the service allows by default."""

OUTLASTING_MS = 120_000
"""A session that is longer than a server takes to start, also on a busy machine."""

HEARTBEAT_MS = 500
"""How often members of consumer groups send heartbeats."""

FAST = {
    "KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 0,
    "KCOORD_GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS": 1_000,
    "KCOORD_GROUP_CONSUMER_SESSION_TIMEOUT_MS": SESSION_MS,
    "KCOORD_GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS": 100,
    "KCOORD_GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS": HEARTBEAT_MS,
    "KCOORD_GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS": 300_000,
    "KCOORD_GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS": 120_000,
    "KCOORD_GROUP_SHARE_MIN_SESSION_TIMEOUT_MS": 1_000,
    "KCOORD_GROUP_SHARE_SESSION_TIMEOUT_MS": SESSION_MS,
    "KCOORD_GROUP_SHARE_MIN_HEARTBEAT_INTERVAL_MS": 100,
    "KCOORD_GROUP_SHARE_HEARTBEAT_INTERVAL_MS": HEARTBEAT_MS,
    "KCOORD_GROUP_SHARE_MIN_RECORD_LOCK_DURATION_MS": 1_000,
}


@dataclass(frozen=True)
class Service:
    """A running server and a token that may do everything."""

    server: Running
    conninfo: str
    token: str

    @property
    def url(self) -> str:
        return self.server.url

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.request(method, f"{self.url}/v1/{path}", headers=headers, timeout=10, **options)

    def topic_name(self) -> str:
        """A name that no topic has."""
        return f"topic-{secrets.token_hex(4)}"

    def topic(self, partitions: int, name: str | None = None) -> str:
        """A new topic."""
        name = name or self.topic_name()
        response = self.request("POST", "topics", json={"name": name, "partitions": partitions})
        assert response.status_code == 201, response.text
        return name

    def settings(self, group: str, **more: Any) -> dict[str, Any]:
        """Settings of a consumer of this service."""
        defaults: dict[str, Any] = {
            "group_id": group,
            "url": self.url,
            "token": self.token,
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": 200,
            "max_poll_interval_ms": 30_000,
            "auto_offset_reset": "earliest",
        }
        return {**defaults, **more}

    def consumer_settings(self, group: str, **more: Any) -> dict[str, Any]:
        """Settings of a member of a consumer group of this service."""
        defaults: dict[str, Any] = {
            "group_id": group,
            "url": self.url,
            "token": self.token,
            "group_protocol": "consumer",
            "max_poll_interval_ms": 30_000,
            "auto_offset_reset": "earliest",
        }
        return {**defaults, **more}

    def share_settings(self, group: str, **more: Any) -> dict[str, Any]:
        """Settings of a member of a share group of this service."""
        return {"group_id": group, "url": self.url, "token": self.token, **more}

    def configure(self, group: str, **settings: Any) -> None:
        """Set settings of a group; `share_delivery_count_limit` is share.delivery.count.limit."""
        body = {name.replace("_", "."): value for name, value in settings.items()}
        response = self.request("PATCH", f"groups/{group}/config", json=body)
        assert response.status_code == 200, response.text

    def describe(self, group: str) -> dict[str, Any]:
        """The group as operators see it."""
        response = self.request("GET", f"groups/{group}")
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found


@contextmanager
def running_service(conninfo: str) -> Iterator[Service]:
    """A server on this database."""
    with start_server(conninfo, env=FAST) as server:
        server.wait_ready()
        yield Service(server, conninfo, make_token(conninfo))


def owned(consumer: Consumer) -> set[int]:
    """The partitions of a consumer of one topic."""
    return {partition for _, partition in consumer.assignment()}


def shared_out(consumers: Sequence[Consumer], partitions: int) -> bool:
    """Every partition belongs to exactly one of the consumers, and each has its share."""
    held = [owned(consumer) for consumer in consumers]
    sizes = {len(each) for each in held}
    return sum(map(len, held)) == partitions == len(set().union(*held)) and max(sizes) - min(sizes) <= 1


def poll_until(
    condition: Callable[[], bool], *consumers: Consumer, seconds: float = DEADLINE_S
) -> dict[TopicPartition, list[Record]]:
    """Poll the consumers in turn until `condition`; returns the records that came."""
    deadline = time.monotonic() + seconds
    found: dict[TopicPartition, list[Record]] = {}
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {[sorted(owned(c)) for c in consumers]}"
        for consumer in consumers:
            for partition, records in consumer.poll(20).items():
                found.setdefault(partition, []).extend(records)
    return found
