"""AsyncConsumer: what is different with tasks and an event loop."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from kcoord.client import (
    AsyncConsumer,
    IllegalStateError,
    WakeupError,
)
from tests.kcoord.client.asynchronous import (
    CLASSIC,
    CONSUMER,
    EAGER,
    LONG_MS,
    T0,
    Told,
    consumer_of,
    stable,
)
from tests.kcoord.client.drivers import ThreadedTransport
from tests.kcoord.client.scripted import URL, WAIT_S, ScriptedCoordinator
from tests.kcoord.client.scripted_group import ScriptedGroup
from tests.kcoord.client.sources import lettered


@pytest.mark.parametrize("settings", [CLASSIC, CONSUMER], ids=["classic", "consumer"])
async def test_iterates_commits_and_leaves(settings: dict[str, Any]) -> None:
    server = ScriptedCoordinator() if settings is CLASSIC else ScriptedGroup()
    async with consumer_of(server, source=lettered(4, 3), consumer_timeout_ms=300, **settings) as consumer:
        listener = Told()
        consumer.subscribe(["t"], listener=listener)
        async with consumer:
            values = sorted([record.value async for record in consumer])
            assert values == [f"{p}:{i}" for p in range(4) for i in range(3)]
            assert await consumer.position(T0) == 3
        assert server.committed == {("t", p): 3 for p in range(4)}
        assert listener.calls[-1] == ("revoked", [0, 1, 2, 3])
        left = server.all("leave") if settings is CLASSIC else server.leaves()  # type: ignore[attr-defined]
        assert len(left) == 1
        with pytest.raises(IllegalStateError, match="closed"):
            await consumer.poll()


async def test_a_second_task_is_refused_and_wakeup_comes_from_any_thread() -> None:
    server = ScriptedCoordinator()
    async with consumer_of(server, "t", **EAGER) as consumer:
        await stable(consumer)
        poll = asyncio.create_task(consumer.poll(LONG_MS))
        await asyncio.sleep(0.01)
        with pytest.raises(IllegalStateError, match="in use by another task"):
            await consumer.poll()
        with pytest.raises(IllegalStateError, match="in use by another task"):
            consumer.seek(T0, 0)
        await asyncio.to_thread(consumer.wakeup)
        with pytest.raises(WakeupError):
            await poll


async def test_polls_that_never_wait_let_the_heartbeats_run() -> None:
    server, source = ScriptedCoordinator(), lettered(1, 1)
    source.fetch = lambda topic, partition, offset, n: lettered(1, offset + 1).fetch("t", 0, offset, 1)  # type: ignore[method-assign]
    server.topics["t"] = 1
    async with consumer_of(server, "t", source=source, **CLASSIC) as consumer:
        async with asyncio.timeout(WAIT_S):
            while len(server.all("heartbeat")) < 3:
                await consumer.poll(0)


def test_another_event_loop_is_refused() -> None:
    client = httpx.AsyncClient(transport=ThreadedTransport(ScriptedCoordinator().handle))
    consumer = AsyncConsumer("t", group_id="g", url=URL, http_client=client)

    async def use_and_close() -> None:
        assert await consumer.committed(T0) is None
        await consumer.close()

    async def use() -> None:
        await consumer.committed(T0)

    asyncio.run(use_and_close())
    with pytest.raises(IllegalStateError, match="another event loop"):
        asyncio.run(use())
