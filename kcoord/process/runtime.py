"""One running process: its settings, database, notifications and services, and small data that it keeps in memory.

The composition root of a process creates a `Runtime`, starts it on its event loop and makes it current. Services are
created on demand, once each, and get the runtime; they never import the composition root.

`WatchedCopy` is a copy of something small in the database that every request needs and that rarely changes. Reading it
costs no query. It is refreshed after a hint, and every few seconds (`notifications.repair.interval.ms`) in case a hint
was lost; a caller that reads after a hint gets a copy read after it. The database is the truth: anything that must not
be wrong is checked there, in its transaction. When a connection is lost the copy is dropped: the next answer may come
from an older state of the database (restore, failover), and its revision says nothing about the copy.

Source: architecture.md 5.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import structlog

from kcoord.config import Config
from kcoord.database.clock import Clock
from kcoord.database.notifications import Notifications
from kcoord.database.pool import Database
from kcoord.protocol.errors import ProtocolError
from kcoord.setting_table import REBALANCE_PROTOCOLS

T = TypeVar("T")


class Runtime:
    """What the services of one process share. Use it on the loop it was started on."""

    def __init__(
        self,
        config: Config,
        conninfo: str,
        clock: Clock | None = None,
        database: Callable[[str, Config, Clock | None], Database] = Database,
    ) -> None:
        self.config = config
        self.max_wait_ms = config.int("http.max.wait.ms")
        """How long a request may be held, whatever it asks for."""
        self.group_protocols = frozenset(config.names(REBALANCE_PROTOCOLS))
        self.db = database(conninfo, config, clock)
        self.notifications = Notifications(conninfo, self.db.origins)
        self.loop: asyncio.AbstractEventLoop | None = None
        self.is_draining = False
        """The process stops: a wait that ends now is not to be begun again."""
        self._services: dict[type[Any], Any] = {}
        self._drainers: list[Callable[[], Awaitable[None]]] = []
        self._late: list[asyncio.Future[None]] = []
        self._closers: list[Callable[[], Awaitable[None]]] = []

    def get(self, service: Callable[[Runtime], T]) -> T:
        """The only instance of a service class in this runtime; created as `service(runtime)` at the first call."""
        assert isinstance(service, type)
        if service not in self._services:
            self._services[service] = service(self)
        instance: T = self._services[service]
        return instance

    def made(self, service: type[T]) -> T | None:
        """The instance of a service class, if there is one already; any thread may ask."""
        found: T | None = self._services.get(service)
        return found

    def on_drain(self, drainer: Callable[[], Awaitable[None]]) -> None:
        """Run `drainer` when the process begins to stop: it answers waiting requests. More may still arrive later.

        Of a service that the first of these makes, it runs at once.
        """
        self._drainers.append(drainer)
        if self.is_draining:
            self._late.append(asyncio.ensure_future(drainer()))

    def on_stop(self, closer: Callable[[], Awaitable[None]]) -> None:
        """Run `closer` when the runtime stops, before the database closes; the latest registered first."""
        self._closers.append(closer)

    def on_connection_lost(self, dropper: Callable[[], None]) -> None:
        """Call `dropper` when a connection of the pool or of the listener was lost.

        Later answers may come from another server, or an older state of the same one: in-memory copies must be
        dropped, whatever version they have.
        """
        self.db.on_connection_lost(dropper)
        self.notifications.on_connection_lost(dropper)

    async def start(self) -> None:
        """Open the pool and start listening."""
        self.loop = asyncio.get_running_loop()
        await self.db.open()
        await self.notifications.start()

    async def drain(self) -> None:
        """Answer waiting requests and end the streams, so that open requests end; the rest continues. Idempotent."""
        self.is_draining = True
        self.db.hurry()
        self.notifications.end_subscriptions()
        for drainer in tuple(self._drainers):
            await drainer()
        await asyncio.gather(*self._late)

    async def stop(self) -> None:
        """Answer waiting requests, stop listening, close the pool."""
        await self.drain()
        for closer in reversed(self._closers):
            await closer()
        await self.notifications.stop()
        await self.db.close()
        self.loop = None


_current: Runtime | None = None


def use(runtime: Runtime | None) -> None:
    """Make a runtime the process's current one; None: no current runtime."""
    global _current
    _current = runtime


