"""The current request: its id and outcome, on whose behalf it is made, when it was received, and how old it is.

Each of these travels in a context variable, over the bridge too. Threads that run Django's views see them, because
asgiref copies the context. `RequestContext` is read by the log processor, by problem bodies of both planes and by the
access log: each request has a line in the log, but of successful hot calls only a sample.

A `Caller` is what a record of the audit says about its author. It is made where a request enters; who it is may become
known later, when the token or the session was looked at. Code that outlives the request, such as the queue of a group,
takes the caller along (`Work.caller`).

A client that got no answer in time sends its request to another server. The first server may have been frozen meanwhile
(SIGSTOP, a paused virtual machine) and resume later: what it writes then would undo what the other one acknowledged. So
each write checks, while it holds its locks, how old its request is, and is refused beyond `request.max.age.ms`.

A request counts as received when the process is known to have last run: one that was in a socket, or in the queue of
connections to accept, while the process was frozen is read after the thaw and looks new. Ages are measured by the
database's clock, because the clocks of a paused virtual machine may have stopped, and by the monotonic clock,
because the database's may be set back; the larger age counts.
"""

from __future__ import annotations

import asyncio
import getpass
import math
import os
import random
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
import structlog

from kcoord.config import Config
from kcoord.protocol.errors import Error, ProtocolError

HEADER = b"x-request-id"

_ids = random.Random()  # noqa: S311 - ids tell requests apart, and are no secret
os.register_at_fork(after_in_child=_ids.seed)
_SANE = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")


class RequestContext(msgspec.Struct):
    """One request. `status` is 0 until the response begins, 499 if the client disconnected before that.

    `scope` is that of ASGI, None if it did not come over a network. `is_hot`: one of the calls that members make all
    the time. `is_api`: a request of Kafka's protocol, which is routed as those of the API are.
    """

    request_id: str
    route: str = ""
    status: int = 0
    error: str | None = None
    scope: Mapping[str, Any] | None = None
    is_hot: bool = False
    is_api: bool = False


_request: ContextVar[RequestContext | None] = ContextVar("kcoord_request", default=None)


def request() -> RequestContext | None:
    """The current request; None outside of one."""
    return _request.get()


def request_id() -> str:
    """The id of the current request; "" outside of one."""
    context = _request.get()
    return "" if context is None else context.request_id


def enter_request(context: RequestContext) -> object:
    """Make `context` the current one; pass the result to `leave`."""
    return _request.set(context)


def leave_request(token: object) -> None:
    """Undo `enter`."""
    _request.reset(token)  # type: ignore[arg-type]


def request_id_of(headers: list[tuple[bytes, bytes]]) -> str:
    """The caller's `X-Request-Id` if it is safe to log and to echo, else a new one."""
    return sane_request_id(headers) or new_request_id()


def sane_request_id(headers: list[tuple[bytes, bytes]]) -> str | None:
    """The caller's `X-Request-Id` if it is safe to log and to echo, else None."""
    for name, value in headers:
        if name == HEADER and _SANE.fullmatch(value):
            return value.decode("ascii")
    return None


def new_request_id() -> str:
    """32 hexadecimal digits, 128 random bits."""
    return f"{_ids.getrandbits(128):032x}"


log = structlog.get_logger("kcoord.access_log")

QUIET_ROUTES = frozenset({"/livez", "/readyz", "/metrics"})
"""Routes that machines request every few seconds: logged at level debug."""


