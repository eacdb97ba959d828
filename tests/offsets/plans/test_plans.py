"""Offset plans in several processes at once, over time, and large ones."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from groups.core.model.commands import CommitOffsets
from groups.engine.service import GroupService
from groups.store.locked import LockedGroup
from groups.topics import TopicService, Watermark
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.door.http.local_transport import local_operator
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.resets.strategies import Reset, Strategy
from offsets.commits.service import OffsetService
from offsets.core.plan import MAX_LINES
from offsets.core.plan_types import PlanState
from offsets.plans.service import PlanService
from offsets.plans.summary import PlanHeader
from tests.support.commits import OffsetCommit, PartitionCommit
from tests.support.members import eventually
from tests.support.offsets import reply_to

OPERATOR = local_operator()
LATEST = Reset(Strategy.TO_LATEST, (("orders", None),))
DAY_MS = 86_400_000


@pytest.fixture
def config(config: Config) -> Config:
    """Transactions of thousands of rows take longer than the default allows where other tests use all cores."""
    return config.override({"database.transaction.timeout.ms": 6_000})


@pytest.fixture
async def other_runtime(database: str, clock: VirtualClock, config: Config):
    """Another process on the same database."""
    runtime = Runtime(config, database, clock)
    await runtime.start()
    await runtime.notifications.wait_listening()
    yield runtime
    await runtime.stop()


async def topic(runtime: Runtime, name: str = "orders", partitions: int = 3) -> None:
    """A topic whose partitions have offsets 10 to 100."""
    topics = runtime.get(TopicService)
    await topics.create(name, partitions)
    await topics.set_watermarks(name, [Watermark(p, 10, 100) for p in range(partitions)])


async def commit(runtime: Runtime, *partitions: int, offset: int = 40, topic: str = "orders") -> Error:
    """A commit of a simple consumer."""
    entries = tuple(PartitionCommit(topic, p, offset, 3, f"at {offset}") for p in partitions)
    reply = await reply_to(runtime.get(OffsetService), OffsetCommit("g", "", None, -1, entries, 60_000))
    return reply.error


def count(database: str, table: str, condition: str = "true") -> int:
    """Rows of a table."""
    with psycopg.connect(database) as connection:
        row = connection.execute(f"select count(*) from {table} where {condition}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def rows(database: str) -> list[tuple[object, ...]]:
    """What is stored of each committed offset, but what only the journal's order is about."""
    with psycopg.connect(database) as connection:
        return connection.execute(
            "select topic, partition, committed_offset, leader_epoch, metadata, commit_timestamp, expire_timestamp"
            " from offsets_committedoffset order by 1, 2"
        ).fetchall()


async def race(*steps: object) -> tuple[list[PlanHeader], list[ProtocolError]]:
    """What came of several attempts: plans, refusals."""
    outcomes = await asyncio.gather(*steps, return_exceptions=True)  # type: ignore[call-overload]
    refused = [outcome for outcome in outcomes if isinstance(outcome, ProtocolError)]
    done = [outcome for outcome in outcomes if isinstance(outcome, PlanHeader)]
    assert len(refused) + len(done) == len(outcomes), outcomes
    return done, refused


async def test_of_many_who_apply_in_two_processes_one_does(
    runtime: Runtime, other_runtime: Runtime, database: str
) -> None:
    await topic(runtime)
    await commit(runtime, 0, 1)
    here, there = runtime.get(PlanService), other_runtime.get(PlanService)
    for round_ in range(5):
        made = await here.create("g", LATEST, OPERATOR)
        done, refused = await race(*(s.apply("g", made.id, OPERATOR) for s in (here, there) * 4))
        assert [plan.state for plan in done] == [PlanState.APPLIED]
        assert {(e.error, getattr(e, "status", 0)) for e in refused} == {(Error.INVALID_REQUEST, 409)}
        assert {e.detail for e in refused} == {"the plan cannot be applied: it has already been applied"}
        done, refused = await race(*(s.undo("g", made.id, OPERATOR) for s in (here, there) * 4))
        assert [plan.state for plan in done] == [PlanState.UNDONE]
        assert {e.detail for e in refused} == {"the plan cannot be undone: it was undone; make a new plan"}
        assert count(database, "offset_commit_log", "kind = 'reset'") == 3 * (round_ + 1)
        assert count(database, "offset_commit_log", "kind = 'restore'") == 3 * (round_ + 1)


