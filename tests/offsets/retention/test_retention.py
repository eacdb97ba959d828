"""Runs of retention on a real database: batches under locks, groups that fail, pins, and what the page says of it."""

from __future__ import annotations

import asyncio
from random import Random

import psycopg
import pytest

from groups.core.machine import decide
from groups.core.model.commands import Command, DeleteGroup, HoldGroup
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.turn import Decision
from groups.core.model.types import ClassicGroup, Env, GroupState, PendingIds
from groups.engine import batches
from groups.engine.service import GroupService
from groups.store.rows import Change
from groups.store.store import GroupStore
from kcoord.config import Config
from kcoord.database import counters
from kcoord.database.clock import VirtualClock
from kcoord.database.counters import Counted
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.commits.retention.pins import PinService
from offsets.commits.retention.sweep import BatchSize, Candidate, Report, RetentionFailed, RetentionService
from offsets.readmodel import OffsetReads
from tests.support.offsets import MINUTE_MS, commit, events, journal, make_topics, put_pending, rows, stored
from tests.support.rest_groups import group, member
from tests.support.selection import sample

BATCH = 3


@pytest.fixture
def config() -> Config:
    """Offsets are kept for a minute; three of them are a batch; statements give up soon."""
    return Config(
        {
            "offsets.retention.minutes": 1,
            "offsets.retention.batch": BATCH,
            "database.statement.timeout.ms": 300,
        }
    )


@pytest.fixture
def retention(runtime: Runtime) -> RetentionService:
    """Retention of this process."""
    return runtime.get(RetentionService)


@pytest.fixture(autouse=True)
async def topics(runtime: Runtime) -> None:
    """Two topics."""
    await make_topics(runtime, orders=10, bills=10)


async def expired_total(runtime: Runtime) -> int:
    """The counter that operators see."""
    return (await counters.read(runtime.db))[Counted.OFFSETS_EXPIRED]


async def test_what_expired_goes_in_batches_with_journal_events_and_metric_and_then_its_group(
    runtime: Runtime, retention: RetentionService, service: GroupService, clock: VirtualClock
) -> None:
    await commit(runtime, "g", "orders", *range(7))
    before = await expired_total(runtime)
    clock.advance(MINUTE_MS - 1)
    assert (await retention.run()).offsets == 0
    clock.advance(1)
    report = await retention.run()
    assert (report.offsets, report.groups, report.failed, report.put_off) == (7, 1, [], [])
    assert await journal(runtime, "expire") == [("g", "orders", partition, None, "") for partition in range(7)]
    told = await events(runtime, "g", "offsets_expired")
    assert [event["partitions"] for event in told] == [3, 3, 1]
    assert told[0]["topics"] == ["orders"]
    assert await events(runtime, "g", "group_deleted") == [{}]
    assert await expired_total(runtime) - before == 7
    assert (await service.describe("g")).group is None
    assert await journal(runtime, "group_delete") == []


async def test_a_second_run_changes_nothing_more(
    runtime: Runtime, retention: RetentionService, clock: VirtualClock
) -> None:
    await commit(runtime, "a", "orders", 0, 1)
    await runtime.get(GroupService).put(group("b", GroupState.STABLE, member("m", 0)))
    clock.advance(1_000)
    await commit(runtime, "a", "orders", 2)
    clock.advance(MINUTE_MS - 1_000)
    assert (await retention.run()).offsets == 2
    after = await stored(runtime), await journal(runtime, "expire")
    report = await retention.run()
    assert (report.offsets, report.groups) == (0, 0)
    assert (await stored(runtime), await journal(runtime, "expire")) == after
    assert after[0] == [("a", "orders", 2, 5)]


async def test_a_group_between_two_generations_and_a_subscribed_topic_are_left_alone(
    runtime: Runtime, retention: RetentionService, service: GroupService, clock: VirtualClock
) -> None:
    for group_id, state in (("busy", GroupState.PREPARING_REBALANCE), ("stable", GroupState.STABLE)):
        await commit(runtime, group_id, "orders", 0)
        await commit(runtime, group_id, "bills", 0)
        await replace_group(runtime, group(group_id, state, member("m", 0, session_deadline=None)))
    clock.advance(10 * MINUTE_MS)
    assert (await retention.run()).offsets == 1
    kept = [("busy", "bills", 0, 5), ("busy", "orders", 0, 5), ("stable", "orders", 0, 5)]
    assert await stored(runtime) == kept


