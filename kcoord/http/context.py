"""What is known about the current request: its id, its outcome, and its line in the access log.

One mutable `RequestContext` per request, in a context variable: the log processor, problem bodies of both planes and
the access log read it. Threads that run Django's views see it too, because asgiref copies the context. Each request has
a line in the log, but of successful hot calls only a sample.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import msgspec
import structlog

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


_current: ContextVar[RequestContext | None] = ContextVar("kcoord_request", default=None)


def current() -> RequestContext | None:
    """The current request; None outside of one."""
    return _current.get()


def request_id() -> str:
    """The id of the current request; "" outside of one."""
    context = _current.get()
    return "" if context is None else context.request_id


def enter(context: RequestContext) -> object:
    """Make `context` the current one; pass the result to `leave`."""
    return _current.set(context)


def leave(token: object) -> None:
    """Undo `enter`."""
    _current.reset(token)  # type: ignore[arg-type]


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
