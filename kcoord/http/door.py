"""What a connection needs to know of a request: its operation, what its headers say, and what lets it in.

A path is compared as it was sent: an encoded slash inside a name must not look like a different path, and any text
between prefix and suffix is taken as the name, so that an invalid one gets a proper error.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterable, Mapping
from contextvars import Context
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from kcoord import metrics
from kcoord.access.rights import Access, bearer, digest
from kcoord.access.token_watch import Holder, TokenWatch
from kcoord.http import context
from kcoord.http.context import AccessLines
from kcoord.http.serving import Operation
from kcoord.process.runtime import Runtime
from kcoord.process.turnstile import Turnstile
from kcoord.protocol.errors import ProtocolError
from kcoord.quotas.connections import Connections
from kcoord.quotas.quotas import Quotas
from kcoord.tallies import Durations, Tally

DOOR = "kcoord.door"
"""Key of a `Door` in the state that the application's lifespan gives to the server (ASGI, "Lifespan State")."""

JSON = b"application/json"

Headers = list[tuple[bytes, bytes]]

REMEMBERED = 32_768
"""Paths whose operation need not be looked for again."""

LONGEST_REMEMBERED = 300
"""Bytes of such a path; one with the longest group id is shorter."""

GROUP_ID = "{group_id}"
_PLACEHOLDER = re.compile(r"\{\w+\}")
_PLAIN = re.compile(rb"[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,254}")
"""Group ids that are in a path what they are: no escapes, nothing that a group id must not contain."""


PATIENCE = b"x-request-timeout-ms"
LONGEST_PATIENCE = 9
"""Digits."""


class Head(NamedTuple):
    """What a valid block of headers says.

    `length` of the body, None if it comes in chunks. `authorization`: that header, b"" if it is missing or there are
    several. `secret` of the token, "" if there is none that can be read, and `token`, its digest. `scope`: of ASGI, for
    the request of the connection that is answered at the moment. `patience_ms`: how long the client waits for the
    answer, apart from what it lets the server wait; NaN: it says so in a way that cannot be read.
    """

    headers: Headers
    length: int | None
    keeps_alive: bool
    expects: bool
    authorization: bytes
    secret: str
    token: str
    request_id: str | None
    is_json: bool
    client_host: str
    scope: dict[str, Any]
    patience_ms: float = math.inf

    @classmethod
    def of(
        cls,
        scope: dict[str, Any],
        length: int | None,
        *,
        keeps_alive: bool,
        expects: bool,
        last: Head | None,
    ) -> Head:
        """What the headers of a scope say. `last`: what those before said on the same connection."""
        headers: Headers = scope["headers"]
        by_name = dict(headers)
        is_plain = len(by_name) == len(headers)
        authorization = by_name.get(b"authorization", b"") if is_plain else b""
        if authorization and last is not None and last.authorization == authorization:
            secret, token = last.secret, last.token
        else:
            try:
                secret = bearer(headers)
                token = digest(secret)
            except ProtocolError:
                secret = token = ""
        client = scope.get("client")
        return cls(
            headers,
            length,
            keeps_alive,
            expects,
            authorization,
            secret,
            token,
            context.sane_request_id(headers) if context.HEADER in by_name else None,
            is_plain and by_name.get(b"content-type") == JSON and b"content-encoding" not in by_name,
            client[0] if client else "",
            scope,
            _patience(by_name.get(PATIENCE)),
        )


def _patience(value: bytes | None) -> float:
    if value is None:
        return math.inf
    return float(value) if value.isdigit() and len(value) <= LONGEST_PATIENCE else math.nan


