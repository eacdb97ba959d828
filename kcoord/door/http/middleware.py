"""Wrappers around both planes: request id, access log, metrics, and the guarantee that every error under /v1 is a
problem response, whatever part of Django produced it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import structlog
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kcoord import metrics
from kcoord.access.rights import Access, bearer, digest, trusted_caller
from kcoord.door.http import paths, problem
from kcoord.door.http.body import LONGEST_ECHO
from kcoord.door.http.door import Operations
from kcoord.door.http.serving import Operation
from kcoord.process import runtime as runtimes
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests import current
from kcoord.requests.current import AccessLines
from kcoord.requests.turnstile import Turnstile

log = structlog.get_logger("kcoord.access_log")

API = "/v1/"

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Values of the metrics' label; anything else that a client sends is `other`."""


class RequestLog:
    """ASGI middleware, the outermost: gives each request its id and writes one line for each."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = current.RequestContext(current.request_id_of(scope["headers"]), route=_plane(scope["path"]))
        request.scope = None if trusted_caller(scope) else scope
        id_header = (current.HEADER, request.request_id.encode())

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.status = message["status"]
                message = {**message, "headers": [*message.get("headers", ()), id_header]}
            await send(message)

        token = current.enter_request(request)
        receipt = current.enter_receipt(_receipt(scope))
        started = time.perf_counter()
        try:
            await self.app(scope, receive, send_with_id)
        except Exception:
            log.exception("request_failed", path=scope["path"])
            if request.status:
                raise  # the response has begun: only closing the connection can tell the client
            await problem.response(Error.UNKNOWN_SERVER_ERROR)(scope, receive, send_with_id)
        finally:
            self._finish(scope, request, time.perf_counter() - started)
            current.leave_receipt(receipt)
            current.leave_request(token)

    def _finish(self, scope: Scope, request: current.RequestContext, seconds: float) -> None:
        method = scope["method"] if scope["method"] in METHODS else "other"
        metrics.requests(request.route, method, request.status).inc()
        metrics.latency(request.route).observe(seconds)
        AccessLines.write(scope["method"], paths.raw_path(scope), request, seconds)


def _receipt(scope: Scope) -> current.Receipt | None:
    found: current.Receipt | None = scope.get(current.RECEIPT)
    if found is not None:
        return found
    return runtimes.current().db.request_age.receive() if runtimes.is_running() else None


def _plane(path: str) -> str:
    """The route label for requests that the data plane does not label itself."""
    return "/v1/*" if path.startswith(API) else "/*"


class NotAnOperation:
    """ASGI middleware: answers what reaches the application at the path of an operation.

    A server's connections carry out operations themselves (`kcoord.door.http.connection`). Left are wrong methods,
    requests while no runtime runs, and those of an ASGI server that knows nothing of operations.
    """

    def __init__(self, app: ASGIApp, operations: Operations) -> None:
        self.app = app
        self._operations = operations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        raw = paths.raw_path(scope) if scope["type"] == "http" else b""
        found = self._operations.at(raw)
        if found is None:
            await self.app(scope, receive, send)
            return
        request = current.request()
        if request is not None:
            request.route = found[0]
        await self._refusal(scope["method"], found[1])(scope, receive, send)

    def _refusal(self, method: str, operations: Mapping[str, Operation]) -> Response:
        if method not in operations:
            allowed = ", ".join(sorted(operations))
            detail = f"{method} is not allowed here; use {allowed}"
            return problem.response(Error.INVALID_REQUEST, detail, status=405, extra_headers={"allow": allowed})
        if runtimes.is_running():
            detail = "this ASGI server carries out no operations; start kcoord with `python -m kcoord.stack.server`"
            return problem.response(Error.UNKNOWN_SERVER_ERROR, detail)
        return problem.response(Error.COORDINATOR_NOT_AVAILABLE, "this server is starting or stopping; try again")


class ProblemNet:
    """ASGI middleware around Django: under /v1 its error pages become problem responses.

    Views answer problems themselves; this handles what never reaches them (unknown paths, refused hosts, crashes).
    Lists and descriptions are big requests: each wants a place (`kcoord.requests.turnstile`).
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if not scope["path"].startswith(API):
            catcher = _PageCatcher(scope, receive, send) if _is_program(scope) else None
            await self.app(scope, receive, send if catcher is None else catcher.send)
            return
        async with AsyncExitStack() as place:
            if scope["method"] == "GET" and runtimes.is_running():
                try:
                    runtime = runtimes.current()
                    await place.enter_async_context(runtime.get(Turnstile).place(_caller(runtime, scope)))
                except ProtocolError as refused:
                    await problem.from_error(refused)(scope, receive, send)
                    return
            # A client that reads slowly keeps no place: Django has the whole answer when it begins to send it.
            await self.app(scope, receive, _Catcher(scope, receive, send, place.aclose).send)


