"""The fetch lane: what is asked at the same time shares a statement, and is answered as if each had asked alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from groups.core.model.commands import ConsumerHeartbeat
from groups.engine.service import GroupService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.commits import fetch_lane
from offsets.commits.service import OffsetService
from offsets.core.types import NO_OFFSET, OffsetFetch
from tests.support.offsets import commit


@pytest.fixture
def statements(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by each statement that reads committed offsets."""
    found: list[str] = []
    rows = runtime.db.rows

    async def counted(connection: Any, statement: str, parameters: Any = None) -> Any:
        if "offsets_committedoffset" in statement:
            found.append(statement)
        return await rows(connection, statement, parameters)

    monkeypatch.setattr(runtime.db, "rows", counted)
    return found


async def fetched(runtime: Runtime, group_id: str, *partitions: int, **member: Any) -> list[int]:
    """The committed offsets of some partitions of `orders`."""
    fetch = OffsetFetch(group_id, topics=(("orders", partitions), ("nope", (0,))), **member)
    reply = await runtime.get(OffsetService).fetch(fetch)
    found = {offset.partition: offset.committed_offset for offset in reply.offsets}
    assert {offset.topic for offset in reply.offsets} <= {"orders"}
    return [found.get(partition, NO_OFFSET) for partition in partitions]


async def joined(service: GroupService, group_id: str) -> int:
    """The member m of a consumer group; returns its epoch."""
    names = frozenset({"orders"})
    reply = await settled(
        service.consumer_heartbeat(
            ConsumerHeartbeat(
                group_id, "m", 0, rebalance_timeout_ms=30_000, subscribed_topic_names=names, topic_partitions={}
            )
        )
    )
    assert reply.error is Error.NONE
    return reply.member_epoch


async def test_fetches_of_many_groups_share_a_statement(runtime: Runtime, topic: str, statements: list[str]) -> None:
    for number in range(10):
        await commit(runtime, f"g{number}", topic, 0, 2, offset=number)
    statements.clear()
    asked = [fetched(runtime, f"g{number}", 2, 1, 0) for number in range(11)]
    expected = [[number, -1, number] for number in range(10)] + [[-1, -1, -1]]
    assert await asyncio.gather(*asked) == expected
    assert statements == [fetch_lane.Q.fetch_batch]


@pytest.mark.parametrize("at", ["here", "elsewhere"])
async def test_member_of_a_consumer_group_is_checked_by_what_is_stored(
    at: str, runtime: Runtime, service: GroupService, other: GroupService, topic: str
) -> None:
    epoch = await joined(service, "g")
    await commit(runtime, "g", topic, 0, offset=7, member_id="m", generation_id=epoch)
    assert await fetched(runtime, "g", 0, member_id="m", member_epoch=epoch) == [7]
    changer = service if at == "here" else other
    assert (await settled(changer.consumer_heartbeat(ConsumerHeartbeat("g", "m", -1)))).error is Error.NONE
    beside = asyncio.create_task(fetched(runtime, "g", 0))
    with pytest.raises(ProtocolError) as refusal:
        await fetched(runtime, "g", 0, member_id="m", member_epoch=epoch)
    assert refusal.value.error is Error.UNKNOWN_MEMBER_ID
    assert await beside == [7]


@pytest.fixture
async def without(database: str, clock: VirtualClock) -> AsyncIterator[Runtime]:
    """A process whose fetches each read for themselves."""
    runtime = Runtime(Config({"fetch.lane": False}), database, clock)
    await runtime.start()
    await runtime.notifications.wait_listening()
    yield runtime
    await runtime.stop()


async def test_switch_turns_it_off(
    runtime: Runtime, without: Runtime, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await commit(runtime, f"g{number}", topic, 0, offset=number)
    together = list[object]()
    read = fetch_lane.FetchStore.read

    async def noted(self: fetch_lane.FetchStore, asked: Any, group_ids: Any) -> Any:
        together.append(asked)
        return await read(self, asked, group_ids)

    monkeypatch.setattr(fetch_lane.FetchStore, "read", noted)
    for here, expected in ((without, 0), (runtime, 1)):
        assert await asyncio.gather(*(fetched(here, f"g{number}", 0) for number in range(3))) == [[0], [1], [2]]
        assert len(together) == expected


async def test_fetches_that_find_the_queue_full_are_told_to_come_back(
    runtime: Runtime, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_lane, "MOST_WAITING", 2)
    await commit(runtime, "g", topic, 0, offset=7)
    answers = await asyncio.gather(*(fetched(runtime, "g", 0) for _ in range(4)), return_exceptions=True)
    assert answers[:2] == [[7], [7]]
    for answer in answers[2:]:
        assert isinstance(answer, ProtocolError)
        assert answer.error is Error.COORDINATOR_NOT_AVAILABLE
        assert answer.retry_after_ms == runtime.config.int("http.retry.after.ms")
    assert await fetched(runtime, "g", 0) == [7], "there is room again"
