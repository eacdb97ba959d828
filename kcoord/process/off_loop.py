"""Work that grows with the number of partitions leaves the event loop, so that others are served meanwhile.

A thread shares the interpreter with the loop, which gets its turn every few milliseconds. For small groups the round
trip to a thread would cost more than the work.

Answers that come later are here, too: no task waits for them.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import islice
from typing import Any, Generic, ParamSpec, TypeVar

from psycopg import AsyncCursor
from psycopg.rows import TupleRow

from kcoord.database.pool import Connection, by_name

P = ParamSpec("P")
B = TypeVar("B")
T = TypeVar("T")
Parameters = Mapping[str, object] | None

ABOVE = 5_000
"""Work on more partitions or topics than these is done in a thread."""
PER_MEMBER = 20
"""The partitions or topics that cost as much as one member of a classic group, where something concerns all of them."""
PER_OFFSET = 10
"""The partitions or topics that cost as much as one offset of a commit or a fetch: a few microseconds a step."""
PART = 1_000
"""Rows that are sent to Postgres before the loop serves others."""
FETCHED = 200
"""Rows that are converted to Python values before the loop serves others: a millisecond or two of work."""

SLICE_SECONDS = 0.002
"""Work on the loop that can be interrupted lets others have their turn after this long."""

SWITCH_SECONDS = 0.000_5

ALIVE_SECONDS = 0.5
"""How often a transaction that works in this process says so to Postgres, which ends the sessions of frozen ones."""
LONGEST_SECONDS = 60.0
"""Work that takes longer than this is not kept alive any more: its transaction ends, and others get its locks."""


def share_interpreter() -> None:
    """Threads that work for long leave the interpreter to the event loop soon; Python's own limit is 5 ms a time."""
    sys.setswitchinterval(SWITCH_SECONDS)


async def in_slices(steps: Iterable[object]) -> None:
    """Go through all of `steps`; the loop has its turn whenever they have taken SLICE_SECONDS."""
    async for _ in sliced(steps):
        pass


async def sliced(steps: Iterable[T]) -> AsyncIterator[T]:
    """The same, with what each step gives."""
    began = time.perf_counter()
    for step in steps:
        yield step
        if time.perf_counter() - began >= SLICE_SECONDS:
            await asyncio.sleep(0)
            began = time.perf_counter()


async def run(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Returns the result of `work`, which runs in a thread if `size` (partitions or topics) is large."""
    if size <= ABOVE:
        return work(*args, **kwargs)
    return await in_thread(work, *args, **kwargs)


Charge = Callable[[float], None]
_CHARGE: ContextVar[Charge | None] = ContextVar("kcoord_charge", default=None)


@contextmanager
def charging(charge: Charge | None) -> Iterator[None]:
    """Within the block `charge` is told of the CPU time of work in threads, in ms, when it ends; None: nobody is.

    That is also when the caller does not wait for it any more. It is called on the event loop.
    """
    token = _CHARGE.set(charge)
    try:
        yield
    finally:
        _CHARGE.reset(token)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Returns the result of `work`, which runs in a thread; its CPU time is charged (`charging`)."""
    charge = _CHARGE.get()
    if charge is None:
        return await asyncio.to_thread(work, *args, **kwargs)
    loop = asyncio.get_running_loop()

    def charged() -> T:
        began = time.thread_time()
        try:
            return work(*args, **kwargs)
        finally:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(charge, (time.thread_time() - began) * 1000)

    return await asyncio.to_thread(charged)


async def run_within(connection: Connection, size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `run`, within a transaction of `connection`, which does not end because the work takes long.

    Raises what a statement raises if the transaction was ended meanwhile; the result of `work` is then of no use.
    """
    if size <= ABOVE:
        return work(*args, **kwargs)
    began = time.monotonic()
    working = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    while not (await asyncio.wait({working}, timeout=ALIVE_SECONDS))[0]:
        if time.monotonic() - began < LONGEST_SECONDS:
            await _say_alive(connection)
    return working.result()


async def _say_alive(connection: Connection) -> None:
    await (await connection.execute("select 1")).fetchone()


async def in_parts(items: Iterable[T], size: int | None = None) -> AsyncIterator[list[T]]:
    """`items` in lists of `size`, PART by default; the loop has its turn after each full one."""
    size = PART if size is None else size
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part
        if len(part) == size:
            await asyncio.sleep(0)


async def fetch(connection: Connection, statement: str, parameters: Parameters = None) -> list[TupleRow]:
    """All rows, converted to Python values part by part."""
    return await _fetched(connection, await connection.execute(statement.encode(), parameters))


async def records(
    connection: Connection, kind: Callable[..., T], statement: str, parameters: Parameters = None
) -> list[T]:
    """As `fetch`, as `kind`: see `Database.records`."""
    cursor = connection.cursor(row_factory=by_name(kind))
    return await _fetched(connection, await cursor.execute(statement.encode(), parameters))


async def _fetched(connection: Connection, cursor: AsyncCursor[T]) -> list[T]:
    rows: list[T] = []
    said = time.monotonic()
    while part := await cursor.fetchmany(FETCHED):
        rows += part
        await asyncio.sleep(0)
        if time.monotonic() - said >= ALIVE_SECONDS:
            await _say_alive(connection)
            said = time.monotonic()
    return rows


class Later(Generic[T]):
    """An answer that is made of what a future brings, where the future is resolved: no task waits for it.

    `finish` gets the result of the future; it returns the answer, or something to await.
    """

    __slots__ = ("finish", "future")

    def __init__(self, future: asyncio.Future[Any], finish: Callable[[Any], T | Awaitable[T]]) -> None:
        self.future = future
        self.finish = finish

    def __await__(self) -> Generator[Any, None, T]:
        """The answer."""
        found = self.finish((yield from self.future))
        return (yield from found.__await__()) if hasattr(found, "__await__") else found


class Then(Generic[B, T]):
    """An answer that is made of what something to await brings. It may be closed instead of awaited."""

    __slots__ = ("_finish", "_first")

    def __init__(self, first: Awaitable[B], finish: Callable[[B], T | Awaitable[T]]) -> None:
        self._first = first
        self._finish = finish

    def __await__(self) -> Generator[Any, None, T]:
        """The answer."""
        found = self._finish((yield from self._first.__await__()))
        return (yield from found.__await__()) if hasattr(found, "__await__") else found

    def close(self) -> None:
        """It is not awaited: close the coroutine that has not begun."""
        self._first.close()  # type: ignore[attr-defined]


async def settled(answer: T | Awaitable[T]) -> T:
    """The answer, whether it is here or still to come."""
    return await answer if hasattr(answer, "__await__") else answer


def then(answer: B | Awaitable[B], finish: Callable[[B], T | Awaitable[T]]) -> T | Awaitable[T]:
    """What `finish` makes of an answer: at once if the answer is here, else when it comes."""
    if type(answer) is Later:
        first = answer.finish
        return Later(answer.future, lambda found: then(first(found), finish))
    return Then(answer, finish) if hasattr(answer, "__await__") else finish(answer)
