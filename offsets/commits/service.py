"""Commits and fetches of offsets, and the commit lane: what arrives while a batch is under way goes with the next one.

A batch is one transaction with the commits of many groups. It takes those that `decide` would accept without changing
their group, going by the copy in memory, and writes those whose copy turns out to be current under the lock. Everything
else takes the normal way, the mailbox of its group; that is no error. Commits that wait are in order of arrival within
each group.

The fence is that of the normal way (invariant 2): the rows of the groups are locked in a statement of their own, and
compared with the copies in the next one, which writes, like `offsets.commits.store`, committed offsets and the journal.
The parameters are a column for each array, in the form in which Postgres reads it. It is made here and not by psycopg,
which looks at each number of a list: at fifty offsets a commit that would be most of the time of a commit.

Source: architecture.md 4, "Fast lanes"; offsets.md 3 and 5; consumer.md 7.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any, cast

import structlog
from prometheus_client import Counter
from psycopg import errors as pg

from groups.core.commit_lane import SteadyCommit, steady_commit
from groups.core.consumer.offsets import check_fetch
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.group import partition_of
from groups.core.model.replies import CommitReply
from groups.engine.service import GroupService
from groups.store.locked import LockedGroup
from groups.store.rows import Int4Array, Int8Array, Stored, number_array, text_array
from groups.topics import TopicService
from kcoord import metrics
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from kcoord.process import off_loop
from kcoord.process.off_loop import Later
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests import current
from kcoord.requests.current import Receipt
from kcoord.requests.turnstile import Batches
from offsets.commits.acknowledged import AcknowledgedCommits
from offsets.commits.fetch_lane import FetchLane
from offsets.commits.store import OffsetStore
from offsets.commits.transactions.store import TransactionStore
from offsets.core.commit import (
    NO_RETENTION,
    OVERTAKEN_MS,
    Commit,
    membership_half,
    overtaken,
    overtaken_before,
    records_of,
)
from offsets.core.transactions import stable
from offsets.core.types import (
    ChangeKind,
    FetchedOffset,
    Millis,
    OffsetCommitReply,
    OffsetFetch,
    OffsetFetchReply,
    Provenance,
    TopicPartition,
)

MOST_COMMITS = 256
"""Of one batch."""
MOST_OFFSETS = 2_048
"""Of one batch, so that it takes some tens of milliseconds at most; it exceeds them by one commit."""
MOST_OF_A_GROUP = 64
"""Commits of one group in one batch: a group with thousands of members leaves room for others."""


Alone = Callable[[], Coroutine[Any, Any, Any]]
"""Writes a commit the normal way; returns the reply."""


@dataclass(slots=True, eq=False)
class Ticket:
    """One commit. `written`: the reply. `alone`: what writes it, if it takes the normal way, in `context`.

    `plain` None: it cannot go with a batch. `at`: since when it waits (s). `coordinator`: its coordinator partition.
    `slow`: it takes the normal way, and has not ended there. `stored`, `steady`: by which copy of its group, and how,
    it was decided last. `own_at`: when this process last wrote offsets of the group, 0: not known.
    """

    group_id: str
    plain: Commit | None
    alone: Alone
    receipt: Receipt | None
    at: float
    coordinator: int
    slow: bool = False
    stored: Stored | None = None
    steady: SteadyCommit | None = None
    own_at: Millis = 0
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    written: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def commit(self) -> Commit:
        """Of a ticket that may go with a batch."""
        assert self.plain is not None
        return self.plain


@dataclass(slots=True, eq=False)
class GroupQueue:
    """The tickets of one group. `under_way`: some are in a batch. `slow`: how many take the normal way now."""

    waiting: deque[Ticket] = field(default_factory=deque)
    under_way: bool = False
    slow: int = 0
    ready: bool = False


class Tickets:
    """The queues of all groups. Commits of one group are written in the order of arrival, whichever way they take.

    `decide` sets what a batch needs to know of a ticket, and says whether it may go now. `write_alone`: begins to
    write one the normal way, and calls `done` at its end.
    """

    def __init__(self, decide: Callable[[Ticket], bool], write_alone: Callable[[Ticket], None]) -> None:
        self._decide = decide
        self._write_alone = write_alone
        self._queues: dict[str, GroupQueue] = {}
        self._ready: deque[str] = deque()
        self.waiting = 0

    @property
    def ready(self) -> int:
        """Groups of which commits could go now."""
        return len(self._ready)

    def add(self, ticket: Ticket) -> None:
        """Behind all others of its group."""
        group_id = ticket.group_id
        queue = self._queues.get(group_id)
        if queue is None:
            queue = self._queues[group_id] = GroupQueue()
        queue.waiting.append(ticket)
        self.waiting += 1
        if len(queue.waiting) == 1:
            self._advance(group_id, queue)

    def take(self) -> list[Ticket]:
        """The tickets of the next batch, at most as many as it may carry; the groups take turns."""
        taken: list[Ticket] = []
        room = MOST_OFFSETS
        for _ in range(len(self._ready)):
            if len(taken) >= MOST_COMMITS or room <= 0:
                break
            group_id = self._ready.popleft()
            queue = self._queues.get(group_id)
            if queue is None or not queue.ready:
                continue
            queue.ready = False
            found = self._take_of(queue, min(MOST_OF_A_GROUP, MOST_COMMITS - len(taken)), room)
            if found:
                queue.under_way = True
                taken += found
                room -= sum(len(ticket.commit.lines) for ticket in found)
            else:
                self._advance(group_id, queue)
        return taken

    def _take_of(self, queue: GroupQueue, most: int, room: int) -> list[Ticket]:
        """The first commits of a group that may go together: decided by the same copy."""
        found: list[Ticket] = []
        while queue.waiting and len(found) < most and room > 0:
            ticket = queue.waiting[0]
            if not ticket.written.done():
                if ticket.plain is None or not self._decide(ticket):
                    break
                if found and ticket.stored is not found[0].stored:
                    break
                found.append(ticket)
                room -= len(ticket.commit.lines)
            queue.waiting.popleft()
            self.waiting -= 1
        return found

    def completed(self, group_ids: set[str]) -> None:
        """The batch that carried commits of these groups has ended, and they have been told."""
        for group_id in group_ids:
            queue = self._queues[group_id]
            queue.under_way = False
            self._advance(group_id, queue)

    def slow(self, ticket: Ticket) -> None:
        """A ticket of a batch takes the normal way."""
        if not ticket.written.done():
            self._slow(ticket, self._queues[ticket.group_id])

    def _slow(self, ticket: Ticket, queue: GroupQueue) -> None:
        queue.slow += 1
        ticket.slow = True
        self._write_alone(ticket)

    def done(self, ticket: Ticket) -> None:
        """A ticket that took the normal way has come to its end there."""
        group_id = ticket.group_id
        queue = self._queues[group_id]
        queue.slow -= 1
        ticket.slow = False
        self._advance(group_id, queue)

    def release(self, refuse: Callable[[Ticket], None]) -> None:
        """Let all that wait take the normal way, unless `refuse` answers them."""
        for group_id, queue in list(self._queues.items()):
            for ticket in queue.waiting:
                ticket.plain = None
                refuse(ticket)
            self._advance(group_id, queue)

    def _advance(self, group_id: str, queue: GroupQueue) -> None:
        """What the first tickets of a group do next, now that nothing of the group is in a batch."""
        if queue.under_way:
            return
        while queue.waiting:
            ticket = queue.waiting[0]
            if not ticket.written.done():
                if ticket.plain is not None and self._decide(ticket):
                    self._prepare(group_id, queue)
                    return
                self._slow(ticket, queue)
            queue.waiting.popleft()
            self.waiting -= 1
        if not queue.slow:
            del self._queues[group_id]

    def _prepare(self, group_id: str, queue: GroupQueue) -> None:
        """The group's turn comes, unless the normal way has to end first, so that the order is kept."""
        if not queue.slow and not queue.ready:
            queue.ready = True
            self._ready.append(group_id)


