"""How long a peer may keep a connection without doing its part, and how many connections there may be.

The rules, for any HTTP parser: an adapter reports which phase its connection is in and what has arrived, and closes it
when asked to. Time is counted in ticks of the process that watches, each worth at most `LONGEST_STEP` ticks: if the
process was stopped, or its loop busy, what a peer sent meanwhile is read before its time is up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Protocol

import msgspec
import structlog

from kcoord import metrics
from kcoord.config import Config
from kcoord.http import problem
from kcoord.http.proxies import Proxies
from kcoord.process.turnstile import HOT_AT_ONCE, Rounds
from kcoord.protocol.errors import Error
from kcoord.quotas.addresses import Addresses
from kcoord.quotas.connections import HOLDERS

log = structlog.get_logger(__name__)

SLOWEST_BYTES_PER_SECOND = 16_384
"""A body, or an answer, may take additional time for its bytes at this speed."""

LONGEST_TICK_SECONDS = 1.0
TICKS_IN_TIMEOUT = 4
"""A timeout is never early and up to two ticks late. A tick is this part of the shortest timeout, at most a second."""

LONGEST_STEP = 2


class Phase(Enum):
    """What a connection is waiting for."""

    SILENT = "the first byte"
    HEAD = "the rest of a head"
    BODY = "the rest of a body"
    REST = "the rest of a body whose request was answered"
    WORK = "our answer, or nothing that this module bounds"


class Reason(Enum):
    """Why a connection was closed; a label of the metrics."""

    HEAD = "head_timeout"
    BODY = "body_timeout"
    WRITE = "write_timeout"
    LIMIT = "limit"
    INVALID = "invalid"
    FRAMING = "framing"


@dataclass(frozen=True, slots=True)
class PeerLimits:
    """The settings. Times in seconds; `body_bytes` is the largest body that is accepted.

    `from_one`: connections from one address, 0: as many as there may be at all. `proxies`: addresses and networks whose
    `X-Forwarded-For` and `X-Forwarded-Proto` are believed.
    """

    connections: int
    from_one: int
    head: float
    body: float
    write: float
    body_bytes: int
    proxies: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: Config) -> PeerLimits:
        """The limits of a configuration."""
        return cls(
            connections=config.int("http.max.connections"),
            from_one=config.int("quota.connections.per.address"),
            head=config.int("http.head.timeout.ms") / 1000,
            body=config.int("http.body.timeout.ms") / 1000,
            write=config.int("http.write.timeout.ms") / 1000,
            body_bytes=config.int("http.max.body.bytes"),
            proxies=tuple(config.names("trusted.proxies")),
        )

    @property
    def tick(self) -> float:
        """The interval between checks of peers, in seconds."""
        return min(LONGEST_TICK_SECONDS, min(self.head, self.body, self.write) / TICKS_IN_TIMEOUT)


class Peer:
    """The other end of one connection: what we expect from it, and until when."""

    __slots__ = ("_limits", "_received", "_unread", "_unread_for", "_waited", "holder", "phase")

    def __init__(self, limits: PeerLimits) -> None:
        self._limits = limits
        self.phase = Phase.SILENT
        self.holder = 0
        """Whose quota of connections it is counted against (`kcoord.quotas.connections`)."""
        self._waited = 0.0
        self._received = 0
        self._unread = 0
        self._unread_for = 0.0

    def enter(self, phase: Phase) -> None:
        """The connection is now in this phase; entering the current one again changes nothing."""
        if phase is not self.phase:
            self.phase = phase
            self._waited = 0.0
            self._received = 0

    def received(self, size: int) -> None:
        """This many bytes have arrived."""
        self._received += size

    def has_read(self) -> None:
        """The peer has read most of what was buffered for it."""
        self._unread_for = 0.0

    def tick(self, seconds: float, unread: int, *, our_turn: bool) -> Reason | None:
        """Count a tick; returns why the connection is to be closed, None if it is not.

        Parameters: `unread`, bytes that we could not send yet; `our_turn`, true while we do not read what the peer
        sends, or have not asked for it.
        """
        if self._is_reading_slowly(seconds, unread):
            return Reason.WRITE
        if self.phase is Phase.WORK or our_turn:
            return None
        self._waited += seconds
        waited = self._waited - self._limits.tick  # the phase may have begun at the end of a tick
        if self.phase in (Phase.SILENT, Phase.HEAD):
            return Reason.HEAD if waited > self._limits.head else None
        return Reason.BODY if waited > self._limits.body + self._earned() else None

    def _is_reading_slowly(self, seconds: float, unread: int) -> bool:
        if unread == 0:
            self._unread, self._unread_for = 0, 0.0
            return False
        self._unread = max(self._unread, unread)
        self._unread_for += seconds
        return self._unread_for > self._limits.write + self._unread / SLOWEST_BYTES_PER_SECOND

    def _earned(self) -> float:
        """Additional seconds for a body that makes progress; bounded, because chunks can be padded without end."""
        if self.phase is Phase.REST:
            return 0.0
        return min(self._received, self._limits.body_bytes) / SLOWEST_BYTES_PER_SECOND


class Connection(Protocol):
    """The interface of an adapter."""

    peer: Peer

    def unread(self) -> int:
        """Bytes that could not be sent yet."""

    def is_our_turn(self) -> bool:
        """We are not reading from the peer at the moment, or have not asked for more."""

    def give_up(self, reason: Reason) -> None:
        """Close the connection, with an answer if possible."""


class Peers:
    """The connections of a process."""

    def __init__(self, limits: PeerLimits) -> None:
        self.limits = limits
        self._open: set[Connection] = set()
        self._addresses = Addresses(limits.from_one)
        self.starts = Rounds(HOT_AT_ONCE, "pages")
        """Requests that are not for operations."""
        self.proxies = Proxies(limits.proxies)
        self._looked_at: float | None = None
        self._closed: Counter[Reason] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, connection: Connection, address: str = "") -> bool:
        """Whether one more connection is allowed; if so, it is watched from now on. `address`: where it comes from."""
        if len(self._open) >= self.limits.connections or not self._addresses.admit(connection, address):
            self.note_closed(Reason.LIMIT)
            return False
        self._open.add(connection)
        metrics.CONNECTIONS.set(len(self._open))
        return True

    def forget(self, connection: Connection) -> None:
        """The connection is closed."""
        self._open.discard(connection)
        self._addresses.forget(connection)
        HOLDERS.closed(connection.peer)
        metrics.CONNECTIONS.set(len(self._open))

    def note_closed(self, reason: Reason) -> None:
        """Count a connection that we closed."""
        metrics.CONNECTIONS_CLOSED.labels(reason.value).inc()
        self._closed[reason] += 1

    def watch(self, now: float) -> None:
        """Close overdue connections. `now`: seconds of a monotonic clock; calls less than a tick apart do nothing."""
        for _ in self.looks(now):
            pass

    def looks(self, now: float) -> Iterator[None]:
        """The steps of `watch`: with thousands of connections others have to be served between them."""
        if self._looked_at is None:
            self._looked_at = now
        passed, tick = now - self._looked_at, self.limits.tick
        if passed < tick:
            return
        self._looked_at = now
        step = min(passed, tick * LONGEST_STEP)
        for connection in tuple(self._open):
            yield
            if connection not in self._open:
                continue
            reason = connection.peer.tick(step, connection.unread(), our_turn=connection.is_our_turn())
            if reason is not None:
                self.note_closed(reason)
                connection.give_up(reason)
        self._tell()

    def _tell(self) -> None:
        """One line for all that were closed since the last one: an attacker must not fill the log."""
        if self._closed:
            counts = {reason.value: count for reason, count in self._closed.items()}
            write = log.warning if Reason.LIMIT in self._closed else log.info
            write("connections_closed", reasons=counts, open=len(self._open))
            self._closed.clear()


def refusal(status: HTTPStatus, error: Error, detail: str) -> bytes:
    """A complete response that ends the connection, for peers without a request to answer."""
    content = msgspec.json.encode(problem.body(error, detail, status=status))
    headers = {
        "content-type": problem.MEDIA_TYPE,
        "content-length": str(len(content)),
        "connection": "close",
        **(problem.headers(Error.COORDINATOR_NOT_AVAILABLE) if status == HTTPStatus.SERVICE_UNAVAILABLE else {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status.value} {status.phrase}\r\n{head}\r\n".encode() + content


TOO_LATE = {
    Reason.HEAD: refusal(
        HTTPStatus.REQUEST_TIMEOUT, Error.REQUEST_TIMED_OUT, "the head of the request did not arrive in time"
    ),
    Reason.BODY: refusal(
        HTTPStatus.REQUEST_TIMEOUT, Error.REQUEST_TIMED_OUT, "the body of the request did not arrive in time"
    ),
}
TOO_MANY = refusal(
    HTTPStatus.SERVICE_UNAVAILABLE,
    Error.COORDINATOR_NOT_AVAILABLE,
    "this server has reached its limit of connections, in all or from your address; try again, or use another server",
)
