"""Mailbox: commands of one group that queue up while a transaction runs are decided together in the next one.

Load once, decide in order, persist once, answer after the commit. A join storm of a thousand members takes a few
transactions. Groups do not wait for each other.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from groups.core.machine import decide
from groups.core.model.commands import AbandonWait, ApplyRegexResolution, ApplyTarget, Command, Tick
from groups.core.model.decision import Decision
from groups.core.model.effects import Effect, WakeMembers
from groups.core.model.events import GroupEvent, events_of
from groups.core.model.group import Group
from groups.core.model.replies import Parked, Reply
from groups.core.model.types import Env, Millis
from groups.engine import off_loop
from groups.engine.decision_context import DecisionContext, DecisionContexts
from groups.engine.parked_requests import Claim, ParkedRequests, Waiter
from groups.store.locked import Deletion, Guard, LockedGroup, Within, run_deletion_hooks
from groups.store.store import GroupStore
from groups.store.stored import GroupAppeared, Stored
from kcoord.database import request_age
from kcoord.database.pool import MAX_ATTEMPTS, Connection, Database
from kcoord.database.request_age import Receipt
from kcoord.metrics import BATCH_SIZE, TRANSACTIONS
from kcoord.protocol.errors import Error, ProtocolError

log = structlog.get_logger(__name__)

OWN = (AbandonWait, ApplyRegexResolution, ApplyTarget, Tick)
"""Commands that the service issues itself. Only the state under the lock decides them, however late they come."""


@dataclass(slots=True, eq=False)
class Work:
    """One pending command. `result` is the reply, the waiter of a parked request, or what `within` returned.

    `principal`: who requests a deletion. `alone`: a batch that contained it failed, so it is retried in a separate
    transaction. `long`: it may hold the group for longer than others. `receipt`: that of its request.
    """

    command: Command
    within: Within | None = None
    guard: Guard | None = None
    principal: str = ""
    skip_locked: bool = False
    alone: bool = False
    long: bool = False
    receipt: Receipt | None = None
    result: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(slots=True)
class Outcome:
    """The outcome of one command of a batch, reported after the commit. `group`: as its decision left it."""

    work: Work
    group: Group | None
    value: Any
    claims: list[Claim]


Decided = tuple[Work, Group | None, Decision | Reply | Exception]
"""A command, the group before it, and its decision, the answer in place of a decision, or the exception raised."""


class Batch:
    """Commands of one group decided in one transaction."""

    world: DecisionContext
    world_since: int
    """Moment of the parked requests before `world` was read."""

    def __init__(self, group_id: str, works: list[Work], mailbox: Mailbox) -> None:
        self.group_id = group_id
        self.works = works
        self.left_over: list[Work] = []
        self._mailbox = mailbox
        self._outcomes: list[Outcome] = []
        self._events: list[GroupEvent] = []
        self._effects: list[Effect] = []
        self._receipts: list[Receipt] = []
        self._answered = False
        self.stored: Stored | None = None
        self.now: Millis = 0

    @property
    def skip_locked(self) -> bool:
        """No caller waits for an answer: if another transaction holds the group, it is skipped."""
        return all(work.skip_locked for work in self.works)

    @property
    def long(self) -> bool:
        """Some of the commands may take long."""
        return any(work.long for work in self.works)

    def oldest(self) -> Receipt | None:
        """The receipts of the requests that write."""
        return min(self._receipts, key=lambda receipt: receipt.at + receipt.extra_ms / 1000, default=None)

    async def run(self, connection: Connection) -> None:
        """The body of the transaction. It may run more than once, each time from the start."""
        self.undo()
        box = self._mailbox
        before, self.now = await box.store.lock(connection, self.group_id, skip_locked=self.skip_locked)
        refusals = await self._ask_guards(connection, before)
        after, replies = await self._decide(before.group, refusals)
        if after is None and before.pk is not None:
            principal = self._outcomes[-1].work.principal
            await run_deletion_hooks(Deletion(connection, self.group_id, before.pk, principal, self.now))
        self.stored = await box.store.persist(connection, before, after, self.now)
        for outcome, reply in zip(self._outcomes, replies, strict=True):
            outcome.value = await self._value(connection, outcome, reply)
        await box.store.append_events(connection, self.group_id, self._events, self.now)
        wake = self._answered or any(isinstance(effect, WakeMembers) for effect in self._effects)
        await box.store.notify(connection, self.group_id, wake=wake, changed=bool(self._events))

    async def _ask_guards(self, connection: Connection, before: Stored) -> dict[int, Reply | Exception]:
        """The answers in place of decisions, by position: the request is too old, or a guard refuses.

        Without a row there is nothing to guard.
        """
        refusals: dict[int, Reply | Exception] = {}
        for position, work in enumerate(self.works):
            late = self._mailbox.db.refusal(connection, work.receipt)
            if late is not None:
                refusals[position] = late
                continue
            if work.receipt is not None:
                self._receipts.append(work.receipt)
            if work.guard is not None and before.pk is not None:
                refusal = await work.guard(connection, before.pk, self.now)
                if refusal is not None:
                    refusals[position] = refusal
        return refusals

    async def _decide(
        self, group: Group | None, refusals: Mapping[int, Reply | Exception]
    ) -> tuple[Group | None, list[Reply | Parked | Exception]]:
        """Decide in order, and collect the outcomes. If it takes long, other groups are served meanwhile."""
        env = self.world.at(self.now)
        size = off_loop.size_of_decision(group, (work.command for work in self.works), env.topics)
        after, decided = await off_loop.run(size, self._decide_in_order, group, refusals, env)
        replies: list[Reply | Parked | Exception] = []
        for work, before, found in decided:
            if isinstance(found, Decision):
                self._note(work, before, found)
                replies.append(found.reply)
            else:
                self._outcomes.append(Outcome(work, before, None, []))
                replies.append(found)
        return after, replies

    def _decide_in_order(
        self, group: Group | None, refusals: Mapping[int, Reply | Exception], env: Env
    ) -> tuple[Group | None, list[Decided]]:
        """A command that meets a bug gets the exception; the others continue from before. Affects only this batch."""
        decided: list[Decided] = []
        for position, work in enumerate(self.works):
            if position in refusals:
                decided.append((work, group, refusals[position]))
                continue
            try:
                decision = decide(group, work.command, env)
            except Exception as error:
                log.exception("decide_failed", group_id=self.group_id, command=type(work.command).__name__)
                decided.append((work, group, error))
                continue
            deletes = group is not None and decision.group is None
            if deletes and decided:
                # Earlier decisions may still write to the row: a deletion is the first of its batch.
                self.left_over = self.works[position:]
                break
            decided.append((work, group, decision))
            group = decision.group
            if deletes:
                # Commands after a deletion concern another group of the same name, with another row.
                self.left_over = self.works[position + 1 :]
                break
        return group, decided

    def _note(self, work: Work, before: Group | None, decision: Decision) -> None:
        room = self._mailbox.room
        claims = room.claim(self.group_id, decision.answers)
        waiter = None
        if isinstance(decision.reply, Parked):
            waiter = room.enter(self.group_id, decision.reply, self.world_since)
        self._answered = self._answered or bool(decision.answers)
        self._outcomes.append(Outcome(work, decision.group, waiter, claims))
        self._events.extend(events_of(before, decision.records))
        self._effects.extend(decision.effects)

    async def _value(self, connection: Connection, outcome: Outcome, reply: Reply | Parked | Exception) -> Any:
        if isinstance(reply, Parked | Exception):
            return outcome.value if isinstance(reply, Parked) else reply
        if outcome.work.within is None or reply.error is not Error.NONE or outcome.group is None:
            return reply
        assert self.stored is not None
        assert self.stored.pk is not None
        locked = LockedGroup(connection, self.group_id, self.stored.pk, outcome.group, reply, self.now, self._events)
        return await outcome.work.within(locked)

    def undo(self) -> None:
        """None of this was committed: removed waiters keep waiting, added waiters are dropped."""
        for outcome in reversed(self._outcomes):
            if isinstance(outcome.value, Waiter):
                self._mailbox.room.leave(outcome.value)
            self._mailbox.room.restore(outcome.claims)
        self._outcomes, self._events, self._effects, self.left_over, self._receipts = [], [], [], [], []
        self._answered, self.stored = False, None

    def publish(self) -> None:
        """It is committed: answer all callers."""
        assert self.stored is not None
        skipped = self.skip_locked and self.stored.pk is None
        if not skipped:
            self._mailbox.store.remember(self.group_id, self.stored)
        for outcome in self._outcomes:
            self._mailbox.room.answer(outcome.claims)
            if isinstance(outcome.value, Waiter):
                self._mailbox.room.committed(outcome.value)
            if outcome.work.result.done():  # its caller is gone
                continue
            if isinstance(outcome.value, Exception):
                outcome.work.result.set_exception(outcome.value)
            else:
                outcome.work.result.set_result(outcome.value)
        if not skipped:
            self._mailbox.room.arm(self.group_id, self.stored.group, self.now)
        for effect in self._effects:
            self._mailbox.carry_out(effect)

    def fail(self, error: BaseException) -> None:
        """It did not commit, or the outcome is unknown: answer the callers of this batch with the error."""
        self.undo()
        self._mailbox.store.forget(self.group_id)
        self.refuse(error)

    def refuse(self, error: BaseException) -> None:
        """Answer the callers without an answer with the error."""
        for work in self.works:
            if not work.result.done():
                work.result.set_exception(error)


class Mailbox:
    """One queue and at most one running transaction for each group of this process."""

    def __init__(
        self,
        db: Database,
        store: GroupStore,
        room: ParkedRequests,
        contexts: DecisionContexts,
        carry_out: Callable[[Effect], None],
        max_batch: int,
    ) -> None:
        self.db = db
        self.store = store
        self.room = room
        self.carry_out = carry_out
        self._contexts = contexts
        self._max_batch = max_batch
        self._queues: dict[str, deque[Work]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(
        self,
        command: Command,
        within: Within | None = None,
        *,
        guard: Guard | None = None,
        principal: str = "",
        skip_locked: bool = False,
        long: bool = False,
    ) -> Any:
        """Decide a command; returns its reply, its Waiter if it parked, or what `guard` or `within` returned.

        `skip_locked`: do nothing if another transaction holds the group. Raises ProtocolError COORDINATOR_NOT_AVAILABLE
        when the database is unavailable, others hold the group, or the request is too old.
        """
        receipt = None if isinstance(command, OWN) else request_age.current()
        work = Work(command, within, guard, principal, skip_locked, long=long, receipt=receipt)
        queue = self._queues.get(command.group_id)
        if queue is None:
            self._queues[command.group_id] = queue = deque()
            task = asyncio.create_task(self._drain(command.group_id, queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        queue.append(work)
        return await work.result

    @property
    def busy(self) -> bool:
        """A transaction is running or waiting to run."""
        return bool(self._queues)

    async def _drain(self, group_id: str, queue: deque[Work]) -> None:
        request_age.enter(None)  # it continues for others after the request that started it has ended
        while queue:
            works = self._take(queue)
            if not works:
                continue
            batch = Batch(group_id, works, self)
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
                batch.publish()
            except Exception as error:
                # It is committed. A bug here must not leave the group's queue without a consumer.
                log.exception("publishing_failed", group_id=group_id)
                self.store.forget(group_id)
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
        self.store.forget(batch.group_id)
        for work in batch.works:
            work.alone = True
        queue.extendleft(reversed(batch.works))

    async def _transact(self, batch: Batch) -> None:
        BATCH_SIZE.observe(len(batch.works))
        # Before the transaction: no connection is awaited while another is held.
        batch.world_since = self.room.moment()
        batch.world = await self._contexts.context_of(batch.group_id)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                await self.db.transaction(batch.run, key=batch.group_id, long=batch.long, receipt=batch.oldest)
            except GroupAppeared:
                if attempt == MAX_ATTEMPTS:
                    raise ProtocolError(
                        Error.COORDINATOR_NOT_AVAILABLE, "the group is being created by another process; try again"
                    ) from None
            else:
                TRANSACTIONS.labels("committed").inc()
                return

    async def close(self) -> None:
        """Wait for running transactions to end."""
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
