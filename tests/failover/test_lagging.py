"""A standby that lacks the last commits is promoted: the server stores them again and reports the loss."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.client import AsyncConsumer, TopicPartition
from kcoord.config import Config
from kcoord.metrics import LOST_COMMITS
from kcoord.process import runtime as runtimes
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.commits import acknowledged
from offsets.commits.acknowledged import AcknowledgedCommits
from offsets.commits.service import OffsetService
from tests.failover.pair import Pair, asynchronous
from tests.support.api import client_of
from tests.support.commits import OffsetCommit, PartitionCommit
from tests.support.http_members import make_token
from tests.support.members import join, sync
from tests.support.offsets import reply_to

WHOLE = pytest.mark.whole("more fail-overs to a standby that lags; the default has one")

SECONDS = 60
"""More than anything here takes."""


@pytest.fixture
def pair() -> Iterator[Pair]:
    """For one test alone: a fail-over happens once."""
    with asynchronous() as both:
        yield both


async def started(pair: Pair) -> Runtime:
    """A process of the service that goes where writes are accepted."""
    running = Runtime(Config({"group.initial.rebalance.delay.ms": 0}), pair.both)
    await running.start()
    await running.notifications.wait_listening()
    return running


@pytest.fixture
async def runtime(pair: Pair) -> AsyncIterator[Runtime]:
    running = await started(pair)
    yield running
    await running.stop()


@pytest.fixture
async def ending(pair: Pair) -> AsyncIterator[Runtime]:
    """Another process, which ends before the standby takes over."""
    running = await started(pair)
    runtimes.use(running)
    yield running
    runtimes.use(None)


@pytest.fixture
async def consumer(pair: Pair, ending: Runtime, runtime: Runtime) -> AsyncIterator[AsyncConsumer[None]]:
    """A member of group "client", of the process that is the current one, with all partitions of topic orders."""
    await runtime.get(TopicService).create("orders", 3)
    settings = {"group_id": "client", "url": "http://testserver", "token": ""}
    async with (
        client_of(make_token(pair.conninfo)) as http,
        AsyncConsumer("orders", http_client=http, enable_auto_commit=False, **settings) as member,
    ):
        async with asyncio.timeout(SECONDS):
            while not member.assignment():
                await member.poll(1_000)
        yield member


class Members:
    """One member in each of some groups, whose partitions are those of one topic."""

    def __init__(self, runtime: Runtime) -> None:
        self._groups, self._offsets = runtime.get(GroupService), runtime.get(OffsetService)
        self._topics = runtime.get(TopicService)
        self.ids: dict[str, tuple[str, int]] = {}

    async def begin(self, *names: str) -> None:
        with contextlib.suppress(ProtocolError):
            await self._topics.create("orders", 3)
        for name in names:
            asked = await self._groups.join(join(name, session_timeout_ms=45_000))
            reply = await self._groups.join(join(name, asked.member_id, session_timeout_ms=45_000))
            assert (await self._groups.sync(sync(reply, {reply.member_id: b"a"}, name))).error is Error.NONE
            self.ids[name] = reply.member_id, reply.generation_id

    async def commit(self, name: str, **offsets: int) -> None:
        """`p0=10`: offset 10 of partition 0. Until it is acknowledged."""
        member_id, generation = self.ids[name]
        partitions = tuple(PartitionCommit("orders", int(p[1:]), offset) for p, offset in offsets.items())
        command = OffsetCommit(name, member_id, None, generation, partitions)
        async with asyncio.timeout(SECONDS):
            while True:
                try:
                    reply = await reply_to(self._offsets, command)
                except ProtocolError as error:
                    assert error.error is Error.COORDINATOR_NOT_AVAILABLE  # noqa: PT017 - it is tried again
                    await asyncio.sleep(0.1)
                else:
                    assert reply.error is Error.NONE
                    return


def committed(pair: Pair) -> dict[tuple[str, int], int]:
    """What the standby has, by group and partition."""
    query = """
    select g.group_id, o.partition, o.committed_offset
    from offsets_committedoffset o join groups_group g on g.id = o.group_id
    """
    with psycopg.connect(pair.standby_conninfo) as connection:
        return {(group, partition): offset for group, partition, offset in connection.execute(query)}


async def compared(runtime: Runtime, offsets: int) -> None:
    """Wait until the process has reconnected, compared its commits with the journal, handled `offsets` of them, and
    tells members.
    """
    found = runtime.get(AcknowledgedCommits)
    async with asyncio.timeout(SECONDS):
        while min(found.loss.offsets, found.gone.offsets) < offsets:  # noqa: ASYNC110 - nothing else tells
            await asyncio.sleep(0.05)


async def test_commits_that_a_standby_never_received_are_stored_again(
    pair: Pair, runtime: Runtime, ending: Runtime, consumer: AsyncConsumer[None]
) -> None:
    """By the process that acknowledged them, else by the member, which another process tells."""
    members = Members(runtime)
    await members.begin("one", "two", "three")
    for name in members.ids:
        await members.commit(name, p0=10, p1=10)
    await consumer.commit({TopicPartition("orders", 0): 8})
    pair.catch_up()
    pair.cut()
    await consumer.commit({TopicPartition("orders", 0): 9})
    runtimes.use(runtime)
    await ending.stop()
    await members.commit("one", p0=20)
    await members.commit("one", p0=30, p2=5)
    await members.commit("two", p1=40)
    missing, again = (LOST_COMMITS.labels(outcome) for outcome in ("missing", "stored_again"))
    before = missing._value.get(), again._value.get()
    pair.kill_primary()
    pair.promote()
    # What a member commits after the fail-over stays, also if it is what was lost.
    await members.commit("two", p1=45)
    await compared(runtime, 4)
    assert committed(pair)["client", 0] == 8
    await consumer.commit({TopicPartition("orders", 1): 3})
    async with asyncio.timeout(SECONDS):
        while not consumer.committed_again:
            await consumer.poll(1_000)
    assert committed(pair) == {
        ("client", 0): 9, ("client", 1): 3,
        ("one", 0): 30, ("one", 1): 10, ("one", 2): 5,
        ("two", 0): 10, ("two", 1): 45, ("three", 0): 10, ("three", 1): 10,
    }  # fmt: skip
    assert missing._value.get() - before[0] == 4
    assert again._value.get() - before[1] in (2, 3), "the third is that of the member that committed, if it was later"
    note = acknowledged.checks(runtime)["commits"]
    assert note.ok
    assert "4 acknowledged offsets of 2 groups" in note.detail
    with psycopg.connect(pair.standby_conninfo) as connection:
        events = connection.execute("select group_name, detail from groups_event where kind = 'offsets_restored'")
        told = {name: detail["reason"] for name, detail in events}
    assert set(told) == {"one", "two"}
    assert "acknowledged offsets were missing" in told["one"]


@WHOLE
async def test_a_group_that_the_standby_never_received_is_there_with_its_offsets(pair: Pair, runtime: Runtime) -> None:
    members = Members(runtime)
    await members.begin("known")
    pair.catch_up()
    pair.cut()
    member = await runtime.get(GroupService).join(join("new", session_timeout_ms=45_000))
    reply = await runtime.get(GroupService).join(join("new", member.member_id, session_timeout_ms=45_000))
    assert (await runtime.get(GroupService).sync(sync(reply, {reply.member_id: b"a"}, "new"))).error is Error.NONE
    members.ids["new"] = reply.member_id, reply.generation_id
    await members.commit("new", p0=7)
    pair.kill_primary()
    pair.promote()
    await compared(runtime, 1)
    assert committed(pair) == {("new", 0): 7}


@WHOLE
async def test_nothing_is_said_when_nothing_was_lost(pair: Pair, runtime: Runtime) -> None:
    members = Members(runtime)
    await members.begin("one")
    await members.commit("one", p0=10)
    pair.catch_up()
    pair.kill_primary()
    pair.promote()
    await members.commit("one", p0=11)
    await runtime.get(AcknowledgedCommits).compare()
    assert acknowledged.checks(runtime) == {}
    assert committed(pair) == {("one", 0): 11}
