"""The listener for Kafka clients: accepts connections, bounds what they take together, ends those that are overdue.

One per process. It stops as HTTP does: no new connections, parked requests are answered, then connections are closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import structlog

from kcoord import metrics
from kcoord.access.token_watch import TokenWatch
from kcoord.config import Config
from kcoord.process.runtime import Runtime
from kcoord.process.turnstile import Places
from kcoord.quotas.addresses import Addresses
from kcoord.quotas.connections import HOLDERS
from kcoord.wire import session
from kcoord.wire.api import Api
from kcoord.wire.connection import Connection
from kcoord.wire.dispatch import Decoded

log = structlog.get_logger(__name__)

BACKLOG = 2_048
TICK_SECONDS = 1.0
LONGEST_STEP = 2.0
"""Seconds counted for a tick at most: after a pause of the process peers have their time."""
LOOKS_AT_ONCE = 500
"""Connections looked at before others are served."""
GRACE_SECONDS = 2.0
REST_SECONDS = 0.1
"""Before the next try when a connection could not be accepted (too many open files)."""
MOST_SOFTWARE = 10_000
REMEMBERED = 10_000
"""Heartbeats that need not be decoded again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings. Times in seconds, `frame` in bytes."""

    connections: int
    frame: int
    items: int
    login: float
    arrival: float
    write: float
    idle: float

    @classmethod
    def of(cls, config: Config) -> Limits:
        """The limits of a configuration."""
        return cls(
            config.int("kafka.max.connections"),
            config.int("kafka.max.request.bytes"),
            config.int("kafka.max.request.items"),
            config.int("kafka.login.timeout.ms") / 1000,
            config.int("kafka.request.timeout.ms") / 1000,
            config.int("kafka.write.timeout.ms") / 1000,
            config.int("kafka.max.idle.ms") / 1000,
        )


class Software:
    """What clients said they are, by client id and host.

    Some clients send ApiVersions on their first connection only, and join on another.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], tuple[str, str]] = OrderedDict()

    def remember(self, client_id: str, host: str, name: str, version: str) -> None:
        """A client said what it is."""
        self._known[client_id, host] = name, version
        self._known.move_to_end((client_id, host))
        if len(self._known) > MOST_SOFTWARE:
            self._known.popitem(last=False)

    def of(self, client_id: str, host: str) -> tuple[str, str]:
        """Name and version; empty if unknown."""
        return self._known.get((client_id, host), ("", ""))