class Admission:
    """What decides which requests are carried out, and when; one per runtime.

    `waiting`: requests that are held until something happens, which end early if their token does.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.access = runtime.get(Access)
        self.quotas = runtime.get(Quotas)
        self.connections = runtime.get(Connections)
        self.turnstile = runtime.get(Turnstile)
        self.longest_body = runtime.config.int("http.max.body.bytes")
        self.waiting: set[Holder] = set()
        self._watch = asyncio.create_task(TokenWatch(runtime, self.waiting).watch(), name="kcoord-waiting-tokens")
        runtime.on_stop(self._stop)

    async def _stop(self) -> None:
        self._watch.cancel()
        await asyncio.gather(self._watch, return_exceptions=True)


class Spans(Protocol):
    """Spans of requests, if traces are collected (`kcoord.http.tracing`)."""

    def begin(self, method: str, scope: Mapping[str, Any], own: Context) -> Any:
        """The span of a request, which is the current one in its context from now on."""

    def end(self, span: Any, method: str, request: context.RequestContext, name: bytes | None) -> None:
        """The request is answered. `name`: in its path, as it was sent."""


class Door:
    """What a server's connections need to answer operations. `lines`: the access log."""

    def __init__(self, runtime: Runtime, operations: Operations, spans: Spans | None = None) -> None:
        self.admission = runtime.get(Admission)
        self.operations = operations
        self.spans = spans
        self.lines = AccessLines(runtime.config.int("log.hot.requests"))
        self._defaults: Headers | None = None
        self._start = b""

    def success(self, defaults: Headers) -> bytes:
        """How a success begins, up to its length. The server renews its headers each second, as a new list."""
        if defaults is not self._defaults:
            lines = b"".join(b"%b: %b\r\n" % header for header in defaults)
            self._start, self._defaults = b"HTTP/1.1 200 OK\r\n" + lines + b"content-length: ", defaults
        return self._start


class Route(NamedTuple):
    """The operation of a request, and what its path says.

    `name`: in the path, as it was sent; None if the path has none. `group_id`: "" if the path names none, None if the
    name has to be read (`kcoord.http.paths`).
    """

    operation: Operation
    template: str
    name: bytes | None
    group_id: str | None
    raw: bytes
    path: str
    answered: Tally
    seconds: Durations


class Operations:
    """Parameters: `operations` of the process."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._by_end: dict[bytes, list[_Path]] = {}
        for path in _paths(operations):
            self._by_end.setdefault(path.end, []).append(path)
        self._remembered = lru_cache(maxsize=REMEMBERED)(self._find)

    def find(self, method: bytes, raw: bytes) -> Route | None:
        """The operation of a request; None: it is none of these."""
        return self._remembered(method, raw) if len(raw) <= LONGEST_REMEMBERED else self._find(method, raw)

    def at(self, raw: bytes) -> tuple[str, dict[str, Operation]] | None:
        """The template of a path and its operations by method; None: there are none."""
        for path in self._by_end.get(_end(raw), ()):
            if path.pattern.fullmatch(raw):
                return path.template, path.methods
        return None

    def _find(self, method: bytes, raw: bytes) -> Route | None:
        for path in self._by_end.get(_end(raw), ()):
            found = path.pattern.fullmatch(raw)
            operation = None if found is None else path.methods.get(method.decode("latin-1"))
            if found is not None and operation is not None:
                name: bytes | None = found[1] if found.re.groups else None
                group_id = None
                if name is None:
                    group_id = ""
                elif GROUP_ID in path.template and _PLAIN.fullmatch(name):
                    group_id = name.decode("ascii")
                answered = metrics.requests(path.template, operation.endpoint.method, 200)
                return Route(
                    operation,
                    path.template,
                    name,
                    group_id,
                    raw,
                    raw.decode("latin-1"),
                    answered,
                    metrics.latency(path.template),
                )
        return None


class _Path:
    """One path with its operations. `end`: its last segment."""

    def __init__(self, template: str, methods: dict[str, Operation]) -> None:
        self.template = template
        self.methods = methods
        around = (re.escape(part) for part in _PLACEHOLDER.split(template, maxsplit=1))
        self.pattern = re.compile("(.*)".join(around).encode(), re.DOTALL)
        self.end = _end(template.encode())
        assert b"{" not in self.end, f"{template} ends with a name"


def _end(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def _paths(operations: Iterable[Operation]) -> list[_Path]:
    """Several methods of one path make one."""
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        methods = by_path.setdefault(operation.endpoint.path, {})
        assert operation.endpoint.method not in methods, f"{operation.endpoint.operation_id} is bound twice"
        methods[operation.endpoint.method] = operation
    return [_Path(path, methods) for path, methods in by_path.items()]
