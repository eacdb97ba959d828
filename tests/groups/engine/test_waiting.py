"""Parking: requests are answered when the barrier falls, whichever process holds them, and never twice."""

from __future__ import annotations

import asyncio
from unittest.mock import AsyncMock

import psycopg
import pytest
from prometheus_client import REGISTRY

from groups.core.model.commands import Parked, ParkKind
from groups.core.model.replies import JoinReply
from groups.core.model.types import GroupState
from groups.engine.parked_requests import ShuttingDown
from groups.engine.service import GroupService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Action, Error, ProtocolError
from tests.support.members import eventually, join, leave, parked_join, stable_member, sync


async def test_join_is_answered_when_its_window_ends(service: GroupService, clock: VirtualClock) -> None:
    task = await parked_join(service)
    clock.advance(2_999)
    await service.tick("g")
    assert not task.done()
    clock.advance(1)
    await service.tick("g")
    reply = await task
    assert (reply.error, reply.generation_id, reply.leader) == (Error.NONE, 1, reply.member_id)


async def test_join_parked_here_is_completed_by_another_process(
    service: GroupService, other: GroupService, clock: VirtualClock
) -> None:
    here, there = await parked_join(service), await parked_join(other)
    for _ in range(2):
        clock.advance(3_000)
        await other.tick("g")
    first, second = await asyncio.wait_for(asyncio.gather(here, there), 10)
    assert first.error is second.error is Error.NONE
    assert first.generation_id == second.generation_id == 1
    assert first.leader == second.leader
    leader, follower = (first, second) if first.leader == first.member_id else (second, first)
    assert {member.member_id for member in leader.members} == {first.member_id, second.member_id}
    assert follower.members == ()


async def test_sync_parked_here_is_answered_by_the_leader_there(
    service: GroupService, other: GroupService, clock: VirtualClock
) -> None:
    tasks = [await parked_join(service), await parked_join(other)]
    for _ in range(2):
        clock.advance(3_000)
        await service.tick("g")
    replies = [await task for task in tasks]
    leader = next(reply for reply in replies if reply.members)
    follower = next(reply for reply in replies if not reply.members)
    waiting = asyncio.create_task(service.sync(sync(follower)))
    await eventually(lambda: is_waiting_for_sync(service, follower.member_id), "the follower's sync is parked")
    done = await other.sync(sync(leader, {leader.member_id: b"L", follower.member_id: b"F"}))
    assert done.assignment == b"L"
    assert (await asyncio.wait_for(waiting, 10)).assignment == b"F"


async def is_waiting_for_sync(service: GroupService, member_id: str) -> bool:
    group = (await service.describe("g")).group
    return group is not None and group.members[member_id].awaiting_sync


async def test_member_removed_by_another_process_is_told(
    service: GroupService, other: GroupService, clock: VirtualClock
) -> None:
    waiting = await parked_join(service)
    group = (await service.describe("g")).group
    assert group is not None
    await other.leave(leave(next(iter(group.members))))
    reply = await asyncio.wait_for(waiting, 10)
    assert (reply.error, reply.member_id) == (Error.UNKNOWN_MEMBER_ID, "")


async def test_join_whose_wait_runs_out_is_to_be_sent_again(service: GroupService, clock: VirtualClock) -> None:
    waiting = await parked_join(service, max_wait_ms=50)
    with pytest.raises(ProtocolError) as raised:
        await waiting
    assert raised.value.error is Error.REBALANCE_IN_PROGRESS
    assert raised.value.action is Action.RETRY
    member_id = str(raised.value.fields["member_id"])
    again = await parked_join(service, member_id=member_id)
    clock.advance(3_000)
    await service.tick("g")
    assert (await again).member_id == member_id


async def test_every_waiter_of_a_member_gets_the_same_answer(service: GroupService, clock: VirtualClock) -> None:
    """Differs from Kafka: there a join displaced by a re-send is never answered."""
    first = await parked_join(service)
    group = (await service.describe("g")).group
    assert group is not None
    second = await parked_join(service, member_id=next(iter(group.members)))
    # The member waited already: that its second request does too can be seen only here.
    waiters = service._parked._waiters["g"]
    await eventually(lambda: sum(map(len, waiters.values())) == 2, "both requests wait")
    clock.advance(3_000)
    await service.tick("g")
    assert await first == await second


