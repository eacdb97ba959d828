"""How long a peer may keep a connection without doing its part, and how many connections there may be.

The rules, for both doors: an adapter reports which phase its connection is in and what has arrived, and closes it
when asked to. Time is counted in ticks of the process that watches, each worth at most `LONGEST_STEP` ticks: if the
process was stopped, or its loop busy, what a peer sent meanwhile is read before its time is up.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec
import structlog
from prometheus_client import Counter, Gauge
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from kcoord import metrics
from kcoord.access.quotas.connections import HOLDERS, Addresses
from kcoord.config import Config
from kcoord.door.http import problem
from kcoord.protocol.errors import Error


class Proxies:
    """Parameters: `trusted`, addresses and networks of proxies that are believed; `*`: everybody is."""

    def __init__(self, trusted: Iterable[str]) -> None:
        self._middleware = ProxyHeadersMiddleware(_nothing, list(trusted))

    def tell(self, scope: dict[str, Any]) -> None:
        """Put the client and the scheme that a trusted proxy names into a scope of ASGI."""
        running = self._middleware(scope, None, None)  # type: ignore[arg-type]
        try:
            running.send(None)
        except StopIteration:
            return
        raise AssertionError("the middleware waits")


async def _nothing(*_: object) -> None: ...


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
    LOGIN = "the login of a Kafka client"
    IDLE = "the next request of a Kafka client"
    FRAME = "the rest of a request of a Kafka client"
    WORK = "our answer, or nothing that this module bounds"


class Reason(Enum):
    """Why a connection was closed; a label of the metrics."""

    HEAD = "head_timeout"
    BODY = "body_timeout"
    LOGIN = "login_timeout"
    IDLE = "idle"
    REQUEST = "request_timeout"
    WRITE = "write_timeout"
    LIMIT = "limit"
    INVALID = "invalid"
    FRAMING = "framing"
    REFUSED = "refused"
    HANDSHAKE = "handshake"


class Allowance(NamedTuple):
    """How long a phase may take, in seconds, and the reason when it takes longer.

    Bytes, up to the number `earning`, take additional time: bounded, because the chunks of a body can be padded without
    end.
    """

    seconds: float
    reason: Reason
    earning: float = 0

    def allows(self, size: int) -> float:
        """How long it may take if so many bytes have come, or are to be read."""
        return self.seconds + min(size, self.earning) / SLOWEST_BYTES_PER_SECOND


@dataclass(frozen=True, slots=True)
class PeerLimits:
    """The settings of a door. `write`: for what the peer has to read; `times`: of the phases that are bounded.

    `from_one`: connections from one address, 0: as many as there may be at all.
    """

    connections: int
    from_one: int
    write: Allowance
    times: Mapping[Phase, Allowance]

    @classmethod
    def http(cls, connections: int, from_one: int, head: float, body: float, write: float, largest: int) -> PeerLimits:
        """Those of HTTP. Parameters: `head`, `body` in seconds, `largest` body in bytes."""
        head_in_time, rest_in_time = Allowance(head, Reason.HEAD), Allowance(body, Reason.BODY)
        times = {
            Phase.SILENT: head_in_time,
            Phase.HEAD: head_in_time,
            Phase.BODY: Allowance(body, Reason.BODY, largest),
            Phase.REST: rest_in_time,
        }
        return cls(connections, from_one, Allowance(write, Reason.WRITE, math.inf), times)

    @classmethod
    def of(cls, config: Config) -> PeerLimits:
        """Those of HTTP, of a configuration."""
        return cls.http(
            connections=config.int("http.max.connections"),
            from_one=config.int("quota.connections.per.address"),
            head=config.int("http.head.timeout.ms") / 1000,
            body=config.int("http.body.timeout.ms") / 1000,
            write=config.int("http.write.timeout.ms") / 1000,
            largest=config.int("http.max.body.bytes"),
        )

    @property
    def tick(self) -> float:
        """The interval between checks of peers, in seconds."""
        shortest = min(allowance.seconds for allowance in (self.write, *self.times.values()))
        return min(LONGEST_TICK_SECONDS, shortest / TICKS_IN_TIMEOUT)


class Peer:
    """The other end of one connection: what we expect from it, and until when."""

    __slots__ = ("_limits", "_received", "_unread", "_unread_for", "holder", "phase", "waited")

    def __init__(self, limits: PeerLimits, phase: Phase = Phase.SILENT) -> None:
        self._limits = limits
        self.phase = phase
        self.holder = 0
        """Whose quota of connections it is counted against (`kcoord.access.quotas.connections`)."""
        self.waited = 0.0
        """Seconds of the phase."""
        self._received = 0
        self._unread = 0
        self._unread_for = 0.0

    def enter(self, phase: Phase) -> None:
        """The connection is now in this phase; entering the current one again changes nothing."""
        if phase is not self.phase:
            self.phase = phase
            self.waited = 0.0
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
        write = self._limits.write
        if self._is_reading_slowly(seconds, unread, write):
            return write.reason
        allowance = self._limits.times.get(self.phase)
        if allowance is None or our_turn:
            return None
        self.waited += seconds
        waited = self.waited - self._limits.tick  # the phase may have begun at the end of a tick
        return allowance.reason if waited > allowance.allows(self._received) else None

    def _is_reading_slowly(self, seconds: float, unread: int, write: Allowance) -> bool:
        if unread == 0:
            self._unread, self._unread_for = 0, 0.0
            return False
        self._unread = max(self._unread, unread)
        self._unread_for += seconds
        return self._unread_for > write.allows(self._unread)


class Connection(Protocol):
    """The interface of an adapter."""

    peer: Peer

    def unread(self) -> int:
        """Bytes that could not be sent yet."""

    def is_our_turn(self) -> bool:
        """We are not reading from the peer at the moment, or have not asked for more."""

    def give_up(self, reason: Reason) -> None:
        """Close the connection, with an answer if possible."""


C = TypeVar("C", bound=Connection)


class Peers(Generic[C]):
    """The connections of one door of a process. Parameters: `gauge`, `closed`: its metrics."""

    def __init__(self, limits: PeerLimits, gauge: Gauge, closed: Counter) -> None:
        self.limits = limits
        self.open: set[C] = set()
        self._addresses = Addresses(limits.from_one)
        self._gauge = gauge
        self._closed = closed
        self._looked_at: float | None = None

    def __len__(self) -> int:
        return len(self.open)

    def admit(self, connection: C, address: str = "") -> bool:
        """Whether one more connection is allowed; if so, it is watched from now on. `address`: where it comes from."""
        if len(self.open) >= self.limits.connections or not self._addresses.admit(connection, address):
            self.note_closed(Reason.LIMIT)
            return False
        self.open.add(connection)
        self._gauge.set(len(self.open))
        return True

    def forget(self, connection: C) -> None:
        """The connection is closed."""
        self.open.discard(connection)
        self._addresses.forget(connection)
        HOLDERS.closed(connection.peer)
        self._gauge.set(len(self.open))

    def note_closed(self, reason: Reason) -> None:
        """Count a connection that we closed."""
        self._closed.labels(reason.value).inc()

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
        for connection in tuple(self.open):
            yield
            if connection not in self.open:
                continue
            reason = connection.peer.tick(step, connection.unread(), our_turn=connection.is_our_turn())
            if reason is not None:
                self.note_closed(reason)
                connection.give_up(reason)
        self._tell()

    def _tell(self) -> None:
        """After a look: for a log that is not of each connection."""


class HttpPeers(Peers[Connection]):
    """Those of HTTP. `proxies`: addresses and networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed."""

    def __init__(self, limits: PeerLimits, proxies: Iterable[str] = ()) -> None:
        super().__init__(limits, metrics.CONNECTIONS, metrics.CONNECTIONS_CLOSED)
        self.proxies = Proxies(proxies)
        self._counted: collections.Counter[Reason] = collections.Counter()

    def note_closed(self, reason: Reason) -> None:
        """As `Peers`."""
        super().note_closed(reason)
        self._counted[reason] += 1

    def _tell(self) -> None:
        """One line for all that were closed since the last one: an attacker must not fill the log."""
        if self._counted:
            counts = {reason.value: count for reason, count in self._counted.items()}
            write = log.warning if Reason.LIMIT in self._counted else log.info
            write("connections_closed", reasons=counts, open=len(self))
            self._counted.clear()


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
