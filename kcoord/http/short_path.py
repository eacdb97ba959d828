"""The short path: requests that are answered where they are read, without the application and without a task.

A server that has a whole request at hand asks here first (`kcoord.stack.protocol_httptools`). The answer is the same
as the application's, in every byte; whatever is not simple, or can neither be answered at once nor begun, gets None and
goes the usual way, on which its errors are answered too. Members repeat the same headers for hours, so what a block of
headers says is remembered for each connection, except whether the token in it is valid: that is asked for each request.

Commits and fetches have to wait: they are begun here and are `Pending` (`kcoord.http.pending`) until they are answered.

The request is the current one (`kcoord.http.context`, `kcoord.database.request_age`) until it is answered, and no
longer: what an operation starts in the background must not refer to it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import structlog

from kcoord import metrics
from kcoord.access.rights import Access, bearer, digest
from kcoord.config import Config
from kcoord.database import request_age
from kcoord.http import body as bodies
from kcoord.http import context
from kcoord.http.access_lines import AccessLines
from kcoord.http.pending import Pending
from kcoord.http.serving import Operation
from kcoord.process import runtime as runtimes
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from kcoord.quotas.budgets import one
from kcoord.quotas.connections import PEER
from kcoord.quotas.quotas import Quotas
from kcoord.server_settings import SHORT_PATH

log = structlog.get_logger(__name__)

STATE = "kcoord.short_path"
"""Key of the short path in the state that the application's lifespan gives to the server (ASGI, "Lifespan State")."""

ROUTES = 32_768
"""Targets that are remembered."""

LONGEST_TARGET = 300
"""Bytes of a target; one with the longest group id is shorter."""

LONGEST_BODY = 65_536
"""Bytes of a body; decoding a longer one is not short."""

GROUP_ID = "{group_id}"
NOT_SIMPLE = frozenset({b"expect", b"upgrade", b"transfer-encoding", b"content-encoding", b"te", b"trailer"})
"""Headers of requests that go the usual way."""

CONNECTION = b"connection"
SIMPLE = (b"keep-alive", b"close")

Headers = list[tuple[bytes, bytes]]

_PLAIN_NAME = re.compile(rb"[A-Za-z0-9._~-]{1,255}")
"""Group ids that are in a path what they are: no escapes, nothing that a group id must not contain."""


class Head(NamedTuple):
    """What a valid block of headers says.

    `authorization`: that header, b"" if it cannot be compared. `token`: digest of the secret. `scope`: of
    ASGI, for the request that is answered at the moment.
    """

    length: int
    authorization: bytes
    token: str
    request_id: str | None
    keeps_alive: bool
    client_host: str
    scope: dict[str, Any]


class Route(NamedTuple):
    """The operation of a request target, and the group that the target names; "" if none."""

    served: Served
    group_id: str
    target: bytes
    path: str


class Began(NamedTuple):
    """When a request began, in seconds of the performance counter, and as what counts for its age."""

    at: float
    receipt: request_age.Receipt


class Served:
    """An operation that can be answered at once, with its metrics."""

    def __init__(self, operation: Operation) -> None:
        path = operation.endpoint.path
        self.operation = operation
        self.route = path
        self.prefix, _, self.suffix = (part.encode() for part in path.partition(GROUP_ID))
        self.names_group = GROUP_ID in path
        self.answered = metrics.requests(path, "POST", 200)
        self.seconds = metrics.latency(path)
        self.can_begin = operation.can_begin
        self.budget = operation.metering.budget
        self.weighs_one = operation.metering.weight is one