Parameters = dict[str, Any]


def parameters(tickets: Sequence[Ticket]) -> Parameters:
    """The parameters of `lock_batch` and `write_batch`, but for the time.

    Commits are numbered as in `tickets`; those of one group are in the order in which they are to be written.
    """
    return {**_commits(tickets), **_lines(tickets), "overtaken_ms": OVERTAKEN_MS}


def _commits(tickets: Sequence[Ticket]) -> Parameters:
    commits = [ticket.commit for ticket in tickets]
    copies = [cast(Stored, ticket.stored) for ticket in tickets]
    steady = [cast(SteadyCommit, ticket.steady) for ticket in tickets]
    received = [None if ticket.receipt is None else ticket.receipt.database_ms for ticket in tickets]
    last = list(accumulate([len(commit.lines) for commit in commits]))
    return {
        "group": number_array([one.pk for one in copies]),
        "version": number_array([one.version for one in copies]),
        "version_tag": text_array([str(one.version_tag) for one in copies]),
        "coordinator": number_array([ticket.coordinator for ticket in tickets]),
        "catalogue": number_array([commit.catalogue for commit in commits]),
        "member_id": text_array([commit.member_id for commit in commits]),
        "generation_id": number_array([commit.generation_id for commit in commits]),
        "client_id": text_array([one.client_id for one in steady]),
        "principal": text_array([commit.principal for commit in commits]),
        "session_ms": number_array([one.session_ms for one in steady]),
        "received_at": number_array([None if at is None else round(at) for at in received]),
        "own_at": number_array([ticket.own_at for ticket in tickets]),
        "first": number_array([1, *[at + 1 for at in last[:-1]]]),
        "last": number_array(last),
    }


