"""Heartbeats and commits update rows in place (HOT) and seldom that of the group, whose wake-up is never late."""

from __future__ import annotations

import psycopg
import pytest

from groups.engine.service import GroupService
from groups.engine.timers import TimerService
from groups.store.store import GroupStore
from kcoord.database.clock import VirtualClock
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from tests.conftest import START_MS
from tests.support.hot_updates import connected, updates
from tests.support.members import eventually, heartbeat, stable_member
from tests.support.steady import STEADY, SteadyGroups

GROUPS, ROUNDS = 8, 40
MEMBERS = {"classic": "groups_member", "consumer": "groups_consumermember"}
SESSION_MS = 10_000


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_updates_of_heartbeats_and_commits_are_hot(database: str, protocol: str) -> None:
    tables = ["groups_group", MEMBERS[protocol], "offsets_committedoffset"]
    clock = VirtualClock(START_MS)
    runtime = Runtime(STEADY, database, clock)
    await runtime.start()
    groups = SteadyGroups(runtime, clock, protocol, GROUPS)
    await groups.fill()
    await groups.commit(0)
    with psycopg.connect(database, autocommit=True) as connection:
        before = updates(connection, tables)
        for number in range(ROUNDS):
            await groups.beat()
            await groups.commit(number)
        await runtime.stop()
        await eventually(lambda: not connected(connection), "every backend has ended and told its counters")
        counted = {table: found.since(before[table]) for table, found in updates(connection, tables).items()}
    assert counted.pop("groups_group").all < groups.beats / 4, "only the wake-up moves, and not with every heartbeat"
    for table, found in counted.items():
        assert found.all >= groups.beats, table
        assert found.ratio > 0.75, (table, found)


async def test_wake_up_of_a_row_stays_while_it_is_early_enough(
    service: GroupService, runtime: Runtime, clock: VirtualClock
) -> None:
    member = await stable_member(service, clock)
    stored = (await service.describe("g")).wake_at
    moved = []
    for _ in range(30):
        clock.advance(1_000)
        await settled(service.heartbeat(heartbeat(member)))
        found = await service.describe("g")
        assert found.due == clock.now_ms() + SESSION_MS
        assert found.wake_at is not None
        assert clock.now_ms() < found.wake_at <= found.due, "neither late nor in vain"
        if found.wake_at != stored:
            moved.append(found.wake_at)
        stored = found.wake_at
    assert 3 <= len(moved) <= 5, "not with every heartbeat, but before it comes"
    assert await runtime.get(TimerService).tick_due_groups() == 0


async def test_early_wake_up_finds_nothing_and_the_next_is_in_time(
    service: GroupService, runtime: Runtime, clock: VirtualClock
) -> None:
    member = await stable_member(service, clock)
    clock.advance(3_000)
    await settled(service.heartbeat(heartbeat(member)))
    timers = runtime.get(TimerService)
    found = await service.describe("g")
    assert found.wake_at == clock.now_ms() + SESSION_MS - 3_000, "that of the sync"
    clock.advance(SESSION_MS - 3_000)
    assert await timers.tick_due_groups() == 0
    found = await service.describe("g")
    assert found.wake_at == found.due == clock.now_ms() + 3_000, "moved to where it has to be, without a look"
    clock.advance(3_000)
    assert await timers.tick_due_groups() == 1
    group = (await service.describe("g")).group
    assert group is not None
    assert not group.members, "the session ended to the millisecond"


async def test_copy_in_memory_has_the_wake_up_of_the_row(
    service: GroupService, runtime: Runtime, clock: VirtualClock, database: str
) -> None:
    member = await stable_member(service, clock)
    store = runtime.get(GroupStore)
    with psycopg.connect(database, autocommit=True) as connection:
        for _ in range(15):
            clock.advance(1_500)
            await settled(service.heartbeat(heartbeat(member)))
            row = connection.execute("select version, wake_at from groups_group").fetchone()
            cached = store._copies._copies["g"].stored
            assert row == (cached.version, cached.wake_at)
