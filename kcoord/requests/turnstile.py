"""Requests that arrive at the same instant are let in a few at a time, so that the event loop serves others between.

A storm of joins is thousands of requests that can be read at once. Started at once they would all be decoded, decided
and answered before the loop looks at its sockets again, and a heartbeat that arrives meanwhile would wait for all of
them. Even reading is done in turn, for both doors together: a round of the loop that reads one heartbeat of each of
hundreds of connections takes so long that whatever needs several rounds, as all transactions do, takes seconds. Calls
that members make all the time have queues of their own. Members of a storm that are already talking to this server
take turns with those that have just come, so that a member's second request does not wait for the first of all others,
and so do the requests of several tokens.

Big requests, with large bodies or large answers, moreover take one of a few places while they are worked on: they share
the interpreter with everybody else, and each holds its body, its answer and often a connection to Postgres. Small
requests never wait for a place. Requests of Kafka's protocol are let in by the same queues, and take places, in number
and in bytes, while they are answered. How many wait in each queue is in the metrics.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from kcoord import metrics
from kcoord.config import Config
from kcoord.protocol.errors import Error, ProtocolError


class Kind(Enum):
    """What may begin in a round of the loop: the name of its queue in the metrics, and how many. The first goes first.

    Each has its part of every round, so none starves; together they take some ten milliseconds.
    """

    READ = "reads", 32
    """A request that has come is read, and answered if that needs no waiting, as heartbeats do: of both doors."""
    HOT = "hot_requests", 16
    """One of those that members send all the time and that are seldom answered from memory."""
    HOT_TASK = "hot_tasks", 16
    REQUEST = "requests", 4
    """Any other request for an operation."""
    TASK = "tasks", 16
    PAGE = "pages", 16
    """What is for no operation."""

    def __init__(self, queue: str, at_once: int) -> None:
        self.queue = queue
        self.at_once = at_once

    __hash__ = object.__hash__  # that of Enum is written in Python, and asked several times for each request


LEAST_PLACES = 2
"""Big requests at a time on a machine with a single core: one of them usually waits for Postgres."""


def places_of(setting: int) -> int:
    """How many big requests are worked on at a time; `setting` 0: as many as this process may use cores."""
    if setting:
        return setting
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(LEAST_PLACES, cores)


T = TypeVar("T")


class Lines(Generic[T]):
    """Who waits. Lines take turns, in a line its holders do, and what one holder waits for is in order of arrival."""

    def __init__(self) -> None:
        self._lines: dict[Hashable, dict[Hashable, deque[T]]] = {}
        """Of those that wait; whose turn is next comes first."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, item: T, holder: Hashable = None, line: Hashable = None) -> None:
        """`item` comes last of its holder in its line."""
        self._lines.setdefault(line, {}).setdefault(holder, deque()).append(item)
        self._count += 1

    def first(self) -> T:
        """Whose turn is next. Raises StopIteration if nobody waits."""
        return next(iter(next(iter(self._lines.values())).values()))[0]

    def popleft(self) -> T:
        """Take that one out, and put its holder and its line behind the others. Raises StopIteration."""
        line, holders = next(iter(self._lines.items()))
        holder, items = next(iter(holders.items()))
        item = items.popleft()
        del holders[holder], self._lines[line]
        if items:
            holders[holder] = items
        if holders:
            self._lines[line] = holders
        self._count -= 1
        return item

    def remove(self, item: T, holder: Hashable, line: Hashable) -> bool:
        """Take one out that gives up. Whether it waited."""
        holders = self._lines.get(line, {})
        items = holders.get(holder, ())
        if item not in items:
            return False
        holders[holder].remove(item)
        if not items:
            del holders[holder]
        if not holders:
            del self._lines[line]
        self._count -= 1
        return True

    def of(self, line: Hashable) -> Mapping[Hashable, Sequence[T]]:
        """What waits in a line, by holder."""
        return self._lines.get(line, {})