def _lines(tickets: Sequence[Ticket]) -> Parameters:
    topics: dict[str, int] = {}
    metadatas: dict[str, int] = {"": 1}
    topic: list[int] = []
    partitions: list[int] = []
    offsets: list[int] = []
    epochs: list[int] = []
    metadata: list[int] = []
    for ticket in tickets:
        lines = ticket.commit.lines
        for name, count in lines.topics:
            topic += [topics.setdefault(name, len(topics) + 1)] * count
        partitions += lines.partitions
        offsets += lines.offsets
        epochs += lines.leader_epochs
        if lines.metadata is None:
            metadata += [1] * len(lines)
        else:
            metadata += [metadatas.setdefault(text, len(metadatas) + 1) for text in lines.metadata]
    return {
        "topic": Int4Array.of(topic),
        "topics": text_array(topics),
        "partition": Int4Array.of(partitions),
        "committed_offset": Int8Array.of(offsets),
        "leader_epoch": Int4Array.of(epochs),
        "metadata": Int4Array.of(metadata),
        "metadatas": text_array(metadatas),
        "latest": _latest(tickets, len(partitions)),
    }


def _latest(tickets: Sequence[Ticket], count: int) -> str | None:
    """Whether each line is the last one of the batch about its partition; None: all are."""
    if len({ticket.commit.group_id for ticket in tickets}) == len(tickets):
        return None
    newest: dict[tuple[str, str, int], int] = {}
    at = 0
    for ticket in tickets:
        lines = ticket.commit.lines
        names = (name for name, number in lines.topics for _ in range(number))
        for name, partition in zip(names, lines.partitions, strict=True):
            newest[ticket.commit.group_id, name, partition] = at
            at += 1
    latest = ["f"] * count
    for at in newest.values():
        latest[at] = "t"
    return number_array(latest)


Q = queries("offsets")


class NotWritten(Exception):
    """The batch wrote nothing: one of its requests is too old, or a lock was not available."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a batch wrote, at `now`: the tickets at these positions."""

    now: Millis
    accepted: frozenset[int]