def current() -> Runtime:
    """The process's runtime. Raises RuntimeError before it was started."""
    if _current is None:
        raise RuntimeError("no runtime is in use; the composition root starts one and calls runtime.use()")
    return _current


def is_running() -> bool:
    """A current runtime exists."""
    return _current is not None


log = structlog.get_logger(__name__)


class WatchedCopy(Generic[T]):
    """The copy. Nothing is read before the first use.

    Parameters: `channel` of the notifications that hint at changes; `read` returns the copy, given the current one
    (None at first, and after a connection was lost), which it may return again if nothing has changed.
    """

    def __init__(self, runtime: Runtime, channel: str, read: Callable[[T | None], Awaitable[T]]) -> None:
        self._repair_seconds = runtime.config.int("notifications.repair.interval.ms") / 1000
        self._channel = channel
        self._read = read
        self._value: T | None = None
        self._dropped = False
        self._hints = 1
        self._hints_seen = 0
        self._begun = 0
        self._succeeded = 0
        self._reading: asyncio.Task[None] | None = None
        self._repairing: asyncio.Task[None] | None = None
        self._closed = False
        runtime.notifications.on(channel, self.hint)
        runtime.on_connection_lost(self.drop)
        runtime.on_stop(self._close)

    def hint(self, payload: str | None = None) -> None:
        """It may have changed: callers from now on get what is read from now on."""
        self._hints += 1
        if self._repairing is not None and not self._closed:
            self._begin()

    def drop(self) -> None:
        """The copy cannot be trusted, whatever its revision: the next reading is a full one."""
        self._dropped = True
        self.hint()

    async def get(self) -> T:
        """The copy. Raises what `read` raises if it has none, or none as new as the last hint."""
        hints = self._hints
        while self._hints_seen < hints:
            await asyncio.shield(self._begin())
        return self._current()

    def known(self) -> T | None:
        """The copy if it is as new as the last hint; None: it has to be read."""
        return self._value if self._hints_seen >= self._hints else None

    async def renewed(self) -> T:
        """The copy as of now or later: read, or found to be unchanged, after this call. Raises what `read` raises.

        Other callers of `get` do not wait for it, as they would after a hint.
        """
        begun = self._begun
        while self._succeeded <= begun:
            await asyncio.shield(self._begin())
        return self._current()

    def _current(self) -> T:
        if self._repairing is None and not self._closed:
            self._repairing = asyncio.create_task(
                self._repair(),
                name=f"{self._channel}-copy",
                context=contextvars.Context(),  # else its log lines would carry the first request's id forever
            )
        assert self._value is not None
        return self._value

    def _begin(self) -> asyncio.Task[None]:
        """The reading in progress, else a new one: concurrent callers share one query.

        One that is done does not count, even if `_ended` has not been called yet: awaiting it does not yield, and a
        caller that retries until it has seen the last hint would keep the loop from ever calling it.
        """
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._renew(), name=f"{self._channel}-read")
            self._reading.add_done_callback(self._ended)
        return self._reading

    async def _renew(self) -> None:
        self._begun += 1
        number = self._begun
        hints, known = self._hints, None if self._dropped else self._value
        self._dropped = False
        try:
            self._value = await self._read(known)
        except BaseException:
            self._dropped = self._dropped or known is None
            raise
        self._hints_seen, self._succeeded = hints, number

    def _ended(self, reading: asyncio.Task[None]) -> None:
        if self._reading is reading:
            self._reading = None
        if reading.cancelled():
            return
        error = reading.exception()  # retrieved here, or asyncio logs it if every caller is gone
        if error is None and self._hints_seen < self._hints:
            self._begin()
        elif error is not None and not isinstance(error, ProtocolError):
            log.error("watched_copy_failed", channel=self._channel, exc_info=error)

    async def _repair(self) -> None:
        """A failed reading is not serious: the copy stays, and the next reading is soon."""
        while True:
            await asyncio.sleep(self._repair_seconds)
            await asyncio.wait([self._begin()])

    async def _close(self) -> None:
        """Stop refreshing; callers waiting for a reading still get it."""
        self._closed = True
        if self._repairing is not None:
            self._repairing.cancel()
        tasks = [task for task in (self._repairing, self._reading) if task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
