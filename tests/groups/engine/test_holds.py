"""Holds and kicks through the service: two processes, waiting requests, races."""

from __future__ import annotations

import asyncio

import pytest

from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.database.clock import VirtualClock
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from tests.groups.engine.test_consumer_groups import beat, joining
from tests.support.members import eventually, join


async def test_hold_answers_who_waits_in_another_process(service: GroupService, other: GroupService) -> None:
    asked = await other.join(join())
    waiting = asyncio.create_task(other.join(join(member_id=asked.member_id)))
    await eventually(lambda: bool(other._parked._waiters), "the join waits")
    assert (await service.hold("g", 60_000, principal="ann")).removed == 1
    assert (await asyncio.wait_for(waiting, 10)).error is Error.UNKNOWN_MEMBER_ID
    assert (await other.join(join())).error is Error.COORDINATOR_LOAD_IN_PROGRESS


async def test_hold_answers_a_heartbeat_that_waits_in_another_process(
    runtime: Runtime, service: GroupService, other: GroupService
) -> None:
    await runtime.get(TopicService).create("t", 4)
    first = await settled(other.consumer_heartbeat(joining("a")))
    waiting = asyncio.create_task(settled(other.consumer_heartbeat(beat(first, max_wait_ms=60_000))))
    await eventually(lambda: bool(other._parked._waiters), "the heartbeat waits")
    await service.hold("g", 60_000, principal="ann")
    assert (await asyncio.wait_for(waiting, 10)).error is Error.UNKNOWN_MEMBER_ID
    refused = await settled(other.consumer_heartbeat(joining("a", max_wait_ms=60_000)))
    assert refused.error is Error.COORDINATOR_LOAD_IN_PROGRESS, "it does not wait for the end of the hold"


async def test_whoever_joins_while_holds_come_and_go_is_in_or_refused_never_both(
    runtime: Runtime, service: GroupService, other: GroupService
) -> None:
    await runtime.get(TopicService).create("t", 4)
    await settled(service.consumer_heartbeat(joining("m0")))

    async def joins(by: GroupService, member_id: str) -> None:
        for _ in range(15):
            reply = await settled(by.consumer_heartbeat(joining(member_id)))
            assert reply.error in (Error.NONE, Error.COORDINATOR_LOAD_IN_PROGRESS)

    async def holds(by: GroupService) -> None:
        for _ in range(10):
            assert (await by.hold("g", 60_000, principal="ann")).error is Error.NONE
            group = (await service.describe("g")).group
            assert group is not None
            assert group.hold is None or not group.members, "nobody is in a held group"
            await by.release("g", principal="ann")

    await asyncio.gather(joins(service, "a"), joins(other, "b"), joins(service, "c"), holds(other), holds(service))


async def test_hold_is_kept_by_the_row_and_ends_by_time(
    service: GroupService, other: GroupService, clock: VirtualClock
) -> None:
    await service.join(join())
    await service.hold("g", 60_000, principal="ann", reason="bug 17")
    group = (await other.describe("g")).group
    assert group is not None
    assert group.hold is not None
    assert (group.hold.by, group.hold.reason) == ("ann", "bug 17")
    clock.advance(60_000)
    assert await service._store.due_groups(10) == ["g"], "the tick tells the timeline"
    assert (await other.join(join())).error is Error.MEMBER_ID_REQUIRED


@pytest.mark.parametrize("duration_ms", [0, -1, 3_600_001])
async def test_bounds_of_a_hold(service: GroupService, duration_ms: int) -> None:
    await service.join(join())
    with pytest.raises(ProtocolError, match=r"group\.max\.hold\.ms"):
        await service.hold("g", duration_ms, principal="ann")
    group = (await service.describe("g")).group
    assert group is not None
    assert group.hold is None


async def test_kick_wakes_the_member_that_it_is_about(
    runtime: Runtime, service: GroupService, other: GroupService
) -> None:
    await runtime.get(TopicService).create("t", 4)
    first = await settled(other.consumer_heartbeat(joining("a")))
    waiting = asyncio.create_task(settled(other.consumer_heartbeat(beat(first, max_wait_ms=60_000))))
    await eventually(lambda: bool(other._parked._waiters), "the heartbeat waits")
    assert (await service.kick("g", "a", principal="ann")).error is Error.NONE
    assert (await asyncio.wait_for(waiting, 10)).error is Error.UNKNOWN_MEMBER_ID
