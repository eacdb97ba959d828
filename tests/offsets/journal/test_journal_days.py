"""Day partitions of the journal: made ahead, filled from the default partition, dropped, beside commits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

from groups.topics import TopicService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.database.pool import Connection
from kcoord.process.runtime import Runtime
from offsets.commits.service import OffsetService
from offsets.core.days import DAY_MS, bounds, day_of, partition_name
from offsets.journal import journal_days
from offsets.journal.journal_days import JournalDays, UpkeepReport
from tests.conftest import START_MS
from tests.support.commits import OffsetCommit, PartitionCommit
from tests.support.journal import drop_days
from tests.support.members import eventually
from tests.support.offsets import reply_to

TODAY = day_of(START_MS)
DEFAULT = "offset_commit_log_default"
PATIENCE_SECONDS = 10


@pytest.fixture(autouse=True)
def no_days(database: str) -> Iterator[None]:
    """None from before, none is left."""
    drop_days(database)
    yield
    drop_days(database)


@pytest.fixture
def config() -> Config:
    """The journal is kept for five days."""
    return Config({"offsets.journal.retention.days": 5})


@pytest.fixture
def days(runtime: Runtime) -> JournalDays:
    """The upkeep of this process."""
    return runtime.get(JournalDays)


@pytest.fixture
async def other(database: str, clock: VirtualClock, config: Config) -> AsyncIterator[JournalDays]:
    """The upkeep of another process."""
    runtime = Runtime(config, database, clock)
    await runtime.start()
    yield runtime.get(JournalDays)
    await runtime.stop()


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any default partition is a large one."""
    monkeypatch.setattr(journal_days, "SMALL_DEFAULT_BYTES", -1)


INSERT = "insert into offset_commit_log (at, kind, group_name, topic, partition, committed_offset) values "


def write(database: str, *instants: int) -> None:
    """A line at each instant."""
    with psycopg.connect(database, autocommit=True) as connection:
        for at in instants:
            connection.execute(INSERT + "(%s, 'commit', 'g', 't', 0, 1)", (at,))


def lines(database: str) -> list[tuple[Any, ...]]:
    """Every line as readers see it, and its transaction."""
    with psycopg.connect(database) as connection:
        return connection.execute("select id, at, xact_id from offset_commit_log order by id").fetchall()


def places(database: str) -> dict[str, list[int]]:
    """The instants of the lines of each partition."""
    statement = "select tableoid::regclass::text, array_agg(at order by at) from offset_commit_log group by 1"
    with psycopg.connect(database) as connection:
        return dict(connection.execute(statement).fetchall())


def partitions(database: str) -> dict[str, str]:
    """The partitions of the journal with their bounds; the default one left out."""
    statement = (
        "select c.relname, pg_get_expr(c.relpartbound, c.oid) from pg_inherits i join pg_class c on c.oid = i.inhrelid"
        " where i.inhparent = 'offset_commit_log'::regclass and c.relname <> %s order by 1"
    )
    with psycopg.connect(database) as connection:
        return dict(connection.execute(statement, (DEFAULT,)).fetchall())


def constraints(database: str) -> list[str]:
    """Check constraints of the journal's tables: upkeep leaves none."""
    statement = (
        "select conname from pg_constraint where conrelid::regclass::text like 'offset_commit_log%' and contype = 'c'"
    )
    with psycopg.connect(database) as connection:
        return [name for (name,) in connection.execute(statement)]


AHEAD = [partition_name(day) for day in range(TODAY, TODAY + 4)]


async def test_a_new_database_has_today_and_three_days_ahead(days: JournalDays, database: str) -> None:
    report = await days.keep()
    assert report == UpkeepReport(made=AHEAD)
    first, after = bounds(TODAY)
    assert AHEAD[0] == "offset_commit_log_20231114"
    found = partitions(database)
    assert list(found) == AHEAD
    assert found[AHEAD[0]] == f"FOR VALUES FROM ('{first}') TO ('{after}')"
    assert constraints(database) == []
    assert await days.keep() == UpkeepReport(), "a second run has nothing to do"


