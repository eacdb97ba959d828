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
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from enum import Enum
from functools import partial

from kcoord import metrics
from kcoord.process.lines import Lines, Places, come
from kcoord.process.runtime import Runtime
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


LEAST_PLACES = 2
"""Big requests at a time on a machine with a single core: one of them usually waits for Postgres."""


def places_of(setting: int) -> int:
    """How many big requests are worked on at a time; `setting` 0: as many as this process may use cores."""
    if setting:
        return setting
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(LEAST_PLACES, cores)


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


class Turnstile(Rounds):
    """Of all requests of a process. Those that were let in may wait for as long as they like: they count no longer."""

    def __init__(self, runtime: Runtime) -> None:
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
