"""The listener for Kafka clients: accepts connections, and bounds what they take together.

One per process. It stops as HTTP does: no new connections, parked requests are answered, then connections are closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Iterable
from functools import lru_cache, partial
from typing import Any

import structlog

from kcoord import metrics
from kcoord.access.token_watch import TokenWatch
from kcoord.config import Config
from kcoord.door.http.peers import Allowance, PeerLimits, Peers, Phase, Reason
from kcoord.door.kafka import session
from kcoord.door.kafka.api import Api, Software
from kcoord.door.kafka.connection import Connection
from kcoord.door.kafka.dispatch import Decoded
from kcoord.process.off_loop import in_slices
from kcoord.process.runtime import Runtime
from kcoord.requests.turnstile import Places, Turnstile

log = structlog.get_logger(__name__)

BACKLOG = 2_048
GRACE_SECONDS = 2.0
REST_SECONDS = 0.1
"""Before the next try when a connection could not be accepted (too many open files)."""
REMEMBERED = 10_000
"""Heartbeats that need not be decoded again."""


def limits_of(config: Config) -> PeerLimits:
    """The limits of a configuration."""
    arrival = config.int("kafka.request.timeout.ms") / 1000
    times = {
        Phase.LOGIN: Allowance(config.int("kafka.login.timeout.ms") / 1000, Reason.LOGIN),
        Phase.IDLE: Allowance(config.int("kafka.max.idle.ms") / 1000, Reason.IDLE),
        Phase.FRAME: Allowance(arrival, Reason.REQUEST, config.int("kafka.max.request.bytes")),
    }
    return PeerLimits(
        config.int("kafka.max.connections"),
        config.int("quota.connections.per.address"),
        Allowance(config.int("kafka.write.timeout.ms") / 1000, Reason.WRITE),
        times,
    )


class Gateway:
    """The listener. `apis`: those that are served besides the ones a connection begins with."""

    def __init__(self, runtime: Runtime, apis: Iterable[Api]) -> None:
        config = runtime.config
        self.runtime = runtime
        self.apis = {api.key: api for api in (*session.APIS, *apis)}
        self.at_once = {key.to_bytes(2, "big"): api for key, api in self.apis.items() if api.is_quick or api.is_later}
        """How requests begin of which some are answered without a task, with their APIs."""
        self.decoded = lru_cache(REMEMBERED)(partial(Decoded, self.apis))
        self.longest_frame = config.int("kafka.max.request.bytes")
        self.most_items = config.int("kafka.max.request.items")
        self.peers: Peers[Connection] = Peers(limits_of(config), metrics.KAFKA_CONNECTIONS, metrics.KAFKA_CLOSED)
        self.turnstile = runtime.get(Turnstile)
        self.bytes = Places(max(config.int("kafka.max.queued.bytes"), self.longest_frame), "kafka_bytes")
        self.requests = Places(config.int("kafka.max.requests"), "kafka_requests")
        self.software = Software()
        self.is_stopping = False
        self.tls = tls_context(config)
        self._handshakes = asyncio.Semaphore(config.int("kafka.max.handshakes"))
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
            asyncio.create_task(TokenWatch(self.runtime, self.peers.open).watch(), name="kcoord-kafka-logins"),
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
        for connection in [*self.peers.open]:
            if not connection.is_busy:
                connection.close()

    async def stop(self) -> None:
        """Drain, wait a little for answers under way, and close what is left."""
        await self.drain()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await self._is_empty.wait()
        for connection in [*self.peers.open]:
            connection.close(abort=True)
        await asyncio.sleep(0)

    def opened(self, connection: Connection) -> None:
        """A connection was made."""
        if self.peers.admit(connection, connection.session.client_host):
            self._is_empty.clear()
        else:
            connection.end(Reason.LIMIT, "too many connections from this address")

    def closed(self, connection: Connection) -> None:
        """A connection ended."""
        self.peers.forget(connection)
        if not self.peers.open:
            self._is_empty.set()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, peer = await loop.sock_accept(listener)
            except OSError as error:
                log.warning("kafka_accept_failed", reason=str(error))
                await asyncio.sleep(REST_SECONDS)
                continue
            if len(self.peers) + len(self._connecting) >= self.peers.limits.connections:
                self.peers.note_closed(Reason.LIMIT)
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
                    lambda: Connection(self),
                    accepted,
                    ssl=self.tls,
                    ssl_handshake_timeout=self.peers.limits.times[Phase.LOGIN].seconds,
                )
        except (OSError, ssl.SSLError, TimeoutError) as error:
            self.peers.note_closed(Reason.HANDSHAKE)
            why = str(error) or "no TLS in time"
            log.info("kafka_connection_closed", peer=f"{peer[0]}:{peer[1]}", reason="handshake", detail=why)
            accepted.close()

    async def _look(self) -> None:
        """Close connections whose peers are overdue."""
        while True:
            await asyncio.sleep(self.peers.limits.tick)
            await in_slices(self.peers.looks(time.monotonic()))


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