async def replace_group(runtime: Runtime, changed: ClassicGroup) -> None:
    """Write a group over its row, so that its offsets stay."""
    store = runtime.get(GroupStore)

    async def work(connection: object) -> None:
        before, found = (await store.lock(connection, [changed.group_id]))[changed.group_id]  # type: ignore[arg-type]
        await store.persist(connection, [Change(before, changed, found.now)])  # type: ignore[arg-type]

    await runtime.db.transaction(work)
    store.forget(changed.group_id)


async def test_pins_keep_offsets_and_groups_until_they_are_taken_back(
    runtime: Runtime, retention: RetentionService, service: GroupService, clock: VirtualClock
) -> None:
    pins = runtime.get(PinService)
    await commit(runtime, "g", "orders", 0)
    await commit(runtime, "g", "bills", 0)
    await service.put(ClassicGroup("bare"))
    await pins.pin("g", "orders", principal="ops")
    await pins.pin("bare", None, principal="ops")
    clock.advance(MINUTE_MS)
    report = await retention.run()
    assert (report.offsets, report.groups) == (1, 0)
    assert await stored(runtime) == [("g", "orders", 0, 5)]
    assert (await service.describe("bare")).group is not None
    await pins.unpin("g", "orders", principal="ops")
    await pins.unpin("bare", None, principal="ops")
    report = await retention.run()
    assert (report.offsets, report.groups) == (1, 2)


async def test_pending_offsets_keep_theirs_and_the_group(
    runtime: Runtime, retention: RetentionService, service: GroupService, clock: VirtualClock
) -> None:
    await commit(runtime, "g", "orders", 0, 1)
    await put_pending(runtime, "g", "orders", 1)
    await service.put(ClassicGroup("only-pending"))
    await put_pending(runtime, "only-pending", "orders", 0)
    clock.advance(MINUTE_MS)
    report = await retention.run()
    assert (report.offsets, report.groups) == (1, 0)
    assert await stored(runtime) == [("g", "orders", 1, 5)]


@pytest.mark.parametrize("bare", [ClassicGroup("bare", pending_join=PendingIds({"m": 2**40})), ConsumerGroup("bare")])
async def test_an_empty_group_without_offsets_goes_however_young(
    retention: RetentionService, service: GroupService, bare: ClassicGroup
) -> None:
    await service.put(bare)
    assert (await retention.run()).groups == 1
    assert (await service.describe("bare")).group is None


async def test_a_group_that_an_operator_holds_stays_until_the_hold_has_ended(
    retention: RetentionService, service: GroupService, clock: VirtualClock
) -> None:
    await service.put(ClassicGroup("g"))
    await service.execute(HoldGroup("g", 5_000, "ops", "maintenance"))
    assert (await retention.run()).groups == 0
    assert not await retention._remove_group("g"), "it is asked under the lock too"
    clock.advance(5_000)
    assert (await retention.run()).groups == 1


async def test_a_group_whose_row_is_locked_waits_for_the_end_of_the_run(
    runtime: Runtime, retention: RetentionService, service: GroupService, clock: VirtualClock, database: str
) -> None:
    for group_id in "ab":
        await commit(runtime, group_id, "orders", 0)
    clock.advance(MINUTE_MS)
    holder = await psycopg.AsyncConnection.connect(database)
    await holder.execute("select 1 from groups_group where group_id = 'a' for update")
    with pytest.raises(RetentionFailed, match=r"1 groups.*: a$"):
        await retention.run()
    assert await stored(runtime) == [("a", "orders", 0, 5)], "the others did not wait for it"
    await holder.rollback()
    await holder.close()
    report = await retention.run()
    assert (report.offsets, report.groups) == (1, 1)


