"""The use-cases of groups: what the data plane, REST views, tasks and commands call.

Source: http-api.md 2 and "Waiting"; classic.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import structlog

from groups.configs import DecisionContexts
from groups.core.consumer.offsets import check_fetch
from groups.core.machine import check_request
from groups.core.model.commands import (
    AbandonWait,
    Command,
    ConsumerHeartbeat,
    DeleteGroup,
    ForceState,
    Heartbeat,
    HoldGroup,
    JoinGroup,
    KickMember,
    LeaveGroup,
    ParkKind,
    ReleaseHold,
    ShareHeartbeat,
    SyncGroup,
    Tick,
)
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.events import GroupEvent
from groups.core.model.group import Group
from groups.core.model.replies import (
    ConsumerHeartbeatReply,
    Done,
    HeartbeatReply,
    HoldReply,
    JoinReply,
    LeaveReply,
    SyncReply,
)
from groups.core.model.types import GroupState, Millis
from groups.engine.batches import OwnerEpoch
from groups.engine.heartbeats import HeartbeatLane
from groups.engine.mailbox import Mailbox
from groups.engine.parked_requests import BarrierReply, ParkedRequests, ShuttingDown, Waiter
from groups.nodes.hosting import Hosting
from groups.store.locked import Guard, Within
from groups.store.rows import MISSING, Change, Stored
from groups.store.store import GroupStore
from kcoord.database.pool import Connection
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Action, Error, ProblemFields, ProtocolError
from kcoord.requests import current

log = structlog.get_logger(__name__)

R = TypeVar("R", JoinReply, SyncReply)


class GroupService:
    """Membership of groups, for one process.

    Every method may raise ProtocolError COORDINATOR_NOT_AVAILABLE: the database is unavailable or the service is
    stopped. Errors of the protocol are replies.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.get(GroupStore)
        self._hosting = runtime.get(Hosting)
        self._contexts = runtime.get(DecisionContexts)
        self.active = True
        self._longest_hold_ms = runtime.config.int("group.max.hold.ms")
        self._db = runtime.db
        self._parked = ParkedRequests(runtime)
        self._lane = runtime.get(HeartbeatLane)
        self._mailbox = Mailbox(runtime, self._parked)
        runtime.on_drain(self._parked.close)
        runtime.on_stop(self._close)

    async def join(self, command: JoinGroup) -> JoinReply:
        """JoinGroup: answered when the join completes, at once if nothing needs waiting for.

        Raises ProtocolError REBALANCE_IN_PROGRESS with action `retry` when `max_wait_ms` runs out first.
        """
        return await self._execute_waiting(command, JoinReply)

    async def sync(self, command: SyncGroup) -> SyncReply:
        """SyncGroup: answered when the leader has synced. Raises as `join` does."""
        return await self._execute_waiting(command, SyncReply)

    def heartbeat(self, command: Heartbeat) -> HeartbeatReply | Awaitable[HeartbeatReply]:
        """Heartbeat: the reply if it only extends a session and is known without waiting, else what brings it.

        While the group is loaded it is answered NONE, so that members stay (classic.md 4, row 5). It is stored all the
        same: after a hand-over deadlines go on, and NONE promises a session.
        """
        reply = self._lane.heartbeat(command) if self.active else None
        return self._heartbeat(command) if reply is None else reply

    async def _heartbeat(self, command: Heartbeat) -> HeartbeatReply:
        if await self._lane.freshen(command.group_id) and self.active:
            reply = self._lane.heartbeat(command)
            if reply is not None:
                return reply
        if self.active and self._hosting.answer(command.group_id) is Error.COORDINATOR_LOAD_IN_PROGRESS:
            check_request(command, self._contexts.server, self._contexts.assignors)
            await self._mailbox.submit(command)
            return HeartbeatReply(Error.NONE)
        return cast(HeartbeatReply, await self.execute(command))

    async def leave(self, command: LeaveGroup) -> LeaveReply:
        """LeaveGroup, a batch with a result for each entry."""
        return cast(LeaveReply, await self.execute(command))

    def consumer_heartbeat(
        self, command: ConsumerHeartbeat
    ) -> ConsumerHeartbeatReply | Awaitable[ConsumerHeartbeatReply]:
        """ConsumerGroupHeartbeat, answered as `heartbeat` is.

        With `max_wait_ms` it is held while there is nothing new for its member.
        """
        reply = self._lane.consumer_heartbeat(command) if self.active else None
        return self._consumer_heartbeat(command) if reply is None else reply

    async def _consumer_heartbeat(self, command: ConsumerHeartbeat) -> ConsumerHeartbeatReply:
        if await self._lane.freshen(command.group_id) and self.active:
            reply = self._lane.consumer_heartbeat(command)
            if reply is not None:
                return reply
        loop = asyncio.get_running_loop()
        longest_ms = command.max_wait_ms
        until = loop.time() + longest_ms / 1000
        received = current.receipt()
        while True:
            result = await self._submit_waiting(command)
            if not isinstance(result, Waiter):
                return cast(ConsumerHeartbeatReply, result)
            left_ms = max(round((until - loop.time()) * 1000), 0)
            again_in_ms = result.parked.again_in_ms
            held_ms = left_ms if again_in_ms is None else min(left_ms, again_in_ms)
            ended = await self._wait(result, held_ms) is None
            over = ended and (held_ms == left_ms or self._parked.closed)
            # A heartbeat is not answered by the process that changed the group: it is rerun, which gives the answer.
            left_ms = 0 if over else max(round((until - loop.time()) * 1000), 0)
            command = replace(command, max_wait_ms=left_ms, resumes=result.parked)
            current.enter_receipt(current.held(received, longest_ms))

    async def share_heartbeat(self, command: ShareHeartbeat) -> ConsumerHeartbeatReply:
        """ShareGroupHeartbeat. Answered at once."""
        return cast(ConsumerHeartbeatReply, await self.execute(command))

    async def delete(self, group_id: str, *, principal: str = "", guard: Guard | None = None) -> Done:
        """DeleteGroups for one group: deleted with all its offsets if Empty. `principal`: who requests it."""
        return cast(Done, await self.execute(DeleteGroup(group_id), guard=guard, principal=principal))

    async def hold(self, group_id: str, duration_ms: Millis, *, principal: str, reason: str = "") -> HoldReply:
        """Remove all members of a group and refuse joins for a while (`core.operators.hold_group`).

        Raises ProtocolError INVALID_REQUEST unless `duration_ms` is 1 to `group.max.hold.ms`.
        """
        if not 1 <= duration_ms <= self._longest_hold_ms:
            raise ProtocolError(
                Error.INVALID_REQUEST,
                f"duration_ms: {duration_ms} must be from 1 to {self._longest_hold_ms} (group.max.hold.ms)",
                fields={"field": "duration_ms"},
            )
        return cast(HoldReply, await self.execute(HoldGroup(group_id, duration_ms, principal, reason)))

    async def release(self, group_id: str, *, principal: str) -> Done:
        """End a hold early."""
        return cast(Done, await self.execute(ReleaseHold(group_id, principal)))

    async def kick(self, group_id: str, member_id: str, *, principal: str, reason: str = "") -> Done:
        """Remove one member as if it had left. It may come back."""
        return cast(Done, await self.execute(KickMember(group_id, member_id, principal, reason)))

    async def tick(self, group_id: str, *, skip_locked: bool = False, owner: OwnerEpoch | None = None) -> Done:
        """Expire what is overdue in a group. Idempotent; running early or late is harmless.

        `owner`: the node that does it, which does nothing if it no longer owns the partition.
        """
        self.check_active()
        return cast(Done, await self._mailbox.submit(Tick(group_id), skip_locked=skip_locked, owner=owner))

    async def check_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> None:
        """Is the caller that fetches offsets the member it claims to be? For consumer groups only (consumer.md 7.2).

        Raises ProtocolError UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH or ILLEGAL_GENERATION.
        """
        if member_id is None and member_epoch < 0:
            return
        group = (await self._store.read(group_id)).group
        if isinstance(group, ConsumerGroup):
            check_fetch(group, member_id, member_epoch)

    def copy_of(self, group_id: str) -> Stored | None:
        """The group as this process last knew it, which may be out of date; None: it must be loaded."""
        copy = self._store.copy_of(group_id)
        return None if copy is None else copy.stored

    async def describe(self, group_id: str, *, partitions: bool = True) -> Stored:
        """The group as last committed; `group` is None if it does not exist. `partitions`: see `GroupStore.read`."""
        self.check_active(group_id)
        return await self._store.read(group_id, partitions=partitions, sessions=True)

    async def lock(self, connection: Connection, group_id: str) -> Group | None:
        """Lock a group in the caller's transaction, which changes nothing of it: it sees all that was written before.

        None: it does not exist.
        """
        stored, _ = (await self._store.lock(connection, [group_id]))[group_id]
        return stored.group

    async def record(self, connection: Connection, group_id: str, events: Sequence[GroupEvent], now: Millis) -> None:
        """Write what happened to a group, which need not exist, and tell pages, in the caller's transaction.

        For transactions that are not those of a decision: `LockedGroup.events` is stored with the decision.
        """
        await self._store.append_events(connection, [(group_id, now, event) for event in events])
        await self._store.notify(connection, changed=[group_id] if events else [])

    async def force_state(self, group_id: str, state: GroupState) -> None:
        """Test fixture: put a group into a state that no request leads to."""
        await self.execute(ForceState(group_id, state))

    async def put(self, group: Group) -> None:
        """Test fixture: write a group as given, replacing the existing one."""

        async def work(connection: Any) -> None:
            before, ownership = (await self._store.lock(connection, [group.group_id]))[group.group_id]
            await self._store.persist(connection, [Change(before, None, ownership.now)])
            await self._store.persist(connection, [Change(MISSING, group, ownership.now)])

        await self._db.transaction(work)
        self._store.forget(group.group_id)

    async def execute(
        self,
        command: Command,
        within: Within | None = None,
        *,
        guard: Guard | None = None,
        principal: str = "",
        skip_locked: bool = False,
        long: bool = False,
        anywhere: bool = False,
    ) -> Any:
        """Decide a command that does not park. `within` joins its transaction when the reply is a success.

        `guard` may answer under the lock instead of the decision. See `groups.store.locked`. `long`: the transaction
        may take longer than `database.transaction.timeout.ms`. `anywhere`: also if another node answers for the group.
        """
        self._require_here(command, anywhere=anywhere)
        return await self._mailbox.submit(
            command, within, guard=guard, principal=principal, skip_locked=skip_locked, long=long
        )

    def refuse_waiters(self, partition: int) -> None:
        """Another node owns a coordinator partition: with the routing `owner`, requests that wait have to go there."""
        if self._hosting.routes:
            self._parked.refuse(lambda group_id: self._hosting.partition_of(group_id) == partition)

    @property
    def busy(self) -> bool:
        """A transaction or a look at a group is under way."""
        return self._mailbox.busy or self._parked.busy

    async def counts_time(self, connection: Connection, group_id: str) -> bool:
        """Whether somebody runs the timers of the group now, so that something may expire. It stays so until the
        caller's transaction ends.
        """
        return (await self._store.ownership(connection, [group_id], hold=True))[group_id].active

    def check_active(self, group_id: str | None = None, echo: ProblemFields | None = None) -> None:
        """Raise ProtocolError COORDINATOR_NOT_AVAILABLE, with the fields `echo`, if the service is stopped.

        For a group also NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS if this node does not answer for it now.
        """
        if not self.active:
            raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "the coordinator is not running", fields=echo)
        if group_id is not None:
            self._hosting.require(group_id)

    def _require_here(self, command: Command, *, anywhere: bool = False) -> None:
        """What is refused before the group is looked at, in Kafka's order (classic.md 2.1)."""
        self.check_active(echo={"member_id": command.member_id} if isinstance(command, JoinGroup) else None)
        check_request(command, self._contexts.server, self._contexts.assignors)
        if not anywhere:
            self._hosting.require(command.group_id, {"member_id": ""} if isinstance(command, JoinGroup) else None)

    async def _execute_waiting(self, command: JoinGroup | SyncGroup, reply_type: type[R]) -> R:
        result = await self._submit_waiting(command)
        reply = await self._wait(result, command.max_wait_ms) if isinstance(result, Waiter) else result
        if reply is None:
            raise self._wait_ended(result)
        assert isinstance(reply, reply_type)
        return reply

    async def _submit_waiting(self, command: Command) -> Any:
        """Decide a command that may park. A caller that disconnects meanwhile leaves nothing behind."""
        self._require_here(command)
        submitted = asyncio.ensure_future(self._mailbox.submit(command))
        try:
            return await asyncio.shield(submitted)
        except asyncio.CancelledError:
            submitted.add_done_callback(self._abandon_result)
            raise
        finally:
            del submitted  # an error's traceback refers to this frame, and would keep itself

    async def _wait(self, waiter: Waiter, max_wait_ms: Millis) -> BarrierReply | None:
        """The answer to a parked request; None if it has to ask again."""
        try:
            return await self._parked.wait(waiter, max_wait_ms)
        except ShuttingDown:
            return None
        except asyncio.CancelledError:
            self._abandon(waiter)
            raise

    @staticmethod
    def _wait_ended(waiter: Waiter) -> ProtocolError:
        parked = waiter.parked
        fields: ProblemFields = {"member_id": parked.member_id} if parked.kind is ParkKind.JOIN else {}
        return ProtocolError(
            Error.REBALANCE_IN_PROGRESS,
            f"the {parked.kind.value} still waits for other members; send the same request again",
            fields=fields,
            action=Action.RETRY,
        )

    def _abandon_result(self, submitted: asyncio.Future[Any]) -> None:
        if not submitted.cancelled() and submitted.exception() is None and isinstance(submitted.result(), Waiter):
            self._parked.leave(submitted.result())
            self._abandon(submitted.result())

    def _abandon(self, waiter: Waiter) -> None:
        """The connection of a parked request is gone: its member's session counts from now."""
        parked = waiter.parked
        self._mailbox.submit_later(
            AbandonWait(waiter.group_id, parked.member_id, parked.kind, parked_until=parked.parked_until)
        )

    async def _close(self) -> None:
        await self._parked.close()
        await self._mailbox.close()
