"""Groups in which nothing is overdue are not looked at one by one."""

from __future__ import annotations

import psycopg
import pytest

from groups.core.model.commands import Heartbeat
from groups.core.model.group import wake_at
from groups.engine.service import GroupService
from groups.engine.timers import TimerService
from groups.store.bulk import WakeUps
from kcoord.database.clock import VirtualClock
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.groups.engine.test_renewals import joined
from tests.support.members import heartbeat, join, parked_join, pending_id, stable_member


def row(database: str) -> tuple[int, int]:
    """Version and wake-up of the group g."""
    with psycopg.connect(database) as connection:
        found = connection.execute("select version, wake_at from groups_group where group_id = 'g'").fetchone()
    assert found is not None
    return found[0], found[1]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_wake_up_is_moved_without_a_transaction_of_the_group(
    service: GroupService, runtime: Runtime, clock: VirtualClock, database: str, protocol: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if protocol == "classic":
        member = await stable_member(service, clock)
        first = row(database)[1]
        clock.advance(first - clock.now_ms() - 9_000)
        assert (await settled(service.heartbeat(heartbeat(member)))).error is Error.NONE
    else:
        await joined(service, runtime, "a")
        first = row(database)[1]
    with psycopg.connect(database, autocommit=True) as connection:
        for table in ("groups_member", "groups_consumermember"):
            connection.execute(f"update {table} set session_deadline = session_deadline + 5000")
    version, stored = row(database)
    clock.advance(stored - clock.now_ms())
    ticked: list[str] = []

    async def tick(group_id: str, **_: object) -> None:
        ticked.append(group_id)

    monkeypatch.setattr(service, "tick", tick)
    assert await runtime.get(TimerService).tick_due_groups() == 0
    assert not ticked
    group = (await service.describe("g")).group
    assert row(database) == (version, wake_at(group))
    clock.advance((wake_at(group) or 0) - clock.now_ms())
    await runtime.get(TimerService).tick_due_groups()
    assert ticked == ["g"], "now somebody is"


async def test_every_kind_of_deadline_counts(
    service: GroupService, runtime: Runtime, clock: VirtualClock, database: str
) -> None:
    """A group with a pending id, a join window, and later with members that owe a sync."""
    await pending_id(service, session_timeout_ms=6_000)
    task = await parked_join(service, session_timeout_ms=60_000)
    for _ in range(3):
        group = (await service.describe("g")).group
        expected = wake_at(group)
        assert expected is not None
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("update groups_group set wake_at = 0")
        await runtime.get(WakeUps).move(10)
        assert row(database)[1] == expected
        clock.advance(expected - clock.now_ms())
        await service.tick("g")
    await task


async def test_group_that_is_held_by_another_transaction_is_skipped(
    service: GroupService, runtime: Runtime, clock: VirtualClock, database: str
) -> None:
    await stable_member(service, clock)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("update groups_group set wake_at = 0")
        with connection.transaction():
            connection.execute("select from groups_group for update")
            assert await runtime.get(WakeUps).move(10) == 0
        assert await runtime.get(WakeUps).move(10) == 1


async def test_held_group_stays_due(service: GroupService, runtime: Runtime, clock: VirtualClock) -> None:
    await service.join(join())
    await service.hold("g", 5_000, principal="ann")
    clock.advance(5_000)
    assert await runtime.get(WakeUps).move(10) == 0
    assert await runtime.get(TimerService).tick_due_groups() == 1
    assert (await settled(service.heartbeat(Heartbeat("g", "m", None, 0)))).error is Error.UNKNOWN_MEMBER_ID


async def test_group_whose_deadlines_start_over_stays_due(
    service: GroupService, runtime: Runtime, clock: VirtualClock, database: str
) -> None:
    await stable_member(service, clock)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("update groups_group set wake_at = 0")
        connection.execute(
            "insert into groups_coordinatorpartition (partition, epoch, gap, state, state_since)"
            " select partition, 1, 1, 'LOADING', 0 from groups_group"
        )
        assert await runtime.get(WakeUps).move(10) == 0
        connection.execute("update groups_coordinatorpartition set gap = 0")
        assert await runtime.get(WakeUps).move(10) == 1