async def test_of_two_plans_for_the_same_partitions_one_is_applied(runtime: Runtime, other_runtime: Runtime) -> None:
    await topic(runtime)
    here, there = runtime.get(PlanService), other_runtime.get(PlanService)
    first = await here.create("g", LATEST, OPERATOR)
    second = await here.create("g", Reset(Strategy.TO_EARLIEST, (("orders", None),)), OPERATOR)
    done, (refused,) = await race(here.apply("g", first.id, OPERATOR), there.apply("g", second.id, OPERATOR))
    assert len(done) == 1
    assert "since the plan was made" in refused.detail


async def test_a_commit_that_races_with_applying_is_never_lost(
    runtime: Runtime, other_runtime: Runtime, database: str
) -> None:
    """Either the commit came first, and the plan is refused, or it came after, and stands."""
    await topic(runtime)
    plans = runtime.get(PlanService)
    for round_ in range(30):
        made = await plans.create("g", LATEST, OPERATOR)
        applying, committing = plans.apply("g", made.id, OPERATOR), commit(other_runtime, 1, offset=50 + round_)
        if round_ % 2:
            applied, committed = await asyncio.gather(applying, committing, return_exceptions=True)
        else:
            committed, applied = await asyncio.gather(committing, applying, return_exceptions=True)
        assert committed is Error.NONE
        assert isinstance(applied, PlanHeader) or "orders-1 was committed" in str(applied)
        offset = next(row[2] for row in rows(database) if row[1] == 1)
        assert offset == 50 + round_


async def test_undoing_restores_every_field(runtime: Runtime, database: str, clock: VirtualClock) -> None:
    await topic(runtime)
    await commit(runtime, 0, 2)
    before = rows(database)
    assert before[0][3:] == (3, "at 40", clock.now_ms(), clock.now_ms() + 60_000)
    clock.advance(1_000)
    plans = runtime.get(PlanService)
    made = await plans.create("g", LATEST, OPERATOR)
    await plans.apply("g", made.id, OPERATOR)
    assert rows(database) == [("orders", p, 100, -1, "", clock.now_ms(), None) for p in range(3)]
    clock.advance(1_000)
    await plans.undo("g", made.id, OPERATOR)
    assert rows(database) == before


async def test_a_refusal_in_the_transaction_spares_what_else_is_in_it(
    runtime: Runtime, service: GroupService, database: str
) -> None:
    """The commit, the refused plan and the other commit are decided together; both commits stand."""
    await topic(runtime)
    plans = runtime.get(PlanService)
    await commit(runtime, 0)
    made = await plans.create("g", LATEST, OPERATOR)
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def wait(locked: LockedGroup) -> None:
        entered.set()
        await asyncio.wait_for(go_on.wait(), 10)

    async def queued() -> bool:
        return len(service._mailbox._queues["g"]) == 3

    first = asyncio.create_task(service.execute(CommitOffsets("g", "", None, -1), wait))
    await asyncio.wait_for(entered.wait(), 10)
    rest = asyncio.gather(
        commit(runtime, 1, offset=51),
        plans.apply("g", made.id, OPERATOR),
        commit(runtime, 2, offset=52),
        return_exceptions=True,
    )
    await eventually(queued, "all three wait for the group")
    go_on.set()
    one, refused, two = await asyncio.wait_for(rest, 10)
    await first
    assert (one, two) == (Error.NONE, Error.NONE)
    assert isinstance(refused, ProtocolError)
    assert "orders-1" in refused.detail
    assert [row[2] for row in rows(database)] == [40, 51, 52]


