"""How renewed sessions are stored: all together, in parts, later if a row is locked, and not twice."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from groups.engine.timers import TimerService
from groups.lane import store
from groups.lane.heartbeats import LATER_MS, Entry
from groups.lane.store import LaneStore
from kcoord.database.clock import VirtualClock
from kcoord.process.off_loop import settled
from kcoord.protocol.errors import Error
from tests.groups.lane.conftest import Beat
from tests.groups.lane.support import MEMBERS, Process, deadlines, from_memory, joined_consumer
from tests.support.members import heartbeat, stable_member


async def test_row_that_another_transaction_holds_is_stored_later(
    beat: Beat, one: Process, two: Process, clock: VirtualClock, database: str, protocol: str, session_ms: int
) -> None:
    began = clock.now_ms()
    await one.flusher.flush()
    clock.advance(1_000)
    await beat(one)
    with psycopg.connect(database) as holder:
        holder.execute(f"select from {MEMBERS[protocol]} for update")
        clock.advance(1_000)
        await one.flusher.flush()
        assert one.flushed_until() == began + 1_000, "not beyond what is not stored"
    await one.flusher.flush()
    assert deadlines(database, protocol) == [began + 1_000 + session_ms]
    assert one.flushed_until() == clock.now_ms()


@pytest.mark.parametrize("at_once", [1, 2, 1_000])
async def test_sessions_of_many_members_are_stored_in_parts(
    one: Process, clock: VirtualClock, database: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "SESSIONS_AT_ONCE", at_once)
    commands = [await joined_consumer(one, member_id, f"of {member_id}") for member_id in "abcde"]
    member = await stable_member(one.groups, clock)
    await one.notified()
    clock.advance(5_000)
    for command in commands:
        assert (await settled(one.groups.consumer_heartbeat(command))).error is Error.NONE
    assert (await settled(one.groups.heartbeat(heartbeat(member)))).error is Error.NONE
    await one.flusher.flush()
    assert deadlines(database, "consumer") == [clock.now_ms() + 45_000] * 5
    assert deadlines(database, "classic") == [clock.now_ms() + 10_000]


async def test_sessions_stay_to_be_stored_while_the_database_is_away(
    beat: Beat, one: Process, clock: VirtualClock, database: str, protocol: str, session_ms: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    clock.advance(1_000)
    await beat(one)
    with monkeypatch.context() as patched:

        async def away(*_: object, **__: object) -> None:
            raise one.runtime.db.unavailable(psycopg.OperationalError("gone"))

        patched.setattr(one.runtime.db, "transaction", away)
        await one.flusher.flush()
    assert one.flushed_until() is not None
    assert deadlines(database, protocol) != [clock.now_ms() + session_ms]
    await one.flusher.flush()
    assert deadlines(database, protocol) == [clock.now_ms() + session_ms]


async def test_failure_to_store_is_told_and_the_sessions_stay(
    beat: Beat, one: Process, clock: VirtualClock, database: str, protocol: str, session_ms: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    clock.advance(session_ms // 10)
    await beat(one)
    with monkeypatch.context() as patched:

        async def broken(*_: object, **__: object) -> None:
            raise RuntimeError("a bug")

        patched.setattr(LaneStore, "flush", broken)
        await one.flusher.flush()
    await one.flusher.flush()
    assert deadlines(database, protocol) == [clock.now_ms() + session_ms]


async def test_process_that_stops_stores_what_it_renewed(
    beat: Beat, one: Process, clock: VirtualClock, database: str, protocol: str, session_ms: int
) -> None:
    clock.advance(1_000)
    await beat(one)
    assert await one.flusher.close()
    assert deadlines(database, protocol) == [clock.now_ms() + session_ms]
    answered = from_memory()
    assert (await beat(one)).error is Error.NONE
    one.flusher.begin()
    await asyncio.sleep(0)
    assert (await beat(one)).error is Error.NONE
    assert from_memory() == answered


async def test_transactions_of_due_groups_do_not_store_again_what_the_tick_has_stored(
    one: Process, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        await stable_member(one.groups, clock, f"g{number}")
    clock.advance(60_000)
    await one.notified()
    clock.advance(1)
    flushes: list[int] = []
    flush = LaneStore.flush

    async def noted(self: LaneStore, *arguments: Any) -> Any:
        flushes.append(1)
        return await flush(self, *arguments)

    monkeypatch.setattr(LaneStore, "flush", noted)
    await one.runtime.get(TimerService).tick_due_groups()
    for number in range(5):
        group = (await one.groups.describe(f"g{number}")).group
        assert group is not None
        assert not group.members
    assert len(flushes) == 1


async def test_flush_looks_only_at_groups_with_sessions_to_store(
    beat: Beat, one: Process, clock: VirtualClock, session_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await beat(one)
    await one.flusher.flush()
    looked: list[int] = []
    take = Entry.take_unstored

    def noted(self: Entry, now: int, *, every: bool = False) -> Any:
        looked.append(now)
        return take(self, now, every=every)

    monkeypatch.setattr(Entry, "take_unstored", noted)
    began = clock.now_ms()
    clock.advance(500)
    await beat(one)
    while clock.now_ms() < began + session_ms // 5 - LATER_MS:
        await one.flusher.flush()
        clock.advance(LATER_MS)
    assert not looked, "its session is stored when a fifth of it has passed"
    clock.advance(LATER_MS)
    await one.flusher.flush()
    assert looked
