"""The flights of a lane, and the commits that wait for one, in order of arrival within each group."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from groups.core.commit_lane import SteadyCommit
from groups.store.stored import Stored
from kcoord.database.request_age import Receipt
from offsets.core.commit import Commit
from offsets.core.types import Millis

FLIGHTS = 2
"""At once: one is prepared and answered while Postgres works on the other."""

MOST_COMMITS = 256
"""Of one flight."""
MOST_OFFSETS = 2_048
"""Of one flight, so that it takes some tens of milliseconds at most; it exceeds them by one commit."""
MOST_OF_A_GROUP = 64
"""Commits of one group in one flight: a group with thousands of members leaves room for others."""


Alone = Callable[[], Coroutine[Any, Any, Any]]
"""Writes a commit the normal way; returns the reply."""


@dataclass(slots=True, eq=False)
class Booking:
    """One commit. `written`: the reply. `alone`: what writes it, if it takes the normal way, in `context`.

    `plain` None: it cannot fly. `at`: since when it waits (s). `coordinator`: the coordinator partition of its group.
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
        """Of a booking that may fly."""
        assert self.plain is not None
        return self.plain


@dataclass(slots=True, eq=False)
class GroupQueue:
    """The bookings of one group. `flying`: some of them are on a flight. `slow`: how many take the normal way now."""

    waiting: deque[Booking] = field(default_factory=deque)
    flying: bool = False
    slow: int = 0
    ready: bool = False


class Bookings:
    """The queues of all groups. Commits of one group are written in the order of arrival, whichever way they take.

    `decide` sets what a flight needs to know of a booking, and says whether it may fly now. `write_alone`: begins to
    write one the normal way, and calls `done` at its end.
    """

    def __init__(self, decide: Callable[[Booking], bool], write_alone: Callable[[Booking], None]) -> None:
        self._decide = decide
        self._write_alone = write_alone
        self._queues: dict[str, GroupQueue] = {}
        self._ready: deque[str] = deque()
        self.waiting = 0

    def __bool__(self) -> bool:
        """Some commit could fly now."""
        return bool(self._ready)

    def add(self, booking: Booking) -> None:
        """Behind all others of its group."""
        group_id = booking.group_id
        queue = self._queues.get(group_id)
        if queue is None:
            queue = self._queues[group_id] = GroupQueue()
        queue.waiting.append(booking)
        self.waiting += 1
        if len(queue.waiting) == 1:
            self._advance(group_id, queue)

    def take(self) -> list[Booking]:
        """The bookings of the next flight, at most as many as it may carry; the groups take turns."""
        taken: list[Booking] = []
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
                queue.flying = True
                taken += found
                room -= sum(len(booking.commit.lines) for booking in found)
            else:
                self._advance(group_id, queue)
        return taken

    def _take_of(self, queue: GroupQueue, most: int, room: int) -> list[Booking]:
        """The first commits of a group that may fly together: decided by the same copy."""
        found: list[Booking] = []
        while queue.waiting and len(found) < most and room > 0:
            booking = queue.waiting[0]
            if not booking.written.done():
                if booking.plain is None or not self._decide(booking):
                    break
                if found and booking.stored is not found[0].stored:
                    break
                found.append(booking)
                room -= len(booking.commit.lines)
            queue.waiting.popleft()
            self.waiting -= 1
        return found

    def landed(self, group_ids: set[str]) -> None:
        """The flight that carried commits of these groups has ended, and they have been told."""
        for group_id in group_ids:
            queue = self._queues[group_id]
            queue.flying = False
            self._advance(group_id, queue)

    def slow(self, booking: Booking) -> None:
        """A booking of a flight takes the normal way."""
        if not booking.written.done():
            self._slow(booking, self._queues[booking.group_id])

    def _slow(self, booking: Booking, queue: GroupQueue) -> None:
        queue.slow += 1
        booking.slow = True
        self._write_alone(booking)

    def done(self, booking: Booking) -> None:
        """A booking that took the normal way has come to its end there."""
        group_id = booking.group_id
        queue = self._queues[group_id]
        queue.slow -= 1
        booking.slow = False
        self._advance(group_id, queue)

    def release(self, refuse: Callable[[Booking], None]) -> None:
        """Let all that wait take the normal way, unless `refuse` answers them."""
        for group_id, queue in list(self._queues.items()):
            for booking in queue.waiting:
                booking.plain = None
                refuse(booking)
            self._advance(group_id, queue)

    def _advance(self, group_id: str, queue: GroupQueue) -> None:
        """What the first bookings of a group do next, now that nothing of the group is on a flight."""
        if queue.flying:
            return
        while queue.waiting:
            booking = queue.waiting[0]
            if not booking.written.done():
                if booking.plain is not None and self._decide(booking):
                    self._prepare(group_id, queue)
                    return
                self._slow(booking, queue)
            queue.waiting.popleft()
            self.waiting -= 1
        if not queue.slow:
            del self._queues[group_id]

    def _prepare(self, group_id: str, queue: GroupQueue) -> None:
        """The group's turn comes, unless the normal way has to end first, so that the order is kept."""
        if not queue.slow and not queue.ready:
            queue.ready = True
            self._ready.append(group_id)


class Flights:
    """Parameters: `waits`, whether anything waits; `prepare`, the next flight, None if nothing can go now."""

    def __init__(self, waits: Callable[[], bool], prepare: Callable[[], Coroutine[Any, Any, None] | None]) -> None:
        self._waits = waits
        self._prepare = prepare
        self._running: set[asyncio.Task[None]] = set()
        self._is_called = False

    def call(self) -> None:
        """Let a flight take off, with everything that arrives in this turn of the loop."""
        if self._waits() and not self._is_called and len(self._running) < FLIGHTS:
            self._is_called = True
            asyncio.get_running_loop().call_soon(self._take_off)

    def _take_off(self) -> None:
        self._is_called = False
        flight = self._prepare() if len(self._running) < FLIGHTS else None
        if flight is None:
            return
        # A context of its own: it works for others after the request that called it has ended.
        task = asyncio.get_running_loop().create_task(flight, context=contextvars.Context())
        self._running.add(task)
        task.add_done_callback(self._ended)
        self.call()

    def _ended(self, flight: asyncio.Task[None]) -> None:
        self._running.discard(flight)
        self.call()

    async def close(self) -> None:
        """Wait until all flights have ended."""
        while self._running:
            await asyncio.gather(*self._running, return_exceptions=True)
