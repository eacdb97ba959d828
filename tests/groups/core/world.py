"""One group in virtual time: sends commands to `decide`, keeps who waits, and checks after every decision what
must hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from groups.core.machine import decide
from groups.core.model.commands import (
    AbandonWait,
    Command,
    CommitOffsets,
    DeleteGroup,
    ForceState,
    Heartbeat,
    HoldGroup,
    JoinGroup,
    KickMember,
    LeaveGroup,
    LeavingMember,
    ParkKind,
    ReleaseHold,
    SyncGroup,
    Tick,
)
from groups.core.model.group import wake_at
from groups.core.model.replies import Parked
from groups.core.model.turn import Decision
from groups.core.model.types import ClassicGroup, ClassicMember, Env, GroupConfig, GroupState, Protocol
from kcoord.protocol.errors import Error
from tests.groups.core.invariants import check
from tests.groups.core.renewals import check_commits, check_renewal

START = 1_700_000_000_000
GROUP = "orders"
MAX_TIMERS = 10_000


def protocols(*names: str, metadata: bytes = b"meta") -> tuple[Protocol, ...]:
    """A protocol list, each entry with the same metadata."""
    return tuple(Protocol(name, metadata) for name in names)


@dataclass(slots=True, eq=False)
class Call:
    """One request: `parked` while and since it waits, `reply` once answered, `ran_out` when its own wait ended
    first.
    """

    command: Command
    parked: Parked | None = None
    reply: Any = None
    ran_out: bool = False

    @property
    def waits(self) -> bool:
        return self.reply is None and not self.ran_out

    @property
    def error(self) -> Error:
        assert self.reply is not None, f"{self.command} is not answered"
        error: Error = self.reply.error
        return error

    @property
    def member_id(self) -> str:
        member_id: str = self.reply.member_id
        return member_id


@dataclass(slots=True)
class World:
    """A group that may not exist yet, the clock, and the requests that wait."""

    config: GroupConfig = field(default_factory=GroupConfig)
    now: int = START
    group: ClassicGroup | None = None
    waiting: list[Call] = field(default_factory=list)
    last: Decision | None = None
    may_expire: bool = True
    gap: int = 0
    sessions_known_until: int | None = None
    ids: Any = field(default_factory=lambda: itertools.count(1))

    # -- time

    def advance(self, ms: int) -> None:
        """Move the clock; every timer fires at its own deadline, and held requests run out at theirs."""
        target = self.now + ms
        for _ in range(MAX_TIMERS):
            at = wake_at(self.group)
            if at is None or at > target:
                break
            self._move_to(max(self.now, at))
            self.tick()
        else:
            raise AssertionError("the timers of the group do not come to rest")
        self._move_to(target)

    def jump(self, ms: int) -> None:
        """Move the clock without a tick: timers are late until the next command."""
        self._move_to(self.now + ms)

    def _move_to(self, instant: int) -> None:
        self.now = instant
        for call in self.waiting:
            assert call.parked is not None
            call.ran_out = call.parked.parked_until <= instant
        self.waiting = [call for call in self.waiting if not call.ran_out]

    # -- requests

    def send(self, command: Command) -> Call:
        env = Env(
            self.now,
            lambda prefix: f"{prefix}-{next(self.ids)}",
            self.config,
            may_expire=self.may_expire,
            gap=self.gap,
            sessions_known_until=self.sessions_known_until,
        )
        decision = decide(self.group, command, env)
        waiting = [call.parked for call in self.waiting if call.parked is not None]
        check(self.group, waiting, decision, env)
        check_renewal(self.group, command, decision, env)
        check_commits(decision.group, env)
        self.group, self.last = decision.group, decision
        call = Call(command)
        for answer in decision.answers:
            self._answer(answer.kind, answer.member_id, answer.reply)
        if isinstance(decision.reply, Parked):
            call.parked = decision.reply
            self.waiting.append(call)
        else:
            call.reply = decision.reply
        return call

    def _answer(self, kind: ParkKind, member_id: str, reply: Any) -> None:
        for call in tuple(self.waiting):
            assert call.parked is not None
            if (call.parked.kind, call.parked.member_id) == (kind, member_id):
                call.reply = reply
                self.waiting.remove(call)

    def join(self, member_id: str = "", instance_id: str | None = None, names: str = "range", **fields: Any) -> Call:
        command = JoinGroup(
            group_id=GROUP,
            member_id=member_id,
            group_instance_id=instance_id,
            client_id="client",
            client_host="10.0.0.1",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=protocols(*names.split()),
        )
        return self.send(replace(command, **fields))

    def enter(self, **fields: Any) -> Call:
        """Both steps of a new dynamic member: ask for an id, join with it."""
        asked = self.join(**fields)
        assert asked.error is Error.MEMBER_ID_REQUIRED, asked.reply
        return self.join(asked.member_id, **fields)

    def sync(
        self,
        member_id: str,
        assignments: Mapping[str, bytes] | None = None,
        instance_id: str | None = None,
        **fields: Any,
    ) -> Call:
        generation_id = fields.pop("generation_id", self.group.generation_id if self.group else 0)
        command = SyncGroup(GROUP, member_id, instance_id, generation_id, None, None, assignments or {})
        return self.send(replace(command, **fields))

    def heartbeat(self, member_id: str, instance_id: str | None = None, generation_id: int | None = None) -> Call:
        generation = generation_id if generation_id is not None else self.group.generation_id if self.group else 0
        return self.send(Heartbeat(GROUP, member_id, instance_id, generation))

    def commit(self, member_id: str, instance_id: str | None = None, **fields: Any) -> Call:
        generation = fields.pop("generation_id", self.group.generation_id if self.group else 0)
        return self.send(CommitOffsets(GROUP, member_id, instance_id, generation, **fields))

    def leave(self, *member_ids: str, instance_id: str | None = None) -> Call:
        return self.send(LeaveGroup(GROUP, tuple(LeavingMember(member_id, instance_id) for member_id in member_ids)))

    def abandon(self, call: Call) -> Call:
        """The connection of a parked request went away."""
        assert call.parked is not None
        if call in self.waiting:
            self.waiting.remove(call)
            call.ran_out = True
        return self.send(AbandonWait(GROUP, call.parked.member_id, call.parked.kind, call.parked.parked_until))

    def tick(self) -> Call:
        return self.send(Tick(GROUP))

    def delete(self) -> Call:
        return self.send(DeleteGroup(GROUP))

    def hold(self, ms: int, principal: str = "ann", reason: str = "reset") -> Call:
        return self.send(HoldGroup(GROUP, ms, principal, reason))

    def release(self, principal: str = "bob") -> Call:
        return self.send(ReleaseHold(GROUP, principal))

    def kick(self, member_id: str, principal: str = "ann", reason: str = "hangs") -> Call:
        return self.send(KickMember(GROUP, member_id, principal, reason))

    def kill(self) -> Call:
        return self.send(ForceState(GROUP, GroupState.DEAD))

    # -- looking

    @property
    def state(self) -> GroupState | None:
        return self.group.state if self.group is not None else None

    def member(self, member_id: str) -> ClassicMember:
        assert self.group is not None
        return self.group.members[member_id]

    # -- usual situations

    def completed(self, *calls: Call) -> list[str]:
        """Let the initial rebalance end; the ids of `calls`, which are all joined now."""
        self.advance(2 * self.config.initial_rebalance_delay_ms)
        assert all(call.error is Error.NONE for call in calls), [call.reply for call in calls]
        return [call.member_id for call in calls]

    def synced(self, *member_ids: str) -> None:
        """Everybody syncs, the leader with an assignment for each."""
        assert self.group is not None
        self.sync(self.group.leader_id or "", {member_id: member_id.encode() for member_id in member_ids})
        for member_id in member_ids:
            assert self.sync(member_id).error is Error.NONE
        assert self.state is GroupState.STABLE

    def stable(self, size: int, **fields: Any) -> list[str]:
        """A Stable group of `size` dynamic members; the first leads."""
        member_ids = self.completed(*[self.enter(**fields) for _ in range(size)])
        self.synced(*member_ids)
        return member_ids
