"""Mailbox: commands that queue up while a transaction runs, or waits to run, are decided together.

A join storm of a thousand members takes a few transactions, whether they are of one group or of hundreds. A group in
whose transaction more happens, or which is large or locked, has one of its own, and the others do not wait for it.

The engine calls in one direction: service, mailbox, batches, parked requests, store. What a decision leads to later,
the next deadline of the group or work in the background, comes back as a command in the same queue.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Coroutine
from copy import copy
from typing import Any, NamedTuple

import structlog
from psycopg.errors import LockNotAvailable

from groups.configs import DecisionContexts
from groups.core.consumer.target import compute
from groups.core.model.commands import (
    AbandonWait,
    ApplyRegexResolution,
    ApplyTarget,
    Command,
    ConsumerHeartbeat,
    JoinGroup,
    ShareHeartbeat,
    Tick,
)
from groups.core.model.turn import ComputeTarget, ResolveRegexes, WakeMembers
from groups.engine.batches import GROUPS_AT_ONCE, Batch, BatchTransaction, NotTogether, OwnerEpoch, Work
from groups.engine.heartbeats import HeartbeatLane
from groups.engine.parked_requests import Alarms, ParkedRequests
from groups.store.locked import Guard, Within
from groups.store.rows import GroupAppeared, OwnerLapsed
from groups.store.store import GroupStore
from kcoord.database.pool import MAX_ATTEMPTS, Connection
from kcoord.metrics import TRANSACTIONS
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests import current
from kcoord.requests.turnstile import Batches

log = structlog.get_logger(__name__)


class Waiting(NamedTuple):
    """A batch that waits for a transaction. `result`: whether it was decided in it; `context`: that of its task."""

    batch: Batch
    result: asyncio.Future[bool]
    context: contextvars.Context


OWN = (AbandonWait, ApplyRegexResolution, ApplyTarget, Tick)
"""Commands that the service issues itself. Only the state under the lock decides them, however late they come; what a
request does within their transaction is as old as the request."""

STARTED_OVER = {
    GroupAppeared: "the group is being created by another process; try again",
    OwnerLapsed: "the coordinator partition of the group changes its owner; try again",
}
"""Why a transaction that was started over too often is given up."""

GROUPS_TOGETHER, MEMBERS_TOGETHER, BYTES_TOGETHER = 64, 1_000, 1_000_000
"""The most groups in one transaction, their members with the commands, and bytes of subscriptions and assignments.

