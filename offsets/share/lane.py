"""The lane of items: acquires and settles that arrive while a batch is under way go with the next one.

A batch is one transaction with the requests of many members. Each is answered as if it had come alone, and one that is
refused leaves the others as they are; one whose locks another transaction holds goes alone, and waits for them there. A
group has one batch at a time, so that its members do not meet each other at the row of their partition.

Source: architecture.md 4, "Fast lanes".
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import structlog

from kcoord import metrics
from kcoord.database.pool import Connection
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests.turnstile import Batches
from offsets.commits.service import NotWritten
from offsets.core.types import Millis
from offsets.share.store import Acquired, ItemRequest, Met, Outcome, ShareMember, ShareStore

log = structlog.get_logger(__name__)

MOST_REQUESTS = 256
"""Of one batch."""
MOST_GROUPS = 16
"""Of one batch: each has a statement of its own."""
MOST_WAITING = 10_000
"""Requests that wait. Beyond that they are answered COORDINATOR_NOT_AVAILABLE with `Retry-After`."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """The member of a request, which may have items of these topics and partitions for `lock_ms`."""

    epoch: int
    session_deadline: Millis | None
    names: dict[UUID, str]
    partitions: list[tuple[UUID, int]]
    lock_ms: Millis


@dataclass(slots=True)
class Served:
    """What became of a request. `admitted` None: it only settled. `busy`: others work on all partitions."""

    admitted: Admitted | None
    settled: list[Outcome]
    locks: list[Acquired]
    busy: bool = False


Admission = Callable[[ShareMember], Admitted | None]
"""Whether who asks may have what it asks for. Raises ProtocolError."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """`served`: what became of the request, or a ProtocolError."""

    asked: ItemRequest
    admit: Admission
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    served: asyncio.Future[Served] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class ItemLane:
    """Serves the requests of all workers, for one process."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._store = runtime.get(ShareStore)
        self._retry_after_ms = runtime.config.int("http.retry.after.ms")
        self._queues: dict[str, deque[_Waiting]] = {}
        self._under_way: set[str] = set()
        self._waiting = 0
        self._batches = Batches(lambda: any(group not in self._under_way for group in self._queues), self._prepare)
        self._alone: set[asyncio.Task[None]] = set()
        metrics.ADMISSION_WAITING.labels("items").set_function(lambda: self._waiting)
        runtime.on_stop(self._batches.close)

    async def serve(self, asked: ItemRequest, admit: Admission) -> Served:
        """Settle and acquire. Raises what `admit` raises, and ProtocolError COORDINATOR_NOT_AVAILABLE."""
        if self._waiting >= MOST_WAITING:
            detail = f"{MOST_WAITING} requests wait for items; the same request may succeed later"
            raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, detail, retry_after_ms=self._retry_after_ms)
        request = _Waiting(asked, admit)
        self._queues.setdefault(asked.group_id, deque()).append(request)
        self._waiting += 1
        self._batches.call()
        return await request.served

    def _prepare(self) -> Coroutine[Any, Any, None] | None:
        """The next batch: of groups that have none, those first that have waited longest."""
        taken: dict[str, list[_Waiting]] = {}
        room = MOST_REQUESTS
        for group_id in list(self._queues):
            if len(taken) == MOST_GROUPS or room <= 0:
                break
            if group_id in self._under_way:
                continue
            queue = self._queues.pop(group_id)
            count = min(len(queue), room)
            room -= count
            self._waiting -= count
            found = [request for request in (queue.popleft() for _ in range(count)) if not request.served.done()]
            if queue:
                self._queues[group_id] = queue  # behind the others
            if found:
                taken[group_id] = found
        self._under_way |= taken.keys()
        return self._write_batch(taken) if taken else None

    async def _write_batch(self, taken: dict[str, list[_Waiting]]) -> None:
        requests = [request for found in taken.values() for request in found]
        try:
            for request, served in zip(requests, await self._written(requests, waits=False), strict=True):
                if served is None:
                    self._go_alone(request)
                else:
                    _answer(request, served)
        except ProtocolError as error:
            for request in requests:
                _answer(request, copy(error))  # each adds its frames to the traceback
        except Exception as error:
            if not isinstance(error, NotWritten):
                log.exception("batch_of_items_failed", requests=len(requests))
            for request in requests:
                self._go_alone(request)
        finally:
            self._under_way -= taken.keys()

    def _go_alone(self, request: _Waiting) -> None:
        task = asyncio.get_running_loop().create_task(self._write_one(request), context=request.context)
        self._alone.add(task)
        task.add_done_callback(self._alone.discard)

    async def _write_one(self, request: _Waiting) -> None:
        try:
            (served,) = await self._written([request], waits=True)
            assert served is not None
            _answer(request, served)
        except Exception as error:  # noqa: BLE001 - whoever waits for it raises it
            _answer(request, error)

    async def _written(self, requests: Sequence[_Waiting], *, waits: bool) -> list[Served | ProtocolError | None]:
        """What became of each in one transaction; None: nothing, as another one holds its locks, unless it `waits`.

        Raises NotWritten if one of several is too old: each is then judged by itself.
        """
        receipts = [request.asked.receipt for request in requests if request.asked.receipt is not None]
        oldest = min(receipts, key=lambda receipt: receipt.at + receipt.extra_ms / 1000, default=None)

        async def work(connection: Connection) -> list[Served | ProtocolError | None]:
            served = await self._served(connection, requests, waits=waits)
            if not waits and any(self._db.refusal(connection, receipt) for receipt in receipts):
                raise NotWritten
            return served

        return await self._db.transaction(work, receipt=lambda: oldest)

    async def _served(
        self, connection: Connection, requests: Sequence[_Waiting], *, waits: bool
    ) -> list[Served | ProtocolError | None]:
        met = await self._store.meet(connection, [request.asked for request in requests])
        pairs = zip(requests, met.members, strict=True)
        found = [_admitted(request, member, met, waits=waits) for request, member in pairs]
        here = [
            (member.pk, request.asked, served)
            for request, member, served in zip(requests, met.members, found, strict=True)
            if isinstance(served, Served) and member.pk is not None
        ]
        settling = [(asked, served) for _, asked, served in here if asked.settle]
        asking: dict[int, list[tuple[ItemRequest, Served, Admitted]]] = {}
        for pk, asked, served in here:
            if served.admitted is not None:
                asking.setdefault(pk, []).append((asked, served, served.admitted))
        outcomes, given = await self._store.serve(
            connection,
            [asked for asked, _ in settling],
            {pk: [(asked, who.partitions) for asked, _, who in askers] for pk, askers in asking.items()},
            met.now,
        )
        for (_, served), settled in zip(settling, outcomes, strict=True):
            served.settled = settled
        for pk, askers in asking.items():
            for (_, served, _), locks in zip(askers, given[pk], strict=True):
                served.locks, served.busy = locks or [], locks is None
        return found


def _admitted(request: _Waiting, member: ShareMember, met: Met, *, waits: bool) -> Served | ProtocolError | None:
    try:
        admitted = request.admit(member)
    except ProtocolError as refusal:
        return refusal
    if not waits and not met.elsewhere.isdisjoint(request.asked.locks):
        return None
    return Served(admitted, [], [])


def _answer(request: _Waiting, served: Served | Exception) -> None:
    if request.served.done():
        return
    if isinstance(served, Served):
        request.served.set_result(served)
    else:
        request.served.set_exception(served)
