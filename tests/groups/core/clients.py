"""Clients that behave as the contract asks, one step at a time; a test may make them stop, vanish or misbehave."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from groups.core.model.commands import JoinGroup
from groups.core.model.replies import HeartbeatReply, JoinReply, SyncReply
from groups.core.model.types import GroupState
from kcoord.protocol.errors import Error
from tests.groups.core.world import Call, World

_GIVE_UP = (Error.FENCED_INSTANCE_ID, Error.INCONSISTENT_GROUP_PROTOCOL, Error.GROUP_MAX_SIZE_REACHED)


@dataclass(slots=True, eq=False)
class Client:
    """A member of the group, or somebody who wants to be one. `running`: it still acts."""

    world: World
    instance_id: str | None = None
    names: str = "range"
    session_ms: int = 10_000
    rebalance_ms: int = 30_000
    running: bool = True
    member_id: str = ""
    generation_id: int = -1
    assigned: bytes | None = None
    call: Call | None = None
    calls: list[Call] = field(default_factory=list)
    beat_at: int = 0
    held_off_until: int = 0

    def step(self) -> None:
        """Do the next thing a client does: handle an answer, send again what ran out, join, or beat."""
        if not self.running:
            return
        call = self.call
        if call is None:
            if self.assigned is None:
                if self.world.now >= self.held_off_until:
                    self.join()
            elif self.world.now >= self.beat_at + self.beat_interval_ms:
                self.beat()
        elif call.ran_out:
            self._send_again(call)
        elif call.reply is not None:
            self.call = None
            self._handle(call)

    @property
    def beat_interval_ms(self) -> int:
        """Often enough to hear of a rebalance in time: two that learn of it too late throw each other out for good."""
        return min(self.session_ms, self.rebalance_ms) // 3

    def join(self) -> None:
        self.assigned = None
        self._sent(
            self.world.join(
                self.member_id,
                self.instance_id,
                self.names,
                session_timeout_ms=self.session_ms,
                rebalance_timeout_ms=self.rebalance_ms,
            )
        )

    def beat(self) -> None:
        self.beat_at = self.world.now
        self._sent(self.world.heartbeat(self.member_id, self.instance_id, self.generation_id))

    def reconnect(self) -> None:
        """Lose the connection of a waiting request and send it again: the server notices the loss afterwards."""
        lost = self.call
        if lost is None or not lost.waits:
            return
        self._send_again(lost)
        self.world.abandon(lost)

    def vanish(self) -> None:
        """Stop for good; the server notices that the connection is gone."""
        self.running = False
        if self.call is not None and self.call.waits:
            self.world.abandon(self.call)

    def leave(self) -> None:
        self.running = False
        if self.member_id:
            self.world.leave(self.member_id, instance_id=self.instance_id)

    def _sent(self, call: Call) -> None:
        self.call = call
        self.calls.append(call)

    def _send_again(self, call: Call) -> None:
        assert call.parked is not None
        command = call.command
        if isinstance(command, JoinGroup):
            # A join whose wait ran out is answered with the member id it waits under.
            self.member_id = call.parked.member_id
            command = replace(command, member_id=self.member_id)
        self._sent(self.world.send(command))

    def _handle(self, call: Call) -> None:
        reply = call.reply
        if reply.error in _GIVE_UP:
            self.running = False
        elif reply.error is Error.COORDINATOR_LOAD_IN_PROGRESS:
            self.held_off_until = self.world.now + reply.retry_after_ms
        elif reply.error is Error.UNKNOWN_MEMBER_ID:
            self.member_id = ""
            self.join()
        elif reply.error is Error.MEMBER_ID_REQUIRED:
            self.member_id = reply.member_id
            self.join()
        elif reply.error is not Error.NONE:
            self.join()
        elif isinstance(reply, JoinReply):
            self._joined(reply)
        elif isinstance(reply, SyncReply):
            self.assigned = reply.assignment
        else:
            assert isinstance(reply, HeartbeatReply)

    def _joined(self, reply: JoinReply) -> None:
        self.member_id, self.generation_id = reply.member_id, reply.generation_id
        leads = reply.leader == reply.member_id and not reply.skip_assignment
        plan = {member.member_id: member.member_id.encode() for member in reply.members} if leads else {}
        self._sent(self.world.sync(self.member_id, plan, self.instance_id, generation_id=self.generation_id))


def settle(world: World, clients: list[Client], seconds: int) -> bool:
    """Let the running clients behave until the group is what it should be; False if it is not in time."""
    for _ in range(seconds):
        for client in clients:
            for _ in range(4):
                client.step()
        if is_settled(world, clients):
            return True
        world.advance(1_000)
    return False


def is_settled(world: World, clients: list[Client]) -> bool:
    """The group is Stable with exactly the running clients, each with its assignment, and nobody else."""
    running = [client for client in clients if client.running]
    group = world.group
    if group is None or group.pending_join:
        return group is None and not running
    if not running:
        return group.state is GroupState.EMPTY
    return (
        group.state is GroupState.STABLE
        and set(group.members) == {client.member_id for client in running}
        and group.members.pending_sync == 0
        and all(client.assigned is not None and client.generation_id == group.generation_id for client in running)
    )