class ShortPath:
    """The short path of a process. Parameters: `operations` of the process, of which those that can be are served."""

    def __init__(self, runtime: Runtime, operations: Iterable[Operation]) -> None:
        self._runtime = runtime
        self._access = runtime.get(Access)
        self._quotas = runtime.get(Quotas)
        self._lines = AccessLines(runtime.config.int("log.hot.requests"))
        self.longest_body = min(LONGEST_BODY, runtime.config.int("http.max.body.bytes"))
        self._by_suffix: dict[bytes, Served] = {}
        operations = tuple(operations)
        self._hot_ends = {o.endpoint.path.encode().rpartition(b"/")[2] for o in operations if o.is_hot}
        for operation in operations:
            if operation.is_short:
                assert operation.endpoint.method == "POST", operation.endpoint
                served = Served(operation)
                last = (served.suffix or served.prefix).rpartition(b"/")[2]
                assert last not in self._by_suffix, operation.endpoint
                self._by_suffix[last] = served
        self._routes = lru_cache(maxsize=ROUTES)(self._find_route)
        self._defaults: Headers | None = None
        self._start = b""

    def is_hot(self, path: bytes) -> bool:
        """Whether a path ends like one of those that members call all the time."""
        return path.rpartition(b"/")[2] in self._hot_ends

    def route(self, target: bytes) -> Route | None:
        """The operation of a POST request's target; None: it goes the usual way."""
        return self._routes(target) if len(target) <= LONGEST_TARGET else None

    def _find_route(self, target: bytes) -> Route | None:
        last = target.rpartition(b"/")[2]
        served = self._by_suffix.get(last)
        if served is None:
            return None
        if not served.names_group:
            return Route(served, "", target, target.decode("ascii")) if target == served.prefix else None
        prefix = served.prefix
        name = target[len(prefix) : -len(served.suffix)]
        if not (target.startswith(prefix) and target.endswith(served.suffix) and _PLAIN_NAME.fullmatch(name)):
            return None
        return Route(served, name.decode("ascii"), target, target.decode("ascii"))

    def head(
        self, scope: dict[str, Any], length: int | None, *, keeps_alive: bool, last: Head | None = None
    ) -> Head | None:
        """What a block of headers says, of a valid request of HTTP/1.1; None: such requests go the usual way.

        Parameters: `scope` of ASGI, with headers; `length` of the body, None if it comes in chunks; `last`, what the
        headers before said on the same connection.
        """
        headers: Headers = scope["headers"]
        by_name = dict(headers)
        if length is None or length > self.longest_body or not NOT_SIMPLE.isdisjoint(by_name):
            return None
        if CONNECTION in by_name and not all(value.lower() in SIMPLE for name, value in headers if name == CONNECTION):
            return None
        is_plain = len(by_name) == len(headers)
        authorization = by_name.get(b"authorization", b"") if is_plain else b""
        try:
            if authorization and last is not None and last.authorization == authorization:
                token = last.token
            else:
                token = digest(bearer(headers))
            if not is_plain or by_name.get(b"content-type") != b"application/json":
                bodies.check_content_type(headers)
        except ProtocolError:
            return None
        client = scope["client"]
        return Head(
            length=length,
            authorization=authorization,
            token=token,
            request_id=context.sane_request_id(headers) if context.HEADER in by_name else None,
            keeps_alive=keeps_alive,
            client_host=client[0] if client else "",
            scope=scope,
        )

    def knows(self, head: Head) -> bool:
        """The token is valid, as far as is known without asking."""
        return self._access.known(head.token) is not None

    def begin(self) -> Began:
        """A request begins whose body has not come yet."""
        return Began(time.perf_counter(), self._runtime.db.request_age.receive())

    def answer(
        self,
        route: Route,
        head: Head,
        body: bytes,
        defaults: Headers,
        began: Began | None = None,
        wait: Callable[[Pending], None] | None = None,
    ) -> bytes | Pending | None:
        """The whole response to a request, or the request if it was begun; None: it goes the usual way, and nothing has
        been done.

        Parameters: `defaults`, the server's own headers, which come first; `began`, None: just now; `wait`, called with
        a request that was begun, while it is the current one.
        """
        started = time.perf_counter() if began is None else began.at
        runtime = self._runtime
        if not runtimes.is_running() or runtimes.current() is not runtime:
            return None
        principal = self._access.known(head.token)
        if principal is None:
            return None
        served, operation = route.served, route.served.operation
        quotas = self._quotas if self._quotas.is_hot else None
        if quotas is not None and not (served.weighs_one and quotas.has_room(principal, served.budget)):
            return None
        if self._quotas.limits_connections and head.scope["state"][PEER].holder != principal.token_id:
            return None
        scope = head.scope  # of one request at a time: the next one waits until this one is answered
        scope["path"], scope["raw_path"] = route.path, route.target
        request_id = head.request_id or context.new_request_id()
        request = context.RequestContext(request_id, served.route, scope=scope, is_hot=True)
        entered = context.enter(request)
        receipt = request_age.enter(runtime.db.request_age.receive() if began is None else began.receipt)
        try:
            if served.can_begin:
                if wait is None:
                    return None
                underway = operation.begin(runtime, principal, route.group_id, head.client_host, body)
                if underway is None:
                    return None
                if quotas is not None:
                    quotas.spend(principal, served.budget, len(body))
                pending = Pending(self, route, head, request, started, defaults, underway)
                wait(pending)
                return pending
            content = operation.at_once(runtime, principal, route.group_id, head.client_host, body)
            if content is None:
                return None
            if quotas is not None:
                quotas.spend(principal, served.budget, len(body) + len(content))
            request.status = 200
            self.note(route, request, time.perf_counter() - started)
        except ProtocolError:
            return None
        except Exception:
            log.exception("request_failed", endpoint=operation.endpoint.operation_id)
            return None
        finally:
            request_age.leave(receipt)
            context.leave(entered)
        return self.success(content, request_id, defaults, keeps_alive=head.keeps_alive)

    def success(self, content: bytes, request_id: str, defaults: Headers, *, keeps_alive: bool) -> bytes:
        """A whole response with status 200."""
        if defaults is not self._defaults:
            self._begin_with(defaults)
        end = b"\r\n\r\n" if keeps_alive else b"\r\nconnection: close\r\n\r\n"
        return b"%b%d\r\ncontent-type: application/json\r\nx-request-id: %b%b%b" % (
            self._start,
            len(content),
            request_id.encode(),
            end,
            content,
        )

    def spend_bytes(self, token: str, size: int) -> None:
        """A request of the holder of a token, which is a digest, was answered with this many bytes."""
        if self._quotas.is_hot:
            principal = self._access.known(token)
            if principal is not None:
                self._quotas.spend(principal, None, size)

    def note(self, route: Route, request: context.RequestContext, seconds: float) -> None:
        """A request, which is the current one, was answered."""
        served = route.served
        if request.status == 200:
            served.answered.inc()
        else:
            metrics.requests(served.route, "POST", request.status).inc()
        served.seconds.observe(seconds)
        if not self._lines.skips(request):
            self._lines.write("POST", route.target, request, seconds)

    def _begin_with(self, defaults: Headers) -> None:
        """The server renews its headers every second, as a new list."""
        lines = b"".join(b"%b: %b\r\n" % header for header in defaults)
        self._start = b"HTTP/1.1 200 OK\r\n" + lines + b"content-length: "
        self._defaults = defaults


def is_on(config: Config) -> bool:
    """Answer what can be answered at once on the short path: it is not switched off, and no request is traced."""
    return config.bool(SHORT_PATH) and not config.str("otlp.endpoint")