class Rounds:
    """Begins a few of each kind of what waits each time the loop goes round.

    What is thousands of requests that are read at once would otherwise take all their first steps before the loop looks
    at its sockets again, and each step of a transaction takes a round. Connections that were answered before take turns
    with others, and those of one token with those of another; there are never more than connections, as each has one
    request at a time.
    """

    def __init__(self) -> None:
        self._waiting: dict[Kind, Lines[Callable[[], object]]] = {kind: Lines() for kind in Kind}
        for kind, lines in self._waiting.items():
            metrics.ADMISSION_WAITING.labels(kind.queue).set_function(lines.__len__)
        self._begun = dict.fromkeys(Kind, 0)
        """Since the loop last went round."""
        self._goes_round = False

    def waiting(self, kind: Kind) -> int:
        """How many wait."""
        return len(self._waiting[kind])

    def is_free(self, kind: Kind) -> bool:
        """Something may begin now, and is counted."""
        if self._waiting[kind] or self._begun[kind] >= kind.at_once:
            return False
        self._begun[kind] += 1
        self._go_round()
        return True

    def later(self, kind: Kind, begin: Callable[[], object], holder: Hashable = None, *, again: bool = False) -> None:
        """Call `begin` when it is the turn of `holder`. `again`: not the first request of its connection."""
        self._waiting[kind].append(begin, holder, again)
        self._go_round()

    def _go_round(self) -> None:
        if not self._goes_round:
            self._goes_round = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self._goes_round = False
        turns = [(lines, min(len(lines), kind.at_once)) for kind, lines in self._waiting.items()]
        self._begun = dict(zip(Kind, (count for _, count in turns), strict=True))
        if any(self._begun.values()):
            self._go_round()  # first: one that fails must not stop the others
        for lines, count in turns:
            for _ in range(count):
                lines.popleft()()


@dataclass(slots=True, eq=False)
class Turn:
    """Who waits in `Places`. `begin` is called with the place; False: there is nobody any more who needs it."""

    holder: Hashable
    begin: Callable[[], bool]
    weight: int
    line: Hashable
    at: float = field(default_factory=time.monotonic)


class Places:
    """Places that are given in turn, as `Lines`: one that wants many does not make others wait for all of them.

    Each holder's own requests are in order of arrival. A request takes as many places as its weight, e.g. bytes; while
    the next one waits for enough of them, nobody overtakes it. Parameters: `count` of places, `queue`: its name in the
    metrics.
    """

    def __init__(self, count: int, queue: str = "") -> None:
        self._free = count
        self._waiting: Lines[Turn] = Lines()
        if queue:
            metrics.ADMISSION_WAITING.labels(queue).set_function(lambda: self.waiting)
            metrics.ADMISSION_HELD.labels(queue).set_function(lambda: count - self._free)

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def since(self, line: Hashable) -> float:
        """Since when somebody waits in a line, by the monotonic clock (s); infinite if nobody does."""
        return min((turns[0].at for turns in self._waiting.of(line).values()), default=math.inf)

    def locked(self) -> bool:
        """No place is free, or others are before the caller."""
        return self._free <= 0 or self.waiting > 0

    def has_room(self, holder: Hashable, most: int) -> bool:
        """Whether one more request of the holder may wait, of `most` that may wait together.

        The last quarter is for holders that have less than an equal share: there is room for one that has just come.
        """
        if self.waiting >= most:
            return False
        others = self._waiting.of(None)
        holders = len(others) + (holder not in others)
        return self.waiting < most - most // 4 or len(others.get(holder, ())) < most // max(2, holders)

    def take(self, holder: Hashable, begin: Callable[[], bool], weight: int = 1, line: Hashable = None) -> Turn | None:
        """Take places now: None; or, if they are not free, when it is the turn of the holder: see `Turn`."""
        if not self.waiting and weight <= self._free:
            self._free -= weight
            return None
        turn = Turn(holder, begin, weight, line)
        self._waiting.append(turn, holder, line)
        return turn

    def give(self, weight: int = 1) -> None:
        """Give places back, to the first of the holder whose turn it is."""
        self._free += weight
        while self._waiting and self._waiting.first().weight <= self._free:
            turn = self._waiting.popleft()
            self._free -= turn.weight
            if not turn.begin():
                self._free += turn.weight

    def leave(self, turn: Turn) -> None:
        """Do not wait any longer."""
        if self._waiting.remove(turn, turn.holder, turn.line):
            self.give(0)  # it may have been the one that others wait behind

    @asynccontextmanager
    async def place(self, holder: Hashable = None, line: Hashable = None) -> AsyncIterator[None]:
        """Within the block the caller has a place, for which it waits."""
        granted = asyncio.get_running_loop().create_future()
        turn = self.take(holder, partial(come, granted), line=line)
        if turn is not None:
            try:
                await granted
            except asyncio.CancelledError:
                if granted.cancelled():
                    self.leave(turn)
                else:
                    self.give()  # it was given a place just now
                raise
        try:
            yield
        finally:
            self.give()


