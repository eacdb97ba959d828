"""AsyncConsumers with a scripted coordinator: listeners and answers that wait, and what must be left at the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from kcoord.client import (
    AsyncConsumer,
    AsyncConsumerRebalanceListener,
    MemberState,
    TopicPartition,
)
from tests.kcoord.client.drivers import ThreadedTransport
from tests.kcoord.client.scripted import URL, WAIT_S, ScriptedCoordinator

T0 = TopicPartition("t", 0)
LONG_MS = int(WAIT_S * 1000)
CLASSIC: dict[str, Any] = {"heartbeat_interval_ms": 20, "session_timeout_ms": 10_000}
EAGER: dict[str, Any] = {"heartbeat_interval_ms": 9_000}
CONSUMER: dict[str, Any] = {"group_protocol": "consumer"}


class Told(AsyncConsumerRebalanceListener):
    """Writes down what it is told; `held` makes it wait in the calls of one kind."""

    def __init__(self, hold: str = "") -> None:
        self.calls: list[tuple[str, list[int]]] = []
        self.hold = hold
        self.reached = asyncio.Event()
        self.release = asyncio.Event()

    async def _told(self, what: str, partitions: Any) -> None:
        self.calls.append((what, [tp.partition for tp in partitions]))
        if what == self.hold:
            self.reached.set()
            await self.release.wait()

    async def on_partitions_revoked(self, revoked: Any) -> None:
        await self._told("revoked", revoked)

    async def on_partitions_assigned(self, assigned: Any) -> None:
        await self._told("assigned", assigned)

    async def on_partitions_lost(self, lost: Any) -> None:
        await self._told("lost", lost)


class Gate:
    """An answer that is held until it is let go; `reached` when the request has arrived."""

    def __init__(self, answer: Callable[[dict[str, Any]], Any]) -> None:
        self._answer = answer
        self.arrived = threading.Event()
        self.open = threading.Event()

    def __call__(self, body: dict[str, Any]) -> Any:
        self.arrived.set()
        assert self.open.wait(WAIT_S)
        return self._answer(body)

    async def reached(self) -> None:
        """The request has arrived."""
        assert await asyncio.to_thread(self.arrived.wait, WAIT_S)


@asynccontextmanager
async def consumer_of(server: ScriptedCoordinator, *topics: str, **settings: Any) -> AsyncIterator[AsyncConsumer]:
    """A consumer; at the end no task and no open transport may be left."""
    before = asyncio.all_tasks()
    transport = ThreadedTransport(server.handle)
    defaults: dict[str, Any] = {
        "group_id": "g",
        "url": URL,
        "retry_backoff_ms": 1,
        "retry_backoff_max_ms": 5,
        "request_timeout_ms": 5_000,
        "auto_offset_reset": "earliest",
    }
    client = httpx.AsyncClient(transport=transport)
    consumer = AsyncConsumer(*topics, http_client=client, **{**defaults, **settings})
    try:
        yield consumer
    finally:
        await consumer.close(autocommit=False, timeout_ms=5_000)
        assert asyncio.all_tasks() == before, "tasks outlived the consumer"
        assert transport.closed


async def stable(consumer: AsyncConsumer, generation: int = 1) -> None:
    """Poll until the consumer is a stable member of `generation` or a later one."""
    async with asyncio.timeout(WAIT_S):
        while consumer.state is not MemberState.STABLE or consumer.generation.generation_id < generation:
            await consumer.poll(20)


async def cancelled(task: asyncio.Task[Any]) -> None:
    """Cancel a task that waits, and see that it was."""
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