async def test_client_that_goes_away_loses_its_suspension(service: GroupService, clock: VirtualClock) -> None:
    await stable_member(service, clock)
    task = await parked_join(service)
    await service.leave(leave("nobody"))
    group = (await service.describe("g")).group
    assert group is not None
    gone = next(member for member in group.members.values() if member.is_new)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    async def suspension_ended() -> bool:
        group = (await service.describe("g")).group
        assert group is not None
        return group.members[gone.member_id].session_deadline == clock.now_ms() + gone.session_timeout_ms

    await eventually(suspension_ended, "the session counts from now")


async def test_shutdown_answers_waiters_with_retry(runtime: Runtime, service: GroupService) -> None:
    waiting = await parked_join(service)
    await service._close()
    with pytest.raises(ProtocolError) as raised:
        await asyncio.wait_for(waiting, 5)
    assert raised.value.action is Action.RETRY


async def test_shutdown_answers_waiters_whose_answer_could_not_be_committed(
    service: GroupService, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = await parked_join(service)
    clock.advance(3_000)

    async def stop_and_fail(*args: object, **kwargs: object) -> None:
        await service._parked.close()
        raise psycopg.OperationalError("the connection was lost")

    monkeypatch.setattr(service._store, "append_events", stop_and_fail)
    with pytest.raises(ProtocolError):
        await service.tick("g")
    with pytest.raises(ProtocolError) as raised:
        await asyncio.wait_for(waiting, 10)
    assert raised.value.action is Action.RETRY


@pytest.mark.parametrize("config", [Config({"notifications.repair.interval.ms": 200})])
async def test_lost_hint_is_repaired_by_looking_again(
    runtime: Runtime, service: GroupService, other: GroupService, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = await parked_join(service)

    async def nothing(*args: object, **kwargs: object) -> None:
        return None

    monkeypatch.setattr(other._store, "notify", nothing)
    clock.advance(3_000)
    await other.tick("g")
    assert (await asyncio.wait_for(waiting, 10)).error is Error.NONE


@pytest.mark.parametrize("config", [Config({"notifications.repair.interval.ms": 200})])
async def test_lost_hint_is_repaired_from_a_copy_that_is_current(
    runtime: Runtime, service: GroupService, other: GroupService, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy may have been loaded for somebody else after the hint was lost; nothing is read then."""
    waiting = await parked_join(service)
    looks = asyncio.Event()
    monkeypatch.setattr(service._parked, "_look_soon", lambda _: looks.set())
    monkeypatch.setattr(other._store, "notify", AsyncMock())
    clock.advance(3_000)
    await other.tick("g")
    await asyncio.wait_for(looks.wait(), 10)  # the copy is not current
    await service._store.load(["g"])
    assert (await asyncio.wait_for(waiting, 10)).error is Error.NONE


async def test_stopped_service_answers_not_available(service: GroupService) -> None:
    service.active = False
    with pytest.raises(ProtocolError) as raised:
        await service.join(join(""))
    assert raised.value.error is Error.COORDINATOR_NOT_AVAILABLE


async def test_dead_group_answers_its_waiters(service: GroupService) -> None:
    waiting = await parked_join(service)
    await service.force_state("g", GroupState.DEAD)
    reply = await asyncio.wait_for(waiting, 10)
    assert reply.error is Error.NOT_COORDINATOR


async def test_a_request_that_is_cancelled_as_its_answer_comes_is_cancelled(service: GroupService) -> None:
    """The answer must not swallow the cancellation: the client is gone, and a shutdown waits for the task."""
    parked = service._parked
    waiter = parked.enter("g", Parked(ParkKind.JOIN, "m", None, 0, 0), 0)
    waiting = asyncio.create_task(parked.wait(waiter, 60_000))
    await asyncio.sleep(0)
    waiter.answer.set_result(JoinReply(Error.NONE, "m"))
    await asyncio.sleep(0)  # the wait is over, and its task has not run yet
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not parked.has_waiters("g")


async def test_nobody_is_counted_as_waiting_once_the_process_stops(service: GroupService) -> None:
    """Also who entered without waiting for the answer."""
    parked = service._parked
    before = REGISTRY.get_sample_value("kcoord_parked_requests", {"kind": "join"})
    waiter = parked.enter("g", Parked(ParkKind.JOIN, "m", None, 0, 0), 0)
    await parked.close()
    assert isinstance(waiter.answer.exception(), ShuttingDown)
    assert not parked.has_waiters("g")
    assert REGISTRY.get_sample_value("kcoord_parked_requests", {"kind": "join"}) == before
