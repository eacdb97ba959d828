"""The batches of a lane, and the commits that wait for one, in order of arrival within each group."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from groups.core.commit_lane import SteadyCommit
from groups.store.rows import Stored
from kcoord.database.request_age import Receipt
from offsets.core.commit import Commit
from offsets.core.types import Millis

BATCHES = 2
"""At once: one is prepared and answered while Postgres works on the other."""

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

    def __bool__(self) -> bool:
        """Some commit could go now."""
        return bool(self._ready)

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

    def landed(self, group_ids: set[str]) -> None:
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


class Batches:
    """Parameters: `waits`, whether anything waits; `prepare`, the next batch, None if nothing can go now."""

    def __init__(self, waits: Callable[[], bool], prepare: Callable[[], Coroutine[Any, Any, None] | None]) -> None:
        self._waits = waits
        self._prepare = prepare
        self._running: set[asyncio.Task[None]] = set()
        self._is_called = False

    def call(self) -> None:
        """Let a batch begin, with everything that arrives in this turn of the loop."""
        if self._waits() and not self._is_called and len(self._running) < BATCHES:
            self._is_called = True
            asyncio.get_running_loop().call_soon(self._take_off)

    def _take_off(self) -> None:
        self._is_called = False
        batch = self._prepare() if len(self._running) < BATCHES else None
        if batch is None:
            return
        # A context of its own: it works for others after the request that called it has ended.
        task = asyncio.get_running_loop().create_task(batch, context=contextvars.Context())
        self._running.add(task)
        task.add_done_callback(self._ended)
        self.call()

    def _ended(self, batch: asyncio.Task[None]) -> None:
        self._running.discard(batch)
        self.call()

    async def close(self) -> None:
        """Wait until all batches have ended."""
        while self._running:
            await asyncio.gather(*self._running, return_exceptions=True)
