"""Transactions where several processes, or requests that overtake each other, work under one transactional id."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

import kcoord.database.pool
from groups.core.model.events import EventKind
from groups.core.model.types import GroupState
from groups.engine.service import GroupService
from groups.readmodel import GroupReads
from groups.topics import TopicService
from kcoord.config import Config
from kcoord.database import counters
from kcoord.database.clock import VirtualClock
from kcoord.database.counters import Counted
from kcoord.database.pool import PAUSE_SECONDS
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.commits.service import OffsetService
from offsets.commits.transactions.service import AbortFailed, TransactionService
from offsets.core.transactions import Producer, TransactionEnd
from offsets.core.types import OffsetCommitReply, OffsetFetch
from offsets.tasks import abort_abandoned_transactions, forget_idle_producers
from tests.support.commits import OffsetCommit, PartitionCommit
from tests.support.members import eventually
from tests.support.offsets import reply_to, taken

TOPIC = "orders"
TIMEOUT_MS = 900_000
WEEK_MS = 604_800_000


@pytest.fixture
async def there(database: str, clock: VirtualClock, config: Config) -> AsyncIterator[Runtime]:
    """Another process on the same database: its own pool, cache and mailbox."""
    running = Runtime(config, database, clock)
    await running.start()
    yield running
    await running.stop()


@pytest.fixture(autouse=True)
async def topic(runtime: Runtime) -> None:
    """A topic with a hundred partitions."""
    await runtime.get(TopicService).create(TOPIC, 100)


@pytest.fixture
def retries(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """One entry for each transaction that Postgres made start over, for a deadlock for example."""
    found: list[float] = []

    def uniform(low: float, high: float) -> float:
        if high != PAUSE_SECONDS:  # on a busy machine some wait longer for a lock
            found.append(high)
        return low

    monkeypatch.setattr(kcoord.database.pool.random, "uniform", uniform)
    return found


@pytest.fixture
def locker(database: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection that holds locks in the way of others, until it commits."""
    with psycopg.connect(database) as connection:
        yield connection


def commit_of(offsets: dict[int, int], group_id: str = "g", **changes: Any) -> OffsetCommit:
    partitions = tuple(PartitionCommit(TOPIC, partition, offset) for partition, offset in offsets.items())
    return OffsetCommit(group_id, "", None, -1, partitions, **changes)


async def pend(runtime: Runtime, producer: Producer, offsets: dict[int, int], group_id: str = "g") -> OffsetCommitReply:
    commit = await taken(runtime.get(TopicService), commit_of(offsets, group_id))
    return await runtime.get(TransactionService).commit(producer, commit)


async def end(runtime: Runtime, producer: Producer, *, committed: bool = True) -> TransactionEnd:
    return await runtime.get(TransactionService).end(producer, committed=committed)


async def committed(runtime: Runtime, group_id: str = "g", *, stable: bool = False) -> dict[int, int | str]:
    reply = await runtime.get(OffsetService).fetch(OffsetFetch(group_id, require_stable=stable))
    return {o.partition: o.committed_offset if o.error is Error.NONE else o.error.name for o in reply.offsets}


async def count_pending(runtime: Runtime) -> int:
    async with runtime.db.connection() as connection:
        return int(await runtime.db.value(connection, "select count(*) from offsets_pendingoffset"))


async def aborts(runtime: Runtime, group_id: str) -> list[Any]:
    """What the timeline of a group tells about transactions that were aborted."""
    page = await runtime.get(GroupReads).events(group_id, kinds=[EventKind.TRANSACTION_ABORTED.value])
    return [event.detail for event in page.items]


def hold(locker: psycopg.Connection[Any], group_id: str) -> None:
    row = locker.execute("select from groups_group where group_id = %s for update", (group_id,)).fetchone()
    assert row is not None, f"there is no group {group_id}"


async def until_waiting(runtime: Runtime, statement: str, holder: psycopg.Connection[Any]) -> None:
    """Return when a backend waits in the statement of that name for a lock that `holder` has."""
    query = (
        "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like %(name)s"
        " and %(holder)s = any (pg_blocking_pids(pid)))"
    )
    parameters = {"name": f"/* {statement} */%", "holder": holder.info.backend_pid}

    async def waits() -> bool:
        async with runtime.db.connection() as connection:
            return bool(await runtime.db.value(connection, query, parameters))

    await eventually(waits, f"{statement} waits for a lock")


FIRST, SECOND = Producer("t", 7, 0), Producer("t", 7, 1)


