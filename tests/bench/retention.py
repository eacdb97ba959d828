"""Measurements of retention: a million offsets go, and how long anybody waits for the lock of their group meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from groups.core.model.commands import Heartbeat
from groups.core.model.replies import JoinReply
from groups.core.model.types import Protocol
from groups.engine.service import GroupService
from groups.store.store import GroupStore
from groups.topics import TopicService
from kcoord.config import Config
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from kcoord.protocol.consumer_protocol import Subscription, encode_subscription
from kcoord.protocol.errors import Error
from offsets.commits.retention.sweep import RetentionService
from offsets.commits.service import OffsetService
from tests.bench.load import start_node
from tests.support.commits import OffsetCommit, PartitionCommit
from tests.support.members import join, sync
from tests.support.offsets import reply_to

BIG = "bench-big"
LIVE = "bench-live"
PARTITIONS = 100_000
TOPICS = 5
"""The big group has so many topics of PARTITIONS each; the same number of offsets is in small groups."""

SMALL_GROUPS = 5_000
PAUSE_SECONDS = 0.01
ALONE_SECONDS = 10.0

FILL_BIG = """
insert into offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch, metadata,
                                     commit_timestamp, member_id, generation_id)
select g.id, 'bench-' || t, p, 1, -1, '', 0, '', -1
from groups_group g, generate_series(1, %(topics)s) t, generate_series(0, %(partitions)s - 1) p
where g.group_id = %(group)s
"""
SMALL = """
insert into groups_group (group_id, type, state, previous_state, state_since, generation_id, new_member_added, version,
                          created_at, updated_at)
select 'bench-small-' || n, 'classic', 'Empty', 'Dead', 0, 0, false, 1, 0, 0 from generate_series(1, %(groups)s) n
"""
FILL_SMALL = """
insert into offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch, metadata,
                                     commit_timestamp, member_id, generation_id)
select g.id, 'bench-1', p, 1, -1, '', 0, '', -1
from groups_group g, generate_series(0, %(topics)s * %(partitions)s / %(groups)s - 1) p
where g.group_id like 'bench-small-%%'
"""
COUNT = "select count(*) from offsets_committedoffset where topic like 'bench-_'"


@dataclass(slots=True)
class Locks:
    """How long transactions of a runtime hold the lock of their group: from when they have it until the commit."""

    held: list[float] = field(default_factory=list)

    def watch(self, runtime: Runtime) -> None:
        """Measure every transaction of this runtime from now on."""
        store, db = runtime.get(GroupStore), runtime.db
        lock, transaction = store.lock, db.transaction
        locked_at: ContextVar[float | None] = ContextVar("locked_at", default=None)

        async def timed_lock(*args: Any, **kwargs: Any) -> Any:
            found = await lock(*args, **kwargs)
            locked_at.set(time.perf_counter())
            return found

        async def timed_transaction(work: Callable[[Any], Awaitable[Any]], **given: Any) -> Any:
            locked_at.set(None)
            result = await transaction(work, **given)
            since = locked_at.get()
            if since is not None:
                self.held.append(time.perf_counter() - since)
            return result

        store.lock = timed_lock  # type: ignore[method-assign]
        db.transaction = timed_transaction  # type: ignore[method-assign,assignment]


@dataclass(slots=True)
class Figures:
    """Seconds. `heartbeats` and `commits` of the big group's member while retention ran, `before`: both before it."""

    offsets: int
    groups: int
    total: float
    held: list[float]
    heartbeats: list[float]
    commits: list[float]
    before: list[float]

    def say(self) -> None:
        """A few lines."""
        print(f"retention of {self.offsets:,} offsets and {self.groups:,} groups: {self.total:.1f} s;")
        print(f"  lock of a group held {_spread(self.held)}")
        print(f"  meanwhile in the group of {self.offsets // 2:,}: heartbeats {_spread(self.heartbeats)},")
        print(f"  commits {_spread(self.commits)};")
        print(f"  before retention: both {_spread(self.before)}")


def _spread(seconds: list[float]) -> str:
    ordered = sorted(1_000 * value for value in seconds)
    middle, late = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
    return f"{middle:.0f} ms (median of {len(ordered):,}), {late:.0f} ms (99 %), {ordered[-1]:.0f} ms (longest)"


async def retention(conninfo: str) -> Figures:
    """Fill, and let everything expire while the member of the big group goes on working in a process of its own."""
    members = Runtime(Config({"group.initial.rebalance.delay.ms": 0}), conninfo)
    await start_node(members)
    member = await _fill(members)
    runtime = Runtime(Config({}), conninfo)
    await runtime.start()
    locks = Locks()
    locks.watch(runtime)
    before = await _alone(members, member)
    heartbeats: list[float] = []
    commits: list[float] = []
    worker = asyncio.create_task(_work(members, member, heartbeats, commits))
    started = time.perf_counter()
    report = await runtime.get(RetentionService).run()
    total = time.perf_counter() - started
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    async with runtime.db.connection() as connection:
        assert await runtime.db.value(connection, COUNT) == 0
    await runtime.stop()
    await members.stop()
    return Figures(report.offsets, report.groups, total, locks.held, heartbeats, commits, before)


async def _fill(runtime: Runtime) -> JoinReply:
    """The groups, all their offsets long expired; returns the only member of the big one, which reads LIVE."""
    await runtime.get(TopicService).create(LIVE, 1)
    service = runtime.get(GroupService)
    protocols = (Protocol("range", encode_subscription(Subscription((LIVE,)))),)
    asked = await service.join(join(BIG, protocols=protocols, session_timeout_ms=600_000))
    joined = await service.join(join(BIG, asked.member_id, protocols=protocols, session_timeout_ms=600_000))
    await service.sync(sync(joined, {joined.member_id: b""}, BIG))
    parameters = {"group": BIG, "topics": TOPICS, "partitions": PARTITIONS, "groups": SMALL_GROUPS}
    async with runtime.db.connection() as connection:
        await connection.execute("set statement_timeout = 0")
        for statement in (FILL_BIG, SMALL, FILL_SMALL, "analyze offsets_committedoffset"):
            await connection.execute(statement.encode(), parameters)
        await connection.execute("reset statement_timeout")
    return joined


async def _alone(runtime: Runtime, member: JoinReply) -> list[float]:
    """How long heartbeats and commits take for a while when nothing else goes on."""
    taken: list[float] = []
    worker = asyncio.create_task(_work(runtime, member, taken, taken))
    await asyncio.sleep(ALONE_SECONDS)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    return taken


async def _work(runtime: Runtime, member: JoinReply, heartbeats: list[float], commits: list[float]) -> None:
    service, offsets = runtime.get(GroupService), runtime.get(OffsetService)
    heartbeat = Heartbeat(BIG, member.member_id, None, member.generation_id)
    entries = (PartitionCommit(LIVE, 0, 1),)
    commit = OffsetCommit(BIG, member.member_id, None, member.generation_id, entries)
    while True:
        started = time.perf_counter()
        assert (await settled(service.heartbeat(heartbeat))).error is Error.NONE
        heartbeats.append(time.perf_counter() - started)
        started = time.perf_counter()
        assert (await reply_to(offsets, commit)).error is Error.NONE
        commits.append(time.perf_counter() - started)
        await asyncio.sleep(PAUSE_SECONDS)
