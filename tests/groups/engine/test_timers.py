"""The tick of groups that nobody talks to: none holds up the others, whatever is wrong with it."""

from __future__ import annotations

import psycopg
import pytest

from groups.core.machine import decide
from groups.core.model.commands import Command
from groups.core.model.turn import Decision
from groups.core.model.types import ClassicGroup, Env
from groups.engine import batches
from groups.engine.service import GroupService
from groups.engine.timers import TickFailed, TimerService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from tests.support.members import stable_member

STATEMENT_TIMEOUT_MS = 200


@pytest.fixture
def config() -> Config:
    """Statements give up soon, and two groups are a full batch."""
    return Config({"database.statement.timeout.ms": STATEMENT_TIMEOUT_MS, "timer.tick.batch": 2})


@pytest.fixture
def timers(runtime: Runtime) -> TimerService:
    """The timers of this process."""
    return runtime.get(TimerService)


async def members_of(service: GroupService, group_id: str) -> int:
    group = (await service.describe(group_id)).group
    assert isinstance(group, ClassicGroup)
    return len(group.members)


async def test_everything_due_is_expired_over_several_batches(
    service: GroupService, timers: TimerService, clock: VirtualClock
) -> None:
    for group_id in "abcde":
        await stable_member(service, clock, group_id)
    clock.advance(60_000)
    assert await timers.tick_due_groups() == 5
    assert [await members_of(service, group_id) for group_id in "abcde"] == [0] * 5
    assert await timers.tick_due_groups() == 0


async def test_a_group_that_another_transaction_holds_is_left_to_it(
    service: GroupService, timers: TimerService, clock: VirtualClock, database: str
) -> None:
    for group_id in "ab":
        await stable_member(service, clock, group_id)
    clock.advance(60_000)
    with psycopg.connect(database) as holder:
        holder.execute("select 1 from groups_group where group_id = 'a' for update")
        await timers.tick_due_groups()
    assert [await members_of(service, group_id) for group_id in "ab"] == [1, 0]
    await timers.tick_due_groups()
    assert await members_of(service, "a") == 0


async def test_rows_held_by_somebody_else_hold_up_their_group_alone(
    service: GroupService, timers: TimerService, clock: VirtualClock, database: str
) -> None:
    await stable_member(service, clock, "a")
    clock.advance(1)
    await stable_member(service, clock, "b")
    clock.advance(60_000)
    with psycopg.connect(database) as holder:
        holder.execute(
            "select 1 from groups_member m join groups_group g on g.id = m.group_id where g.group_id = 'a' "
            "for update of m"
        )
        with pytest.raises(TickFailed, match=r"1 of 2 groups.*: a"):
            await timers.tick_due_groups()
        assert [await members_of(service, group_id) for group_id in "ab"] == [1, 0]
    clock.advance(1_000)
    await timers.tick_due_groups()
    assert await members_of(service, "a") == 0


async def test_a_group_that_meets_a_bug_is_put_off(
    service: GroupService, timers: TimerService, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stable_member(service, clock, "a")
    clock.advance(1)
    await stable_member(service, clock, "b")
    clock.advance(60_000)

    def broken(group: ClassicGroup | None, command: Command, env: Env) -> Decision:
        if command.group_id == "a":
            raise ZeroDivisionError
        return decide(group, command, env)

    with monkeypatch.context() as patch:
        patch.setattr(batches, "decide", broken)
        with pytest.raises(TickFailed, match=r"1 of 2 groups.*: a"):
            await timers.tick_due_groups()
    assert [await members_of(service, group_id) for group_id in "ab"] == [1, 0]
    assert await timers.tick_due_groups() == 0, "it comes again after timer.poison.delay.ms"
    clock.advance(60_000)
    await timers.tick_due_groups()
    assert await members_of(service, "a") == 0


async def test_without_a_database_the_tick_ends_at_once(
    service: GroupService, timers: TimerService, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for group_id in "abc":
        await stable_member(service, clock, group_id)
    clock.advance(60_000)
    asked = []

    async def away(*args: object, **kwargs: object) -> None:
        asked.append(args)
        raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "the database is not available")

    monkeypatch.setattr(service, "tick", away)
    monkeypatch.setattr(service._store, "postpone", away)
    with pytest.raises(ProtocolError):
        await timers.tick_due_groups()
    assert len(asked) == 2, "one group, and putting it off"