async def test_a_plan_that_sets_nothing_makes_no_group(runtime: Runtime, clock: VirtualClock) -> None:
    await topic(runtime)
    plans = runtime.get(PlanService)
    await commit(runtime, 0)
    await runtime.get(GroupService).delete("g")
    at = clock.now_ms()
    clock.advance(1)
    made = await plans.create("g", Reset(Strategy.TO_COMMITTED_AT, (("orders", None),), at=at), OPERATOR)
    with pytest.raises(ProtocolError) as raised:
        await plans.apply("g", made.id, OPERATOR)
    assert raised.value.error is Error.GROUP_ID_NOT_FOUND
    assert (await runtime.get(GroupService).describe("g")).group is None


async def test_a_deleted_group_comes_back_as_it_was(runtime: Runtime, clock: VirtualClock, database: str) -> None:
    await topic(runtime)
    await topic(runtime, "gone", 1)
    plans = runtime.get(PlanService)
    await commit(runtime, 0, 2)
    await commit(runtime, 0, topic="gone")
    at = clock.now_ms()
    clock.advance(5 * DAY_MS)
    await runtime.get(GroupService).delete("g")
    await runtime.get(TopicService).delete("gone")
    made = await plans.create("g", Reset(Strategy.TO_COMMITTED_AT, at=at), OPERATOR)
    await plans.apply("g", made.id, OPERATOR)
    assert [row[:3] for row in rows(database)] == [("orders", 0, 40), ("orders", 2, 40)]


async def test_what_was_committed_before_the_journal_begins_is_known_if_it_still_stands(
    runtime: Runtime, clock: VirtualClock, database: str
) -> None:
    await topic(runtime)
    await commit(runtime, 0, 1)
    with psycopg.connect(database) as connection:
        connection.execute("delete from offset_commit_log")
    clock.advance(DAY_MS)
    at = clock.now_ms()
    clock.advance(DAY_MS)
    await commit(runtime, 1, offset=60)
    plans = runtime.get(PlanService)
    made = await plans.create("g", Reset(Strategy.TO_COMMITTED_AT, at=at), OPERATOR)
    lines = {line.partition: line for line in (await plans.lines(made)).items}
    assert (lines[0].new, lines[0].note) == (40, "unchanged since before the journal begins")
    assert (lines[1].new, lines[1].note) == (None, "not in the journal up to then")


@pytest.mark.parametrize("days", [0, 1, 2, 4, 8, 20])
async def test_the_journal_is_searched_as_far_back_as_it_goes(runtime: Runtime, clock: VirtualClock, days: int) -> None:
    await topic(runtime)
    await commit(runtime, 0)
    clock.advance(days * DAY_MS)
    at = clock.now_ms()
    clock.advance(1)
    await commit(runtime, 0, offset=60)
    plans = runtime.get(PlanService)
    made = await plans.create("g", Reset(Strategy.TO_COMMITTED_AT, at=at), OPERATOR)
    (line,) = (await plans.lines(made)).items
    assert line.new == 40


