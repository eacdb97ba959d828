"""Requests that arrive at the same instant are let in a few at a time, so that the event loop serves others between.

A storm of joins is thousands of requests that can be read at once. Started at once they would all be decoded, decided
and answered before the loop looks at its sockets again, and a heartbeat that arrives meanwhile would wait for all of
them. Calls that members make all the time do not pass here. Members of a storm that are already talking to this server
take turns with those that have just come, so that a member's second request does not wait for the first of all others.

Big requests, with large bodies or large answers, moreover take one of a few places while they are worked on: they share
the interpreter with everybody else, and each holds its body, its answer and often a connection to Postgres. Small
requests never wait for a place. Requests of Kafka's protocol are let in by the same queues, and take places, in number
and in bytes, while they are answered. How many wait in each queue is in the metrics.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from kcoord import metrics
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError

AT_ONCE = 4
"""How many requests are let in each time the loop goes round."""
HOT_AT_ONCE = 16
"""The same of tasks, of hot operations that are not quick, and of requests that are for no operation."""
LEAST_PLACES = 2
"""Big requests at a time on a machine with a single core: one of them usually waits for Postgres."""


IN_A_ROW = 16
"""Requests of one connection that are answered in a row, before others have their turn."""
IN_ALL = 256
"""The same of all connections, where each has one at least: some tens of milliseconds."""


def in_a_row(connections: int) -> int:
    """How many requests of a connection may be answered in a row while so many connections are open.

    All of them may have sent several: the loop must not be away for so long that the process takes itself for frozen.
    """
    return min(IN_A_ROW, max(1, IN_ALL // max(connections, 1)))


def places_of(setting: int) -> int:
    """How many big requests are worked on at a time; `setting` 0: as many as this process may use cores."""
    if setting:
        return setting
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(LEAST_PLACES, cores)


T = TypeVar("T")


class TwoLines(Generic[T]):
    """Two queues that take turns while somebody waits in both; each in order of arrival."""

    def __init__(self) -> None:
        self._lines: tuple[deque[T], deque[T]] = deque(), deque()
        self._turn = 0

    def __len__(self) -> int:
        return len(self._lines[0]) + len(self._lines[1])

    def append(self, item: T, line: int) -> None:
        """`item` comes last in `line`, 0 or 1."""
        self._lines[line].append(item)

    def popleft(self) -> T:
        """The next one. Raises IndexError if nobody waits."""
        self._turn = 1 - self._turn
        return (self._lines[self._turn] or self._lines[1 - self._turn]).popleft()


class Rounds:
    """Begins a few of what waits each time the loop goes round, in order of arrival.

    What is thousands of requests that are read at once would otherwise take all their first steps before the loop looks
    at its sockets again. Connections that were answered before take turns with others; there are never more than
    connections, as each has one request at a time. Parameters: `at_once`, how many are begun each round; `queue`: its
    name in the metrics.
    """

    def __init__(self, at_once: int, queue: str = "") -> None:
        self._at_once = at_once
        self._waiting: TwoLines[Callable[[], object]] = TwoLines()
        if queue:
            metrics.ADMISSION_WAITING.labels(queue).set_function(lambda: len(self._waiting))
        self._begun = 0
        """Since the loop last went round."""
        self._goes_round = False

    def __len__(self) -> int:
        return len(self._waiting)

    def is_free(self) -> bool:
        """Something may begin now, and is counted."""
        if self._waiting or self._begun >= self._at_once:
            return False
        self._begun += 1
        self._go_round()
        return True

    def later(self, begin: Callable[[], object], *, again: bool = False) -> None:
        """Call `begin` when it is its turn. `again`: not the first request of its connection."""
        self._waiting.append(begin, again)
        self._go_round()

    def _go_round(self) -> None:
        if not self._goes_round:
            self._goes_round = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self._goes_round = False
        self._begun = min(len(self._waiting), self._at_once)
        if self._begun:
            self._go_round()  # first: one that fails must not stop the others
        for _ in range(self._begun):
            self._waiting.popleft()()


@dataclass(slots=True, eq=False)
class Turn:
    """Who waits in `Places`. `begin` is called with the place; False: there is nobody any more who needs it."""

    holder: Hashable
    begin: Callable[[], bool]
    weight: int


class Places:
    """Places that are given to holders in turn: one that wants many does not make others wait for all of them.

    Each holder's own requests are in order of arrival. A request takes as many places as its weight, e.g. bytes; while
    the next one waits for enough of them, nobody overtakes it. Parameters: `count` of places, `queue`: its name in the
    metrics.
    """

    def __init__(self, count: int, queue: str = "") -> None:
        self._free = count
        self._lines: dict[Hashable, deque[Turn]] = {}
        """Of those that wait; whose turn is next comes first."""
        self.waiting = 0
        if queue:
            metrics.ADMISSION_WAITING.labels(queue).set_function(lambda: self.waiting)
            metrics.ADMISSION_HELD.labels(queue).set_function(lambda: count - self._free)

    def locked(self) -> bool:
        """No place is free, or others are before the caller."""
        return self._free <= 0 or self.waiting > 0

    def has_room(self, holder: Hashable, most: int) -> bool:
        """Whether one more request of the holder may wait, of `most` that may wait together.

        The last quarter is for holders that have less than an equal share: there is room for one that has just come.
        """
        if self.waiting >= most:
            return False
        own = len(self._lines.get(holder, ()))
        holders = len(self._lines) + (holder not in self._lines)
        return self.waiting < most - most // 4 or own < most // max(2, holders)

    def take(self, holder: Hashable, begin: Callable[[], bool], weight: int = 1) -> Turn | None:
        """Take places now: None; or, if they are not free, when it is the turn of the holder: see `Turn`."""
        if not self.waiting and weight <= self._free:
            self._free -= weight
            return None
        turn = Turn(holder, begin, weight)
        self._lines.setdefault(holder, deque()).append(turn)
        self.waiting += 1
        return turn

    def give(self, weight: int = 1) -> None:
        """Give places back, to the first of the holder whose turn it is."""
        self._free += weight
        while self._lines:
            holder, line = next(iter(self._lines.items()))
            turn = line[0]
            if turn.weight > self._free:
                return
            del self._lines[holder]
            line.popleft()
            if line:
                self._lines[holder] = line  # behind all others
            self.waiting -= 1
            self._free -= turn.weight
            if not turn.begin():
                self._free += turn.weight

    def leave(self, turn: Turn) -> None:
        """Do not wait any longer."""
        line = self._lines.get(turn.holder)
        if line is not None and turn in line:
            line.remove(turn)
            self.waiting -= 1
            if not line:
                del self._lines[turn.holder]
            self.give(0)  # it may have been the one that others wait behind

    @asynccontextmanager
    async def place(self, holder: Hashable = None) -> AsyncIterator[None]:
        """Within the block the caller has a place, for which it waits."""
        come = asyncio.get_running_loop().create_future()
        turn = self.take(holder, partial(_come, come))
        if turn is not None:
            try:
                await come
            except asyncio.CancelledError:
                if come.cancelled():
                    self.leave(turn)
                else:
                    self.give()  # it was given a place just now
                raise
        try:
            yield
        finally:
            self.give()


class Turnstile:
    """In order of arrival. Requests that were let in may wait for as long as they like: they count no longer."""

    def __init__(self, runtime: Runtime) -> None:
        self._most = runtime.config.int("http.max.queue")
        self._retry_after_ms = runtime.config.int("http.retry.after.ms")
        self._rounds = Rounds(AT_ONCE, "requests")
        self.big = Places(places_of(runtime.config.int("http.max.big.requests")), "big")
        self._most_big = runtime.config.int("http.max.big.queue")

    async def pass_through(self, *, again: bool = False) -> None:
        """Wait for the caller's turn. `again`: not the first request of its connection.

        Raises ProtocolError COORDINATOR_NOT_AVAILABLE if too many wait already.
        """
        if not self.is_free():
            turn = asyncio.get_running_loop().create_future()
            self.later(partial(_come, turn), again=again)
            await turn

    def is_free(self) -> bool:
        """A request may begin now, and is counted."""
        return self._rounds.is_free()

    def later(self, begin: Callable[[], object], *, again: bool = False) -> None:
        """Call `begin` when it is its turn. Raises as `pass_through`."""
        if len(self._rounds) >= self._most:
            raise self._refusal(f"{self._most} requests wait for their turn (http.max.queue); send it again")
        self._rounds.later(begin, again=again)

    @asynccontextmanager
    async def place(self, holder: Hashable = None) -> AsyncIterator[None]:
        """One of the places for big requests, once it is the turn of `holder`; do not wait for other requests in it.

        Raises ProtocolError COORDINATOR_NOT_AVAILABLE if too many wait already: the queue is full, or almost, and
        the holder has its share of it.
        """
        if self.big.locked() and not self.big.has_room(holder, self._most_big):
            raise self._refusal(f"{self._most_big} large requests wait for their turn (http.max.big.queue)")
        async with self.big.place(holder):
            yield

    def _refusal(self, detail: str) -> ProtocolError:
        return ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, detail, retry_after_ms=self._retry_after_ms)


def _come(turn: asyncio.Future[None]) -> bool:
    """It is its turn; False: the client of a cancelled one is gone."""
    if turn.done():
        return False
    turn.set_result(None)
    return True
