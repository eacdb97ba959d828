"""Mailbox: commands that queue up while a transaction runs, or waits to run, are decided together.

A join storm of a thousand members takes a few transactions, whether they are of one group or of hundreds. A group in
whose transaction more happens, or which is large or locked, has one of its own, and the others do not wait for it.

The engine calls in one direction: service, mailbox, flights, parked requests, store. What a decision leads to later,
the next deadline of the group or work in the background, comes back as a command in the same queue.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import structlog
from psycopg.errors import LockNotAvailable
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
    SyncGroup,
    Tick,
)
from groups.core.model.consumer_group import ShareGroup
from groups.core.model.events import GroupEvent, events_of
from groups.core.model.group import Group
from groups.core.model.replies import Done, Parked, Reply
from groups.core.model.turn import ComputeTarget, Decision, Effect, ResolveRegexes, WakeMembers
from groups.core.model.types import ClassicGroup, Env, Millis
from groups.engine.acts import OF_OPERATORS, act_of
from groups.engine.heartbeats import HeartbeatLane
from groups.engine.parked_requests import Alarms, Claim, ParkedRequests, Waiter
from groups.store.locked import Deletion, Guard, LockedGroup, Within, run_deletion_hooks, tell_items
from groups.store.rows import Change, GroupAppeared, OwnerLapsed, Ownership, Stored
from groups.store.store import GroupStore
from kcoord.access.audit.recording import Act, record
from kcoord.database.pool import MAX_ATTEMPTS, Connection, Database
from kcoord.metrics import BATCH_SIZE, TRANSACTIONS
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests import current
from kcoord.requests.current import Caller, Receipt
from kcoord.requests.turnstile import Batches

log = structlog.get_logger(__name__)


ANSWERS_AT_ONCE = 8
"""How many callers go on with their answers before the loop serves others."""
GROUPS_AT_ONCE = 4
"""How many groups do so that were decided together."""

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

    @property
    def heavy(self) -> bool:
        """It does more in the transaction than be decided, or is to be alone in it."""
        return bool(self.alone or self.long or self.within or self.guard)


def _bytes_of(command: Command) -> int:
    if isinstance(command, JoinGroup):
        return sum(len(protocol.metadata) for protocol in command.protocols)
    return sum(map(len, command.assignments.values())) if isinstance(command, SyncGroup) else 0


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
    """Commands of one group decided in one transaction, that of a `Flight`; then `publish`, `undo` or `fail`."""

    context: DecisionContext
    context_since: int
    """Moment of the parked requests before `context` was read."""

    before: Stored
    ownership: Ownership
    expires: bool
    after: Group | None
    replies: list[Reply | Parked | Exception]

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
        self.events: list[GroupEvent] = []
        self._acts: list[tuple[Act, Caller | None]] = []
        self.receipts: list[Receipt] = []
        """Of the requests that write."""
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
    def heavy(self) -> bool:
        """Some of the commands do more in the transaction than decide, and other groups are not to wait for that."""
        return any(work.heavy for work in self.works)

    @property
    def size(self) -> int:
        """Bytes of subscriptions and assignments that come with the commands."""
        return sum(_bytes_of(work.command) for work in self.works)

    @property
    def skipped(self) -> bool:
        """Nothing is known of the group: another transaction holds it, or it does not exist. Valid after the commit."""
        return self.skip_locked and self.committed.pk is None

    @property
    def committed(self) -> Stored:
        """The group as the transaction left it. Valid once it is persisted."""
        assert self.stored is not None
        return self.stored

    def lock(self, before: Stored, ownership: Ownership) -> None:
        """The group and who runs its timers, as they are under the lock."""
        self.locked_at = time.monotonic()
        self.before, self.ownership, self.now = before, ownership, ownership.now
        self.may_expire = ownership.active
        self.expires = ownership.active and before.due is not None and before.due <= self.now

    async def decide(self, connection: Connection) -> None:
        """What its commands do to the group."""
        refusals = await self._ask_guards(connection, self.before, self.ownership)
        beats = (work.command for work in self.works if isinstance(work.command, ConsumerHeartbeat | ShareHeartbeat))
        if any(beat.age_ms for beat in beats):
            (self.before,) = await self._store.with_sessions(connection, [self.before])
        self.after, self.replies = await self._decide(connection, self.before.group, refusals, self.ownership)
        if self.after is None and self.before.pk is not None:
            principal = self._outcomes[-1].work.principal
            await run_deletion_hooks(Deletion(connection, self.group_id, self.before.pk, principal, self.now))

    async def work(self, connection: Connection, stored: Stored) -> None:
        """What its commands do besides, now that the group is persisted."""
        self.stored = stored
        if isinstance(self.after, ShareGroup):
            assert stored.pk is not None
            known = self.context.topics.by_name
            await tell_items(connection, stored.pk, self.before.group, self.after, known, self.now)
        for outcome, reply in zip(self._outcomes, self.replies, strict=True):
            outcome.value = await self._value(connection, outcome, reply)
        for act, caller in self._acts:
            await record(self._db, connection, act, caller)

    @property
    def wakes(self) -> bool:
        """Waiters in other processes have to look at the group."""
        return self._answered or any(isinstance(effect, WakeMembers) for effect in self.effects)

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
                self.receipts.append(work.receipt)
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
        self.events.extend(events_of(before, decision.records))
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
            connection, self.group_id, pk, outcome.group, reply, self.now, self.events, created=created, acts=acts
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
        self._outcomes, self.events, self._acts, self.effects = [], [], [], []
        self.left_over, self.receipts = [], []
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


class NotTogether(Exception):
    """Several groups cannot be decided in this transaction: each has to have one of its own."""


class Flight:
    """Batches of groups decided in one transaction, which writes them set by set: `run` in it, then `land`.

    With several, a group whose lock another transaction holds, or that another process has just created, is left out.
    """

    def __init__(self, batches: Sequence[Batch], store: GroupStore) -> None:
        self._batches = batches
        self._store = store
        self.aboard: list[Batch] = []
        """Those of the transaction."""

    def oldest(self) -> Receipt | None:
        """The oldest receipt of the requests that write."""
        receipts = [receipt for batch in self.aboard for receipt in batch.receipts]
        return min(receipts, key=lambda receipt: receipt.at + receipt.extra_ms / 1000, default=None)

    async def run(self, connection: Connection) -> None:
        """The body of the transaction. It may run more than once, each time from the start.

        Raises NotTogether, and GroupAppeared or OwnerLapsed for a single group.
        """
        together = len(self._batches) > 1
        stepwise = connection.pgconn.pipeline_status == PipelineStatus.OFF
        if together and stepwise:
            raise NotTogether
        for batch in self._batches:
            batch.undo()
        await self._lock(connection, together=together)
        await self._read_sessions(connection, stepwise=stepwise)
        async for batch in off_loop.sliced(self.aboard):
            await batch.decide(connection)
        await self._write(connection)
        if not together and not self.aboard:
            raise GroupAppeared
        await self._tell(connection)
        if stepwise:
            await self._check_owners(connection)

    async def _lock(self, connection: Connection, *, together: bool) -> None:
        ids = [batch.group_id for batch in self._batches]
        skip_locked = together or self._batches[0].skip_locked
        found = await self._store.lock(connection, ids, skip_locked=skip_locked)
        self.aboard = []
        for batch in self._batches:
            before, ownership = found[batch.group_id]
            if together and before.pk is None and ownership.exists and not batch.skip_locked:
                continue
            batch.lock(before, ownership)
            self.aboard.append(batch)

    async def _read_sessions(self, connection: Connection, *, stepwise: bool) -> None:
        """Of groups in which something expires: what rows say of sessions may be later than what copies say."""
        expiring = [batch for batch in self.aboard if batch.expires]
        if not expiring:
            return
        groups = await self._store.with_sessions(connection, [batch.before for batch in expiring])
        for batch, before in zip(expiring, groups, strict=True):
            batch.before = before
            batch.expires = before.due is not None and before.due <= batch.now
        held = [batch for batch in expiring if batch.expires and not stepwise]
        ids = [batch.group_id for batch in held]
        owners = await self._store.ownership(connection, ids, hold=True) if held else {}
        for batch in held:
            # Until when sessions are known was read before them, so that all that was known is among them.
            known_until = batch.ownership.sessions_known_until
            batch.ownership = replace(owners[batch.group_id], sessions_known_until=known_until)
            batch.now, batch.may_expire = batch.ownership.now, batch.ownership.active

    async def _write(self, connection: Connection) -> None:
        changed = [Change(batch.before, batch.after, batch.now) for batch in self.aboard]
        kept = await self._store.persist(connection, changed)
        aboard, self.aboard = self.aboard, []
        for batch, stored in zip(aboard, kept, strict=True):
            if stored is None:
                batch.undo()
                continue
            self.aboard.append(batch)
            await batch.work(connection, stored)

    async def _tell(self, connection: Connection) -> None:
        happened = [(batch.group_id, batch.now, event) for batch in self.aboard for event in batch.events]
        await self._store.append_events(connection, happened)
        wake = [batch.group_id for batch in self.aboard if batch.wakes]
        # Copies in other processes have to be told of each version.
        changed = [one.group_id for one in self.aboard if one.events or one.committed.version != one.before.version]
        await self._store.notify(
            connection, wake=wake, changed=[group_id for group_id in changed if group_id not in wake]
        )

    async def _check_owners(self, connection: Connection) -> None:
        """Whether what expired may still be committed, in a transaction that has no limit of its own.

        From this look on only the limit for idle transactions bounds how long a frozen process can put off the commit.
        A transaction that may take long does not hold the partition before: others could not take it over meanwhile.
        """
        for batch in self.aboard:
            if batch.expires:
                now = (await self._store.ownership(connection, [batch.group_id], hold=True))[batch.group_id]
                if not now.active or now.gap != batch.ownership.gap:
                    raise OwnerLapsed

    def count(self) -> None:
        """It is committed."""
        TRANSACTIONS.labels("committed").inc()
        BATCH_SIZE.observe(sum(len(batch.works) for batch in self.aboard))


class Boarding(NamedTuple):
    """A batch that waits for a transaction. `landed`: whether it was decided in it; `context`: that of its task."""

    batch: Batch
    landed: asyncio.Future[bool]
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

FLIGHT_SECONDS = 0.05
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
        self._boarding: dict[bool, deque[Boarding]] = {True: deque(), False: deque()}
        """By whether their groups are known."""
        self._flights = Batches(lambda: any(self._boarding.values()), self._board)

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
        if batch.heavy or self._members(batch) > MEMBERS_TOGETHER:
            await self._transact_alone(batch)
            return
        landed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._boarding[self._is_known(batch)].append(Boarding(batch, landed, contextvars.copy_context()))
        self._flights.call()
        if not await landed:
            await self._transact_alone(batch)

    def _is_known(self, batch: Batch) -> bool:
        return not all(self._is_new(work.command) for work in batch.works)

    def _members(self, batch: Batch) -> int:
        """How many rows it may have to write."""
        copy_of_it = self._store.copy_of(batch.group_id)
        return len(batch.works) + (0 if copy_of_it is None else copy_of_it.weight)

    async def _transact_alone(self, batch: Batch) -> None:
        flight = Flight([batch], self._store)

        async def run(connection: Connection) -> None:
            self._take_more(batch)
            await flight.run(connection)

        known = self._is_known(batch)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                await self._db.transaction(run, key=batch.group_id, known=known, long=batch.long, receipt=flight.oldest)
            except (GroupAppeared, OwnerLapsed) as error:
                if attempt == MAX_ATTEMPTS:
                    raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, STARTED_OVER[type(error)]) from None
            else:
                flight.count()
                return

    def _board(self) -> Coroutine[Any, Any, None]:
        """The next transaction, with as many of the groups that wait as it may have."""
        known = next(known for known, waiting in self._boarding.items() if waiting)
        waiting = self._boarding.pop(known)
        self._boarding[known] = waiting  # behind the others: their turn is next
        boarded: list[Boarding] = []
        members = size = 0
        while waiting and len(boarded) < GROUPS_TOGETHER:
            batch = waiting[0].batch
            if not any(work.heavy for work in self._queues[batch.group_id]):
                self._take_more(batch)
            members, size = members + self._members(batch), size + batch.size
            if boarded and (members > MEMBERS_TOGETHER or size > BYTES_TOGETHER):
                break
            boarded.append(waiting.popleft())
        return self._take_off(boarded, known)

    async def _take_off(self, boarded: list[Boarding], known: bool) -> None:
        flying = asyncio.create_task(self._fly(boarded, known), context=boarded[0].context)
        self._tasks.add(flying)
        flying.add_done_callback(self._tasks.discard)
        await asyncio.wait({flying}, timeout=FLIGHT_SECONDS)

    async def _fly(self, boarded: list[Boarding], known: bool) -> None:
        """Decide them in one transaction, and say of each whether that was done."""
        aboard, failed = [boarded[0].batch], None
        try:
            if len(boarded) == 1:
                await self._transact_alone(boarded[0].batch)
            else:
                aboard = await self._transact_together([one.batch for one in boarded], known)
        except Exception as error:  # noqa: BLE001 - it is that of each
            failed = error
        for number, (batch, landed, _) in enumerate(boarded, 1):
            if failed is not None and not landed.done():
                landed.set_exception(copy(failed) if isinstance(failed, ProtocolError) else failed)
            elif not landed.done():
                landed.set_result(batch in aboard)
            if number % GROUPS_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _transact_together(self, batches: list[Batch], known: bool) -> list[Batch]:
        """Returns those that were decided; none if one of them has a bug. Raises ProtocolError as `Database`."""
        flight = Flight(batches, self._store)

        async def run(connection: Connection) -> None:
            try:
                await flight.run(connection)
            except LockNotAvailable as error:  # of a partition, or of a group that another process creates
                raise NotTogether from error

        try:
            await self._db.transaction(run, key=TOGETHER, known=known, receipt=flight.oldest)
        except ProtocolError:
            raise
        except Exception as error:  # noqa: BLE001 - the one that has it meets it again alone
            if not isinstance(error, NotTogether):
                log.warning(
                    "groups_not_decided_together", groups=len(batches), reason=str(error) or type(error).__name__
                )
            for batch in batches:
                batch.undo()
                self._store.forget(batch.group_id)
            return []
        flight.count()
        return flight.aboard

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
