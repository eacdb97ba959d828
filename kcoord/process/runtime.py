"""One running process: its settings, database, notifications and services.

The composition root of a process creates a `Runtime`, starts it on its event loop and makes it current. Services are
created on demand, once each, and get the runtime; they never import the composition root.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from kcoord.config import Config
from kcoord.database.clock import Clock
from kcoord.database.notifications import Notifications
from kcoord.database.pool import Database
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
