"""Batches of commands of a group, and the transaction that decides those of one group or of many."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import structlog
from psycopg.pq import PipelineStatus

from groups.configs import DecisionContext
from groups.core.classic.rebalance import members_at_once
from groups.core.consumer.members import OVERTAKEN_MS
from groups.core.machine import decide, size_of_decision
from groups.core.model.commands import (
    Command,
    ConsumerHeartbeat,
    JoinGroup,
    ShareHeartbeat,
    SyncGroup,
)
from groups.core.model.consumer_group import ShareGroup
from groups.core.model.events import GroupEvent, events_of
from groups.core.model.group import Group
from groups.core.model.replies import Done, Parked, Reply
from groups.core.model.turn import Decision, Effect, WakeMembers
from groups.core.model.types import ClassicGroup, Env, Millis
from groups.engine.acts import OF_OPERATORS, act_of
from groups.engine.parked_requests import Claim, ParkedRequests, Waiter
from groups.store.locked import Deletion, Guard, LockedGroup, Within, run_deletion_hooks, tell_items
from groups.store.rows import Change, GroupAppeared, OwnerLapsed, Ownership, Stored
from groups.store.store import GroupStore
from kcoord.access.audit.recording import Act, record
from kcoord.database.pool import Connection, Database
from kcoord.metrics import BATCH_SIZE, TRANSACTIONS
from kcoord.process import off_loop
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests.current import Caller, Receipt

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
    """Commands of one group decided in a `BatchTransaction`; then `publish`, `undo` or `fail`."""

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


class BatchTransaction:
    """Batches of groups decided in one transaction, which writes them set by set: `run` in it, then `count`.

    With several, a group whose lock another transaction holds, or that another process has just created, is left out.
    """

    def __init__(self, batches: Sequence[Batch], store: GroupStore) -> None:
        self._batches = batches
        self._store = store
        self.decided: list[Batch] = []
        """Those of the transaction."""

    def oldest(self) -> Receipt | None:
        """The oldest receipt of the requests that write."""
        receipts = [receipt for batch in self.decided for receipt in batch.receipts]
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
        async for batch in off_loop.sliced(self.decided):
            await batch.decide(connection)
        await self._write(connection)
        if not together and not self.decided:
            raise GroupAppeared
        await self._tell(connection)
        if stepwise:
            await self._check_owners(connection)

    async def _lock(self, connection: Connection, *, together: bool) -> None:
        ids = [batch.group_id for batch in self._batches]
        skip_locked = together or self._batches[0].skip_locked
        found = await self._store.lock(connection, ids, skip_locked=skip_locked)
        self.decided = []
        for batch in self._batches:
            before, ownership = found[batch.group_id]
            if together and before.pk is None and ownership.exists and not batch.skip_locked:
                continue
            batch.lock(before, ownership)
            self.decided.append(batch)

    async def _read_sessions(self, connection: Connection, *, stepwise: bool) -> None:
        """Of groups in which something expires: what rows say of sessions may be later than what copies say."""
        expiring = [batch for batch in self.decided if batch.expires]
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
        changed = [Change(batch.before, batch.after, batch.now) for batch in self.decided]
        kept = await self._store.persist(connection, changed)
        decided, self.decided = self.decided, []
        for batch, stored in zip(decided, kept, strict=True):
            if stored is None:
                batch.undo()
                continue
            self.decided.append(batch)
            await batch.work(connection, stored)

    async def _tell(self, connection: Connection) -> None:
        happened = [(batch.group_id, batch.now, event) for batch in self.decided for event in batch.events]
        await self._store.append_events(connection, happened)
        wake = [batch.group_id for batch in self.decided if batch.wakes]
        # Copies in other processes have to be told of each version.
        changed = [one.group_id for one in self.decided if one.events or one.committed.version != one.before.version]
        await self._store.notify(
            connection, wake=wake, changed=[group_id for group_id in changed if group_id not in wake]
        )

    async def _check_owners(self, connection: Connection) -> None:
        """Whether what expired may still be committed, in a transaction that has no limit of its own.

        From this look on only the limit for idle transactions bounds how long a frozen process can put off the commit.
        A transaction that may take long does not hold the partition before: others could not take it over meanwhile.
        """
        for batch in self.decided:
            if batch.expires:
                now = (await self._store.ownership(connection, [batch.group_id], hold=True))[batch.group_id]
                if not now.active or now.gap != batch.ownership.gap:
                    raise OwnerLapsed

    def count(self) -> None:
        """It is committed."""
        TRANSACTIONS.labels("committed").inc()
        BATCH_SIZE.observe(sum(len(batch.works) for batch in self.decided))
