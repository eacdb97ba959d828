"""What grows with the partitions of a group runs in a thread and is stored in parts: others are served meanwhile."""

from __future__ import annotations

import asyncio
import threading
from random import Random
from typing import Any

import pytest

from groups.core.assignors import BUILT_IN
from groups.core.model.commands import ConsumerHeartbeat
from groups.core.model.consumer_group import ConsumerGroup
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.process import off_loop
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.groups.store.test_roundtrip import walk
from tests.support.consumer_commands import random_consumer_command
from tests.support.members import PATIENCE_SECONDS, eventually, join

PARTITIONS = 10


def joining(member_id: str) -> ConsumerHeartbeat:
    return ConsumerHeartbeat(
        "g",
        member_id,
        0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=frozenset({"t"}),
        topic_partitions={},
        server_assignor="range",
    )


async def test_other_groups_are_served_while_a_large_target_is_decided(
    service: GroupService, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(off_loop, "ABOVE", PARTITIONS - 1)
    begun, go_on = threading.Event(), threading.Event()

    class Slow:
        name = "range"

        def assign(self, spec: Any, topics: Any) -> Any:
            begun.set()
            assert go_on.wait(PATIENCE_SECONDS), "nobody else was served"
            return BUILT_IN["range"].assign(spec, topics)

    await runtime.get(TopicService).create("t", PARTITIONS)
    monkeypatch.setattr(service._mailbox._contexts, "assignors", {**BUILT_IN, "range": Slow()})
    large = asyncio.create_task(settled(service.consumer_heartbeat(joining("a"))))
    await eventually(begun.is_set, "the target is being computed")
    try:
        assert (await service.join(join("other"))).error is Error.MEMBER_ID_REQUIRED
        assert not large.done()
    finally:
        go_on.set()
    reply = await large
    assert reply.error is Error.NONE
    assert reply.assignment is not None
    assert sum(map(len, reply.assignment.values())) == PARTITIONS


async def test_loop_has_its_turn_between_the_parts_of_what_is_stored(
    service: GroupService, other: GroupService, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(off_loop, "PART", 3)
    turns = []
    parts = off_loop.in_parts

    def counted(items: Any) -> Any:
        async def told() -> Any:
            async for part in parts(items):
                turns.append(len(part))
                yield part

        return told()

    await runtime.get(TopicService).create("t", PARTITIONS)
    monkeypatch.setattr(off_loop, "in_parts", counted)
    await settled(service.consumer_heartbeat(joining("a")))
    assert turns[-4:] == [3, 3, 3, 1], "the partitions of its first member"
    here, there = await service.describe("g"), await other.describe("g")
    assert isinstance(here.group, ConsumerGroup)
    assert here.group == there.group
    assert len(here.group.members.owners) == PARTITIONS


def test_groups_are_read_back_as_they_were_folded_also_in_threads_and_parts(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(off_loop, "ABOVE", -1)
    monkeypatch.setattr(off_loop, "PART", 2)
    with asyncio.Runner() as runner:
        for seed in range(5):
            runner.run(walk(database, Random(seed), random_consumer_command))