async def test_each_day_makes_one_more(days: JournalDays, clock: VirtualClock, database: str) -> None:
    await days.keep()
    clock.advance(DAY_MS)
    assert (await days.keep()).made == [partition_name(TODAY + 4)]
    clock.advance(10 * DAY_MS)
    report = await days.keep()
    assert report.made == [partition_name(day) for day in range(TODAY + 11, TODAY + 15)]
    assert report.dropped == [partition_name(day) for day in range(TODAY, TODAY + 5)]


async def test_lines_around_midnight(days: JournalDays, runtime: Runtime, clock: VirtualClock, database: str) -> None:
    await runtime.get(TopicService).create("orders", 1)
    await days.keep()
    _, midnight = bounds(TODAY)

    async def commit() -> None:
        await reply_to(runtime.get(OffsetService), OffsetCommit("g", "", None, -1, (PartitionCommit("orders", 0, 1),)))

    clock.move_to(midnight - 1)
    await commit()
    clock.advance(1)
    await commit()
    assert places(database) == {AHEAD[0]: [midnight - 1], AHEAD[1]: [midnight]}


@pytest.mark.parametrize("size", ["small", "large"])
async def test_lines_of_the_default_partition_move_once(
    days: JournalDays, database: str, size: str, request: pytest.FixtureRequest
) -> None:
    if size == "large":
        request.getfixturevalue("large")
    past = [TODAY - 3, TODAY - 1]
    instants = [bound for day in past for bound in (bounds(day)[0], bounds(day)[1] - 1)]
    write(database, *instants)
    before = lines(database)
    report = await days.keep()
    made = AHEAD[1:] if size == "large" else AHEAD
    assert (report.moved, report.made) == (4, made + [partition_name(day) for day in past])
    assert lines(database) == before, "ids and transactions stay what they were"
    assert places(database) == {partition_name(day): [bounds(day)[0], bounds(day)[1] - 1] for day in past}
    assert constraints(database) == []


async def test_lines_of_today_move_while_there_are_few(days: JournalDays, database: str) -> None:
    write(database, START_MS, START_MS + 1)
    before = lines(database)
    assert (await days.keep()).moved == 2
    assert lines(database) == before
    assert places(database) == {AHEAD[0]: [START_MS, START_MS + 1]}


async def test_many_lines_of_today_stay_until_it_is_over(
    days: JournalDays, clock: VirtualClock, database: str, large: None
) -> None:
    write(database, START_MS)
    assert await days.keep() == UpkeepReport(made=AHEAD[1:], put_off=AHEAD[:1])
    _, midnight = bounds(TODAY)
    clock.move_to(midnight + 60_000)
    assert (await days.keep()).put_off == AHEAD[:1], "a transaction of yesterday may still be open"
    clock.advance(3_600_000)
    report = await days.keep()
    assert (report.made, report.moved, report.put_off) == (AHEAD[:1], 1, [])
    assert places(database) == {AHEAD[0]: [START_MS]}


async def test_old_days_go_and_so_do_old_lines_without_a_day(
    days: JournalDays, clock: VirtualClock, database: str
) -> None:
    write(database, START_MS)
    await days.keep()
    write(database, *(bounds(TODAY - 1)[0] + n for n in range(3)))
    clock.move_to(bounds(TODAY + 6)[0] - 1)
    kept = await days.keep()
    assert (kept.dropped, kept.trimmed) == ([], 3), "lines are kept for five whole days"
    assert START_MS in [at for _, at, _ in lines(database)]
    clock.advance(1)
    assert (await days.keep()).dropped == AHEAD[:1]
    assert lines(database) == []


async def test_trimming_goes_on_beyond_one_batch(
    days: JournalDays, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_days, "TRIM_BATCH", 2)
    write(database, *range(5))
    assert (await days.keep()).trimmed == 5


