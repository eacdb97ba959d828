"""A group has a bounded number of events, whatever it does, and each of them a bounded length."""

from __future__ import annotations

import psycopg
import pytest

from groups.core.model.events import EventKind, GroupEvent
from groups.engine.service import GroupService
from groups.engine.timers import TimerService
from groups.store.store import EventStore
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.database.pool import Connection
from kcoord.process.runtime import Runtime
from tests.support.members import join, leave

KEPT = 100
DAY_MS = 86_400_000


@pytest.fixture
def config() -> Config:
    """Few events are kept, and an empty group does not wait for more members."""
    return Config({"events.max.per.group": KEPT, "group.initial.rebalance.delay.ms": 0})


async def cycle(service: GroupService, group_id: str = "g") -> None:
    """A member joins alone and leaves."""
    asked = await service.join(join(group_id))
    reply = await service.join(join(group_id, asked.member_id))
    await service.leave(leave(reply.member_id, group_id))


async def write(runtime: Runtime, events: EventStore, group_id: str, count: int, now: int = 0) -> None:
    """Events of one group, in one transaction; which of them is which says the generation."""

    async def work(connection: Connection) -> None:
        lines = [GroupEvent(EventKind.REBALANCE_COMPLETED, number) for number in range(count)]
        await events.append(connection, [(group_id, now, line) for line in lines])

    await runtime.db.transaction(work)


def generations(database: str, group_id: str = "g") -> list[int]:
    with psycopg.connect(database) as connection:
        found = connection.execute(
            "select generation_id from groups_event where group_name = %s order by id", [group_id]
        )
        return [row[0] for row in found]


async def test_group_that_joins_and_leaves_in_a_loop_keeps_its_newest_events(
    service: GroupService, database: str
) -> None:
    most = 0
    for _ in range(60):
        await cycle(service)
        most = max(most, len(generations(database)))
    assert KEPT <= most <= KEPT * 1.1 + 6, "without any upkeep; a cycle writes up to six events"
    left = generations(database)
    assert left == sorted(left)
    assert left[-1] == 120, "two generations of each cycle: the newest stay"


async def test_decision_with_many_events_does_not_outrun_the_bound(runtime: Runtime, database: str) -> None:
    events = runtime.get(EventStore)
    for _ in range(5):
        await write(runtime, events, "g", 3 * KEPT)
    assert generations(database) == list(range(2 * KEPT, 3 * KEPT))


async def test_groups_that_had_too_many_get_fewer_step_by_step(runtime: Runtime, database: str) -> None:
    await write(runtime, EventStore(Runtime(Config({}), database)), "g", 1_000)
    events = runtime.get(EventStore)
    await write(runtime, events, "g", KEPT // 10)
    assert len(generations(database)) == 1_000 - KEPT // 10, "no more than twice as many as came, under the lock"


async def test_upkeep_trims_what_is_old_and_what_is_too_much(
    runtime: Runtime, clock: VirtualClock, database: str
) -> None:
    generous = EventStore(Runtime(Config({}), database))
    await write(runtime, generous, "old", 7, clock.now_ms() - 31 * DAY_MS)
    names = [f"crowd-{number:03}" for number in range(3)]
    for name in names:
        await write(runtime, generous, name, KEPT + 50, clock.now_ms())
    await write(runtime, generous, "quiet", KEPT, clock.now_ms())
    assert await runtime.get(TimerService).trim_events() == 7 + 3 * 50
    assert generations(database, "old") == []
    assert generations(database, "quiet") == list(range(KEPT))
    for name in names:
        assert generations(database, name) == list(range(50, KEPT + 50)), "the newest stay"
    assert await runtime.get(TimerService).trim_events() == 0


async def test_upkeep_goes_on_with_the_next_groups(
    runtime: Runtime, clock: VirtualClock, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groups.store.store.GROUPS_PER_LOOK", 2)
    monkeypatch.setattr("groups.store.store.TRIM_BATCH", 20)
    generous = EventStore(Runtime(Config({}), database))
    for number in range(5):
        await write(runtime, generous, f"g{number}", KEPT + 50, clock.now_ms())
    assert await runtime.get(TimerService).trim_events() == 5 * 50
    assert [len(generations(database, f"g{number}")) for number in range(5)] == [KEPT] * 5
