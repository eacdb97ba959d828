"""The commit lane of a process: what arrives while a batch is under way goes with the next one.

A batch is one transaction with the commits of many groups. It takes those that `decide` would accept without changing
their group, going by the copy in memory, and writes those whose copy turns out to be current under the lock. Everything
else takes the normal way, the mailbox of its group; that is no error.

Source: architecture.md 4, "Fast lanes".
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from copy import copy
from functools import lru_cache, partial
from typing import Any

import structlog
from prometheus_client import Counter

from groups.core.commit_lane import steady_commit
from groups.core.model.group import partition_of
from groups.engine.service import GroupService
from kcoord import metrics
from kcoord.database import request_age
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.acknowledged import AcknowledgedCommits
from offsets.core.commit import Commit
from offsets.core.types import OffsetCommitReply
from offsets.lane.store import BatchStore, NotWritten, Outcome
from offsets.lane.tickets import Alone, Batches, Ticket, Tickets

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
        self._batches = Batches(lambda: bool(self._tickets), self._prepare)
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
        return self._book(group_id, plain, alone).written

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

    def _book(self, group_id: str, plain: Commit | None, alone: Alone) -> Ticket:
        if self._is_full():
            _REFUSED.inc()
            detail = f"{MOST_WAITING} commits wait to be written; the same request may succeed later"
            raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, detail, retry_after_ms=self._retry_after_ms)
        receipt = request_age.current()
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
        steady = steady_commit(stored.group, commit.member_id, commit.group_instance_id, commit.generation_id)
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
            self._tickets.landed({ticket.group_id for ticket in tickets})

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