class TestFence:
    async def test_a_commit_that_was_let_in_is_refused_when_its_producer_was_fenced_meanwhile(
        self, runtime: Runtime, there: Runtime, locker: psycopg.Connection[Any]
    ) -> None:
        await pend(runtime, FIRST, {0: 1})
        await end(runtime, FIRST)
        hold(locker, "g")
        late = asyncio.create_task(pend(runtime, FIRST, {0: 2}))
        await until_waiting(there, "groups.lock_groups", locker)
        assert await there.get(TransactionService).init("t") == SECOND
        locker.commit()
        assert (await late).error is Error.INVALID_PRODUCER_EPOCH
        assert await count_pending(runtime) == 0
        assert await committed(runtime, stable=True) == {0: 1}

    async def test_a_takeover_waits_for_commits_that_are_being_written(
        self, runtime: Runtime, there: Runtime, locker: psycopg.Connection[Any]
    ) -> None:
        """Whatever was answered with success before the takeover is aborted by it."""
        await pend(runtime, FIRST, {0: 1})
        locker.execute("select from offsets_producer for share")  # as a commit holds it
        takeover = asyncio.create_task(there.get(TransactionService).init("t"))
        await until_waiting(runtime, "offsets.lock_producer", locker)
        assert not takeover.done()
        locker.commit()
        assert await takeover == SECOND
        assert await count_pending(runtime) == 0
        assert [event["cause"] for event in await aborts(runtime, "g")] == ["fenced"]

    async def test_after_a_takeover_nothing_of_the_predecessor_is_there(
        self, runtime: Runtime, there: Runtime, retries: list[float]
    ) -> None:
        refusals = 0
        for epoch in range(15):
            producer = Producer("t", 7, epoch)
            assert (await pend(runtime, producer, {0: epoch}, "a")).error is Error.NONE
            here = [pend(runtime, producer, {n: epoch}, group) for n, group in enumerate("abcab", start=1)]
            elsewhere = [pend(there, producer, {n: epoch}, group) for n, group in enumerate("cbacb", start=10)]
            taken, *results = await asyncio.gather(
                (runtime, there)[epoch % 2].get(TransactionService).init("t"),
                *here,
                *elsewhere,
                return_exceptions=True,
            )
            assert taken == Producer("t", 7, epoch + 1)
            refusals += sum(error_of(result) is Error.INVALID_PRODUCER_EPOCH for result in results)
            assert {error_of(result) for result in results} <= {Error.NONE, Error.INVALID_PRODUCER_EPOCH}
            assert await count_pending(runtime) == 0
        assert refusals > 0, "nobody was ever late: the test shows nothing"
        assert retries == []

    async def test_two_first_producers_are_registered_in_one_order(self, runtime: Runtime, there: Runtime) -> None:
        for number in range(8):
            name = f"t{number}"
            results = await asyncio.gather(
                pend(runtime, Producer(name, 100 + number, 0), {0: 1}, "a"),
                pend(there, Producer(name, 100 + number, 1), {1: 1}, "b"),
                return_exceptions=True,
            )
            assert error_of(results[1]) is Error.NONE
            assert error_of(results[0]) in (Error.NONE, Error.INVALID_PRODUCER_EPOCH)
            assert await end(there, Producer(name, 100 + number, 1)) == TransactionEnd(1, 1)

    async def test_of_two_ids_that_claim_one_producer_one_is_refused(self, runtime: Runtime, there: Runtime) -> None:
        for number in range(8):
            results = await asyncio.gather(
                pend(runtime, Producer(f"a{number}", number, 0), {0: 1}, "a"),
                pend(there, Producer(f"b{number}", number, 0), {0: 1}, "b"),
                return_exceptions=True,
            )
            errors = sorted(error_of(result).name for result in results)
            assert errors == ["INVALID_PRODUCER_ID_MAPPING", "NONE"]


