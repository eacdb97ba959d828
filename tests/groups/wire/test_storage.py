"""Consoles and exporters ask brokers about stored records; the answers say that nothing is stored."""

from __future__ import annotations

from typing import Any

import pytest

from groups.api.kafka import storage
from groups.api.kafka.brokers import Broker
from groups.topics import TopicService
from kcoord.door.kafka.api import Call
from kcoord.process.runtime import Runtime
from tests.support.wire import BY_NAME, Wire, WireWith

VERSIONS = range(BY_NAME["describe_log_dirs"].versions[0], BY_NAME["describe_log_dirs"].versions[1] + 1)


async def directories(wire: Wire, version: int = 4, topics: object = None) -> Any:
    return await wire.ask("describe_log_dirs", version, topics=topics)


def sizes(answer: Any) -> dict[str, dict[int, int]]:
    """The size of each partition, by topic."""
    (directory,) = answer.results
    return {topic.name: {p.partition_index: p.partition_size for p in topic.partitions} for topic in directory.topics}


@pytest.mark.parametrize("version", VERSIONS)
async def test_each_version_shows_a_directory_of_empty_partitions(wire: Wire, topic: str, version: int) -> None:
    answer = await directories(wire, version)
    assert (answer.results[0].log_dir, answer.results[0].error_code) == ("/no-records", 0)
    assert sizes(answer) == {topic: {0: 0, 1: 0, 2: 0}}
    some = [{"topic": topic, "partitions": [1, 7]}, {"topic": "missing", "partitions": [0]}]
    assert sizes(await directories(wire, version, some)) == {topic: {1: 0}}


async def test_each_broker_shows_the_partitions_that_it_leads(
    wire: Wire, runtime: Runtime, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    async def two(call: Call) -> dict[str, Broker]:
        return {"a": Broker(1, "", 1), "b": Broker(2, "", 2)}

    monkeypatch.setattr(storage, "brokers", two)
    monkeypatch.setattr(storage, "node_name", lambda config: names[-1])
    shown: list[set[int]] = []
    for name in ("a", "b", "not yet one of them"):
        names.append(name)
        shown.append(set(sizes(await directories(wire)).get(topic, ())))
    assert shown[0] | shown[1] == {0, 1, 2}
    assert {len(shown[0]), len(shown[1])} == {1, 2}
    assert shown[2] == set()


async def test_who_may_see_the_directories(wire_with: WireWith, topics: TopicService, topic: str) -> None:
    await topics.create("secret", 1)
    seen = await directories(wire_with("describe:cluster:kafka-cluster", f"describe:topic:{topic}"))
    assert set(sizes(seen)) == {topic}
    refused = await directories(wire_with(f"describe:topic:{topic}"))
    assert (refused.error_code, refused.results) == (31, ())


async def test_nobody_writes_to_a_partition(wire: Wire, wire_with: WireWith, topic: str) -> None:
    async def producers(client: Wire) -> list[tuple[int, Any]]:
        asked = [{"name": topic, "partition_indexes": [0, 3]}, {"name": "missing", "partition_indexes": [0]}]
        answer = await client.ask("describe_producers", 0, topics=asked)
        return [(p.error_code, p.active_producers) for entry in answer.topics for p in entry.partitions]

    assert await producers(wire) == [(0, ()), (3, ()), (3, ())]
    assert await producers(wire_with("describe:topic:*")) == [(29, ())] * 3
