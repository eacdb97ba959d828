"""The fence of the commit lane (invariant 2): an accepted commit is ordered before what would have refused it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import psycopg
import pytest

from groups.core.model.replies import JoinReply
from groups.engine.service import GroupService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests import current
from kcoord.requests.current import Receipt
from offsets.commits import service as lane
from offsets.commits.service import OffsetService
from offsets.core.commit import OVERTAKEN_MS
from offsets.core.types import OffsetCommitReply
from tests.offsets.lane.ways import ways
from tests.support.commits import OffsetCommit, PartitionCommit
from tests.support.journal import assert_journal_agrees, journal_lines
from tests.support.members import leave, pending_id, stable_member
from tests.support.offsets import reply_to, stored

PATIENCE = 10


@pytest.fixture
async def member(service: GroupService, clock: VirtualClock, topic: str, runtime: Runtime) -> JoinReply:
    """The only member of the group g, whose copy is in memory."""
    member = await stable_member(service, clock)
    assert await way_of(commit(runtime, member, 1)) == {"lane": 1}
    return member


def commit(runtime: Runtime, member: JoinReply, offset: int, *partitions: int) -> asyncio.Task[OffsetCommitReply]:
    """A commit of a member of the group g."""
    entries = tuple(PartitionCommit("orders", partition, offset) for partition in partitions or (0,))
    command = OffsetCommit("g", member.member_id, None, member.generation_id, entries)
    return asyncio.create_task(reply_to(runtime.get(OffsetService), command))


async def way_of(task: asyncio.Task[OffsetCommitReply]) -> dict[str, float]:
    """The ways that commits took until a commit was accepted."""
    before = ways()
    assert (await task).error is Error.NONE
    after = ways()
    return {way: after[way] - before.get(way, 0) for way in after if after[way] != before.get(way, 0)}


class Held:
    """Batches stop between their two statements until they are let go."""

    def __init__(self) -> None:
        self.locked, self.go = asyncio.Event(), asyncio.Event()


@pytest.fixture
def held(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> Held:
    """Of the first process."""
    found, one = Held(), runtime.db.one

    async def slow(connection: Any, statement: str, parameters: Any) -> Any:
        if statement is lane.Q.write_batch:
            await connection.execute("select 1")  # the locks are taken, whatever is still in the pipeline
            await (await connection.execute("select 1")).fetchone()
            found.locked.set()
            async with asyncio.timeout(PATIENCE):
                await found.go.wait()
        return await one(connection, statement, parameters)

    monkeypatch.setattr(runtime.db, "one", slow)
    return found


async def test_generation_waits_for_the_batch_that_holds_its_group(
    member: JoinReply, runtime: Runtime, other: GroupService, held: Held
) -> None:
    committing = commit(runtime, member, 7)
    await held.locked.wait()
    leaving = asyncio.create_task(other.leave(leave(member.member_id)))
    done, _ = await asyncio.wait({leaving}, timeout=0.3)
    assert not done, "the batch holds the group"
    held.go.set()
    assert (await committing).error is Error.NONE
    await leaving
    assert await stored(runtime) == [("g", "orders", 0, 7)]


async def test_commit_of_a_member_that_another_process_has_removed_is_refused(
    member: JoinReply, runtime: Runtime, other: GroupService
) -> None:
    await other.leave(leave(member.member_id))
    before = ways()
    assert (await commit(runtime, member, 7)).error is Error.UNKNOWN_MEMBER_ID
    assert ways()["fence"] == before.get("fence", 0) + 1, "the copy is out of date, and its own process does not know"
    assert await stored(runtime) == [("g", "orders", 0, 1)]


async def test_group_that_is_held_is_left_out_of_the_batch(
    member: JoinReply, runtime: Runtime, service: GroupService, clock: VirtualClock, database: str
) -> None:
    neighbour = await stable_member(service, clock, "neighbour")
    entries = (PartitionCommit("orders", 0, 5),)
    other_commit = OffsetCommit("neighbour", neighbour.member_id, None, neighbour.generation_id, entries)
    with psycopg.connect(database) as connection:
        connection.execute("select from groups_group where group_id = 'g' for no key update")
        waiting = commit(runtime, member, 7)
        async with asyncio.timeout(PATIENCE):
            assert (await reply_to(runtime.get(OffsetService), other_commit)).error is Error.NONE
        assert not waiting.done()
        connection.execute("update groups_group set generation_id = 9, version = version + 1 where group_id = 'g'")
    assert (await waiting).error is Error.ILLEGAL_GENERATION


async def test_group_of_the_same_name_is_another_one(member: JoinReply, runtime: Runtime, other: GroupService) -> None:
    await other.leave(leave(member.member_id))
    assert (await other.delete("g")).error is Error.NONE
    await pending_id(other)
    assert (await commit(runtime, member, 7)).error is Error.UNKNOWN_MEMBER_ID
    assert await stored(runtime) == []


async def test_request_that_is_too_old_writes_nothing_and_those_beside_it_do(
    member: JoinReply, runtime: Runtime, database: str
) -> None:
    now = asyncio.get_running_loop().time()
    before = len(journal_lines(database))
    old = current.enter_receipt(Receipt(now - 60))
    late = commit(runtime, member, 66)
    current.leave_receipt(old)
    young = current.enter_receipt(Receipt(now))
    fresh = commit(runtime, member, 7)
    current.leave_receipt(young)
    with pytest.raises(ProtocolError) as refusal:
        await late
    assert refusal.value.error is Error.COORDINATOR_NOT_AVAILABLE
    assert "old" in refusal.value.detail
    assert (await fresh).error is Error.NONE
    assert [line["committed_offset"] for line in journal_lines(database)[before:]] == [7]


async def test_commits_of_one_group_keep_their_order_in_a_batch(
    member: JoinReply, runtime: Runtime, database: str
) -> None:
    first = commit(runtime, member, 10)  # it takes off alone
    await asyncio.sleep(0)
    rest = [commit(runtime, member, offset, 0, 1) for offset in range(11, 30)]
    for task in (first, *rest):
        assert (await task).error is Error.NONE
    assert await stored(runtime) == [("g", "orders", 0, 29), ("g", "orders", 1, 29)]
    lines = [line["committed_offset"] for line in journal_lines(database) if line["partition"] == 0]
    assert lines == [1, *range(10, 30)]
    assert_journal_agrees(database)


async def test_commits_keep_their_order_when_some_of_them_take_the_normal_way(
    member: JoinReply, runtime: Runtime, database: str
) -> None:
    tasks = []
    for offset in range(10, 40):
        entries = (PartitionCommit("orders", 0, offset),)
        retention_ms = 60_000 if Random(offset).random() < 0.3 else -1
        command = OffsetCommit("g", member.member_id, None, member.generation_id, entries, retention_ms)
        tasks.append(asyncio.create_task(reply_to(runtime.get(OffsetService), command)))
    assert {reply.error for reply in await asyncio.gather(*tasks)} == {Error.NONE}
    assert [line["committed_offset"] for line in journal_lines(database)] == [1, *range(10, 40)]


@pytest.mark.parametrize("seed", range(3))
async def test_accepted_commit_is_there_when_a_later_generation_begins(
    seed: int,
    service: GroupService,
    other: GroupService,
    runtime: Runtime,
    clock: VirtualClock,
    topic: str,
    database: str,
) -> None:
    random, accepted = Random(seed), 0
    for number in range(25):
        member = await stable_member(service, clock)
        assert (await commit(runtime, member, number)).error is Error.NONE
        committing = commit(runtime, member, 1_000 + number)
        for _ in range(random.randrange(6)):
            await asyncio.sleep(0)
        await asyncio.sleep(random.choice((0, 0.001, 0.002, 0.004)))
        await other.leave(leave(member.member_id))
        seen = await stored(runtime)
        reply = await committing
        assert await stored(runtime) == seen, "nothing is written once the generation has ended"
        if reply.error is Error.NONE:
            accepted += 1
            assert seen == [("g", "orders", 0, 1_000 + number)]
        else:
            assert reply.error is Error.UNKNOWN_MEMBER_ID
            assert seen == [("g", "orders", 0, number)]
    assert accepted
    assert_journal_agrees(database)


async def test_commits_that_find_the_queue_full_are_told_to_come_back(
    member: JoinReply, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "MOST_WAITING", 2)
    answers = await asyncio.gather(
        *(commit(runtime, member, offset) for offset in (7, 8, 9, 10)), return_exceptions=True
    )
    assert [answer.error for answer in answers[:2] if not isinstance(answer, BaseException)] == [Error.NONE] * 2
    for answer in answers[2:]:
        assert isinstance(answer, ProtocolError)
        assert answer.error is Error.COORDINATOR_NOT_AVAILABLE
        assert answer.retry_after_ms == runtime.config.int("http.retry.after.ms")
    assert await stored(runtime) == [("g", "orders", 0, 8)]
    assert (await commit(runtime, member, 11)).error is Error.NONE, "there is room again"


@pytest.fixture
async def elsewhere(database: str, clock: VirtualClock, config: Config) -> AsyncIterator[OffsetService]:
    """The offsets of another process on the same database."""
    runtime = Runtime(config, database, clock)
    await runtime.start()
    yield runtime.get(OffsetService)
    await runtime.stop()


def received_ago(runtime: Runtime, ms: int) -> Receipt:
    """That of a request which came some time ago."""
    now = runtime.db.request_age.receive()
    assert now.database_ms is not None, "the clock was read"
    return Receipt(now.at - ms / 1000, now.database_ms - ms)


@pytest.mark.parametrize("retention_ms", [-1, 60_000], ids=["lane", "alone"])
@pytest.mark.parametrize("age_ms", [OVERTAKEN_MS + 400, OVERTAKEN_MS - 400])
async def test_commit_that_a_later_one_of_another_server_overtook_is_refused(
    age_ms: int, retention_ms: int, member: JoinReply, runtime: Runtime, clock: VirtualClock, elsewhere: OffsetService
) -> None:
    """Differs from Kafka: its client gave it up, and went to the other server; there it would be written."""
    late, later = (
        OffsetCommit("g", member.member_id, None, member.generation_id, (PartitionCommit("orders", 0, offset),), ms)
        for offset, ms in ((100, retention_ms), (110, -1))
    )
    clock.advance(1_000)
    assert (await reply_to(elsewhere, later)).error is Error.NONE
    clock.advance(1)
    token = current.enter_receipt(received_ago(runtime, age_ms))
    reply = await reply_to(runtime.get(OffsetService), late)
    current.leave_receipt(token)
    is_late = age_ms > OVERTAKEN_MS
    assert reply.error is (Error.COORDINATOR_NOT_AVAILABLE if is_late else Error.NONE)
    assert await stored(runtime) == [("g", "orders", 0, 110 if is_late else 100)]


async def test_commits_that_wait_long_here_are_not_overtaken_by_those_before_them(
    member: JoinReply, runtime: Runtime, clock: VirtualClock
) -> None:
    """In a crowd of commits, each is written after what came before it."""
    clock.advance(1_000)
    assert (await commit(runtime, member, 50)).error is Error.NONE
    clock.advance(1)
    token = current.enter_receipt(received_ago(runtime, 2_000))
    waiting = commit(runtime, member, 60)
    current.leave_receipt(token)
    assert (await waiting).error is Error.NONE