class BatchStore:
    """Writes batches."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db

    async def write(self, tickets: Sequence[Ticket]) -> Outcome:
        """Write the offsets of commits in one transaction, and extend the sessions of their members.

        Those that are not among the accepted have written nothing. Raises NotWritten; ProtocolError
        COORDINATOR_NOT_AVAILABLE: Postgres is not available, and the outcome may be unknown.
        """
        receipts = [ticket.receipt for ticket in tickets if ticket.receipt is not None]
        oldest = min(receipts, key=lambda receipt: receipt.at, default=None)
        hastiest = min(receipts, key=lambda receipt: receipt.at + receipt.patience_ms / 1000, default=None)

        async def work(connection: Connection) -> Outcome:
            sent = {**parameters(tickets), "override": self._db.clock.override_ms}
            try:
                await connection.execute(Q.lock_batch.encode(), {"group": sent["group"]})
                now, database_ms, accepted = await self._db.one(connection, Q.write_batch, sent)
            except pg.LockNotAvailable as error:
                raise NotWritten from error
            self._db.note_clock(connection, database_ms)
            if self._db.refusal(connection, oldest) or self._db.refusal(connection, hastiest):
                raise NotWritten  # each of them is judged by itself where it goes next
            return Outcome(now, frozenset(accepted))

        return await self._db.transaction(work, receipt=lambda: oldest)


log = structlog.get_logger(__name__)

LARGEST = 1_000
"""Offsets of a commit that may go with a batch: a larger one would hold up the others of its batch."""
MOST_WAITING = 10_000
"""Commits that wait. Beyond that they are answered COORDINATOR_NOT_AVAILABLE with `Retry-After`: the normal way takes
more of Postgres, so it would not help."""
PAUSE_SECONDS = 1.0
"""How long commits take the normal way after a failed batch."""
PATIENCE_SECONDS = 1.0
"""Commits that have waited this long when a batch fails are refused with it, rather than made to wait again."""


_LANE, _OFF, _KIND, _UNKNOWN, _CLOSED, _GROUP, _FENCE, _FAILED, _REFUSED = (
    metrics.COMMITS.labels(way)
    for way in ("lane", "off", "kind", "unknown", "closed", "group", "fence", "failed", "refused")
)


class CommitLane:
    """Writes steady commits of all groups together; with `commit.lane` off all take the normal way."""

    def __init__(self, runtime: Runtime) -> None:
        self._groups = runtime.get(GroupService)
        self._store = runtime.get(BatchStore)
        self._acknowledged = runtime.get(AcknowledgedCommits)
        self._is_on = runtime.config.bool("commit.lane")
        self._retry_after_ms = runtime.config.int("http.retry.after.ms")
        self._tickets = Tickets(self._decide, self._write_alone)
        self._batches = Batches(lambda: self._tickets.ready, self._prepare)
        self._closed_until = 0.0
        metrics.ADMISSION_WAITING.labels("commits").set_function(lambda: self._tickets.waiting)
        self._alone: set[asyncio.Task[Any]] = set()
        partitions = runtime.config.int("offsets.topic.num.partitions")
        self._coordinator = lru_cache(runtime.config.int("cache.max.groups"))(
            partial(partition_of, partitions=partitions)
        )
        runtime.on_stop(self._batches.close)

    def write(self, group_id: str, plain: Commit | None, alone: Alone) -> asyncio.Future[Any]:
        """Write what a commit stores: a future of the reply.

        `plain`: None if it cannot go with a batch. `alone` writes it the normal way; what it returns is the reply then.
        Commits of a group are written in order of arrival: `alone` is called when those before it are written. The
        future may raise ProtocolError COORDINATOR_NOT_AVAILABLE: Postgres is not available, and the outcome may be
        unknown. Raises the same if too many commits wait.
        """
        if not self._is_on:
            _OFF.inc()
            return asyncio.get_running_loop().create_task(alone())
        return self._enqueue(group_id, plain, alone).written

    def _write_alone(self, ticket: Ticket) -> None:
        task = asyncio.get_running_loop().create_task(ticket.alone(), context=ticket.context)
        self._alone.add(task)
        task.add_done_callback(partial(self._ended, ticket))

    def _ended(self, ticket: Ticket, task: asyncio.Task[Any]) -> None:
        """A commit was written the normal way, or was not: what came after it may be written."""
        self._alone.discard(task)
        error = None if task.cancelled() else task.exception()
        if not ticket.written.done():
            if task.cancelled():
                ticket.written.cancel()
            elif error is not None:
                ticket.written.set_exception(error)
            else:
                ticket.written.set_result(task.result())
        if ticket.slow:
            self._tickets.done(ticket)
            self._batches.call()

    def _is_full(self) -> bool:
        return self._tickets.waiting >= MOST_WAITING

    def _enqueue(self, group_id: str, plain: Commit | None, alone: Alone) -> Ticket:
        if self._is_full():
            _REFUSED.inc()
            detail = f"{MOST_WAITING} commits wait to be written; the same request may succeed later"
            raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, detail, retry_after_ms=self._retry_after_ms)
        receipt = current.receipt()
        if plain is None or not 0 < len(plain.lines) <= LARGEST or (receipt is not None and receipt.extra_ms):
            _KIND.inc()
            plain = None
        ticket = Ticket(group_id, plain, alone, receipt, time.monotonic(), self._coordinator(group_id))
        self._tickets.add(ticket)
        self._batches.call()
        return ticket

    def _decide(self, ticket: Ticket) -> bool:
        """Whether a commit may go with a batch, by the copy of its group."""
        stored = self._groups.copy_of(ticket.group_id)
        if stored is not None and stored is ticket.stored:
            return True
        if stored is None or stored.group is None:
            _UNKNOWN.inc()
            return False
        if ticket.at < self._closed_until:
            _CLOSED.inc()
            return False
        commit = ticket.commit
        identity = commit.member_id, commit.group_instance_id, commit.generation_id
        steady = steady_commit(stored.group, *identity, knows_epochs=commit.knows_epochs)
        if steady is None:
            _GROUP.inc()
            return False
        ticket.stored, ticket.steady = stored, steady
        ticket.own_at = self._acknowledged.last_at(ticket.group_id)
        return True

    def _prepare(self) -> Coroutine[Any, Any, None] | None:
        tickets = self._tickets.take()
        return self._write_batch(tickets) if tickets else None

    async def _write_batch(self, tickets: list[Ticket]) -> None:
        # Groups are locked in the order of their keys; their commits keep their order.
        tickets.sort(key=_key)
        metrics.BATCH_COMMITS.observe(len(tickets))
        try:
            self._answer(tickets, await self._store.write(tickets))
        except ProtocolError as error:
            self._fail(tickets, error)
        except Exception as error:
            if not isinstance(error, NotWritten):
                log.exception("batch_failed", commits=len(tickets))
            self._divert(tickets, _FAILED)
        finally:
            self._tickets.completed({ticket.group_id for ticket in tickets})

    def _answer(self, tickets: Sequence[Ticket], outcome: Outcome) -> None:
        _LANE.inc(len(outcome.accepted))
        for number, ticket in enumerate(tickets, 1):
            if number not in outcome.accepted:
                self._divert([ticket], _FENCE)
            elif not ticket.written.done():
                session_ms = ticket.steady.session_ms if ticket.steady is not None else None
                deadline = None if session_ms is None else outcome.now + session_ms
                self._acknowledged.note(ticket.commit, outcome.now)
                ticket.written.set_result(OffsetCommitReply(Error.NONE, deadline))

    def _divert(self, tickets: Sequence[Ticket], reason: Counter) -> None:
        """They wrote nothing."""
        reason.inc(len(tickets))
        for ticket in tickets:
            self._tickets.slow(ticket)

    def _fail(self, tickets: Sequence[Ticket], error: ProtocolError) -> None:
        """Postgres is not available. What this batch wrote is unknown; the others wrote nothing."""
        now = time.monotonic()
        self._closed_until = now + PAUSE_SECONDS

        def refuse(ticket: Ticket) -> None:
            if not ticket.written.done():
                ticket.written.set_exception(copy(error))  # each adds its frames to the traceback

        for ticket in tickets:
            refuse(ticket)
        self._tickets.release(lambda ticket: refuse(ticket) if now - ticket.at >= PATIENCE_SECONDS else None)


def _key(ticket: Ticket) -> int:
    stored = ticket.stored
    assert stored is not None
    assert stored.pk is not None
    return stored.pk


class OffsetService:
    """Commits and fetches, for one process.

    Methods may raise ProtocolError COORDINATOR_NOT_AVAILABLE; errors of the protocol are replies.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._groups = runtime.get(GroupService)
        self._topics = runtime.get(TopicService)
        self._store = runtime.get(OffsetStore)
        self._lane = runtime.get(CommitLane)
        self._acknowledged = runtime.get(AcknowledgedCommits)
        self._fetches = runtime.get(FetchLane)
        self._transactions = runtime.get(TransactionStore)
        self.metadata_limit = runtime.config.int("offset.metadata.max.bytes")

    def write(self, commit: Commit) -> asyncio.Future[OffsetCommitReply | None]:
        """Write a commit: a future of its reply. Whether the lane does it is decided here.

        If the partition filter has left nothing, the coordinator is not asked at all (offsets.md 2.2).
        None, and nothing was written: ids of topics may mean something else by now, so they must be looked up again.
        Raises ProtocolError NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        if not commit.is_for_group:
            filtered: asyncio.Future[OffsetCommitReply | None] = asyncio.get_running_loop().create_future()
            filtered.set_result(OffsetCommitReply(Error.NONE))
            return filtered
        self._groups.check_active(commit.group_id)
        batched = commit.retention_time_ms == NO_RETENTION
        return self._lane.write(commit.group_id, commit if batched else None, partial(self._write_alone, commit))

    async def _write_alone(self, commit: Commit) -> OffsetCommitReply | None:
        """The normal way: in the transaction in which the group decides whether this caller may commit."""
        if commit.catalogue is not None and (await self._topics.current()).version != commit.catalogue:
            return None
        size = off_loop.PER_OFFSET * len(commit.lines)

        receipt, written_at = current.receipt(), 0

        async def write(locked: LockedGroup) -> OffsetCommitReply:
            nonlocal written_at
            assert isinstance(locked.reply, CommitReply)
            written_at = locked.now
            since = overtaken_before(locked.now, self._db.age_ms(locked.connection, receipt))
            if since is not None:
                since = max(since, self._acknowledged.last_at(commit.group_id))
                later = await self._store.committed_since(locked, commit.lines, since)
                if later is not None:
                    return overtaken(commit.group_id, locked.now - later)
            self._acknowledged.wrote(commit.group_id, locked.now)
            records = await off_loop.run_within(locked.connection, size, records_of, commit, locked.now)
            await self._store.write(locked, records, provenance(commit, locked, ChangeKind.COMMIT))
            return OffsetCommitReply(Error.NONE, session_deadline=locked.reply.session_deadline)

        reply = reply_of(await self._groups.execute(await off_loop.run(size, membership_half, commit), write))
        if reply.error is Error.NONE:
            self._acknowledged.note(commit, written_at)
        return reply

    def fetch(self, fetch: OffsetFetch) -> Awaitable[OffsetFetchReply]:
        """OffsetFetch: a read of what is committed. Partitions need not exist; those without an offset are absent from
        the reply (offsets.md 5).

        With `require_stable` it waits for commits of the group that are in progress, and offsets with an open
        transaction are UNSTABLE_OFFSET_COMMIT.
        Raises ProtocolError, also when it is awaited: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH or ILLEGAL_GENERATION for a
        member of a consumer group that is not who it claims to be.
        """
        self._groups.check_active(fetch.group_id)
        wanted = None
        if fetch.topics is not None:
            wanted = [(name, p) for name, partitions in fetch.topics if name not in fetch.denied for p in partitions]
            if self._fetches.takes(fetch, wanted):
                return Later(self._fetches.read(fetch, wanted), partial(_fetched, fetch))
        return self._fetch_alone(fetch, wanted)

    async def _fetch_alone(self, fetch: OffsetFetch, wanted: Sequence[TopicPartition] | None) -> OffsetFetchReply:
        if fetch.require_stable:
            found = await self._db.transaction(
                lambda connection: self._fetch_stable(connection, fetch, wanted), key=fetch.group_id
            )
        else:
            await self._groups.check_fetch(fetch.group_id, fetch.member_id, fetch.member_epoch)
            found = [] if wanted == [] else await self._store.fetch(fetch.group_id, wanted)
        return _fetched(fetch, found)

    async def _fetch_stable(
        self, connection: Connection, fetch: OffsetFetch, wanted: Sequence[TopicPartition] | None
    ) -> list[FetchedOffset]:
        """A write that writes nothing: under the group's lock it sees everything written before it."""
        group = await self._groups.lock(connection, fetch.group_id)
        if isinstance(group, ConsumerGroup):
            check_fetch(group, fetch.member_id, fetch.member_epoch)
        offsets, pending = await self._transactions.fetch(connection, fetch.group_id, wanted)
        return stable(offsets, pending, wanted)