A larger group has a transaction of its own."""

TOGETHER = "\0"
"""What transactions of several groups lock, in place of a group id: they wait for no lock of a group."""

NEXT_AFTER_SECONDS = 0.05
"""How long others wait for a transaction before the next one begins all the same."""


class Mailbox:
    """One queue and at most one running transaction for each group of this process.

    Groups that wait when a transaction can begin share it, those in memory in turn with those that are not.
    """

    def __init__(self, runtime: Runtime, parked: ParkedRequests) -> None:
        self._db = runtime.db
        self._store = runtime.get(GroupStore)
        self._contexts = runtime.get(DecisionContexts)
        self._lane = runtime.get(HeartbeatLane)
        self._parked = parked
        self._max_batch = runtime.config.int("mailbox.max.batch")
        self._queues: dict[str, deque[Work]] = {}
        self._alarms = Alarms(runtime, self._ring)
        self._tasks: set[asyncio.Task[None]] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._waiting: dict[bool, deque[Waiting]] = {True: deque(), False: deque()}
        """By whether their groups are known."""
        self._transactions = Batches(lambda: any(self._waiting.values()), self._next_transaction)

    async def submit(
        self,
        command: Command,
        within: Within | None = None,
        *,
        guard: Guard | None = None,
        principal: str = "",
        skip_locked: bool = False,
        owner: OwnerEpoch | None = None,
        long: bool = False,
    ) -> Any:
        """Decide a command; returns its reply, its Waiter if it parked, or what `guard` or `within` returned.

        `skip_locked`: do nothing if another transaction holds the group. `owner`: see `Work`.
        Raises ProtocolError COORDINATOR_NOT_AVAILABLE when the database is unavailable, others hold the group, or the
        request is too old.
        """
        own = within is None and isinstance(command, OWN)
        receipt = None if own else current.receipt()
        caller = None if own else current.caller_of_request()
        work = Work(command, within, guard, principal, skip_locked, owner, long=long, receipt=receipt, caller=caller)
        queue = self._queues.get(command.group_id)
        if queue is None:
            if self._is_new(command):
                self._db.check_queue()
            self._queues[command.group_id] = queue = deque()
            self._spawn(self._drain(command.group_id, queue), self._tasks)
        queue.append(work)
        try:
            return await work.result
        finally:
            del work  # an error's traceback refers to this frame, and would keep itself

    @property
    def busy(self) -> bool:
        """A transaction is running or waiting to run, or work goes on in the background."""
        return bool(self._queues) or bool(self._background)

    def submit_later(self, command: Command) -> None:
        """Decide a command that nobody waits for. If the database is unavailable, it is lost and logged."""
        self._spawn(self._submit_quietly(command), self._background)

    async def _drain(self, group_id: str, queue: deque[Work]) -> None:
        current.enter_receipt(None)  # it continues for others after the request that started it has ended
        while queue:
            works = self._take(queue, self._max_batch)
            if not works:
                continue
            batch = Batch(group_id, works, self._db, self._store, self._parked)
            try:
                await self._transact(batch)
            except ProtocolError as error:
                TRANSACTIONS.labels("failed").inc()
                batch.fail(error)
                continue
            except Exception as error:
                log.exception("group_transaction_failed", group_id=group_id)
                TRANSACTIONS.labels("failed").inc()
                self._isolate(batch, queue, error)
                continue
            queue.extendleft(reversed(batch.left_over))
            try:
                await batch.publish()
                self._follow_up(batch)
            except Exception as error:
                # It is committed. A bug here must not leave the group's queue without a consumer.
                log.exception("publishing_failed", group_id=group_id)
                self._store.forget(group_id)
                batch.refuse(error)
        del self._queues[group_id]

    def _take(self, queue: deque[Work], most: int) -> list[Work]:
        """The works of the next batch, without those whose caller is gone."""
        works: list[Work] = []
        while queue and len(works) < most and not (works and (works[0].alone or queue[0].alone)):
            works.append(queue.popleft())
        return [work for work in works if not work.result.done()]

    def _take_more(self, batch: Batch) -> None:
        """What came while a batch waited for a connection is decided with it, by what is known of the world now."""
        queue, first = self._queues[batch.group_id], batch.works[0]
        if not queue or first.alone or queue[0].alone or any(work.long for work in queue) > batch.long:
            return
        since, context = self._parked.moment(), self._contexts.known(batch.group_id)
        if context is not None:
            batch.context_since, batch.context = since, context
            batch.works += self._take(queue, self._max_batch - len(batch.works))

    def _isolate(self, batch: Batch, queue: deque[Work], error: Exception) -> None:
        """One command has the bug: retry each of the batch in a separate transaction; a batch of one has failed."""
        if len(batch.works) == 1:
            batch.fail(error)
            return
        batch.undo()
        self._store.forget(batch.group_id)
        for work in batch.works:
            work.alone = True
        queue.extendleft(reversed(batch.works))

    def _is_new(self, command: Command) -> bool:
        """Somebody joins a group that is not in memory; those who are in a group stay known if memory is dropped."""
        joins = isinstance(command, JoinGroup) or (
            isinstance(command, ConsumerHeartbeat | ShareHeartbeat) and command.member_epoch == 0
        )
        return joins and not self._store.has_copy_of(command.group_id)

    async def _transact(self, batch: Batch) -> None:
        # Before the transaction: no connection is awaited while another is held.
        await self._lane.settle(batch.group_id, is_tick=batch.skip_locked)
        batch.context_since = self._parked.moment()
        batch.context = await self._contexts.context_of(batch.group_id)
        if batch.heavy or self._members(batch) > MEMBERS_TOGETHER or not self._db.pipelines:
            await self._transact_alone(batch)
            return
        result: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[self._is_known(batch)].append(Waiting(batch, result, contextvars.copy_context()))
        self._transactions.call()
        if not await result:
            await self._transact_alone(batch)

    def _is_known(self, batch: Batch) -> bool:
        return not all(self._is_new(work.command) for work in batch.works)

    def _members(self, batch: Batch) -> int:
        """How many rows it may have to write."""
        copy_of_it = self._store.copy_of(batch.group_id)
        return len(batch.works) + (0 if copy_of_it is None else copy_of_it.weight)

    async def _transact_alone(self, batch: Batch) -> None:
        transaction = BatchTransaction([batch], self._store)

        async def run(connection: Connection) -> None:
            self._take_more(batch)
            await transaction.run(connection)

        known = self._is_known(batch)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                await self._db.transaction(
                    run, key=batch.group_id, known=known, long=batch.long, receipt=transaction.oldest
                )
            except (GroupAppeared, OwnerLapsed) as error:
                if attempt == MAX_ATTEMPTS:
                    raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, STARTED_OVER[type(error)]) from None
            else:
                transaction.count()
                return

    def _next_transaction(self) -> Coroutine[Any, Any, None]:
        """The next transaction, with as many of the groups that wait as it may have."""
        known = next(known for known, waiting in self._waiting.items() if waiting)
        waiting = self._waiting.pop(known)
        self._waiting[known] = waiting  # behind the others: their turn is next
        taken: list[Waiting] = []
        members = size = 0
        while waiting and len(taken) < GROUPS_TOGETHER:
            batch = waiting[0].batch
            if not any(work.heavy for work in self._queues[batch.group_id]):
                self._take_more(batch)
            members, size = members + self._members(batch), size + batch.size
            if taken and (members > MEMBERS_TOGETHER or size > BYTES_TOGETHER):
                break
            taken.append(waiting.popleft())
        return self._begin(taken, known)

    async def _begin(self, taken: list[Waiting], known: bool) -> None:
        running = asyncio.create_task(self._carry_out(taken, known), context=taken[0].context)
        self._tasks.add(running)
        running.add_done_callback(self._tasks.discard)
        await asyncio.wait({running}, timeout=NEXT_AFTER_SECONDS)

    async def _carry_out(self, taken: list[Waiting], known: bool) -> None:
        """Decide them in one transaction, and say of each whether that was done."""
        decided, failed = [taken[0].batch], None
        try:
            if len(taken) == 1:
                await self._transact_alone(taken[0].batch)
            else:
                decided = await self._transact_together([one.batch for one in taken], known)
        except Exception as error:  # noqa: BLE001 - it is that of each
            failed = error
        for number, (batch, result, _) in enumerate(taken, 1):
            if failed is not None and not result.done():
                result.set_exception(copy(failed) if isinstance(failed, ProtocolError) else failed)
            elif not result.done():
                result.set_result(batch in decided)
            if number % GROUPS_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _transact_together(self, batches: list[Batch], known: bool) -> list[Batch]:
        """Returns those that were decided; none if one of them has a bug. Raises ProtocolError as `Database`."""
        transaction = BatchTransaction(batches, self._store)

        async def run(connection: Connection) -> None:
            try:
                await transaction.run(connection)
            except LockNotAvailable as error:  # of a partition, or of a group that another process creates
                raise NotTogether from error

        try:
            await self._db.transaction(run, key=TOGETHER, known=known, receipt=transaction.oldest)
        except ProtocolError:
            raise
        except Exception as error:  # noqa: BLE001 - the one that has it meets it again alone
            if not isinstance(error, NotTogether):
                log.warning(
                    "groups_not_decided_together", groups=len(batches), reason=str(error) or type(error).__name__
                )
                for batch in batches:
                    self._store.forget(batch.group_id)
            for batch in batches:
                batch.undo()
            return []
        transaction.count()
        return transaction.decided

    def _follow_up(self, batch: Batch) -> None:
        """What follows from a committed batch. Work that is lost is requested again by a later heartbeat."""
        if not batch.skipped and not self._parked.closed and self._parked.has_waiters(batch.group_id):
            self._alarms.arm(batch.committed.group, batch.group_id, batch.now, may_expire=batch.may_expire)
        for effect in batch.effects:
            if isinstance(effect, WakeMembers):
                self._parked.look_soon(effect.group_id)
            else:
                self._spawn(self._work_off(effect), self._background)

    def _ring(self, group_id: str) -> None:
        if self._parked.has_waiters(group_id):
            self.submit_later(Tick(group_id))

    async def _work_off(self, effect: ComputeTarget | ResolveRegexes) -> None:
        try:
            if isinstance(effect, ComputeTarget):
                result: Command = await asyncio.to_thread(compute, effect, self._contexts.assignors)
            else:
                result = await self._contexts.resolve(effect)
        except ProtocolError as error:
            log.info("background_work_lost", group_id=effect.group_id, reason=error.detail)
        except Exception:
            log.exception("background_work_failed", group_id=effect.group_id, work=type(effect).__name__)
        else:
            await self._submit_quietly(result)

    async def _submit_quietly(self, command: Command) -> None:
        name = type(command).__name__
        try:
            await self.submit(command)
        except ProtocolError as error:
            log.info("background_work_lost", group_id=command.group_id, work=name, reason=error.detail)
        except Exception:
            log.exception("background_work_failed", group_id=command.group_id, work=name)

    @staticmethod
    def _spawn(work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def close(self) -> None:
        """Stop the timers, and wait for running work to end."""
        self._alarms.close()
        while self._background or self._tasks:
            # Not gather: from Python 3.12 on it does not let the loop run if all have ended, nor the callbacks that
            # take them out of these sets.
            await asyncio.wait({*self._background, *self._tasks})
