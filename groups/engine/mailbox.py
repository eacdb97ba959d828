"""Mailbox: commands of one group that queue up while a transaction runs, or waits to run, are decided together.

A join storm of a thousand members takes a few transactions. Groups do not wait for each other. The commands of one
transaction are a `Batch`: load once, decide in order, persist once, answer after the commit.

The engine calls in one direction: service, mailbox, parked requests, store. What a decision leads to later, the next
deadline of the group or work in the background, comes back as a command in the same queue.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import structlog
from psycopg.pq import PipelineStatus

from groups.configs import DecisionContext, DecisionContexts
from groups.core.classic.rebalance import members_at_once
from groups.core.consumer.members import OVERTAKEN_MS
from groups.core.consumer.target import compute
from groups.core.machine import decide, size_of_decision
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
from groups.core.model.consumer_group import ShareGroup
from groups.core.model.events import GroupEvent, events_of
from groups.core.model.group import Group, wake_at
from groups.core.model.replies import Done, Parked, Reply
from groups.core.model.turn import ComputeTarget, Decision, Effect, ResolveRegexes, WakeMembers
from groups.core.model.types import ClassicGroup, Env, Millis
from groups.engine.acts import OF_OPERATORS, act_of
from groups.engine.heartbeats import HeartbeatLane
from groups.engine.parked_requests import Claim, ParkedRequests, Waiter
from groups.store.locked import Deletion, Guard, LockedGroup, ShareChange, Within, run_deletion_hooks, run_share_hooks
from groups.store.rows import GroupAppeared, OwnerLapsed, Ownership, Stored
from groups.store.store import GroupStore
from kcoord.access.audit.recording import Act, record
from kcoord.constants import RENEWAL
from kcoord.database.clock import DatabaseClock
from kcoord.database.pool import MAX_ATTEMPTS, Connection, Database
from kcoord.metrics import BATCH_SIZE, TRANSACTIONS
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests import current
from kcoord.requests.current import Caller, Receipt

log = structlog.get_logger(__name__)


ANSWERS_AT_ONCE = 8
"""How many callers go on with their answers before the loop serves others."""

OwnerEpoch = tuple[int, int]
"""The incarnation of a node, and the epoch under which it owns a coordinator partition."""


@dataclass(slots=True, eq=False)
class Work:
    """One pending command. `result` is the reply, the waiter of a parked request, or what `within` returned.

    `principal`: who requests a deletion. `alone`: a batch that contained it failed, so it is retried in a separate
    transaction. `long`: it may hold the group for longer than others. `receipt`: that of its request. `owner`: it does
    nothing unless this incarnation still owns the partition under this epoch. `caller`: whose act it is.
    """

    command: Command
    within: Within | None = None
    guard: Guard | None = None
    principal: str = ""
    skip_locked: bool = False
    owner: OwnerEpoch | None = None
    alone: bool = False
    long: bool = False
    receipt: Receipt | None = None
    caller: Caller | None = None
    result: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(slots=True)
class Outcome:
    """The outcome of one command of a batch, reported after the commit.

    `group`: as its decision left it; `creates`: there was none before.
    """

    work: Work
    group: Group | None
    value: Any
    claims: list[Claim]
    creates: bool


Decided = tuple[Work, Group | None, Decision | Reply | Exception]
"""A command, the group before it, and its decision, the answer in place of a decision, or the exception raised."""


class Batch:
    """Commands of one group decided in one transaction: `run` in the transaction, then `publish`, `undo` or `fail`."""

    context: DecisionContext
    context_since: int
    """Moment of the parked requests before `context` was read."""

    def __init__(
        self, group_id: str, works: list[Work], db: Database, store: GroupStore, parked: ParkedRequests
    ) -> None:
        self.group_id = group_id
        self.works = works
        self.left_over: list[Work] = []
        self.effects: list[Effect] = []
        self._db = db
        self._store = store
        self._parked = parked
        self._outcomes: list[Outcome] = []
        self._events: list[GroupEvent] = []
        self._acts: list[tuple[Act, Caller | None]] = []
        self._receipts: list[Receipt] = []
        self._answered = False
        self.stored: Stored | None = None
        self.now: Millis = 0
        self.may_expire = True
        self.locked_at = 0.0

    @property
    def skip_locked(self) -> bool:
        """No caller waits for an answer: if another transaction holds the group, it is skipped."""
        return all(work.skip_locked for work in self.works)

    @property
    def long(self) -> bool:
        """Some of the commands may take long."""
        return any(work.long for work in self.works)

    @property
    def skipped(self) -> bool:
        """Nothing is known of the group: another transaction holds it, or it does not exist. Valid after the commit."""
        return self.skip_locked and self.committed.pk is None

    @property
    def committed(self) -> Stored:
        """The group as the transaction left it. Valid once it is persisted."""
        assert self.stored is not None
        return self.stored

    def oldest(self) -> Receipt | None:
        """The receipts of the requests that write."""
        return min(self._receipts, key=lambda receipt: receipt.at + receipt.extra_ms / 1000, default=None)

    async def run(self, connection: Connection) -> None:
        """The body of the transaction. It may run more than once, each time from the start."""
        self.undo()
        before, self.now, ownership = await self._store.lock(connection, self.group_id, skip_locked=self.skip_locked)
        self.locked_at = time.monotonic()
        stepwise = connection.pgconn.pipeline_status == PipelineStatus.OFF
        expires = ownership.active and before.due is not None and before.due <= self.now
        if expires:
            # Until when sessions are known was read before them, so that all that was known is among them.
            known_until = ownership.sessions_known_until
            before = await self._store.with_sessions(connection, before)
            expires = before.due is not None and before.due <= self.now
            if expires and not stepwise:
                self.now, ownership = await self._store.ownership(connection, self.group_id, hold=True)
            ownership = replace(ownership, sessions_known_until=known_until)
        self.may_expire = ownership.active
        refusals = await self._ask_guards(connection, before, ownership)
        beats = (work.command for work in self.works if isinstance(work.command, ConsumerHeartbeat | ShareHeartbeat))
        if any(beat.age_ms for beat in beats):
            before = await self._store.with_sessions(connection, before)
        after, replies = await self._decide(connection, before.group, refusals, ownership)
        if after is None and before.pk is not None:
            principal = self._outcomes[-1].work.principal
            await run_deletion_hooks(Deletion(connection, self.group_id, before.pk, principal, self.now))
        self.stored = await self._store.persist(connection, before, after, self.now)
        await self._tell_items(connection, before.group, after)
        for outcome, reply in zip(self._outcomes, replies, strict=True):
            outcome.value = await self._value(connection, outcome, reply)
        await self._store.append_events(connection, self.group_id, self._events, self.now)
        for act, caller in self._acts:
            await record(self._db, connection, act, caller)
        wake = self._answered or any(isinstance(effect, WakeMembers) for effect in self.effects)
        # Copies in other processes have to be told of each version.
        changed = bool(self._events) or self.stored.version != before.version
        await self._store.notify(connection, self.group_id, wake=wake, changed=changed)
        if expires and stepwise:
            await self._check_owner(connection, ownership)

    async def _tell_items(self, connection: Connection, before: Group | None, after: Group | None) -> None:
        """Items that members who are gone have locked go back; partitions that are new to a share group begin."""
        if not isinstance(after, ShareGroup):
            return
        old = before if isinstance(before, ShareGroup) else None
        if old is not None and old.group_epoch == after.group_epoch:
            return
        pk = self.committed.pk
        assert pk is not None
        gone = [member_id for member_id in (() if old is None else old.members) if member_id not in after.members]
        names = {name for member in after.members.values() for name in member.subscribed_topic_names}
        known = self.context.topics.by_name
        topic_ids = [known[name].topic_id for name in sorted(names) if name in known]
        await run_share_hooks(ShareChange(connection, self.group_id, pk, gone, topic_ids, self.now))

    async def _check_owner(self, connection: Connection, ownership: Ownership) -> None:
        """Whether what expired may still be committed, in a transaction that has no limit of its own.

        From this look on only the limit for idle transactions bounds how long a frozen process can put off the commit.
        A transaction that may take long does not hold the partition before: others could not take it over meanwhile.
        """
        _, now = await self._store.ownership(connection, self.group_id, hold=True)
        if not now.active or now.gap != ownership.gap:
            raise OwnerLapsed

    async def _ask_guards(
        self, connection: Connection, before: Stored, ownership: Ownership
    ) -> dict[int, Reply | Exception]:
        """The answers in place of decisions, by position: the request is too old, or a guard refuses.

        Without a row there is nothing to guard.
        """
        refusals: dict[int, Reply | Exception] = {}
        for position, work in enumerate(self.works):
            if work.owner is not None and work.owner != (ownership.owner, ownership.epoch):
                refusals[position] = Done()
                continue
            late = self._db.refusal(connection, work.receipt)
            if late is not None:
                refusals[position] = late
                continue
            if work.receipt is not None:
                self._receipts.append(work.receipt)
            if isinstance(work.command, ConsumerHeartbeat | ShareHeartbeat):
                age_ms = self._db.age_ms(connection, work.receipt)
                if age_ms > OVERTAKEN_MS:  # younger ones cannot have been overtaken, and copies cost time
                    work.command = replace(work.command, age_ms=age_ms)
            if work.guard is not None and before.pk is not None:
                refusal = await work.guard(connection, before.pk, self.now)
                if refusal is not None:
                    refusals[position] = refusal
        return refusals

    async def _decide(
        self,
        connection: Connection,
        group: Group | None,
        refusals: Mapping[int, Reply | Exception],
        ownership: Ownership,
    ) -> tuple[Group | None, list[Reply | Parked | Exception]]:
        """Decide in order, and collect the outcomes. If it takes long, other groups are served meanwhile."""
        env = self.context.at(self.now, ownership)
        commands = [work.command for work in self.works]
        size = size_of_decision(group, commands, env.topics)
        if isinstance(group, ClassicGroup):
            size = off_loop.PER_MEMBER * members_at_once(group, commands, self.now)
        decided: list[Decided] = []
        steps = self._decide_in_order(group, refusals, env, decided)
        if size > off_loop.ABOVE:
            await off_loop.run_within(connection, size, deque, steps, 0)
        else:
            await off_loop.in_slices(steps)
        replies: list[Reply | Parked | Exception] = []
        await off_loop.in_slices(self._note_in_order(decided, replies))
        after = group
        if decided:
            _, before, last = decided[-1]
            after = last.group if isinstance(last, Decision) else before
        return after, replies

    def _note_in_order(self, decided: list[Decided], replies: list[Reply | Parked | Exception]) -> Iterator[None]:
        for work, before, found in decided:
            if isinstance(found, Decision):
                yield from self._note(work, before, found)
                replies.append(found.reply)
            else:
                self._outcomes.append(Outcome(work, before, None, [], creates=False))
                replies.append(found)
            yield

    def _decide_in_order(
        self, group: Group | None, refusals: Mapping[int, Reply | Exception], env: Env, decided: list[Decided]
    ) -> Iterator[None]:
        """Append what is decided, one after the other.

        A command that meets a bug gets the exception; the others continue from before. Affects only this batch.
        """
        for position, work in enumerate(self.works):
            if decided:
                yield
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

    def _note(self, work: Work, before: Group | None, decision: Decision) -> Iterator[None]:
        outcome = Outcome(work, decision.group, None, [], creates=before is None)
        self._outcomes.append(outcome)  # first: what is claimed until it fails is restored
        for answer in decision.answers:
            outcome.claims += self._parked.claim(self.group_id, answer)
            yield
        if isinstance(decision.reply, Parked):
            outcome.value = self._parked.enter(self.group_id, decision.reply, self.context_since)
        self._answered = self._answered or bool(decision.answers)
        self._events.extend(events_of(before, decision.records))
        if isinstance(work.command, OF_OPERATORS):
            act = act_of(work.command, before, decision.reply, work.principal)
            self._acts.extend([] if act is None else [(act, work.caller)])
        self.effects.extend(decision.effects)

    async def _value(self, connection: Connection, outcome: Outcome, reply: Reply | Parked | Exception) -> Any:
        if isinstance(reply, Parked | Exception):
            return outcome.value if isinstance(reply, Parked) else reply
        if outcome.work.within is None or reply.error is not Error.NONE or outcome.group is None:
            return reply
        pk = self.committed.pk
        assert pk is not None
        acts: list[Act] = []
        created = outcome.creates
        locked = LockedGroup(
            connection, self.group_id, pk, outcome.group, reply, self.now, self._events, created=created, acts=acts
        )
        value = await outcome.work.within(locked)
        self._acts.extend((act, outcome.work.caller) for act in acts)
        return value

    def undo(self) -> None:
        """None of this was committed: removed waiters keep waiting, added waiters are dropped."""
        for outcome in reversed(self._outcomes):
            if isinstance(outcome.value, Waiter):
                self._parked.leave(outcome.value)
            self._parked.restore(outcome.claims)
        self._outcomes, self._events, self._acts, self.effects = [], [], [], []
        self.left_over, self._receipts = [], []
        self._answered, self.stored = False, None

    async def publish(self) -> None:
        """It is committed: answer all callers, a few at a time; what they do with their answers costs more than this.

        The answers of one decision may be those of all members of a group.
        """
        if not self.skipped:
            self._store.remember(self.group_id, self.committed, self.locked_at)
        answered = 0
        for outcome in self._outcomes:
            for claim in outcome.claims:
                self._parked.answer([claim])
                answered += 1
                if answered % ANSWERS_AT_ONCE == 0:
                    await asyncio.sleep(0)
            self._publish_outcome(outcome)
            answered += 1
            if answered % ANSWERS_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _publish_outcome(self, outcome: Outcome) -> None:
        if isinstance(outcome.value, Waiter):
            self._parked.committed(outcome.value)
        if outcome.work.result.done():  # its caller is gone
            return
        if isinstance(outcome.value, Exception):
            outcome.work.result.set_exception(outcome.value)
        else:
            outcome.work.result.set_result(outcome.value)

    def fail(self, error: BaseException) -> None:
        """It did not commit, or the outcome is unknown: answer the callers of this batch with the error."""
        self.undo()
        self._store.forget(self.group_id)
        self.refuse(error)

    def refuse(self, error: BaseException) -> None:
        """Answer the callers without an answer with the error.

        An expected one is copied for each of them: each that raises it adds its frames to the traceback, which would
        keep the requests of all until the next full search for garbage.
        """
        for work in self.works:
            if not work.result.done():
                work.result.set_exception(copy(error) if isinstance(error, ProtocolError) else error)


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
        async def run(connection: Connection) -> None:
            self._take_more(batch)
            await batch.run(connection)

        # Before the transaction: no connection is awaited while another is held.
        await self._lane.settle(batch.group_id, is_tick=batch.skip_locked)
        batch.context_since = self._parked.moment()
        batch.context = await self._contexts.context_of(batch.group_id)
        known = not all(self._is_new(work.command) for work in batch.works)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                await self._db.transaction(run, key=batch.group_id, known=known, long=batch.long, receipt=batch.oldest)
            except (GroupAppeared, OwnerLapsed) as error:
                if attempt == MAX_ATTEMPTS:
                    raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, STARTED_OVER[type(error)]) from None
            else:
                TRANSACTIONS.labels("committed").inc()
                BATCH_SIZE.observe(len(batch.works))
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
            # Not gather: from Python 3.12 on it does not let the loop run if all have ended, nor the callbacks that
            # take them out of these sets.
            await asyncio.wait({*self._background, *self._tasks})