class Gateway:
    """The listener. `apis`: those that are served besides the ones a connection begins with."""

    def __init__(self, runtime: Runtime, apis: Iterable[Api]) -> None:
        config = runtime.config
        self.runtime = runtime
        self.apis = {api.key: api for api in (*session.APIS, *apis)}
        self.quick = {key.to_bytes(2, "big") for key, api in self.apis.items() if api.is_quick}
        """How requests begin of which some are answered without a task."""
        self.decoded = lru_cache(REMEMBERED)(partial(Decoded, self.apis))
        self.limits = Limits.of(config)
        self.bytes = Places(max(config.int("kafka.max.queued.bytes"), self.limits.frame), "kafka_bytes")
        self.requests = Places(config.int("kafka.max.requests"), "kafka_requests")
        self.software = Software()
        self.is_stopping = False
        self.tls = tls_context(config)
        self._handshakes = asyncio.Semaphore(config.int("kafka.max.handshakes"))
        self._connections: set[Connection] = set()
        self._addresses = Addresses(config.int("quota.connections.per.address"))
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self._connecting: set[asyncio.Task[None]] = set()
        self._listener: socket.socket | None = None
        self.port = config.int("kafka.port")
        """Where it listens."""
        self._tasks: list[asyncio.Task[None]] = []
        runtime.on_drain(self.drain)

    def start(self) -> None:
        """Listen where the settings say, on the running loop. Raises OSError."""
        config = self.runtime.config
        listener = bound(config.str("kafka.host"), config.int("kafka.port"))
        listener.listen(BACKLOG)
        listener.setblocking(False)
        self._listener = listener
        self._tasks = [
            asyncio.create_task(self._accept(listener), name="kcoord-kafka-accept"),
            asyncio.create_task(self._look(), name="kcoord-kafka-look"),
            asyncio.create_task(TokenWatch(self.runtime, self._connections).watch(), name="kcoord-kafka-logins"),
        ]
        host, self.port = listener.getsockname()[:2]
        log.info("kafka_listening", host=host, port=self.port, tls=self.tls is not None)

    async def drain(self) -> None:
        """Accept no more connections. Idle ones are closed, busy ones after their answer. Idempotent."""
        self.is_stopping = True
        if self._listener is not None:
            for task in (*self._tasks, *self._connecting):
                task.cancel()
            await asyncio.gather(*self._tasks, *self._connecting, return_exceptions=True)
            self._listener.close()
            self._listener = None
        for connection in [*self._connections]:
            if not connection.is_busy:
                connection.close()

    async def stop(self) -> None:
        """Drain, wait a little for answers under way, and close what is left."""
        await self.drain()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await self._is_empty.wait()
        for connection in [*self._connections]:
            connection.close(abort=True)
        await asyncio.sleep(0)

    @property
    def count(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    def opened(self, connection: Connection) -> None:
        """A connection was made."""
        self._connections.add(connection)
        if not self._addresses.admit(connection, connection.session.client_host):
            connection.hang_up("limit", "too many connections from this address")
        self._is_empty.clear()
        metrics.KAFKA_CONNECTIONS.set(len(self._connections))

    def closed(self, connection: Connection) -> None:
        """A connection ended."""
        self._connections.discard(connection)
        self._addresses.forget(connection)
        HOLDERS.closed(connection.session)
        if not self._connections:
            self._is_empty.set()
        metrics.KAFKA_CONNECTIONS.set(len(self._connections))

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, peer = await loop.sock_accept(listener)
            except OSError as error:
                log.warning("kafka_accept_failed", reason=str(error))
                await asyncio.sleep(REST_SECONDS)
                continue
            if len(self._connections) + len(self._connecting) >= self.limits.connections:
                metrics.KAFKA_CLOSED.labels("limit").inc()
                accepted.close()
                continue
            task = asyncio.create_task(self._connect(accepted, peer), name="kcoord-kafka-connect")
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)

    async def _connect(self, accepted: socket.socket, peer: tuple[Any, ...]) -> None:
        """Make a connection of an accepted socket, with TLS if that is on."""
        accepted.setblocking(False)
        loop = asyncio.get_running_loop()
        try:
            with contextlib.suppress(OSError):
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls is None:
                await loop.connect_accepted_socket(lambda: Connection(self), accepted)
                return
            async with self._handshakes:
                await loop.connect_accepted_socket(
                    lambda: Connection(self), accepted, ssl=self.tls, ssl_handshake_timeout=self.limits.login
                )
        except (OSError, ssl.SSLError, TimeoutError) as error:
            metrics.KAFKA_CLOSED.labels("handshake").inc()
            why = str(error) or "no TLS in time"
            log.info("kafka_connection_closed", peer=f"{peer[0]}:{peer[1]}", reason="handshake", detail=why)
            accepted.close()

    async def _look(self) -> None:
        """Close connections whose peers are overdue."""
        loop = asyncio.get_running_loop()
        looked = loop.time()
        while True:
            await asyncio.sleep(TICK_SECONDS)
            seconds = min(loop.time() - looked, LONGEST_STEP)
            looked = loop.time()
            for number, connection in enumerate([*self._connections], 1):
                reason = connection.overdue(seconds)
                if reason is not None:
                    connection.hang_up(reason)
                if number % LOOKS_AT_ONCE == 0:
                    await asyncio.sleep(0)


def bound(host: str, port: int) -> socket.socket:
    """A socket bound to an address. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def tls_context(config: Config) -> ssl.SSLContext | None:
    """The context of the certificate of the settings; None without one. Raises OSError if it cannot be read."""
    certificate = config.str("kafka.tls.certificate")
    if not certificate:
        return None
    found = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    found.minimum_version = ssl.TLSVersion.TLSv1_2
    found.load_cert_chain(certificate, config.str("kafka.tls.key") or None)
    return found
