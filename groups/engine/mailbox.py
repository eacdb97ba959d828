"""Mailbox: commands of one group that queue up while a transaction runs are decided together in the next one.

A join storm of a thousand members takes a few transactions. Groups do not wait for each other.

The engine calls in one direction: service, mailbox, batch, parked requests, store. What a decision leads to later, the
next deadline of the group or work in the background, comes back as a command in the same queue.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Coroutine
from typing import Any

import structlog

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
from groups.core.model.deadlines import wake_at
from groups.core.model.effects import ComputeTarget, ResolveRegexes, WakeMembers
from groups.engine.batch import Batch, OwnerEpoch, Work
from groups.engine.decision_context import DecisionContexts
from groups.engine.parked_requests import ParkedRequests
from groups.lane.heartbeats import HeartbeatLane
from groups.store.locked import Guard, Within
from groups.store.store import GroupStore
from groups.store.stored import GroupAppeared, OwnerLapsed
from kcoord.audit import caller as callers
from kcoord.constants import RENEWAL
from kcoord.database import request_age
from kcoord.database.clock import DatabaseClock
from kcoord.database.pool import MAX_ATTEMPTS
from kcoord.metrics import BATCH_SIZE, TRANSACTIONS
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError

log = structlog.get_logger(__name__)

OWN = (AbandonWait, ApplyRegexResolution, ApplyTarget, Tick)
"""Commands that the service issues itself. Only the state under the lock decides them, however late they come; what a
request does within their transaction is as old as the request."""

STARTED_OVER = {
    GroupAppeared: "the group is being created by another process; try again",
    OwnerLapsed: "the coordinator partition of the group changes its owner; try again",
}
"""Why a transaction that was started over too often is given up."""

UNKNOWN_SESSIONS_MS = 100
"""Before the next look at a group with a session that has ended and may have been extended."""

MAX_TIMER_JITTER_MS = 20
"""So that processes that wait for the same deadline do not all query at once."""


class Mailbox:
    """One queue and at most one running transaction for each group of this process."""

    def __init__(self, runtime: Runtime, parked: ParkedRequests) -> None:
        self._db = runtime.db
        self._store = runtime.get(GroupStore)
        self._contexts = runtime.get(DecisionContexts)
        self._lane = runtime.get(HeartbeatLane)
        self._parked = parked
        self._max_batch = runtime.config.int("mailbox.max.batch")
        self._renewal_ms = runtime.config.int(RENEWAL)
        self._queues: dict[str, deque[Work]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._background: set[asyncio.Task[None]] = set()

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
        receipt = None if own else request_age.current()
        caller = None if own else callers.of_request()
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
        request_age.enter(None)  # it continues for others after the request that started it has ended
        while queue:
            works = self._take(queue)
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

    def _take(self, queue: deque[Work]) -> list[Work]:
        """The works of the next batch, without those whose caller is gone."""
        works = [queue.popleft()]
        while queue and len(works) < self._max_batch and not (works[0].alone or queue[0].alone):
            works.append(queue.popleft())
        return [work for work in works if not work.result.done()]

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
        BATCH_SIZE.observe(len(batch.works))
        # Before the transaction: no connection is awaited while another is held.
        await self._lane.settle(batch.group_id, is_tick=batch.skip_locked)
        batch.context_since = self._parked.moment()
        batch.context = await self._contexts.context_of(batch.group_id)
        known = not all(self._is_new(work.command) for work in batch.works)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                await self._db.transaction(
                    batch.run, key=batch.group_id, known=known, long=batch.long, receipt=batch.oldest
                )
            except (GroupAppeared, OwnerLapsed) as error:
                if attempt == MAX_ATTEMPTS:
                    raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, STARTED_OVER[type(error)]) from None
            else:
                TRANSACTIONS.labels("committed").inc()
                return

    def _follow_up(self, batch: Batch) -> None:
        """What follows from a committed batch. Work that is lost is requested again by a later heartbeat."""
        if not batch.skipped:
            self._arm(batch)
        for effect in batch.effects:
            if isinstance(effect, WakeMembers):
                self._parked.look_soon(effect.group_id)
            else:
                self._spawn(self._work_off(effect), self._background)

    def _arm(self, batch: Batch) -> None:
        """Tick the group at its earliest deadline, if requests wait for it in this process.

        For precision only: what is overdue is guaranteed by Celery's tick.
        """
        group_id = batch.group_id
        timer = self._timers.pop(group_id, None)
        if timer is not None:
            timer.cancel()
        if self._parked.closed or not self._parked.has_waiters(group_id):
            return
        if not isinstance(self._db.clock, DatabaseClock):
            return  # virtual time: the test advances it and ticks
        due = wake_at(batch.committed.group)  # it looks at every member, so it comes last
        if due is None:
            return
        least_ms = 0 if batch.may_expire else self._renewal_ms  # until somebody runs the timers of the group again
        if due <= batch.now:
            least_ms = max(least_ms, UNKNOWN_SESSIONS_MS)
        delay_ms = max(due - batch.now, least_ms) + random.uniform(1, MAX_TIMER_JITTER_MS)  # noqa: S311 - no secret
        self._timers[group_id] = asyncio.get_running_loop().call_later(delay_ms / 1000, self._tick, group_id)

    def _tick(self, group_id: str) -> None:
        self._timers.pop(group_id, None)
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
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        while self._background or self._tasks:
            await asyncio.gather(*self._background, *self._tasks, return_exceptions=True)
