"""What a member of the classic protocol sends to a group of either protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from groups.core.model.commands import Heartbeat, JoinGroup, LeaveGroup, LeavingMember, SyncGroup
from groups.core.model.replies import JoinReply, SyncReply
from groups.core.model.types import GroupConfig, MigrationPolicy, Protocol
from kcoord.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.world import GROUP, Call, World

ALL = [0, 1, 2, 3, 4, 5]
"""The partitions of foo."""


def migrating_world(policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL, **fields: int) -> World:
    """A world with one topic, whose classic groups do not wait for more members."""
    made = World(config=GroupConfig(consumer_migration_policy=policy, initial_rebalance_delay_ms=0, **fields))
    made.set_topics(foo=6)
    return made


def join_classic(
    world: World,
    member_id: str,
    topics: Sequence[str],
    owned: Mapping[str, Sequence[int]] | None = None,
    instance_id: str | None = None,
    **fields: Any,
) -> Call:
    """A JoinGroup of an eager client, or with `owned` of a cooperative one."""
    partitions = {name: tuple(numbers) for name, numbers in (owned or {}).items()}
    metadata = encode_subscription(Subscription(tuple(topics), partitions))
    command = JoinGroup(
        group_id=GROUP,
        member_id=member_id,
        group_instance_id=instance_id,
        client_id="classic",
        client_host="10.0.0.2",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=5_000,
        protocol_type="consumer",
        protocols=(Protocol("range", metadata),),
    )
    return world.send(replace(command, **fields))


def sync_classic(
    world: World,
    member_id: str,
    generation_id: int,
    plan: Mapping[str, Mapping[str, Sequence[int]]] | None = None,
    instance_id: str | None = None,
) -> Call:
    """A SyncGroup; a leader brings a plan."""
    assignments = {
        other: encode_assignment(Assignment({name: tuple(numbers) for name, numbers in partitions.items()}))
        for other, partitions in (plan or {}).items()
    }
    return world.send(SyncGroup(GROUP, member_id, instance_id, generation_id, None, None, assignments))


def beat_classic(world: World, member_id: str, generation_id: int, instance_id: str | None = None) -> Call:
    """A Heartbeat."""
    return world.send(Heartbeat(GROUP, member_id, instance_id, generation_id))


def leave_classic(world: World, *entries: tuple[str, str | None]) -> Call:
    """A LeaveGroup of (member id, instance id)."""
    return world.send(LeaveGroup(GROUP, tuple(LeavingMember(*entry) for entry in entries)))


def synced(call: Call) -> dict[str, list[int]]:
    """What a SyncGroup was answered, by topic name."""
    assignment = decode_assignment(call.reply.assignment)
    assert assignment is not None
    return {name: sorted(numbers) for name, numbers in assignment.partitions.items()}


@dataclass(slots=True, eq=False)
class ClassicClient:
    """A member of the classic protocol that behaves, in a group of either. `owned`: what it works on, by topic name."""

    world: World
    cooperative: bool
    instance_id: str | None = None
    running: bool = True
    member_id: str = ""
    generation_id: int = -1
    owned: dict[str, list[int]] | None = None
    call: Call | None = None

    def step(self) -> None:
        """The next thing a client does: handle an answer, join, or beat."""
        if not self.running:
            return
        if self.call is None:
            self.call = self._beat() if self.owned is not None else self._join()
        elif self.call.reply is not None:
            call, self.call = self.call, None
            self._handle(call)
        elif self.call not in self.world.waiting:
            self.call = None  # it was held for as long as it may be

    def leave(self) -> None:
        self.running = False
        leave_classic(self.world, (self.member_id, self.instance_id))

    def _join(self) -> Call:
        topics, owned = ("foo",), self.owned if self.cooperative else None
        return join_classic(self.world, self.member_id, topics, owned, self.instance_id)

    def _beat(self) -> Call:
        return beat_classic(self.world, self.member_id, self.generation_id, self.instance_id)

    def _handle(self, call: Call) -> None:
        error = call.error
        if error is Error.MEMBER_ID_REQUIRED:
            self.member_id = call.reply.member_id
        elif error is Error.REBALANCE_IN_PROGRESS:
            if isinstance(call.reply, JoinReply) and call.reply.member_id:
                self.member_id = call.reply.member_id
            self.call = self._join()
            self.owned = self.owned if self.cooperative else None
        elif error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            self.member_id = "" if error is Error.UNKNOWN_MEMBER_ID else self.member_id
            self.owned = None
        elif error is Error.COORDINATOR_LOAD_IN_PROGRESS:
            self.owned = None  # held off: the next step joins again
        elif error is not Error.NONE:
            raise AssertionError(f"{call.command} is answered {call.reply}")
        elif isinstance(call.reply, JoinReply):
            self._joined(call.reply)
        elif isinstance(call.reply, SyncReply):
            self.owned = synced(call) if call.reply.assignment else {}

    def _joined(self, reply: JoinReply) -> None:
        self.member_id, self.generation_id = reply.member_id, reply.generation_id
        leads = reply.leader == reply.member_id and not reply.skip_assignment
        ids = sorted(member.member_id for member in reply.members) if leads else []
        count = self.world.topics.by_name["foo"].partitions
        plan = {member_id: {"foo": range(number, count, len(ids))} for number, member_id in enumerate(ids)}
        self.call = sync_classic(self.world, self.member_id, self.generation_id, plan, self.instance_id)
