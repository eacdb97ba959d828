"""Heartbeats that are answered from memory: which, what is stored when, and who may expire whom meanwhile."""

from __future__ import annotations

import asyncio
import math
from unittest.mock import AsyncMock

import pytest

from groups.core.model.commands import ConsumerHeartbeat, LeaveGroup, LeavingMember
from groups.engine import heartbeats
from groups.engine.heartbeats import Flusher, Lease
from groups.engine.service import GroupService
from groups.engine.sessions import LaneStore
from groups.engine.timers import TimerService
from groups.store.classic import ClassicRows
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.database.notifications import CHANGED, WAKE
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from tests.groups.lane.conftest import Beat
from tests.groups.lane.support import MEMBERS, Process, deadlines, from_memory, query, register
from tests.support.members import eventually, heartbeat, stable_member


async def members(process: Process) -> int:
    group = (await process.groups.describe("g")).group
    return len(group.members) if group is not None else 0


async def remove(groups: GroupService, protocol: str) -> None:
    """The only member leaves."""
    group = (await groups.describe("g")).group
    assert group is not None
    (member_id,) = group.members
    if protocol == "classic":
        await groups.leave(LeaveGroup("g", (LeavingMember(member_id, None),)))
    else:
        await settled(groups.consumer_heartbeat(ConsumerHeartbeat("g", member_id, -1)))


