"""The short path (`kcoord.http.short_path`) for one connection: what its last block of headers said."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from kcoord.http.short_path import Began, Head, Route, ShortPath
from kcoord.stack.protocol import LONGEST_HEAD_BYTES

_METHOD = b"POST "
_VERSION = b" HTTP/1.1\r\n"
_AROUND_TARGET = len(_METHOD + _VERSION)


class Held(NamedTuple):
    """A request for the short path, until its body has come.

    `is_parsed`: the parser was given its head. `began`: None if all of it was there.
    """

    method: bytes
    target: bytes
    version: bytes
    head: bytes
    is_parsed: bool
    route: Route
    said: Head
    began: Began | None


class Shortcut:
    """Recognizes requests for the short path.

    Parameters: `app`, the application of the server, with its middleware. `scope`: what
    ASGI says about all requests of the connection.
    """

    __slots__ = ("_app", "_block", "_said", "_scope", "path")

    def __init__(self, path: ShortPath, app: Any, scope: dict[str, Any]) -> None:
        self.path = path
        self._app = app
        self._scope = scope
        self._block = b""
        self._said: Head | None = None

    def route(self, method: bytes, target: bytes, version: bytes) -> Route | None:
        """The operation of a request; None: it goes the usual way."""
        return self.path.route(target) if method == b"POST" and version == b"1.1" else None

    def known(self, target: bytes, head: bytes) -> Head | None:
        """What the headers of a request with a route say, if the last one on this connection had the same."""
        return self._said if head[_AROUND_TARGET + len(target) :] == self._block else None

    def repeated(self, data: bytes) -> tuple[Route, Head, bytes] | None:
        """A request that is all of `data`, with the same headers as the last one, and its body; None: look closer."""
        said = self._said
        at = data.find(_VERSION)
        headers = at + len(_VERSION)
        if said is None or at < 0 or not (data.startswith(_METHOD) and data.startswith(self._block, headers)):
            return None
        body = headers + len(self._block)
        if body > LONGEST_HEAD_BYTES or body + said.length != len(data):
            return None
        route = self.path.route(data[len(_METHOD) : at])
        return None if route is None else (route, said, data[body:])

    def learn(
        self, target: bytes, head: bytes, headers: list[tuple[bytes, bytes]], length: int | None, *, keeps_alive: bool
    ) -> Head | None:
        """What the headers of a request with a route say; they are valid. None: it goes the usual way."""
        scope = self._scope
        scope["headers"] = headers
        if any(name.startswith(b"x-forwarded-") for name, _ in headers):
            scope = _forwarded(self._app, {**scope})
        self._said = self.path.head(scope, length, keeps_alive=keeps_alive, last=self._said)
        self._block = b"" if self._said is None else head[_AROUND_TARGET + len(target) :]
        return self._said


async def _passed_on(*_: object) -> None: ...


@cache
def _alone(app: ProxyHeadersMiddleware) -> ProxyHeadersMiddleware:
    """The same middleware without the application that it calls."""
    found = ProxyHeadersMiddleware(_passed_on)
    found.trusted_hosts = app.trusted_hosts
    return found


def _forwarded(app: Any, scope: dict[str, Any]) -> dict[str, Any]:
    """The scope as uvicorn's middleware passes it on: with the client of whom a trusted proxy tells."""
    if not isinstance(app, ProxyHeadersMiddleware):
        return scope
    running = _alone(app)(scope, None, None)  # type: ignore[arg-type]
    try:
        running.send(None)
    except StopIteration:
        return scope
    raise AssertionError("the middleware waits")
