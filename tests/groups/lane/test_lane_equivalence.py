"""The equivalence of answers from memory, through whole processes: replies and rows are those of one without the lane.

Random histories of groups of both protocols. Another process changes the group in between, half of the time; sessions
that were renewed in memory are stored late; topics are deleted and created again, and time passes. That the lane and
`decide` agree in each state is checked at every step of the histories of the core (`tests.groups.core.renewals`).
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from groups.core.model.commands import ConsumerHeartbeat, Heartbeat, SyncGroup, Tick
from groups.core.model.consumer_group import ConsumerGroup, plain
from groups.core.model.group import Group
from groups.core.model.types import ClassicGroup
from groups.engine import decision_context
from groups.engine.service import GroupService
from kcoord.database.clock import VirtualClock
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.groups.lane.support import Process, from_memory, register
from tests.offsets.commit_function.test_commit_function_equivalence import COUNTS, PAUSES_MS
from tests.offsets.lane.test_lane_equivalence import replace_topic
from tests.offsets.lane.twins import Ids, Twin, with_and_without
from tests.support.commands import random_join
from tests.support.consumer_commands import random_heartbeat
from tests.support.members import eventually

pytestmark = pytest.mark.whole("random histories; the other tests of the lane have its rules")

HISTORIES = 8
STEPS = 50
ROUNDS = 3
DELAY_MS = 500
SETTINGS = {"notifications.repair.interval.ms": 60_000, "group.initial.rebalance.delay.ms": DELAY_MS}


@dataclass
class Beating(Twin):
    """A group whose members send heartbeats to the process `here`."""

    async def beat(self) -> tuple[Error, str]:
        """Send a heartbeat, of a member or with an id that no member has; return its error and its reply as text."""
        self.ids.group_id = self.group_id
        command = self._heartbeat(await self.group())
        service = self.here.get(GroupService)
        if isinstance(command, Heartbeat):
            reply: Any = await settled(service.heartbeat(command))
        else:
            reply = await settled(service.consumer_heartbeat(command))
        await eventually(lambda: not service.busy, "what it led to is done")
        return reply.error, str(reply).replace(self.group_id, "G")

    def _heartbeat(self, group: Group | None) -> Heartbeat | ConsumerHeartbeat:
        """Mostly one that says nothing new."""
        if isinstance(group, ClassicGroup) or (group is None and not self.consumer):
            known = list(group.members) if group is not None else []
            member_id = self.random.choice([*known, *known, "stranger"])
            member = group.members.get(member_id) if group is not None else None
            generation = (group.generation_id if group is not None else 0) - (self.random.random() < 0.1)
            return Heartbeat(self.group_id, member_id, member.instance_id if member else None, generation)
        command = random_heartbeat(self.random, self.group_id, group)
        if command.member_epoch > 0 and self.random.random() < 0.8:
            return ConsumerHeartbeat(
                self.group_id, command.member_id, command.member_epoch, instance_id=command.instance_id
            )
        return replace(command, max_wait_ms=0)

    async def rejoin(self) -> None:
        """All members of a classic group join, and at least one."""
        self.ids.group_id = self.group_id
        group, service = await self.group(), self.other.get(GroupService)
        known = {name: member.instance_id for name, member in group.members.items()} if group is not None else {}
        if not known:
            reply = await service.execute(random_join(self.random, self.group_id))
            known = {getattr(reply, "member_id", ""): None}
        for member_id, instance_id in known.items():
            await service.execute(random_join(self.random, self.group_id, member_id, instance_id))

    async def reconcile(self) -> None:
        """Members of a consumer group own what they were given."""
        service = self.other.get(GroupService)
        for _ in range(ROUNDS):
            group = await self.group()
            if not isinstance(group, ConsumerGroup):
                return
            for member in group.members.values():
                owned = plain(member.assigned)
                await settled(
                    service.consumer_heartbeat(
                        ConsumerHeartbeat(
                            self.group_id,
                            member.member_id,
                            member.member_epoch,
                            instance_id=member.instance_id,
                            topic_partitions=owned,
                        )
                    )
                )
            await eventually(lambda: not service.busy, "what it led to is done")

    async def sync(self) -> None:
        """All of them sync, the leader last."""
        service = self.other.get(GroupService)
        await service.execute(Tick(self.group_id))
        group = await self.group()
        if isinstance(group, ClassicGroup) and group.leader_id is not None:
            generation = group.generation_id
            for member_id in sorted(group.members, key=lambda name: name == group.leader_id):
                given = dict.fromkeys(group.members, b"a") if member_id == group.leader_id else {}
                instance_id = group.members[member_id].instance_id
                await service.execute(
                    SyncGroup(self.group_id, member_id, instance_id, generation, None, None, given, 20_000)
                )

    async def sessions(self) -> dict[str, Any]:
        """What is stored of the group and its members.

        Without when a classic member was last heard of, which nothing depends on: a heartbeat from before its last join
        may be stored after that.
        """
        found = await self.rows()
        for (member,) in found["classic"]:
            del member["last_heartbeat_at"]
        return {kind: found[kind] for kind in ("group", "classic", "consumer", "events")}


@pytest.fixture
async def runtimes(database: str, clock: VirtualClock) -> AsyncIterator[list[Runtime]]:
    """A process with the lane, one without, and another one."""
    async with with_and_without("heartbeat.lane", SETTINGS, database, clock, COUNTS) as found:
        yield found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_heartbeats_are_answered_and_stored_the_same_with_the_lane_and_without(
    runtimes: list[Runtime], database: str, clock: VirtualClock, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = Ids()
    monkeypatch.setattr(decision_context, "fresh_member_id", ids.fresh)
    lane, normal, other = runtimes
    process = register(lane, database, "lane")
    await process.open()
    before, answers = from_memory(), list[Error]()
    for seed in range(HISTORIES):
        names = [f"{protocol}-{seed}-{uuid.uuid4()}" for _ in range(2)]
        twins = [
            Beating(name, here, other, Random(seed), ids, protocol == "consumer")
            for name, here in zip(names, (lane, normal), strict=True)
        ]
        answers += await history(Random(seed + 1_000), twins, process, clock)
    accepted = answers.count(Error.NONE)
    print(f"{len(answers)} heartbeats, {accepted} accepted, {from_memory() - before:g} of them from memory")
    assert from_memory() - before > 10, "the histories are too wild"
    assert len(answers) - accepted > 3, "the histories are too tame"


async def history(random: Random, twins: list[Beating], process: Process, clock: VirtualClock) -> list[Error]:
    """Step by step for both; what all heartbeats were answered."""
    answers = list[Error]()
    for step in range(STEPS):
        match random.choices(("change", "rest", "heartbeat", "time", "topic", "look"), (10, 14, 60, 10, 1, 5))[0]:
            case "change":
                await process.flusher.flush()  # until when sessions are stored bounds what may expire
                for twin in twins:
                    await twin.change()
                await process.notified()
            case "rest":
                await process.flusher.flush()
                await come_to_rest(twins, clock)
                await process.notified()
            case "time":
                clock.advance(random.choice((*PAUSES_MS[1:-1], *PAUSES_MS)))
            case "topic":
                await replace_topic([*twins])
                await process.notified()
            case "look":
                await compare(twins, process, step)
            case _:
                first = await twins[0].beat()
                await process.flusher.flush()
                second = await twins[1].beat()
                assert first == second, step
                answers.append(first[0])
    await compare(twins, process, STEPS)
    return answers


async def come_to_rest(twins: list[Beating], clock: VirtualClock) -> None:
    """The groups become Stable, as a rule."""
    if twins[0].consumer:
        for twin in twins:
            await twin.reconcile()
        return
    for twin in twins:
        await twin.rejoin()
    clock.advance(DELAY_MS)
    for twin in twins:
        await twin.sync()


async def compare(twins: list[Beating], process: Process, step: int) -> None:
    """Once everything that was renewed is stored, the rows are the same."""
    flusher = process.flusher
    assert flusher._incarnation is not None
    assert await flusher._flush(flusher._incarnation, every=True), step
    stored = [await twin.sessions() for twin in twins]
    assert stored[0] == stored[1], step
