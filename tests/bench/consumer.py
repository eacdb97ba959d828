"""Measurements of the consumer protocol: what a heartbeat costs, how fast a group converges."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from groups.catalogue.topics import TopicService
from groups.core.assignors import Partitions
from groups.core.model.commands import ConsumerHeartbeat
from groups.core.model.consumer_group import ConsumerGroup, ConsumerGroupState
from groups.core.model.replies import ConsumerHeartbeatReply
from groups.engine.service import GroupService
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error

CALLERS = 64
STEADY_BEATS = 1_000
MAX_ROUNDS = 30


@dataclass
class Crowd:
    """Members of one group that heartbeat in rounds, CALLERS at a time."""

    service: GroupService
    group_id: str
    topic: str
    replies: dict[str, ConsumerHeartbeatReply] = field(default_factory=dict)
    owned: dict[str, Partitions] = field(default_factory=dict)

    async def join(self, count: int) -> None:
        """`count` members join."""
        await self._all([self._join(f"m{number:05d}") for number in range(count)])

    async def _join(self, member_id: str) -> None:
        command = ConsumerHeartbeat(
            self.group_id,
            member_id,
            0,
            rebalance_timeout_ms=300_000,
            subscribed_topic_names=frozenset({self.topic}),
            topic_partitions={},
        )
        self._learn(await settled(self.service.consumer_heartbeat(command)))

    async def leave(self, member_id: str) -> None:
        """One member leaves."""
        await settled(self.service.consumer_heartbeat(ConsumerHeartbeat(self.group_id, member_id, -1)))
        del self.replies[member_id], self.owned[member_id]

    async def converge(self) -> None:
        """Everybody heartbeats, round after round, until the group is Stable."""
        for _ in range(MAX_ROUNDS):
            await self._all([self._beat(member_id) for member_id in list(self.replies)])
            group = (await self.service.describe(self.group_id)).group
            assert isinstance(group, ConsumerGroup)
            if group.state is ConsumerGroupState.STABLE:
                return
        raise AssertionError(f"not Stable after {MAX_ROUNDS} rounds")

    async def _beat(self, member_id: str) -> None:
        epoch, owned = self.replies[member_id].member_epoch, self.owned[member_id]
        command = ConsumerHeartbeat(self.group_id, member_id, epoch, topic_partitions=owned)
        self._learn(await settled(self.service.consumer_heartbeat(command)))

    async def steady(self) -> float:
        """CPU milliseconds of a heartbeat that changes nothing."""
        members = list(self.replies)
        started = time.process_time()
        for number in range(STEADY_BEATS):
            await self._beat(members[number % len(members)])
        return (time.process_time() - started) / STEADY_BEATS * 1_000

    def _learn(self, reply: ConsumerHeartbeatReply) -> None:
        assert reply.error is Error.NONE, reply
        self.replies[reply.member_id] = reply
        if reply.assignment is not None:
            self.owned[reply.member_id] = reply.assignment
        self.owned.setdefault(reply.member_id, {})

    @staticmethod
    async def _all(jobs: list[object]) -> None:
        gate = asyncio.Semaphore(CALLERS)

        async def run(job: object) -> None:
            async with gate:
                await job  # type: ignore[misc]

        await asyncio.gather(*(run(job) for job in jobs))


async def crowd(runtime: Runtime, members: int, partitions: int) -> tuple[float, float, float]:
    """Seconds from empty to Stable, seconds after one member left, CPU ms of a steady heartbeat."""
    topic = f"t{members}"
    await runtime.get(TopicService).create(topic, partitions)
    people = Crowd(runtime.get(GroupService), f"crowd-{members}", topic)
    started = time.perf_counter()
    await people.join(members)
    await people.converge()
    filled = time.perf_counter() - started
    steady = await people.steady()
    started = time.perf_counter()
    await people.leave(next(iter(people.replies)))
    await people.converge()
    return filled, time.perf_counter() - started, steady


async def arrival(runtime: Runtime, members: int, *, waiting: bool) -> float:
    """Seconds until a newcomer has its share in a group whose members heartbeat every second, or wait."""
    topic = f"arrival-{members}-{waiting}"
    await runtime.get(TopicService).create(topic, members * 4)
    service = runtime.get(GroupService)
    people = Crowd(service, topic, topic)
    await people.join(members)
    await people.converge()
    loops = [asyncio.create_task(_live(people, member_id, waiting=waiting)) for member_id in people.replies]
    await asyncio.sleep(1.5)
    started = time.perf_counter()
    await people._join("newcomer")
    newcomer = asyncio.create_task(_live(people, "newcomer", waiting=waiting))
    while sum(map(len, people.owned["newcomer"].values())) < 3:  # noqa: ASYNC110 - measured, not signalled
        await asyncio.sleep(0.001)
    seconds = time.perf_counter() - started
    for task in (*loops, newcomer):
        task.cancel()
    await asyncio.gather(*loops, newcomer, return_exceptions=True)
    return seconds


async def _live(people: Crowd, member_id: str, *, waiting: bool) -> None:
    """Heartbeat as a client does: at once after something new, else every second or waiting on the server."""
    while True:
        before = people.owned[member_id]
        command = ConsumerHeartbeat(
            people.group_id,
            member_id,
            people.replies[member_id].member_epoch,
            topic_partitions=before,
            max_wait_ms=10_000 if waiting else 0,
        )
        people._learn(await settled(people.service.consumer_heartbeat(command)))
        if not waiting and people.owned[member_id] == before:
            await asyncio.sleep(1)