class Configured(Protocol):
    """What has the settings: the runtime, whose database has places, too, and so is above this module."""

    config: Config


class Turnstile(Rounds):
    """Of all requests of a process. Those that were let in may wait for as long as they like: they count no longer."""

    def __init__(self, runtime: Configured) -> None:
        super().__init__()
        self._most = runtime.config.int("http.max.queue")
        self._retry_after_ms = runtime.config.int("http.retry.after.ms")
        self.big = Places(places_of(runtime.config.int("http.max.big.requests")), "big")
        self._most_big = runtime.config.int("http.max.big.queue")

    async def pass_through(self, holder: Hashable = None, *, again: bool = False) -> None:
        """Wait for the turn of a request. Raises as `later`."""
        if not self.is_free(Kind.REQUEST):
            turn = asyncio.get_running_loop().create_future()
            self.later(Kind.REQUEST, partial(come, turn), holder, again=again)
            await turn

    def later(self, kind: Kind, begin: Callable[[], object], holder: Hashable = None, *, again: bool = False) -> None:
        """As `Rounds`. Raises ProtocolError COORDINATOR_NOT_AVAILABLE if too many requests wait already."""
        if kind is Kind.REQUEST and self.waiting(kind) >= self._most:
            raise self._refusal(f"{self._most} requests wait for their turn (http.max.queue); send it again")
        super().later(kind, begin, holder, again=again)

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


def come(turn: asyncio.Future[None]) -> bool:
    """It is its turn; False: the client of a cancelled one is gone."""
    if turn.done():
        return False
    turn.set_result(None)
    return True


BATCHES = 2
"""At once: one is prepared and answered while Postgres works on the other."""


class Batches:
    """A batch begins beside another one only when as much waits as that one took: however little it carries, it costs
    Postgres and this process half a millisecond each, and batches would become small while many wait.

    Parameters: `waits`, how much waits that could go now; `prepare`, the next batch, None if nothing can go now.
    """

    def __init__(self, waits: Callable[[], int], prepare: Callable[[], Coroutine[Any, Any, None] | None]) -> None:
        self._waits = waits
        self._prepare = prepare
        self._running: set[asyncio.Task[None]] = set()
        self._is_called = False
        self._taken = 0
        """By the latest batch."""

    def call(self) -> None:
        """Let a batch begin, with everything that arrives in this turn of the loop."""
        least = max(1, self._taken if self._running else 0)
        if not self._is_called and len(self._running) < BATCHES and self._waits() >= least:
            self._is_called = True
            asyncio.get_running_loop().call_soon(self._take_off)

    def _take_off(self) -> None:
        self._is_called = False
        waited = self._waits()
        batch = self._prepare() if len(self._running) < BATCHES else None
        if batch is None:
            return
        self._taken = waited - self._waits()
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