class AccessLines:
    """Writes the lines of answered requests.

    Parameters: of `one_hot_of` successful calls that members make all the time one has a line; 0: none.
    """

    def __init__(self, one_hot_of: int) -> None:
        self._one_hot_of = one_hot_of
        self._hot = 0

    def skips(self, request: RequestContext) -> bool:
        """No line is written for this request, the next one of its kind."""
        if not request.is_hot or request.status >= 400:
            return False
        self._hot += 1
        return self._one_hot_of == 0 or self._hot % self._one_hot_of != 0

    @staticmethod
    def write(method: str, path: bytes, request: RequestContext, seconds: float) -> None:
        """The line of a request, which is the current one. `path` as it was sent."""
        write = log.debug if request.route in QUIET_ROUTES else log.info
        write(
            "request",
            method=method,
            path=path.decode("latin-1"),
            status=request.status,
            ms=round(seconds * 1000, 1),
            error=request.error,
        )


class Kind(StrEnum):
    """What a principal is."""

    PERSON = "person"
    TOKEN = "token"  # noqa: S105 - not a secret
    LOCAL = "local"
    NODE = "node"
    UNKNOWN = "unknown"


class Door(StrEnum):
    """Where a request came in."""

    HTTP = "http"
    DASHBOARD = "dashboard"
    ADMIN = "admin"
    WIRE = "wire"
    COMMAND = "command"
    SERVICE = "service"


@dataclass(slots=True)
class Caller:
    """Who acts. `identifier`: the id of a token or an account. `address`: of the client, "" if it came by no network.

    `subject`: what its request names, as far as it was read. `refused`: a refusal of it was noted already.
    """

    door: Door
    kind: Kind = Kind.UNKNOWN
    name: str = ""
    identifier: str = ""
    address: str = ""
    request_id: str = ""
    subject: str = ""
    refused: bool = False


_caller: ContextVar[Caller | None] = ContextVar("kcoord_caller", default=None)
_process: Caller | None = None


def caller() -> Caller:
    """The caller; outside of a request the process itself."""
    return _caller.get() or caller_of_process()


def caller_of_request() -> Caller | None:
    """The caller of the current request; None outside of one."""
    return _caller.get()


def caller_of_process() -> Caller:
    """The process: a server or worker after `is_service`, else a command of a user of this machine."""
    global _process
    if _process is None:
        _process = Caller(Door.COMMAND, Kind.LOCAL, f"local:{_user()}", address=os.uname().nodename)
    return _process


def is_service(node: str) -> None:
    """This process serves requests or runs tasks: what nobody asked for is done by this node."""
    global _process
    _process = Caller(Door.SERVICE, Kind.NODE, node, address=os.uname().nodename)


def identify(name: str, token_id: int | None = None, account_id: object = None) -> None:
    """Who the caller of the current request is, once that is known. Without a request it has no effect.

    A token without an id is the user of this machine, whose command made the request within its own process.
    """
    caller = _caller.get()
    if caller is None:
        return
    caller.name = name
    if account_id is not None:
        caller.kind, caller.identifier = Kind.PERSON, str(account_id)
    elif token_id:
        caller.kind, caller.identifier = Kind.TOKEN, str(token_id)
    else:
        caller.kind, caller.door, caller.address = Kind.LOCAL, Door.COMMAND, os.uname().nodename


def enter_caller(caller: Caller) -> None:
    """Make `caller` that of the present context, which belongs to its request."""
    _caller.set(caller)


@contextmanager
def calling(caller: Caller) -> Iterator[Caller]:
    """Make `caller` the current one."""
    token = _caller.set(caller)
    try:
        yield caller
    finally:
        _caller.reset(token)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the account has no name, as in some containers
        return str(os.getuid())


RECEIPT = "kcoord.receipt"
"""Key of an ASGI scope: the receipt of a request that was held before the application was called; None: it was not."""

BEAT_SECONDS = 0.1
"""How often the event loop records that it is running."""
GAP_SECONDS = 0.5
"""After the event loop has not run for this long, what is read next may have arrived at the start of the gap."""
FROZEN_SECONDS = 2.5
"""A process that did nothing for this long was frozen: no request that it had then, or has not read, may write."""
IDLE_CPU_SECONDS = 0.15
"""Maximum CPU time of a process around a freeze; one that was merely busy uses more."""
SETTLE_SECONDS = 1.0
"""How long after a gap requests may be read that arrived before its end."""
YOUNG_MS = 1_000
"""A request that was received this long ago is young, whatever happened since."""
CLOCK_WINDOW_SECONDS = 10.0
"""How long a measurement of the database's clock is trusted, at least."""