@pytest.mark.parametrize("ms", [-1, 0, 1])
@pytest.mark.parametrize("days", [0, 1, 3, 7, 15])
async def test_no_instant_between_two_searches_is_left_out(
    runtime: Runtime, clock: VirtualClock, days: int, ms: int
) -> None:
    await topic(runtime)
    midnight = (clock.now_ms() // DAY_MS + 2) * DAY_MS
    clock.move_to(midnight + ms)
    await commit(runtime, 0)
    clock.move_to(midnight + days * DAY_MS + 5)
    at = clock.now_ms()
    clock.advance(1)
    await commit(runtime, 0, offset=60)
    plans = runtime.get(PlanService)
    made = await plans.create("g", Reset(Strategy.TO_COMMITTED_AT, at=at), OPERATOR)
    (line,) = (await plans.lines(made)).items
    assert line.new == 40


async def test_plans_go_with_the_journal_of_their_time(runtime: Runtime, clock: VirtualClock, database: str) -> None:
    await topic(runtime)
    plans = runtime.get(PlanService)
    old = await plans.create("g", LATEST, OPERATOR)
    used = await plans.create("g", LATEST, OPERATOR)
    clock.advance(10 * DAY_MS)
    await plans.apply("g", used.id, OPERATOR)
    clock.advance(20 * DAY_MS)
    assert await plans.trim() == 0
    clock.advance(1)
    assert await plans.trim() == 1
    assert count(database, "offsets_plannedoffset") == 3
    with pytest.raises(ProtocolError, match="has no plan"):
        await plans.get("g", old.id)
    assert (await plans.undo("g", used.id, OPERATOR)).state is PlanState.UNDONE
    clock.advance(30 * DAY_MS + 1)
    assert await plans.trim() == 1
    assert await plans.trim() == 0
    assert count(database, "offsets_plannedoffset") == count(database, "offsets_offsetplan") == 0


async def test_plans_are_listed_in_pages_and_outlive_their_group(runtime: Runtime, clock: VirtualClock) -> None:
    await topic(runtime)
    plans = runtime.get(PlanService)
    with pytest.raises(ProtocolError) as raised:
        await plans.recent("g")
    assert raised.value.error is Error.GROUP_ID_NOT_FOUND
    made = []
    for step in range(5):
        clock.advance(step % 2)
        made.append((await plans.create("g", LATEST, OPERATOR)).id)
    await commit(runtime, 0)
    await runtime.get(GroupService).delete("g")
    seen: list[str] = []
    cursor: str | None = None
    while not seen or cursor is not None:
        page = await plans.recent("g", cursor=cursor, limit=2)
        seen += [plan.id for plan in page.items]
        cursor = page.next_cursor
    assert sorted(seen) == sorted(made)
    assert seen[0] in made[3:]
    for bad in ("x", "WzEsIngiXQ"):
        with pytest.raises(ProtocolError, match="cursor"):
            await plans.recent("g", cursor=bad)


@pytest.mark.whole("writes many rows to see that what is read is bounded")
async def test_a_large_plan_is_planned_applied_and_undone_whole(runtime: Runtime, database: str) -> None:
    """More partitions than one statement takes; pages of its lines follow each other."""
    await topic(runtime, partitions=5_000)
    plans = runtime.get(PlanService)
    await commit(runtime, *range(3_000))
    made = await plans.create("g", LATEST, OPERATOR)
    assert made.totals == {
        "partitions": 5_000,
        "changed": 5_000,
        "clamped": 0,
        "removed": 0,
        "lag_change": -180_000,
        "outside": 0,
        "unknown": 0,
    }
    seen: list[int] = []
    cursor: str | None = None
    while not seen or cursor is not None:
        page = await plans.lines(made, cursor=cursor, limit=1_000)
        seen += [line.partition for line in page.items]
        cursor = page.next_cursor
    assert seen == list(range(5_000))
    await plans.apply("g", made.id, OPERATOR)
    assert count(database, "offsets_committedoffset", "committed_offset = 100") == 5_000
    await plans.undo("g", made.id, OPERATOR)
    assert count(database, "offsets_committedoffset", "committed_offset = 40") == 3_000
    assert count(database, "offsets_committedoffset") == 3_000
    assert count(database, "offset_commit_log") == 3_000 + 5_000 + 5_000


async def test_a_plan_has_a_largest_size(runtime: Runtime) -> None:
    plans = runtime.get(PlanService)
    for name in ("a", "b", "c"):
        await runtime.get(TopicService).create(name, 100_000)
    scope = tuple((name, None) for name in ("a", "b", "c"))
    with pytest.raises(ProtocolError, match=f"at most {MAX_LINES}") as raised:
        await plans.create("g", Reset(Strategy.TO_LATEST, scope), OPERATOR)
    assert raised.value.error is Error.INVALID_REQUEST