async def test_session_is_stored_after_the_answer(
    beat: Beat, one: Process, clock: VirtualClock, database: str, protocol: str, session_ms: int
) -> None:
    before, answered = deadlines(database, protocol), from_memory()
    clock.advance(session_ms // 10)
    reply = await beat(one)
    assert (reply.error, reply.session_deadline) == (Error.NONE, clock.now_ms() + session_ms)
    assert from_memory() == answered + 1
    assert deadlines(database, protocol) == before
    await one.flusher.flush()
    assert deadlines(database, protocol) == [clock.now_ms() + session_ms]
    assert one.flushed_until() == clock.now_ms()


async def test_one_heartbeat_of_two_is_stored(
    beat: Beat, one: Process, clock: VirtualClock, database: str, protocol: str, session_ms: int
) -> None:
    """They come each fifteenth of a session, as those of clients do."""
    await beat(one)
    stored = []
    for _ in range(8):
        await one.flusher.flush()
        stored.append(deadlines(database, protocol)[0] - clock.now_ms())
        assert one.flushed_until() == clock.now_ms(), "nobody has to wait: by its row the member lives"
        clock.advance(session_ms // 15)
        await beat(one)
    late = [session_ms - left for left in stored]
    assert late == [0, session_ms // 15] * 4


async def test_last_heartbeat_is_stored_after_a_fifth_of_the_session(
    beat: Beat, one: Process, clock: VirtualClock, database: str, protocol: str, session_ms: int
) -> None:
    await beat(one)
    await one.flusher.flush()
    first, began = deadlines(database, protocol), clock.now_ms()
    clock.advance(100)
    reply = await beat(one)
    clock.advance(session_ms // 5 - 101)
    await one.flusher.flush()
    assert deadlines(database, protocol) == first
    clock.advance(1)
    await one.flusher.flush()
    assert clock.now_ms() == began + session_ms // 5
    assert deadlines(database, protocol) == [reply.session_deadline]


async def test_what_may_be_lost_is_stored_again(
    beat: Beat, one: Process, clock: VirtualClock, database: str, protocol: str, session_ms: int
) -> None:
    """A crash of Postgres loses what was committed without being flushed."""
    began = deadlines(database, protocol)
    clock.advance(session_ms // 10)
    await beat(one)
    await one.flusher.flush()
    query(database, f"update {MEMBERS[protocol]} set session_deadline = %s returning 1", began[0])
    for dropper in one.runtime.db._droppers:
        dropper()
    await one.flusher.flush()
    assert deadlines(database, protocol) == [clock.now_ms() + session_ms]


async def test_answers_come_from_memory_at_each_process(beat: Beat, one: Process, two: Process) -> None:
    await beat(two)
    await two.notified()
    answered = from_memory()
    for _ in range(3):
        assert (await beat(one)).error is Error.NONE
        assert (await beat(two)).error is Error.NONE
    assert from_memory() == answered + 6


async def test_nobody_expires_a_session_that_another_process_has_renewed(
    beat: Beat, one: Process, two: Process, clock: VirtualClock, session_ms: int
) -> None:
    clock.advance(1_000)
    reply = await beat(one)
    clock.advance(session_ms - 500)
    await two.runtime.get(TimerService).tick_due_groups()
    assert await members(two) == 1, "its stored session is over, its session is not"
    await one.flusher.flush()
    assert reply.session_deadline is not None
    clock.advance(reply.session_deadline - clock.now_ms())
    await two.runtime.get(TimerService).tick_due_groups()
    assert await members(two) == 1, "process one may have renewed it until now"
    await one.flusher.flush()
    await two.runtime.get(TimerService).tick_due_groups()
    assert await members(two) == 0


async def test_own_timers_store_first(beat: Beat, one: Process, clock: VirtualClock, session_ms: int) -> None:
    clock.advance(1_000)
    await beat(one)
    clock.advance(session_ms - 1)
    await one.runtime.get(TimerService).tick_due_groups()
    assert await members(one) == 1, "by its stored session it is gone"
    clock.advance(1)
    await one.runtime.get(TimerService).tick_due_groups()
    assert await members(one) == 0


@pytest.mark.parametrize("notified", [True, False])
async def test_member_that_was_removed_elsewhere_is_told(
    beat: Beat, one: Process, two: Process, protocol: str, notified: bool
) -> None:
    await beat(one)
    if not notified:
        for channel in (WAKE, CHANGED):
            one.runtime.notifications._listeners[channel].clear()
    await remove(two.groups, protocol)
    if notified:
        await one.notified()
    else:
        assert (await beat(one)).error is Error.NONE, "it cannot know better"
        await one.flusher.flush()
    assert (await beat(one)).error is Error.UNKNOWN_MEMBER_ID


async def test_copy_that_is_not_known_to_be_current_is_compared_with_its_row(
    beat: Beat, one: Process, two: Process, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await beat(one)
    for channel in (WAKE, CHANGED):
        one.runtime.notifications._listeners[channel].clear()
    monkeypatch.setattr(heartbeats, "STALE_SECONDS", -1.0)
    answered = from_memory()
    await remove(two.groups, protocol)
    assert (await beat(one)).error is Error.UNKNOWN_MEMBER_ID
    assert from_memory() == answered


async def test_old_copy_that_is_current_answers_without_a_transaction(
    beat: Beat, one: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    await beat(one)
    copy = one.flusher._groups.copy_of("g")
    assert copy is not None
    copy.current_at = one.flusher.notified_until = -math.inf
    answered = from_memory()
    assert (await beat(one)).error is Error.NONE
    assert from_memory() == answered + 1
    assert one.flusher._groups.copy_of("g") is copy, "it was not loaded again"


async def test_look_at_a_group_does_not_wait_for_an_unresponsive_database(
    beat: Beat, one: Process, clock: VirtualClock, session_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does the end of the process; what is not stored stays."""
    await beat(one)
    clock.advance(session_ms)
    with monkeypatch.context() as patched:

        async def silent(*_: object, **__: object) -> None:
            await asyncio.Event().wait()

        patched.setattr(LaneStore, "flush", silent)
        await asyncio.wait_for(one.groups.tick("g"), 10)
        assert await members(one) == 1
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await one.flusher.close()
    assert not await one.flusher.close(), "what it answered is not stored, so its row must not end in peace"


async def test_nothing_is_answered_from_memory_without_a_lease(beat: Beat, one: Process) -> None:
    await beat(one)
    one.runtime.get(Lease).until = 0.0
    answered = from_memory()
    assert (await beat(one)).error is Error.NONE, "from the store"
    assert from_memory() == answered
    one.runtime.get(Lease).until = math.inf
    assert (await beat(one)).error is Error.NONE
    assert from_memory() == answered + 1
    one.runtime.get(Lease).incarnation = one.node + 1
    assert (await beat(one)).error is Error.NONE
    assert from_memory() == answered + 1, "another incarnation has said nothing yet"


async def test_node_that_was_declared_dead_stops(beat: Beat, one: Process, database: str) -> None:
    await beat(one)
    query(database, "update groups_coordinatornode set ended_at = 0 where id = %s returning id", one.node)
    await one.flusher.flush()
    assert not one.flusher.is_open
    answered = from_memory()
    assert (await beat(one)).error is Error.NONE
    assert from_memory() == answered


async def test_idle_process_makes_nobody_wait(
    beat: Beat, one: Process, clock: VirtualClock, database: str, protocol: str, session_ms: int
) -> None:
    clock.advance(1_000)
    await beat(one)
    await one.flusher._rest()
    assert one.flushed_until() is None
    assert deadlines(database, protocol) == [clock.now_ms() + session_ms]
    answered = from_memory()
    await beat(one)
    assert from_memory() == answered, "the first one finds it at rest"
    await eventually(lambda: one.flusher.is_open, "it answers from memory again")
    assert one.flushed_until() == clock.now_ms()
    await beat(one)
    assert from_memory() == answered + 1


async def test_a_rest_that_fails_is_tried_again(
    beat: Beat,
    one: Process,
    clock: VirtualClock,
    database: str,
    protocol: str,
    session_ms: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise nobody's session would end while no heartbeat comes to this process."""
    clock.advance(1_000)
    await beat(one)
    before = one.flushed_until()
    assert before is not None
    monkeypatch.setattr(heartbeats, "IDLE_SECONDS", 0.0)
    with monkeypatch.context() as outage:
        gone = ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "the database is not available")
        outage.setattr(LaneStore, "flush", AsyncMock(side_effect=gone))
        await one.flusher._turn()
    assert one.flushed_until() == before, "what it answered is not stored"
    await one.flusher._turn()
    assert one.flushed_until() is None, "it rests"
    assert deadlines(database, protocol) == [clock.now_ms() + session_ms]


async def test_a_process_that_drops_what_it_renewed_makes_nobody_wait(
    beat: Beat, one: Process, clock: VirtualClock
) -> None:
    """No heartbeat comes to it any more."""
    await beat(one)
    one.flusher.clock.start(clock.now_ms() + 59_000)
    await one.flusher.flush()
    assert not one.flusher.is_open
    await one.flusher._turn()
    assert one.flushed_until() is None, "it says that it renews nothing"


async def test_what_is_renewed_stays_while_the_time_is_unknown(
    beat: Beat, one: Process, clock: VirtualClock, database: str, protocol: str, session_ms: int
) -> None:
    await beat(one)
    clock.advance(session_ms // 10)
    await beat(one)
    with pytest.MonkeyPatch.context() as unknown:
        unknown.setattr(one.flusher.clock, "_measured", lambda: None)
        await one.flusher.flush()
    await one.flusher.flush()
    assert deadlines(database, protocol) == [clock.now_ms() + session_ms]


async def test_group_with_somebody_overdue_is_decided(
    one: Process, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another member has to be removed first, and that starts a rebalance."""
    first = await stable_member(one.groups, clock)
    await one.notified()
    clock.advance(9_000)
    assert (await settled(one.groups.heartbeat(heartbeat(first)))).error is Error.NONE
    clock.advance(2_000)
    loads: list[str] = []
    load = ClassicRows.load_sessions

    async def noted(self: ClassicRows, *args: object) -> object:
        loads.append("g")
        return await load(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(ClassicRows, "load_sessions", noted)
    assert (await settled(one.groups.heartbeat(heartbeat(first)))).error is Error.NONE
    assert not loads, "it was renewed here, so nobody is overdue"
    clock.advance(10_001)
    assert (await settled(one.groups.heartbeat(heartbeat(first)))).error is Error.UNKNOWN_MEMBER_ID
    assert loads


async def test_clock_that_went_back_counts_from_there(beat: Beat, one: Process, clock: VirtualClock) -> None:
    one.flusher.clock.start(clock.now_ms() + 59_000)
    answered = from_memory()
    assert (await beat(one)).error is Error.NONE
    assert from_memory() == answered, "sessions that are counted from the time before would be too long"
    await eventually(lambda: one.flusher.is_open, "it answers from memory again")
    assert one.flushed_until() == clock.now_ms()
    assert (await beat(one)).error is Error.NONE
    assert from_memory() == answered + 1


async def test_switch_turns_it_off(database: str, clock: VirtualClock) -> None:
    runtime = Runtime(Config({"heartbeat.lane": False}), database, clock)
    await runtime.start()
    await runtime.notifications.wait_listening()
    process = register(runtime, database, "off")
    member = await stable_member(process.groups, clock)
    answered = from_memory()
    for _ in range(3):
        assert (await settled(process.groups.heartbeat(heartbeat(member)))).error is Error.NONE
    assert from_memory() == answered
    assert process.flushed_until() is None
    assert not runtime.get(Flusher).is_open
    await runtime.stop()
