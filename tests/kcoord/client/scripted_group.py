"""A consumer group of one member, answered from a script: what `scripted` is for the classic protocol."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from kcoord.client import Consumer
from tests.kcoord.client import drivers
from tests.kcoord.client.scripted import URL, WAIT_S, ScriptedCoordinator, Sent, wait_until

API = "consumer-heartbeat"
TOPIC_IDS = {"t": "id-of-t", "u": "id-of-u"}
Partition = tuple[str, int]


def t(*partitions: int) -> frozenset[Partition]:
    """Partitions of topic t."""
    return frozenset(("t", p) for p in partitions)


def assignment(partitions: Iterable[Partition]) -> dict[str, Any]:
    """Partitions as a heartbeat answers them."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return {
        "topic_partitions": [
            {"topic_id": TOPIC_IDS[topic], "topic": topic, "partitions": numbers} for topic, numbers in topics.items()
        ]
    }


class ScriptedGroup(ScriptedCoordinator):
    """Gives its member `target` and says so once; `holds`: it waits with answers that say nothing new."""

    def __init__(self, *, holds: bool = False, interval_ms: int = 20) -> None:
        super().__init__()
        self.target = t(0, 1, 2, 3)
        self.epoch = 0
        self.holds = holds
        self.interval_ms = interval_ms
        self._told: frozenset[Partition] | None = None
        self._wake = threading.Condition()

    def assign(self, partitions: frozenset[Partition]) -> None:
        """Change the target, in a new epoch."""
        with self._wake:
            self.target = partitions
            self.epoch += 1
            self._wake.notify_all()

    def answer(self, epoch: int, partitions: Iterable[Partition] | None = None) -> dict[str, Any]:
        """A successful answer."""
        return {
            "error_code": 0,
            "member_id": "m",
            "member_epoch": epoch,
            "heartbeat_interval_ms": self.interval_ms,
            "session_expires_at": None,
            "assignment": None if partitions is None else assignment(partitions),
        }

    def heartbeats(self) -> list[dict[str, Any]]:
        """The bodies of the heartbeats so far."""
        return [sent.body for sent in self.all(API)]

    def leaves(self) -> list[int]:
        """The epochs of the leaves so far."""
        return [body["member_epoch"] for body in self.heartbeats() if body["member_epoch"] < 0]

    def joins(self) -> list[dict[str, Any]]:
        """The heartbeats so far that joined."""
        return [body for body in self.heartbeats() if body["member_epoch"] == 0]

    def acknowledged(self) -> list[Any]:
        """What was reported as owned, in order, each report once."""
        return [body["topic_partitions"] for body in self.heartbeats() if "topic_partitions" in body]

    def subscriptions(self) -> list[tuple[list[str], str]]:
        """Names and pattern of the heartbeats that have them: the join, and those after a change. Others may follow."""
        told = [body for body in self.heartbeats() if "subscribed_topic_names" in body]
        return [(body["subscribed_topic_names"], body["subscribed_topic_regex"]) for body in told]

    def wait_for_heartbeats(self, count: int) -> list[Sent]:
        """Wait for `count` more heartbeats."""
        return self.wait_for(API, len(self.all(API)) + count)

    def _consumer_heartbeat(self, body: dict[str, Any]) -> Any:
        with self._wake:
            if body["member_epoch"] < 0:
                self._told = None
                self._wake.notify_all()
                return self.answer(body["member_epoch"])
            if body["member_epoch"] == 0:
                self.epoch += 1
                self._told = None
            elif self.holds and body["max_wait_ms"] and "rebalance_timeout_ms" not in body:
                self._wake.wait_for(lambda: self._told != self.target, body["max_wait_ms"] / 1000)
            full = "rebalance_timeout_ms" in body
            is_new = self._told != self.target
            self._told = self.target
            return self.answer(self.epoch, self.target if is_new or full else None)


def owned(consumer: Consumer) -> frozenset[Partition]:
    """What the consumer has."""
    return frozenset((tp.topic, tp.partition) for tp in consumer.assignment())


def poll_until_owned(consumer: Consumer, partitions: frozenset[Partition]) -> None:
    """Poll until the consumer has exactly these partitions."""
    wait_until(lambda: consumer.poll(5) is not None and owned(consumer) == partitions)


def poll_until_read(consumer: Consumer, position: int) -> None:
    """Poll until every partition is read up to this position."""
    wait_until(
        lambda: consumer.poll(5) is not None and {consumer.position(tp) for tp in consumer.assignment()} == {position}
    )


@contextmanager
def member_of(server: ScriptedGroup, *topics: str, **settings: Any) -> Iterator[Consumer]:
    """A consumer of group "g" that speaks the consumer protocol with `server`, with short waits."""
    defaults: dict[str, Any] = {
        "group_id": "g",
        "url": URL,
        "group_protocol": "consumer",
        "retry_backoff_ms": 1,
        "retry_backoff_max_ms": 5,
        "request_timeout_ms": 5_000,
        "auto_offset_reset": "earliest",
    }
    consumer = drivers.consumer(server.handle, *topics, **{**defaults, **settings})
    try:
        yield consumer
    finally:
        consumer.close(timeout_ms=int(WAIT_S * 500), autocommit=False)