def _is_program(scope: Scope) -> bool:
    """Whether the client says that it wants JSON, or sends a token or JSON, as no browser does for a page."""
    headers = {name: value.lower() for name, value in scope["headers"]}
    accepted = headers.get(b"accept", b"")
    return (
        (b"json" in accepted and b"text/html" not in accepted)
        or headers.get(b"authorization", b"").startswith(b"bearer ")
        or headers.get(b"content-type", b"").startswith(b"application/json")
    )


class _PageCatcher:
    """For a program that asks at a path of the pages: HTML and the way to the sign-in become a problem."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._is_replaced = False

    async def send(self, message: Message) -> None:
        """Handle one message of Django's response."""
        if message["type"] == "http.response.start":
            status = message["status"]
            is_page = 400 <= status < 500 and _content_type(message).startswith(b"text/html")
            self._is_replaced = is_page or status in (301, 302)
        if not self._is_replaced:
            await self._send(message)
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            path = f"/v1{self._scope['path']}"[:LONGEST_ECHO]
            detail = f"this is no path of the API, whose paths begin with /v1 ({path}); /v1/openapi.json lists them"
            await problem.response(Error.INVALID_REQUEST, detail, status=404)(self._scope, self._receive, self._send)


def _caller(runtime: Runtime, scope: Scope) -> int | None:
    """The token that sends a request, if it is known; all others share one line."""
    try:
        found = runtime.get(Access).known(digest(bearer(scope["headers"])))
    except ProtocolError:
        return None
    return None if found is None else found.token_id


class _Catcher:
    """Passes a response on, reads a problem's error for the access log, and replaces errors that are not problems."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, when_it_begins: Callable[[], Awaitable[None]]
    ) -> None:
        self._scope, self._receive, self._send, self._when_it_begins = scope, receive, send, when_it_begins
        self._status = 0
        self._is_problem = False
        self._body = b""

    async def send(self, message: Message) -> None:
        """Handle one message of Django's response."""
        if message["type"] == "http.response.start":
            await self._when_it_begins()
            self._status = message["status"]
            self._is_problem = _content_type(message).startswith(problem.MEDIA_TYPE.encode())
            if self._status < 400 or self._is_problem:
                await self._send(message)
            return
        if self._is_problem:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                self._note_error()
        if self._status < 400 or self._is_problem:
            await self._send(message)
        elif not message.get("more_body", False):
            await self._replace()

    def _note_error(self) -> None:
        request = current.request()
        if request is not None:
            request.error = msgspec.json.decode(self._body, type=_Problem).error

    async def _replace(self) -> None:
        error, detail = _MEANING.get(self._status, (Error.INVALID_REQUEST, ""))
        if self._status >= 500:
            error = Error.UNKNOWN_SERVER_ERROR
        response = problem.response(error, detail, status=self._status)
        await response(self._scope, self._receive, self._send)


class _Problem(msgspec.Struct):
    error: str | None = None


_MEANING = {
    400: (Error.INVALID_REQUEST, "the request is not well formed"),
    401: (Error.SASL_AUTHENTICATION_FAILED, ""),
    403: (Error.CLUSTER_AUTHORIZATION_FAILED, ""),
    404: (Error.INVALID_REQUEST, "no such path; /v1/openapi.json lists all paths"),
    405: (Error.INVALID_REQUEST, "this method is not allowed at this path"),
    413: (Error.INVALID_REQUEST, "the body is too large"),
}


def _content_type(message: MutableMapping[str, Any]) -> bytes:
    for name, value in message.get("headers", ()):
        if name.lower() == b"content-type":
            found: bytes = value
            return found
    return b""
