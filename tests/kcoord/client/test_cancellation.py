"""AsyncConsumer may be cancelled at any await: nothing is acknowledged that is not stored, nothing is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kcoord.client import (
    AsyncConsumer,
)
from kcoord.protocol.errors import Error
from tests.kcoord.client.asynchronous import (
    CLASSIC,
    CONSUMER,
    EAGER,
    LONG_MS,
    T0,
    Gate,
    Told,
    cancelled,
    consumer_of,
    stable,
)
from tests.kcoord.client.scripted import WAIT_S, Refusal, ScriptedCoordinator, given
from tests.kcoord.client.scripted_group import ScriptedGroup, t
from tests.kcoord.client.sources import lettered


async def test_poll_that_is_cancelled_while_it_waits_loses_no_record() -> None:
    server, source = ScriptedCoordinator(), lettered(4, 0)
    async with consumer_of(server, "t", source=source, fetch_wait_ms=1, **CLASSIC) as consumer:
        await stable(consumer)
        for number in range(20):
            poll = asyncio.create_task(consumer.poll(LONG_MS))
            await asyncio.sleep(0)
            source.partitions["t", number % 4].append(str(number))
            poll.cancel()
            await asyncio.gather(poll, return_exceptions=True)
            source.partitions["t", number % 4].append(str(number))
        found: list[str] = []
        while len(found) < 40:
            found += [r.value for records in (await consumer.poll(LONG_MS)).values() for r in records]
        assert sorted(found) == sorted([str(n) for n in range(20)] * 2)


async def test_poll_may_be_cancelled_in_a_source_that_waits() -> None:
    class Slow:
        def __init__(self) -> None:
            self.plain = lettered(4, 2)
            self.reached = asyncio.Event()
            self.release = asyncio.Event()

        async def fetch(self, *where: Any) -> Any:
            self.reached.set()
            if where[1] == 1:
                await self.release.wait()
            return self.plain.fetch(*where)

        async def beginning_offset(self, topic: str, partition: int) -> int:
            return self.plain.beginning_offset(topic, partition)

        async def end_offset(self, topic: str, partition: int) -> int:
            return self.plain.end_offset(topic, partition)

    server, source = ScriptedCoordinator(), Slow()
    async with consumer_of(server, "t", source=source, **CLASSIC) as consumer:
        poll = asyncio.create_task(consumer.poll(LONG_MS))
        await source.reached.wait()
        await asyncio.sleep(0)
        await cancelled(poll)
        source.release.set()
        records = await consumer.poll(LONG_MS)
        assert [r.offset for r in records[T0]] == [0, 1], "partition 0 had been read when it was cancelled"
        assert sum(map(len, records.values())) == 8


async def test_commit_that_is_cancelled_before_it_is_sent_is_not_sent() -> None:
    server = ScriptedCoordinator()
    gate = Gate(server._offsets_commit)
    async with consumer_of(server, "t", enable_auto_commit=False, **EAGER) as consumer:
        await stable(consumer)
        server.script("offsets/commit", gate)
        consumer.commit_async({T0: 1})
        await gate.reached()
        second = asyncio.create_task(consumer.commit({T0: 2}))
        await asyncio.sleep(0.01)
        await cancelled(second)
        gate.open.set()
        await consumer.commit({T0: 3})
        sent = [s.body["topics"][0]["partitions"][0]["committed_offset"] for s in server.all("offsets/commit")]
        assert sent == [1, 3], "and the order of the others is kept"


async def test_commit_that_is_cancelled_on_its_way_does_not_overtake_the_next() -> None:
    server = ScriptedCoordinator()
    gate = Gate(server._offsets_commit)
    async with consumer_of(server, "t", enable_auto_commit=False, **EAGER) as consumer:
        await stable(consumer)
        server.script("offsets/commit", gate)
        first = asyncio.create_task(consumer.commit({T0: 1}))
        await gate.reached()
        await cancelled(first)
        second = asyncio.create_task(consumer.commit({T0: 2}))
        await asyncio.sleep(0.01)
        assert not second.done(), "a commit is acknowledged only when it is stored"
        assert server.committed == {}
        gate.open.set()
        await second
        assert server.committed == {("t", 0): 2}


async def test_eager_rebalance_that_is_cancelled_in_its_commit_still_revokes_once() -> None:
    server, listener = ScriptedCoordinator(), Told()
    async with consumer_of(server, source=lettered(4, 1), **EAGER) as consumer:
        consumer.subscribe(["t"], listener=listener)
        while not await consumer.poll(LONG_MS):
            pass
        gate = Gate(server._offsets_commit)
        server.script("offsets/commit", gate)
        consumer.enforce_rebalance()
        poll = asyncio.create_task(consumer.poll(LONG_MS))
        await gate.reached()
        await cancelled(poll)
        assert listener.calls == [("revoked", []), ("assigned", [0, 1, 2, 3])]
        gate.open.set()
        await stable(consumer, generation=2)
        assert listener.calls[2:] == [("revoked", [0, 1, 2, 3]), ("assigned", [0, 1, 2, 3])]


async def test_cooperative_rebalance_that_is_cancelled_in_its_commit_goes_on_with_the_next_poll() -> None:
    server, listener = ScriptedCoordinator(), Told()
    settings = {**EAGER, "partition_assignment_strategy": ["cooperative-sticky"]}
    server.script("sync", given([0, 1]), given([1, 2]), given([1, 2]))
    async with consumer_of(server, source=lettered(4, 1), **settings) as consumer:
        consumer.subscribe(["t"], listener=listener)
        while not await consumer.poll(LONG_MS):
            pass
        consumer.enforce_rebalance()
        # The first commit is that before the join; the second is of what must be given up after it.
        gate = Gate(server._offsets_commit)
        server.script("offsets/commit", server._offsets_commit, gate)
        poll = asyncio.create_task(consumer.poll(LONG_MS))
        await gate.reached()
        await cancelled(poll)
        assert listener.calls == [("assigned", [0, 1])]
        gate.open.set()
        await stable(consumer, generation=3)
        assert listener.calls[:3] == [("assigned", [0, 1]), ("revoked", [0]), ("assigned", [2])]
        assert {tp.partition for tp in consumer.assignment()} == {1, 2}


@pytest.mark.parametrize(("hold", "calls"), [("revoked", 1), ("assigned", 1)])
async def test_classic_listener_that_is_cancelled_counts_as_called(hold: str, calls: int) -> None:
    server, listener = ScriptedCoordinator(), Told(hold)
    async with consumer_of(server, **EAGER) as consumer:
        consumer.subscribe(["t"], listener=listener)
        poll = asyncio.create_task(consumer.poll(LONG_MS))
        await asyncio.wait_for(listener.reached.wait(), WAIT_S)
        await cancelled(poll)
        await stable(consumer)
        await consumer.poll(20)
        assert [what for what, _ in listener.calls].count(hold) == calls
        assert listener.calls[-1] == ("assigned", [0, 1, 2, 3])
        assert len(consumer.assignment()) == 4
        listener.hold = ""


async def test_consumer_listener_that_is_cancelled_is_called_again_and_nothing_is_acknowledged() -> None:
    server, listener = ScriptedGroup(), Told("assigned")
    async with consumer_of(server, **CONSUMER) as consumer:
        consumer.subscribe(["t"], listener=listener)
        poll = asyncio.create_task(consumer.poll(LONG_MS))
        await asyncio.wait_for(listener.reached.wait(), WAIT_S)
        await cancelled(poll)
        await asyncio.to_thread(server.wait_for_heartbeats, 3)
        assert not any(server.acknowledged()), "only that it owns nothing"
        listener.hold = ""
        await stable(consumer)
        assert listener.calls == [("assigned", [0, 1, 2, 3])] * 2


async def test_consumer_revocation_that_is_cancelled_in_its_commit_goes_on() -> None:
    server, listener = ScriptedGroup(), Told()
    async with consumer_of(server, source=lettered(4, 1), **CONSUMER) as consumer:
        consumer.subscribe(["t"], listener=listener)
        while not await consumer.poll(LONG_MS):
            pass
        gate = Gate(server._offsets_commit)
        server.script("offsets/commit", gate)
        server.assign(t(0, 1))
        poll = asyncio.create_task(consumer.poll(LONG_MS))
        await gate.reached()
        await cancelled(poll)
        gate.open.set()
        async with asyncio.timeout(WAIT_S):
            while len(consumer.assignment()) != 2:
                await consumer.poll(20)
        assert listener.calls == [("assigned", [0, 1, 2, 3]), ("revoked", [2, 3]), ("assigned", [])]


@pytest.mark.parametrize("settings", [EAGER, CONSUMER], ids=["classic", "consumer"])
async def test_task_that_is_cancelled_inside_async_with_leaves_the_group(settings: dict[str, Any]) -> None:
    server = ScriptedCoordinator() if settings is EAGER else ScriptedGroup()
    joined = asyncio.Event()

    async def work(consumer: AsyncConsumer) -> None:
        async with consumer:
            await stable(consumer)
            joined.set()
            while True:
                await consumer.poll(LONG_MS)

    async with consumer_of(server, "t", source=lettered(4, 1), **settings) as consumer:
        task = asyncio.create_task(work(consumer))
        await asyncio.wait_for(joined.wait(), WAIT_S)
        await asyncio.sleep(0.01)
        await cancelled(task)
        left = server.all("leave") if settings is EAGER else server.leaves()  # type: ignore[attr-defined]
        assert len(left) == 1
        commits = [p for s in server.all("offsets/commit") for topic in s.body["topics"] for p in topic["partitions"]]
        assert all(p["committed_offset"] == 0 for p in commits), "what may not be processed is not committed"


@pytest.mark.parametrize("settings", [EAGER, CONSUMER], ids=["classic", "consumer"])
async def test_close_that_is_cancelled_in_its_commit_still_revokes_and_leaves(settings: dict[str, Any]) -> None:
    server = ScriptedCoordinator() if settings is EAGER else ScriptedGroup()
    listener = Told()
    async with consumer_of(server, source=lettered(4, 1), **settings) as consumer:
        consumer.subscribe(["t"], listener=listener)
        while not await consumer.poll(LONG_MS):
            pass
        gate = Gate(server._offsets_commit)
        server.script("offsets/commit", gate)
        close = asyncio.create_task(consumer.close())
        await gate.reached()
        close.cancel()
        done, _ = await asyncio.wait({close}, timeout=2)
        assert done, "the commit has no answer yet, and is not waited for"
        assert close.cancelled()
        assert listener.calls[-1] == ("revoked", [0, 1, 2, 3])
        left = server.all("leave") if settings is EAGER else server.leaves()  # type: ignore[attr-defined]
        assert len(left) == 1
        gate.open.set()


async def test_close_that_is_cancelled_while_it_leaves_is_closed() -> None:
    server = ScriptedCoordinator()
    async with consumer_of(server, "t", source=lettered(4, 1), **EAGER) as consumer:
        await stable(consumer)
        gate = Gate(server._leave)
        server.script("leave", gate)
        close = asyncio.create_task(consumer.close())
        await gate.reached()
        await cancelled(close)
        gate.open.set()


async def test_unsubscribe_that_is_cancelled_can_be_followed_by_another_subscription() -> None:
    server, listener = ScriptedCoordinator(), Told("revoked")
    async with consumer_of(server, **EAGER) as consumer:
        listener.hold = ""
        consumer.subscribe(["t"], listener=listener)
        await stable(consumer)
        listener.hold = "revoked"
        leaving = asyncio.create_task(consumer.unsubscribe())
        await asyncio.wait_for(listener.reached.wait(), WAIT_S)
        await cancelled(leaving)
        assert len(server.all("leave")) == 1
        assert consumer.assignment() == frozenset()
        consumer.subscribe(["t"])
        await stable(consumer, generation=2)


async def test_cancelled_join_is_not_repeated_and_ends_with_the_consumer() -> None:
    server = ScriptedCoordinator()
    gate = Gate(server._join)
    server.script("join", Refusal(Error.MEMBER_ID_REQUIRED, member_id="m1"), gate)
    async with consumer_of(server, "t", **EAGER) as consumer:
        for _ in range(3):
            poll = asyncio.create_task(consumer.poll(LONG_MS))
            await gate.reached()
            await cancelled(poll)
        assert len(server.all("join")) == 2, "it waits in the background"
        gate.open.set()
        await stable(consumer)


async def test_timeouts_of_asyncio_may_surround_every_call() -> None:
    server = ScriptedCoordinator()
    gate = Gate(server._offsets_fetch)

    async def until_cancelled(call: Callable[[], Awaitable[Any]]) -> None:
        async with asyncio.timeout(0.05):
            while True:
                await call()

    async with consumer_of(server, "t", source=lettered(4, 1), **EAGER) as consumer:
        server.script("offsets/fetch", gate)
        for call in (lambda: consumer.committed(T0), lambda: consumer.poll(LONG_MS)):
            with pytest.raises(TimeoutError):
                await until_cancelled(call)
        gate.open.set()
        assert await consumer.committed(T0) is None