async def test_a_line_of_the_far_future_waits_for_its_day(
    days: JournalDays, clock: VirtualClock, database: str
) -> None:
    future = START_MS + 10 * DAY_MS
    write(database, future)
    assert (await days.keep()).made == AHEAD
    assert places(database) == {DEFAULT: [future]}
    clock.advance(8 * DAY_MS)
    assert (await days.keep()).moved == 1


async def test_of_two_at_once_one_does_nothing(days: JournalDays, other: JournalDays, database: str) -> None:
    write(database, START_MS)
    reports = await asyncio.gather(days.keep(), other.keep())
    assert sorted(len(report.made) for report in reports) == [0, 4]
    assert sum(report.moved for report in reports) == 1
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select pg_advisory_lock(hashtextextended('kcoord.journal_days', 0))")
        assert await days.keep() == UpkeepReport(busy=True)
        connection.execute("select pg_advisory_unlock_all()")
    assert await days.keep() == UpkeepReport(), "and it holds no lock afterwards"


async def test_an_open_commit_puts_the_day_off(
    days: JournalDays, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While upkeep asks for its lock again and again, other commits get through between two attempts."""
    monkeypatch.setattr(journal_days, "LOCK_ATTEMPTS", 2)
    async with await psycopg.AsyncConnection.connect(database) as open_commit:
        await open_commit.execute(INSERT + "(%s, 'commit', 'g', 't', 0, 1)", (START_MS,))
        report = asyncio.create_task(days.keep())
        async with await psycopg.AsyncConnection.connect(database, autocommit=True) as other_commit:
            await other_commit.execute("set statement_timeout = '10s'")
            for number in range(20):
                await other_commit.execute(INSERT + "(%s, 'commit', 'h', 't', 0, 1)", (START_MS + number,))
        assert (await report).put_off == AHEAD
        assert partitions(database) == {}
    assert len(lines(database)) == 21
    done = await days.keep()
    assert (done.made, done.moved) == (AHEAD, 21)


async def test_an_open_commit_does_not_undo_a_long_move(days: JournalDays, database: str, large: None) -> None:
    """The day is attached when the commit ends, whose lock the attachment waits for."""
    write(database, START_MS - DAY_MS)
    async with await psycopg.AsyncConnection.connect(database) as open_commit:
        await open_commit.execute(INSERT + "(%s, 'commit', 'g', 't', 0, 1)", (START_MS,))
        async with await psycopg.AsyncConnection.connect(database, autocommit=True) as watching:
            report = asyncio.create_task(days.keep())
            await until_waiting(watching)
            await open_commit.commit()
    done = await asyncio.wait_for(report, PATIENCE_SECONDS)
    assert (done.moved, done.made) == (1, [*AHEAD[1:], partition_name(TODAY - 1)])
    assert len(lines(database)) == 2


async def until_waiting(connection: Connection) -> None:
    """Return when somebody waits for a lock of the default partition."""

    async def waits() -> bool:
        found = await connection.execute(
            "select from pg_locks where not granted and relation = 'offset_commit_log_default'::regclass"
        )
        return await found.fetchone() is not None

    await eventually(waits, "upkeep waits for the default partition")


@pytest.mark.parametrize("size", ["small", "large"])
async def test_commits_that_go_on_lose_nothing(
    days: JournalDays, runtime: Runtime, clock: VirtualClock, database: str, size: str, request: pytest.FixtureRequest
) -> None:
    """Four committers commit while days are made of what they wrote, a day is dropped and another comes."""
    if size == "large":
        request.getfixturevalue("large")
    await runtime.get(TopicService).create("orders", 4)
    service = runtime.get(OffsetService)
    write(database, *(START_MS - DAY_MS + n for n in range(500)))
    acknowledged: list[tuple[int, int]] = []
    committing, noon = 0, False
    stop, time_passes = asyncio.Event(), asyncio.Condition()

    async def committer(partition: int) -> None:
        nonlocal committing
        offset = 0
        while not stop.is_set():
            offset += 1
            entry = PartitionCommit("orders", partition, offset)
            async with time_passes:
                await time_passes.wait_for(lambda: not noon)
                committing += 1
            reply = await reply_to(service, OffsetCommit(f"g{partition}", "", None, -1, (entry,)))
            async with time_passes:
                committing -= 1
                time_passes.notify_all()
            assert [error.name for *_, error in reply.results] == ["NONE"], reply
            acknowledged.append((partition, offset))

    async with asyncio.TaskGroup() as tasks:
        for partition in range(4):
            tasks.create_task(committer(partition))
        for _ in range(8):
            await days.keep()
            async with time_passes:  # half a day is longer than any transaction is open
                noon = True
                await time_passes.wait_for(lambda: committing == 0)
                clock.advance(DAY_MS // 2 + 1)
                noon = False
                time_passes.notify_all()
        stop.set()
    with psycopg.connect(database) as connection:
        found = connection.execute(
            "select partition, committed_offset from offset_commit_log where group_name like 'g_'"
        )
        stored = sorted(found.fetchall())
    assert stored == sorted(acknowledged)
    assert len(acknowledged) > 20


async def test_attaching_beside_a_large_default_does_not_read_it(days: JournalDays, database: str, large: None) -> None:
    """PostgreSQL says so itself, at the level of debugging."""
    write(database, START_MS, START_MS - DAY_MS)
    said: list[str] = []
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        await connection.execute("set client_min_messages = debug1")
        connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
        report = UpkeepReport()
        await days._make_shut(connection, TODAY - 1, report)
    assert report.moved == 1
    implied = f'updated partition constraint for default partition "{DEFAULT}" is implied by existing constraints'
    assert implied in said
    assert f'partition constraint for table "{partition_name(TODAY - 1)}" is implied by existing constraints' in said


async def test_a_day_that_was_left_shut_is_opened(days: JournalDays, database: str) -> None:
    """What an upkeep that was killed in the middle leaves would refuse commits once the day has come."""
    first, after = bounds(TODAY)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            f"alter table {DEFAULT} add constraint shut_{AHEAD[0]} check (at < {first} or at >= {after}) not valid"
        )
    with pytest.raises(psycopg.errors.CheckViolation):
        write(database, START_MS)
    await days.keep()
    assert constraints(database) == []
    write(database, START_MS)


async def test_a_move_that_fails_leaves_the_day_open(
    days: JournalDays, database: str, large: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(connection: Connection, day: int) -> None:
        raise psycopg.errors.CheckViolation("a line came late")

    monkeypatch.setattr(days, "_attach_patiently", fails)
    write(database, START_MS - DAY_MS)
    report = await days.keep()
    assert report.put_off == [AHEAD[0], *AHEAD[1:], partition_name(TODAY - 1)]
    assert (report.made, report.moved) == ([], 0)
    assert constraints(database) == []
    assert places(database) == {DEFAULT: [START_MS - DAY_MS]}


async def test_a_table_that_was_taken_out_by_hand_is_left_alone(days: JournalDays, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"create table {AHEAD[1]} (precious int)")
        report = await days.keep()
        assert (report.made, report.put_off) == ([AHEAD[0], *AHEAD[2:]], [AHEAD[1]])
        assert connection.execute(f"select * from {AHEAD[1]}").fetchall() == []


async def test_a_day_with_a_commit_in_flight_is_dropped_later(
    days: JournalDays, clock: VirtualClock, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_days, "LOCK_ATTEMPTS", 2)
    await days.keep()
    clock.advance(6 * DAY_MS)
    async with await psycopg.AsyncConnection.connect(database) as open_commit:
        await open_commit.execute(INSERT + "(%s, 'commit', 'g', 't', 0, 1)", (clock.now_ms(),))
        assert AHEAD[0] in (await days.keep()).put_off
        assert AHEAD[0] in partitions(database)
    assert (await days.keep()).dropped == [AHEAD[0]]
