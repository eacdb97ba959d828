"""The commit lane of a process: what arrives while a flight is under way goes with the next one.

A flight is one transaction with the commits of many groups. It takes those that `decide` would accept without changing
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
from groups.core.coordinator import partition_of
from groups.engine.service import GroupService
from kcoord import metrics
from kcoord.database import request_age
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.acknowledged import AcknowledgedCommits
from offsets.core.commit import Commit
from offsets.core.types import OffsetCommitReply
from offsets.lane.bookings import Alone, Booking, Bookings, Flights
from offsets.lane.store import FlightStore, Flown, NotWritten

log = structlog.get_logger(__name__)

LARGEST = 1_000
"""Offsets of a commit that may fly: a larger one would hold up the others of its flight."""
MOST_WAITING = 10_000
"""Commits that wait. Beyond that they are answered COORDINATOR_NOT_AVAILABLE with `Retry-After`: the normal way takes
more of Postgres, so it would not help."""
PAUSE_SECONDS = 1.0
"""How long commits take the normal way after a failed flight."""
PATIENCE_SECONDS = 1.0
"""Commits that have waited this long when a flight fails are refused with it, rather than made to wait again."""


_LANE, _OFF, _KIND, _UNKNOWN, _CLOSED, _GROUP, _FENCE, _FAILED, _REFUSED = (
    metrics.COMMITS.labels(way)
    for way in ("lane", "off", "kind", "unknown", "closed", "group", "fence", "failed", "refused")
)


class CommitLane:
    """Writes steady commits of all groups together; with `commit.lane` off all take the normal way."""

    def __init__(self, runtime: Runtime) -> None:
        self._groups = runtime.get(GroupService)
        self._store = runtime.get(FlightStore)
        self._acknowledged = runtime.get(AcknowledgedCommits)
        self._is_on = runtime.config.bool("commit.lane")
        self._retry_after_ms = runtime.config.int("http.retry.after.ms")
        self._bookings = Bookings(self._decide, self._write_alone)
        self._flights = Flights(lambda: bool(self._bookings), self._prepare)
        self._closed_until = 0.0
        metrics.ADMISSION_WAITING.labels("commits").set_function(lambda: self._bookings.waiting)
        self._alone: set[asyncio.Task[Any]] = set()
        partitions = runtime.config.int("offsets.topic.num.partitions")
        self._coordinator = lru_cache(runtime.config.int("cache.max.groups"))(
            partial(partition_of, partitions=partitions)
        )
        runtime.on_stop(self._flights.close)

    def write(self, group_id: str, plain: Commit | None, alone: Alone) -> asyncio.Future[Any]:
        """Write what a commit stores: a future of the reply.

        `plain`: None if it cannot fly. `alone` writes it the normal way; what it returns is the reply then. Commits of
        a group are written in the order of arrival: `alone` is called when what came before is written. The future may
        raise ProtocolError COORDINATOR_NOT_AVAILABLE: Postgres is not available, and the outcome may be unknown. Raises
        the same if too many commits wait.
        """
        if not self._is_on:
            _OFF.inc()
            return asyncio.get_running_loop().create_task(alone())
        return self._book(group_id, plain, alone).written

    def _write_alone(self, booking: Booking) -> None:
        task = asyncio.get_running_loop().create_task(booking.alone(), context=booking.context)
        self._alone.add(task)
        task.add_done_callback(partial(self._ended, booking))

    def _ended(self, booking: Booking, task: asyncio.Task[Any]) -> None:
        """A commit was written the normal way, or was not: what came after it may be written."""
        self._alone.discard(task)
        error = None if task.cancelled() else task.exception()
        if not booking.written.done():
            if task.cancelled():
                booking.written.cancel()
            elif error is not None:
                booking.written.set_exception(error)
            else:
                booking.written.set_result(task.result())
        if booking.slow:
            self._bookings.done(booking)
            self._flights.call()

    def _is_full(self) -> bool:
        return self._bookings.waiting >= MOST_WAITING

    def _book(self, group_id: str, plain: Commit | None, alone: Alone) -> Booking:
        if self._is_full():
            _REFUSED.inc()
            detail = f"{MOST_WAITING} commits wait to be written; the same request may succeed later"
            raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, detail, retry_after_ms=self._retry_after_ms)
        receipt = request_age.current()
        if plain is None or not 0 < len(plain.lines) <= LARGEST or (receipt is not None and receipt.extra_ms):
            _KIND.inc()
            plain = None
        booking = Booking(group_id, plain, alone, receipt, time.monotonic(), self._coordinator(group_id))
        self._bookings.add(booking)
        self._flights.call()
        return booking

    def _decide(self, booking: Booking) -> bool:
        """Whether a commit may fly, going by the copy of its group."""
        stored = self._groups.copy_of(booking.group_id)
        if stored is not None and stored is booking.stored:
            return True
        if stored is None or stored.group is None:
            _UNKNOWN.inc()
            return False
        if booking.at < self._closed_until:
            _CLOSED.inc()
            return False
        commit = booking.commit
        steady = steady_commit(stored.group, commit.member_id, commit.group_instance_id, commit.generation_id)
        if steady is None:
            _GROUP.inc()
            return False
        booking.stored, booking.steady = stored, steady
        booking.own_at = self._acknowledged.last_at(booking.group_id)
        return True

    def _prepare(self) -> Coroutine[Any, Any, None] | None:
        bookings = self._bookings.take()
        return self._fly(bookings) if bookings else None

    async def _fly(self, bookings: list[Booking]) -> None:
        # Groups are locked in the order of their keys; their commits keep their order.
        bookings.sort(key=_key)
        metrics.FLIGHT_COMMITS.observe(len(bookings))
        try:
            self._land(bookings, await self._store.write(bookings))
        except ProtocolError as error:
            self._fail(bookings, error)
        except Exception as error:
            if not isinstance(error, NotWritten):
                log.exception("flight_failed", commits=len(bookings))
            self._divert(bookings, _FAILED)
        finally:
            self._bookings.landed({booking.group_id for booking in bookings})

    def _land(self, bookings: Sequence[Booking], flown: Flown) -> None:
        _LANE.inc(len(flown.accepted))
        for number, booking in enumerate(bookings, 1):
            if number not in flown.accepted:
                self._divert([booking], _FENCE)
            elif not booking.written.done():
                session_ms = booking.steady.session_ms if booking.steady is not None else None
                deadline = None if session_ms is None else flown.now + session_ms
                self._acknowledged.note(booking.commit, flown.now)
                booking.written.set_result(OffsetCommitReply(Error.NONE, deadline))

    def _divert(self, bookings: Sequence[Booking], reason: Counter) -> None:
        """They wrote nothing."""
        reason.inc(len(bookings))
        for booking in bookings:
            self._bookings.slow(booking)

    def _fail(self, bookings: Sequence[Booking], error: ProtocolError) -> None:
        """Postgres is not available. What this flight wrote is unknown; the others wrote nothing."""
        now = time.monotonic()
        self._closed_until = now + PAUSE_SECONDS

        def refuse(booking: Booking) -> None:
            if not booking.written.done():
                booking.written.set_exception(copy(error))  # each adds its frames to the traceback

        for booking in bookings:
            refuse(booking)
        self._bookings.release(lambda booking: refuse(booking) if now - booking.at >= PATIENCE_SECONDS else None)


def _key(booking: Booking) -> int:
    stored = booking.stored
    assert stored is not None
    assert stored.pk is not None
    return stored.pk
