"""The short path (`kcoord.http.short_path`) for one connection: what its last blocks of headers said."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from kcoord.http.short_path import Began, Head, Route, ShortPath
from kcoord.stack.protocol import LONGEST_HEAD_BYTES

_METHOD = b"POST "
_VERSION = b" HTTP/1.1\r\n"
_AROUND_TARGET = len(_METHOD + _VERSION)
_END = b"\r\n\r\n"

MOST_HEADS = 4
"""Blocks of headers that a connection remembers: a member sends heartbeats, commits and fetches on one, and their
lengths differ."""


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

    __slots__ = ("_app", "_block", "_heads", "_said", "_scope", "path")

    def __init__(self, path: ShortPath, app: Any, scope: dict[str, Any]) -> None:
        self.path = path
        self._app = app
        self._scope = scope
        self._block = b""
        self._said: Head | None = None
        self._heads: dict[bytes, Head] = {}

    def route(self, method: bytes, target: bytes, version: bytes) -> Route | None:
        """The operation of a request; None: it goes the usual way."""
        return self.path.route(target) if method == b"POST" and version == b"1.1" else None

    def known(self, target: bytes, head: bytes) -> Head | None:
        """What the headers of a request with a route say, if an earlier one on this connection had the same."""
        return self._heads.get(head[_AROUND_TARGET + len(target) :])

    def repeated(self, data: bytes) -> tuple[Route, Head, bytes] | None:
        """A request that is all of `data`, with the same headers as an earlier one, and its body; None: look closer."""
        at = data.find(_VERSION)
        headers = at + len(_VERSION)
        if self._said is None or at < 0 or not data.startswith(_METHOD):
            return None
        if not data.startswith(self._block, headers) and not self._turns_to(data, headers):
            return None
        said, body = self._said, headers + len(self._block)
        if body > LONGEST_HEAD_BYTES or body + said.length != len(data):
            return None
        route = self.path.route(data[len(_METHOD) : at])
        return None if route is None else (route, said, data[body:])

    def _turns_to(self, data: bytes, headers: int) -> bool:
        """The headers that begin there are others that are remembered; they are the last ones from now on."""
        end = data.find(_END, headers - 2) + len(_END)
        block = data[headers:end]
        said = self._heads.get(block)
        if said is None:
            return False
        self._block, self._said = block, said
        return True

    def learn(
        self, target: bytes, head: bytes, headers: list[tuple[bytes, bytes]], length: int | None, *, keeps_alive: bool
    ) -> Head | None:
        """What the headers of a request with a route say; they are valid. None: it goes the usual way."""
        scope = self._scope
        scope["headers"] = headers
        if any(name.startswith(b"x-forwarded-") for name, _ in headers):
            scope = _forwarded(self._app, {**scope})
        said = self.path.head(scope, length, keeps_alive=keeps_alive, last=self._said)
        if said is not None:
            if len(self._heads) == MOST_HEADS:
                del self._heads[next(iter(self._heads))]
            self._block, self._said = head[_AROUND_TARGET + len(target) :], said
            self._heads[self._block] = said
        return said


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