class Receipt(NamedTuple):
    """When a request was received: `at` in seconds of the monotonic clock, `database_ms` by the database's clock.

    `database_ms` is None if the database's clock was unknown then. `extra_ms`: how much longer than others the
    caller was told to wait. `patience_ms`: how long it waits at most, apart from that.
    """

    at: float
    database_ms: float | None = None
    extra_ms: float = 0.0
    patience_ms: float = math.inf


_receipt: ContextVar[Receipt | None] = ContextVar("kcoord_receipt", default=None)


def receipt() -> Receipt | None:
    """The receipt of the current request; None for work that the service does by itself."""
    return _receipt.get()


def enter_receipt(receipt: Receipt | None) -> Token[Receipt | None]:
    """Make `receipt` the current one; None: the service's own work follows. The result is for `leave`."""
    return _receipt.set(receipt)


def leave_receipt(token: Token[Receipt | None]) -> None:
    """Undo `enter`."""
    _receipt.reset(token)


def allow(extra_ms: float) -> None:
    """The caller was told that this request may take longer than others, by `extra_ms`."""
    receipt = _receipt.get()
    if receipt is not None:
        _receipt.set(receipt._replace(extra_ms=extra_ms))


def held(receipt: Receipt | None, held_ms: float) -> Receipt | None:
    """The receipt of a request held at its caller's request, for `held_ms` at most: its age did not grow then."""
    if receipt is None:
        return None
    grown = max(min(time.monotonic() - receipt.at, held_ms / 1000), 0.0)
    database_ms = None if receipt.database_ms is None else receipt.database_ms + grown * 1000
    return receipt._replace(at=receipt.at + grown, database_ms=database_ms)


class FreezeDetector:
    """Records when the event loop runs, so that gaps show, and whether the process ran during them.

    For processes that serve a socket; callers inside a process are frozen with it, and wait no longer than it runs.
    """

    def __init__(self) -> None:
        self._last, self._last_cpu = time.monotonic(), time.process_time()
        self._gap_began = self._gap_ended = self._thawed = float("-inf")
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start, on the running loop."""
        self.stop()
        self._last, self._last_cpu = time.monotonic(), time.process_time()
        self._handle = asyncio.get_running_loop().call_later(BEAT_SECONDS, self._beat)

    def stop(self) -> None:
        """Stop. No gaps are detected after that."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def received(self) -> float:
        """The earliest time at which a request read now was received (seconds of the monotonic clock)."""
        now = self._look()
        return self._gap_began if now - self._gap_ended < SETTLE_SECONDS else now

    def was_frozen_since(self, at: float) -> bool:
        """Whether the process was frozen and thawed at `at` or later."""
        self._look()
        return self._thawed >= at

    def ran_since(self, at: float) -> bool:
        """Whether the event loop has run all the time since `at`, without a gap."""
        self._look()
        return self._gap_ended < at

    def note_freeze(self) -> None:
        """The process was frozen until now, and its clocks did not show it."""
        self._gap_began, self._gap_ended = self._last, time.monotonic()
        self._thawed = self._gap_ended

    def _beat(self) -> None:
        self._last, self._last_cpu = self._look(), time.process_time()
        self._handle = asyncio.get_running_loop().call_later(BEAT_SECONDS, self._beat)

    def _look(self) -> float:
        now = time.monotonic()
        gap = now - self._last
        if self._handle is None or gap < GAP_SECONDS:
            return now
        cpu = time.process_time()
        self._gap_began, self._gap_ended = self._last, now
        if gap >= FROZEN_SECONDS and cpu - self._last_cpu <= IDLE_CPU_SECONDS:
            self._thawed = now
        self._last, self._last_cpu = now, cpu
        return now