class TestEnd:
    async def test_it_locks_the_group_that_a_commit_wrote_to_in_between(
        self, runtime: Runtime, there: Runtime, database: str, locker: psycopg.Connection[Any]
    ) -> None:
        """It starts over, so that it never writes to a group that somebody else holds."""
        for group in "gh":
            await pend(runtime, FIRST, {0: 1}, group)
        await end(runtime, FIRST, committed=False)
        await pend(runtime, FIRST, {0: 2}, "g")
        hold(locker, "g")
        ending = asyncio.create_task(end(there, FIRST))
        await until_waiting(runtime, "offsets.lock_groups", locker)
        assert (await pend(runtime, FIRST, {0: 3}, "h")).error is Error.NONE
        with psycopg.connect(database) as holder:
            hold(holder, "h")
            locker.commit()
            await until_waiting(runtime, "offsets.lock_groups", holder)
            assert not ending.done()
        assert await ending == TransactionEnd(2, 2)
        assert [await committed(runtime, group) for group in "gh"] == [{0: 2}, {0: 3}]

    async def test_it_is_one_transaction_over_all_groups(
        self, runtime: Runtime, there: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What fails at the end has ended nothing, in no group."""
        for group in "abc":
            await pend(runtime, FIRST, {0: 1}, group)
        broken = there.get(TransactionService)

        async def fail(*args: object) -> None:
            raise psycopg.OperationalError("the connection was lost")

        execute = broken._store.end

        async def end_and_fail(*args: Any) -> None:
            await execute(*args)
            await fail()

        monkeypatch.setattr(broken._store, "end", end_and_fail)
        with pytest.raises(ProtocolError) as raised:
            await broken.end(FIRST, committed=True)
        assert raised.value.error is Error.COORDINATOR_NOT_AVAILABLE
        assert [await committed(runtime, group, stable=True) for group in "abc"] == [{}] * 3
        assert await count_pending(runtime) == 3
        assert await end(runtime, FIRST) == TransactionEnd(3, 3)

    async def test_producers_and_groups_in_any_order_do_not_block_each_other(
        self, runtime: Runtime, there: Runtime, retries: list[float]
    ) -> None:
        """Producers commit to the same groups in different orders from two processes, end, and are succeeded."""
        serial = itertools.count(1)

        async def work(number: int) -> int:
            choice = random.Random(number)
            expected: dict[tuple[str, int], int] = {}
            service = (runtime, there)[number % 2]
            producer = await service.get(TransactionService).init(f"t{number}")
            for _ in range(4):
                service = choice.choice((runtime, there))
                groups = choice.sample("abcd", 3)
                offset = next(serial)
                replies = await asyncio.gather(*(pend(service, producer, {number: offset}, group) for group in groups))
                assert {reply.error for reply in replies} == {Error.NONE}
                if choice.random() < 0.2:
                    producer = await service.get(TransactionService).init(f"t{number}")
                    continue
                keep = choice.random() < 0.7
                assert (await end(service, producer, committed=keep)).ended == 3
                expected |= {(group, number): offset for group in groups} if keep else {}
            found = {(group, number): (await committed(service, group)).get(number) for group in "abcd"}
            assert {key: offset for key, offset in found.items() if offset is not None} == expected
            return len(expected)

        assert sum(await asyncio.gather(*(work(number) for number in range(6)))) > 0
        assert retries == []
        assert await count_pending(runtime) == 0


class TestStableFetch:
    async def test_it_waits_for_the_write_that_is_under_way_and_a_plain_one_does_not(
        self, runtime: Runtime, there: Runtime, locker: psycopg.Connection[Any]
    ) -> None:
        await reply_to(runtime.get(OffsetService), commit_of({0: 1}))
        hold(locker, "g")
        fetching = asyncio.create_task(committed(there, stable=True))
        await until_waiting(runtime, "groups.lock_groups", locker)
        assert await committed(there) == {0: 1}
        locker.execute("update offsets_committedoffset set committed_offset = 2")
        locker.commit()
        assert await fetching == {0: 2}

    async def test_a_dead_group_has_nothing(self, runtime: Runtime) -> None:
        """offsets.md 5, row 5."""
        await reply_to(runtime.get(OffsetService), commit_of({0: 1}))
        await pend(runtime, FIRST, {0: 2})
        await runtime.get(GroupService).force_state("g", GroupState.DEAD)
        assert await committed(runtime) == await committed(runtime, stable=True) == {}


class TestIdleProducers:
    async def test_who_ends_nothing_for_a_week_is_forgotten(self, runtime: Runtime, clock: VirtualClock) -> None:
        service = runtime.get(TransactionService)
        await service.init("idle")
        await pend(runtime, FIRST, {0: 1})
        clock.advance(WEEK_MS - 1)
        await end(runtime, FIRST)
        assert await service.forget_idle() == 0
        clock.advance(1)
        assert await asyncio.to_thread(forget_idle_producers) == 1
        assert (await service.init("idle")).producer_epoch == 0, "nobody remembers it"
        assert (await service.init("t")).producer_epoch == 1, "it ended a transaction a moment ago"

    async def test_who_has_something_pending_is_not_idle(self, runtime: Runtime, clock: VirtualClock) -> None:
        await pend(runtime, FIRST, {0: 1})
        clock.advance(10 * WEEK_MS)
        assert await runtime.get(TransactionService).forget_idle() == 0
        assert await end(runtime, FIRST) == TransactionEnd(1, 1)


class TestAbandoned:
    async def test_a_transaction_open_for_too_long_is_aborted_and_its_producer_fenced(
        self, runtime: Runtime, clock: VirtualClock
    ) -> None:
        aborted = (await counters.read(runtime.db))[Counted.TRANSACTIONS_ABANDONED]
        service = runtime.get(TransactionService)
        await pend(runtime, FIRST, {0: 1}, "g")
        clock.advance(TIMEOUT_MS - 1)
        await pend(runtime, FIRST, {0: 2}, "g")  # goes on with the transaction, and does not prolong it
        await pend(runtime, FIRST, {0: 2}, "h")
        young = Producer("young", 8, 0)
        await pend(runtime, young, {1: 1}, "g")
        assert await service.abort_abandoned() == 0
        clock.advance(1)
        assert await asyncio.to_thread(abort_abandoned_transactions) == 1
        assert await service.abort_abandoned() == 0
        assert (await counters.read(runtime.db))[Counted.TRANSACTIONS_ABANDONED] - aborted == 1
        told = {"transactional_id": "t", "cause": "abandoned", "partitions": 1, "topics": [TOPIC]}
        assert [await aborts(runtime, group) for group in "gh"] == [[told], [told]]
        for late in (pend(runtime, FIRST, {0: 3}), end(runtime, FIRST)):
            with pytest.raises(ProtocolError) as raised:
                await late
            assert raised.value.error is Error.INVALID_PRODUCER_EPOCH
        assert await service.init("t") == Producer("t", 7, 2)
        assert await end(runtime, young) == TransactionEnd(1, 1)
        assert [await committed(runtime, group, stable=True) for group in "gh"] == [{1: 1}, {}]

    async def test_the_time_of_the_next_transaction_begins_anew(self, runtime: Runtime, clock: VirtualClock) -> None:
        await pend(runtime, FIRST, {0: 1})
        clock.advance(TIMEOUT_MS)
        await end(runtime, FIRST)
        await pend(runtime, FIRST, {0: 2})
        assert await runtime.get(TransactionService).abort_abandoned() == 0
        assert await end(runtime, FIRST) == TransactionEnd(1, 1)

    async def test_one_that_ended_in_between_is_left_alone(
        self, runtime: Runtime, there: Runtime, clock: VirtualClock, locker: psycopg.Connection[Any]
    ) -> None:
        await pend(runtime, FIRST, {0: 1})
        clock.advance(TIMEOUT_MS)
        hold(locker, "g")
        aborting = asyncio.create_task(there.get(TransactionService).abort_abandoned())
        await until_waiting(runtime, "offsets.lock_groups", locker)
        locker.execute("update offsets_pendingoffset set opened_at = %s", (clock.now_ms(),))  # of the next transaction
        locker.commit()
        assert await aborting == 0
        assert await end(runtime, FIRST) == TransactionEnd(1, 1)

    async def test_one_that_cannot_be_aborted_does_not_hold_up_the_others(
        self, runtime: Runtime, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(5):
            await pend(runtime, Producer(f"t{number}", number, 0), {number: 1})
        clock.advance(TIMEOUT_MS)
        service = runtime.get(TransactionService)
        replace = service._store.replace

        async def replace_others(held: Any, producer: Producer) -> None:
            if producer.transactional_id == "t1":
                raise psycopg.OperationalError("this one's rows are held by somebody")
            await replace(held, producer)

        with monkeypatch.context() as patch:
            patch.setattr(service._store, "replace", replace_others)
            patch.setattr("offsets.commits.transactions.service.ABANDONED_BATCH", 2)
            with pytest.raises(AbortFailed, match=r"1 abandoned .* t1"):
                await service.abort_abandoned()
        assert await count_pending(runtime) == 1
        assert await service.abort_abandoned() == 1

    async def test_a_producer_out_of_epochs_is_fenced_too(self, runtime: Runtime, clock: VirtualClock) -> None:
        last = Producer("t", 7, 32_767)
        await pend(runtime, last, {0: 1})
        clock.advance(TIMEOUT_MS)
        assert await runtime.get(TransactionService).abort_abandoned() == 1
        with pytest.raises(ProtocolError) as raised:
            await end(runtime, last)
        assert raised.value.error is Error.INVALID_PRODUCER_ID_MAPPING


def error_of(result: OffsetCommitReply | BaseException) -> Error:
    """The error of a commit, however it was told."""
    if isinstance(result, ProtocolError):
        return result.error
    assert isinstance(result, OffsetCommitReply), repr(result)
    return result.error