def _fetched(fetch: OffsetFetch, found: Sequence[FetchedOffset]) -> OffsetFetchReply:
    if not fetch.denied:
        return OffsetFetchReply(Error.NONE, tuple(found))
    hidden = [
        FetchedOffset(topic, partition, error=Error.TOPIC_AUTHORIZATION_FAILED)
        for topic, partitions in fetch.topics or ()
        if topic in fetch.denied
        for partition in partitions
    ]
    return OffsetFetchReply(Error.NONE, (*(offset for offset in found if offset.topic not in fetch.denied), *hidden))


def reply_of(outcome: OffsetCommitReply | CommitReply) -> OffsetCommitReply:
    """The reply to a commit: that of what wrote it, or the group's refusal."""
    if isinstance(outcome, OffsetCommitReply):
        return outcome
    return OffsetCommitReply(outcome.error, detail=outcome.detail)


def provenance(
    commit: Commit, locked: LockedGroup, kind: ChangeKind, transactional_id: str | None = None
) -> Provenance:
    """The origin of a commit's offsets, for the journal."""
    member = locked.group.members.get(commit.member_id)
    return Provenance(
        kind,
        principal=commit.principal,
        member_id=commit.member_id,
        generation_id=commit.generation_id,
        client_id="" if member is None else member.client_id,
        transactional_id=transactional_id,
    )