async def test_a_group_whose_row_was_locked_has_its_turn_at_the_end_of_the_run(
    runtime: Runtime, retention: RetentionService, clock: VirtualClock, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for group_id in "ab":
        await commit(runtime, group_id, "orders", 0)
    clock.advance(MINUTE_MS)
    holder = await psycopg.AsyncConnection.connect(database)
    await holder.execute("select 1 from groups_group where group_id = 'a' for update")
    visits: list[tuple[str, bool]] = []
    visit = retention._visit

    async def released_after_the_first(candidate: Candidate, report: Report, *, skip_locked: bool) -> None:
        await visit(candidate, report, skip_locked=skip_locked)
        visits.append((candidate.group_id, skip_locked))
        if candidate.group_id == "a":
            await holder.rollback()

    monkeypatch.setattr(retention, "_visit", released_after_the_first)
    report = await retention.run()
    await holder.close()
    assert sorted(visits[:2]) == [("a", True), ("b", True)]
    assert visits[2:] == [("a", False)]
    assert (report.offsets, report.groups, report.failed) == (2, 2, [])


async def test_offsets_committed_after_the_group_became_empty_go_with_the_others(
    runtime: Runtime, retention: RetentionService, service: GroupService, clock: VirtualClock
) -> None:
    await service.put(group("g", GroupState.EMPTY, protocol_type="consumer", state_since=clock.now_ms()))
    clock.advance(MINUTE_MS - 1)
    await commit(runtime, "g", "orders", 0)
    assert (await retention.run()).offsets == 0
    clock.advance(1)
    report = await retention.run()
    assert (report.offsets, report.groups) == (1, 1)


async def test_a_group_that_meets_a_bug_does_not_stop_the_others(
    runtime: Runtime, retention: RetentionService, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for group_id in "abc":
        await commit(runtime, group_id, "orders", 0)
    clock.advance(MINUTE_MS)

    def broken(group: ClassicGroup | None, command: Command, env: Env) -> Decision:
        if command.group_id == "b":
            raise ZeroDivisionError
        return decide(group, command, env)

    with monkeypatch.context() as patch:
        patch.setattr(batches, "decide", broken)
        with pytest.raises(RetentionFailed, match=r"1 groups.*: b$"):
            await retention.run()
    assert await stored(runtime) == [("b", "orders", 0, 5)]
    assert (await retention.run()).groups == 1


async def test_without_a_database_the_run_ends_at_once(
    runtime: Runtime, retention: RetentionService, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for group_id in "abc":
        await commit(runtime, group_id, "orders", 0)
    clock.advance(MINUTE_MS)

    async def away(*args: object, **kwargs: object) -> None:
        raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "the database is not available")

    monkeypatch.setattr(retention, "_expire", away)
    monkeypatch.setattr(retention, "_check_database", away)
    with pytest.raises(ProtocolError):
        await retention.run()


async def test_what_was_committed_anew_since_the_look_stays(
    runtime: Runtime, retention: RetentionService, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await commit(runtime, "g", "orders", 0, 1)
    clock.advance(MINUTE_MS)
    look = retention._due

    async def late(*args: object) -> object:
        due = await look(*args)  # type: ignore[arg-type]
        await commit(runtime, "g", "orders", 1, offset=6)
        return due

    monkeypatch.setattr(retention, "_due", late)
    assert (await retention.run()).offsets == 1
    assert await stored(runtime) == [("g", "orders", 1, 6)]


async def test_a_group_that_got_an_offset_since_the_look_stays(
    runtime: Runtime, retention: RetentionService, service: GroupService, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.put(ClassicGroup("g"))
    look = retention._page

    async def late(after: int, wait_ms: int) -> object:
        page = await look(after, wait_ms)
        await commit(runtime, "g", "orders", 0)
        return page

    monkeypatch.setattr(retention, "_page", late)
    report = await retention.run()
    assert (report.groups, report.failed) == (0, [])
    assert await stored(runtime) == [("g", "orders", 0, 5)]


def test_batches_become_smaller_while_locks_are_held_for_long_and_larger_again() -> None:
    pace = BatchSize(2_000)
    sizes = [pace.size]
    for held in (0.001, 0.001, 0.001, 0.02, 0.3, 0.3):
        pace.learn(held)
        sizes.append(pace.size)
    assert sizes == [250, 500, 1_000, 2_000, 2_000, 1_000, 500]
    for _ in range(10):
        pace.learn(5.0)
    assert pace.size == 50, "it goes on"
    assert BatchSize(3).size == 3
    small = BatchSize(3)
    small.learn(5.0)
    assert small.size == 3


async def test_two_runs_at_once_are_one(runtime: Runtime, retention: RetentionService, clock: VirtualClock) -> None:
    await commit(runtime, "g", "orders", *range(7))
    clock.advance(MINUTE_MS)
    reports = await asyncio.gather(retention.run(), retention.run())
    assert [report.offsets for report in reports] == [7, 0]


@pytest.mark.parametrize("seed", sample(range(6), "more random groups"))
async def test_the_page_says_what_a_run_does_at_that_instant_and_a_millisecond_before(
    runtime: Runtime, retention: RetentionService, clock: VirtualClock, seed: int
) -> None:
    random = Random(seed)
    ids = await random_groups(runtime, clock, random)
    gone: set[tuple[str, str, int]] = set()
    while (instant := await next_expiry(runtime, ids)) is not None:
        due = {key for key, at in (await shown(runtime, ids)).items() if at == instant}
        if clock.now_ms() < instant - 1:
            clock.move_to(instant - 1)
            assert (await retention.run()).offsets == 0
        clock.move_to(max(instant, clock.now_ms()))
        assert (await retention.run()).offsets == len(due)
        gone |= due
        assert {row[:3] for row in await stored(runtime)}.isdisjoint(gone)
    clock.advance(10 * MINUTE_MS)
    assert (await retention.run()).offsets == 0, "what is shown as kept is kept"


async def random_groups(runtime: Runtime, clock: VirtualClock, random: Random) -> list[str]:
    """Groups of all kinds with offsets of different ages, some pinned, some pending, some with a time of their own."""
    ids = [f"g{number}" for number in range(5)]
    for _ in range(25):
        retention_ms = random.choice((-1, -1, random.randrange(3 * MINUTE_MS)))
        topic, partition = random.choice(("orders", "bills")), random.randrange(10)
        await commit(runtime, random.choice(ids), topic, partition, retention_time_ms=retention_ms)
        clock.advance(random.randrange(MINUTE_MS // 30))
    present = sorted({group_id for group_id, *_ in await stored(runtime)})
    for group_id in present:
        if random.random() < 0.6:
            state = random.choice((GroupState.EMPTY, GroupState.STABLE, GroupState.PREPARING_REBALANCE))
            members = () if state is GroupState.EMPTY else (member("m", 0, session_deadline=None),)
            changed = group(group_id, state, *members, protocol_type="consumer", state_since=clock.now_ms() - 9_000)
            await replace_group(runtime, changed)
        if random.random() < 0.3:
            await runtime.get(PinService).pin(group_id, random.choice((None, "orders")), principal="ops")
    for number, (group_id, topic, partition, _) in enumerate(await stored(runtime)):
        if random.random() < 0.2:
            await put_pending(runtime, group_id, topic, partition, number)
    return present


async def shown(runtime: Runtime, ids: list[str]) -> dict[tuple[str, str, int], int | None]:
    """What pages say about when offsets expire."""
    found: dict[tuple[str, str, int], int | None] = {}
    for group_id in ids:
        if (await runtime.get(GroupService).describe(group_id)).group is not None:
            page = await runtime.get(OffsetReads).committed(group_id)
            found |= {(group_id, line.topic, line.partition): line.expires_at for line in page.items}
    return found


async def next_expiry(runtime: Runtime, ids: list[str]) -> int | None:
    """The first instant at which a page says that something expires."""
    return min((at for at in (await shown(runtime, ids)).values() if at is not None), default=None)


async def test_deleting_is_asked_under_the_lock(
    runtime: Runtime, retention: RetentionService, service: GroupService, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.put(ClassicGroup("g"))
    await runtime.get(PinService).pin("g", None, principal="ops")
    assert not await retention._remove_group("g"), "it is pinned"
    await runtime.get(PinService).unpin("g", None, principal="ops")
    await put_pending(runtime, "g", "orders", 0)
    assert not await retention._remove_group("g"), "a transaction is open"
    assert (await service.execute(DeleteGroup("g"))).error is Error.NONE
    assert not await retention._remove_group("g"), "it is gone"


@pytest.mark.parametrize(("first", "second", "stored"), [(5_000, -1, None), (-1, 5_000, 5_000), (5_000, 9_000, 9_000)])
async def test_the_last_commit_decides_when_its_offset_expires(
    runtime: Runtime, clock: VirtualClock, first: int, second: int, stored: int | None
) -> None:
    """offsets.md 3.6: a commit without a retention time takes away what the one before had set."""
    for retention_time_ms in (first, second):
        await commit(runtime, "g", "orders", 0, retention_time_ms=retention_time_ms)
    expires = await rows(runtime, "select expire_timestamp from offsets_committedoffset")
    assert expires == [(None if stored is None else clock.now_ms() + stored,)]
