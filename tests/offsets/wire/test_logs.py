"""ListOffsets, Fetch and Produce: answers about logs that are not here."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from groups.topics import TopicService, Watermark
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from offsets.lag import ends
from offsets.lag.samples import SampleService
from tests.offsets.wire.test_commits import commit
from tests.support.wire import BY_NAME, Wire, WireWith

LISTS = range(BY_NAME["list_offsets"].versions[0], BY_NAME["list_offsets"].versions[1] + 1)
WITH_IDS = 13
"""The first version of Fetch that names topics by id."""
FETCHES = range(BY_NAME["fetch"].versions[0], BY_NAME["fetch"].versions[1] + 1)
MINUTE = 60_000


async def listed(wire: Wire, timestamp: int, version: int = 7, partition: int = 0, topic: str = "orders") -> Any:
    """Error, offset and timestamp of one partition."""
    partitions = [{"partition_index": partition, "timestamp": timestamp}]
    answer = await wire.ask("list_offsets", version, replica_id=-1, topics=[{"name": topic, "partitions": partitions}])
    (found,) = answer.topics[0].partitions
    return found.error_code, found.offset, found.timestamp


async def fetched(wire: Wire, version: int = 12, wait: int = 0, offset: int = 0, topic: Any = "orders") -> Any:
    """What a Fetch says of one partition. `topic`: its name, or from version 13 on its id."""
    partitions = [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1}]
    topics = [{"topic" if version < WITH_IDS else "topic_id": topic, "partitions": partitions}]
    answer = await wire.ask("fetch", version, max_wait=wait, min_bytes=1, topics=topics)
    return answer.responses[0].partitions[0]


async def report(runtime: Runtime, start: int, end: int) -> None:
    await runtime.get(TopicService).set_watermarks("orders", [Watermark(0, start, end)])


@pytest.mark.parametrize("version", LISTS)
async def test_each_version_lists_both_ends(wire: Wire, runtime: Runtime, topic: str, version: int) -> None:
    await report(runtime, 3, 50)
    assert await listed(wire, -2, version) == (0, 3, -1)
    assert await listed(wire, -1, version) == (0, 50, -1)


async def test_the_end_is_never_below_what_any_group_committed(wire: Wire, runtime: Runtime, topic: str) -> None:
    assert await listed(wire, -1) == (0, 0, -1)
    await commit(wire)
    assert await listed(wire, -1) == (0, 7, -1), "no watermark is known: without this, lag is negative"
    further = [{"partition_index": 0, "committed_offset": 9, "committed_metadata": ""}]
    await commit(wire, group="h", partitions=further)
    assert await listed(wire, -1) == (0, 9, -1)
    await report(runtime, 0, 8)
    assert await listed(wire, -1) == (0, 9, -1), "the watermark lags behind"
    await report(runtime, 0, 80)
    assert await listed(wire, -1) == (0, 80, -1)


async def test_by_time_from_samples(wire: Wire, runtime: Runtime, clock: VirtualClock, topic: str) -> None:
    began = clock.now_ms()
    for end in (100, 200):
        await report(runtime, 10, end)
        await runtime.get(SampleService).sample()
        clock.advance(10 * MINUTE)
    assert await listed(wire, began + 5 * MINUTE) == (0, 150, began + 5 * MINUTE)
    assert await listed(wire, clock.now_ms()) == (0, -1, -1), "nothing was written since"
    assert await listed(wire, began - MINUTE) == (43, -1, -1), "a tool would take the end of the log"
    assert await listed(wire, began, partition=1) == (0, -1, -1), "as of a log without records"


async def test_everything_was_written_after_the_instant_0(wire: Wire, runtime: Runtime, topic: str) -> None:
    assert await listed(wire, 0) == (0, -1, -1), "nothing was written"
    await report(runtime, 3, 50)
    assert await listed(wire, 0) == (0, 3, 0), "samples are not needed for that"
    await report(runtime, 50, 50)
    assert await listed(wire, 0) == (0, -1, -1), "nothing is left"


async def test_other_meanings(wire: Wire, runtime: Runtime, topic: str) -> None:
    await report(runtime, 3, 50)
    assert await listed(wire, -4, 9) == (0, 3, -1)
    assert await listed(wire, -5, 9) == (0, -1, -1)
    assert await listed(wire, -3, 9) == (43, -1, -1)


async def test_what_is_not_there_and_not_allowed(wire: Wire, wire_with: WireWith, topic: str) -> None:
    assert (await listed(wire, -1, partition=3))[0] == 3
    assert (await listed(wire, -1, partition=-1))[0] == 3
    assert (await listed(wire, -1, topic="missing"))[0] == 3
    nobody = wire_with("describe:topic:other")
    assert (await listed(nobody, -1))[0] == 29
    assert (await listed(nobody, -1, topic="missing"))[0] == 29
    reader = wire_with("describe:topic:orders")
    assert (await listed(reader, -1))[0] == 0
    assert (await fetched(reader)).error_code == 29, "to fetch is to read"
    assert (await fetched(wire, topic="missing")).error_code == 3


@pytest.mark.parametrize("version", FETCHES)
async def test_each_version_fetches_nothing(wire: Wire, runtime: Runtime, topic: str, version: int) -> None:
    await report(runtime, 3, 50)
    named = uuid.UUID(str((await runtime.get(TopicService).get(topic)).topic_id)) if version >= WITH_IDS else topic
    found = await fetched(wire, version, offset=20, topic=named)
    assert (found.error_code, found.records, found.high_watermark, found.last_stable_offset) == (0, b"", 50, 50)


async def test_a_topic_that_is_fetched_by_its_id(wire: Wire, wire_with: WireWith, runtime: Runtime, topic: str) -> None:
    """Its answer has the id, and one that is unknown has an error of its own (KIP-516)."""
    known, unknown = uuid.UUID(str((await runtime.get(TopicService).get(topic)).topic_id)), uuid.uuid4()
    asked = [{"topic_id": one, "partitions": [{"partition": 0, "fetch_offset": 0}]} for one in (known, unknown)]
    answer = await wire.ask("fetch", 13, max_wait=0, min_bytes=1, topics=asked)
    shown = {found.topic_id: found.partitions[0].error_code for found in answer.responses}
    assert shown == {known: 0, unknown: 100}
    assert (await fetched(wire_with("describe:topic:*"), 13, topic=known)).error_code == 29, "to fetch is to read"
    assert (await fetched(wire_with("describe:topic:*"), 13, topic=unknown)).error_code == 100


async def test_no_offset_is_out_of_range(wire: Wire, runtime: Runtime, topic: str) -> None:
    await report(runtime, 30, 50)
    for offset in (0, 51, 2**63 - 1):
        found = await fetched(wire, offset=offset)
        assert (found.error_code, found.high_watermark) == (0, max(50, offset))


async def test_ends_are_not_read_for_every_fetch(
    wire: Wire, runtime: Runtime, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await report(runtime, 0, 50)
    assert (await fetched(wire)).high_watermark == 50
    await report(runtime, 0, 60)
    assert (await fetched(wire)).high_watermark == 50
    monkeypatch.setattr(ends, "KNOWN_SECONDS", 0)
    assert (await fetched(wire)).high_watermark == 60


async def test_a_fetch_is_held_and_ends_when_the_server_stops(wire: Wire, runtime: Runtime, topic: str) -> None:
    await fetched(wire)
    held = asyncio.create_task(fetched(wire, wait=600_000))
    done, _ = await asyncio.wait({held}, timeout=0.3)
    assert not done
    await runtime.drain()
    assert (await asyncio.wait_for(held, 10)).error_code == 0


async def test_produce_is_refused_with_the_reason(wire: Wire, topic: str) -> None:
    batch = [{"name": topic, "partition_data": [{"index": 0, "records": b"x"}]}]
    for version in range(3, 10):
        answer = await wire.ask("produce", version, acks=-1, timeout=1, topic_data=batch)
        (found,) = answer.responses[0].partition_responses
        assert (found.error_code, found.base_offset) == (44, -1)
        if version >= 8:
            assert "stores no records" in found.error_message
    assert await wire.ask("produce", 9, acks=0, timeout=1, topic_data=batch) is None
