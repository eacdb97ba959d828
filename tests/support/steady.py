"""A service in virtual time that stalls do not disturb, and groups whose members do nothing but renew and commit."""

from __future__ import annotations

from groups.core.model.commands import ConsumerHeartbeat, Heartbeat
from groups.engine.agent import NodeAgent
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.commits.service import OffsetService
from offsets.journal.journal_days import JournalDays
from tests.support.commits import OffsetCommit, PartitionCommit
from tests.support.members import join, sync
from tests.support.offsets import reply_to

INTERVAL_MS = {"classic": 3_000, "consumer": 5_000}
"""How often members send heartbeats by default; their sessions are 45 s."""


def wait_out_stalls(runtime: Runtime) -> Runtime:
    """Let Postgres end its sessions after 30 s in a transaction, unless its test sets the limit; before it starts.

    Where other tests use all cores, a test stalls for seconds, one of low priority for many. The setting itself also
    says how much must be left of a lease.
    """
    database, node = runtime.db, runtime.get(NodeAgent)._connection
    if database._limit_ms == Config({}).int("database.transaction.timeout.ms"):
        database._limit_ms = node._limit_ms = 30_000
    return runtime


class SteadyGroups:
    """One member in each of some groups. `beats`: heartbeats sent so far."""

    def __init__(self, runtime: Runtime, clock: VirtualClock, protocol: str, count: int) -> None:
        self._groups, self._offsets = runtime.get(GroupService), runtime.get(OffsetService)
        self._runtime, self._clock = runtime, clock
        self._consumer = protocol == "consumer"
        self._interval = INTERVAL_MS[protocol]
        self._names = [f"{protocol}-{number}" for number in range(count)]
        self._members: dict[str, tuple[str, int]] = {}
        self.beats = 0

    async def fill(self) -> None:
        """Everybody joins. The setting group.initial.rebalance.delay.ms has to be 0."""
        topic = f"{'consumer' if self._consumer else 'classic'}-topic"
        await self._runtime.get(TopicService).create(topic, 1)
        await self._runtime.get(JournalDays).keep()
        for name in self._names:
            self._members[name] = await (self._join_consumer(name, topic) if self._consumer else self._join(name))

    async def _join(self, name: str) -> tuple[str, int]:
        asked = await self._groups.join(join(name, session_timeout_ms=45_000))
        reply = await self._groups.join(join(name, asked.member_id, session_timeout_ms=45_000))
        assert (await self._groups.sync(sync(reply, {reply.member_id: b"a" * 100}, name))).error is Error.NONE
        return reply.member_id, reply.generation_id

    async def _join_consumer(self, name: str, topic: str) -> tuple[str, int]:
        command = ConsumerHeartbeat(
            name,
            "member",
            0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=frozenset({topic}),
            topic_partitions={},
        )
        reply = await settled(self._groups.consumer_heartbeat(command))
        return reply.member_id, reply.member_epoch

    async def beat(self) -> None:
        """One heartbeat of everybody, after the interval between them."""
        self._clock.advance(self._interval)
        for name, (member_id, epoch) in self._members.items():
            if self._consumer:
                command = ConsumerHeartbeat(name, member_id, epoch)
                assert (await settled(self._groups.consumer_heartbeat(command))).error is Error.NONE
            else:
                assert (
                    await settled(self._groups.heartbeat(Heartbeat(name, member_id, None, epoch)))
                ).error is Error.NONE
            self.beats += 1

    async def commit(self, offset: int) -> None:
        """One commit of everybody."""
        topic = f"{'consumer' if self._consumer else 'classic'}-topic"
        for name, (member_id, epoch) in self._members.items():
            commit = OffsetCommit(name, member_id, None, epoch, (PartitionCommit(topic, 0, offset),))
            assert (await reply_to(self._offsets, commit)).error is Error.NONE


STEADY = Config({"group.initial.rebalance.delay.ms": 0})
"""Settings with which `SteadyGroups` are filled at once."""
