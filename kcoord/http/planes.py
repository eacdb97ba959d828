"""Operations for callers that come by ASGI: commands of this machine (`kcoord.http.local_transport`), and requests with
a wrong method. A server's connections call operations themselves.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from kcoord.access.rights import trusted_caller
from kcoord.database import request_age
from kcoord.http import body as bodies
from kcoord.http import context, paths, problem
from kcoord.http.asked import CLIENT_GONE_STATUS, Asked
from kcoord.http.door import JSON, Admission, Head, Headers, Operations, Route
from kcoord.http.serving import current_runtime
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError


class DataPlane:
    """ASGI middleware inside `RequestLog`, whose request is the current one."""

    def __init__(self, app: ASGIApp, operations: Operations) -> None:
        self.app = app
        self._operations = operations
        self._tasks: set[asyncio.Task[object]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        raw = paths.raw_path(scope) if scope["type"] == "http" else b""
        found = self._operations.at(raw)
        if found is None:
            await self.app(scope, receive, send)
            return
        template, methods = found
        about = context.current() or context.RequestContext(context.request_id_of(scope["headers"]))
        about.route = template
        route = self._operations.find(scope["method"].encode(), raw)
        if route is None:
            allowed = ", ".join(sorted(methods))
            detail = f"{scope['method']} is not allowed here; use {allowed}"
            response: Response | None = problem.response(
                Error.INVALID_REQUEST, detail, status=405, extra_headers={"allow": allowed}
            )
        else:
            about.is_hot = route.operation.is_hot
            try:
                response = await self._answer(current_runtime(), route, about, scope, receive)
            except ProtocolError as error:
                response = problem.from_error(error)
        if response is not None:
            await response(scope, receive, send)

    async def _answer(
        self, runtime: Runtime, route: Route, about: context.RequestContext, scope: Scope, receive: Receive
    ) -> Response | None:
        """The answer of an operation; None: the client went away."""
        answered: asyncio.Future[Response | None] = asyncio.get_running_loop().create_future()

        def answer(asked: Asked, status: int, headers: Headers | None, content: bytes) -> None:
            if answered.done():
                return
            response = Response(content, status)
            if headers is None:
                response.headers["content-type"] = JSON.decode()
            else:
                response.raw_headers = headers
            answered.set_result(None if status == CLIENT_GONE_STATUS else response)

        lengths = [int(value) for name, value in scope["headers"] if name == b"content-length" and value.isdigit()]
        head = Head.of(dict(scope), lengths[0] if lengths else None)
        receipt = request_age.current() or runtime.db.request_age.receive()
        asked = Asked(
            runtime.get(Admission),
            route,
            scope["query_string"],
            head,
            about,
            receipt._replace(patience_ms=head.patience_ms),
            copy_context(),
            self._tasks,
            answer,
            trusted=trusted_caller(scope),
        )
        asked.begin(None if route.operation.decoder is not None else b"")
        reading = asyncio.ensure_future(_read(asked, receive, runtime.get(Admission).longest_body))
        try:
            return await answered
        finally:
            if not answered.done():
                asked.gone()
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def _read(asked: Asked, receive: Receive, most: int) -> None:
    """Read the body, and then until the client goes away."""
    try:
        if asked.operation.decoder is not None:
            asked.came(await bodies.read(receive, most))
        while (await receive())["type"] != "http.disconnect":
            pass
    except bodies.TooLarge:
        asked.too_large()
        return
    except bodies.ClientGone:
        pass
    asked.gone()