class DatabaseTime:
    """The database's clock, derived from this process's monotonic clock.

    An answer arrives later than the clock in it was read, so a measurement is too small rather than too large: the
    largest recent one is the best. It errs towards older receipts.
    """

    def __init__(self) -> None:
        self._window_began = float("-inf")
        self._offsets: tuple[float | None, float | None] = (None, None)
        self._largest: float | None = None

    def at(self, monotonic: float) -> float | None:
        """The database's time (ms) at an instant; None before the first measurement."""
        return None if self._largest is None else self._largest + monotonic * 1000

    def measure(self, database_ms: int) -> bool:
        """The database's clock was read just now. True: it ran ahead of ours, as it does in a freeze."""
        now = time.monotonic()
        expected = self.at(now)
        offset = database_ms - now * 1000
        previous, latest = self._offsets
        if now - self._window_began >= CLOCK_WINDOW_SECONDS:
            self._window_began = now
            previous, latest = latest, None
        latest = offset if latest is None else max(latest, offset)
        self._offsets = previous, latest
        self._largest = latest if previous is None else max(previous, latest)
        return expected is not None and database_ms - expected >= FROZEN_SECONDS * 1000


class RequestAge:
    """Records when requests of one process are received, and refuses writes of those that are too old."""

    def __init__(self, config: Config) -> None:
        self.pulse = FreezeDetector()
        self.database_time = DatabaseTime()
        self.max_age_ms = config.int("request.max.age.ms")
        self._retry_after_ms = config.int("http.retry.after.ms")
        # The commit comes up to one transaction after the check, and an undetected gap makes a receipt too late.
        self._latest_ms = self.max_age_ms - config.int("database.transaction.timeout.ms") - GAP_SECONDS * 1000

    def receive(self, patience_ms: float = math.inf) -> Receipt:
        """The receipt of a request that is read now. `patience_ms`: how long its client says that it waits."""
        at = self.pulse.received()
        return Receipt(at, self.database_time.at(at), 0.0, patience_ms)

    def measure(self, database_ms: int) -> None:
        """The database's clock was read just now (ms)."""
        if self.database_time.measure(database_ms):
            self.pulse.note_freeze()

    def age_ms(self, receipt: Receipt, database_ms: int) -> float:
        """How long ago a request was received; `database_ms` is the database's clock, read just now."""
        age_ms = (time.monotonic() - receipt.at) * 1000
        return age_ms if receipt.database_ms is None else max(age_ms, database_ms - receipt.database_ms)

    def is_young(self, receipt: Receipt) -> bool:
        """Whether a request is known not to be too old: if it is older than a moment, it waited in a loop that ran."""
        age_ms = (time.monotonic() - receipt.at) * 1000
        if age_ms <= YOUNG_MS:
            return True
        latest_ms = min(self._latest_ms, receipt.patience_ms) + receipt.extra_ms
        return age_ms <= latest_ms and self.pulse.ran_since(receipt.at)

    def refusal(self, receipt: Receipt | None, database_ms: int) -> ProtocolError | None:
        """Why a request may no longer write; `database_ms` was read under the locks of the write. None: it may."""
        if receipt is None:
            return None
        age_ms = self.age_ms(receipt, database_ms)
        latest_ms = min(self._latest_ms, receipt.patience_ms) + receipt.extra_ms
        if age_ms <= latest_ms and not self.pulse.was_frozen_since(receipt.at):
            return None
        return ProtocolError(
            Error.COORDINATOR_NOT_AVAILABLE,
            f"the request is {age_ms:.0f} ms old and was not carried out: its client may have given up "
            "(request.max.age.ms, X-Request-Timeout-Ms); send it again",
            retry_after_ms=self._retry_after_ms,
        )
