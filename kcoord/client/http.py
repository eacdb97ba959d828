"""Sending the core's requests with httpx, and a blocking client for tools that are not members."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import httpx

from kcoord.client.core import http
from kcoord.client.core.effects import Effect, Request, Response, Send
from kcoord.client.core.http import Disconnected
from kcoord.client.proxies import AsyncEnvironmentProxies, EnvironmentProxies, via
from kcoord.protocol.errors import Action, Error, ProtocolError

T = TypeVar("T")

KEEPALIVE_S = 4.0
"""Shorter than servers keep idle connections, so that a request rarely meets one that is being closed."""

LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=KEEPALIVE_S)


def make_client() -> httpx.Client:
    """A client that goes through the proxies of the environment, except to loopback."""
    return httpx.Client(transport=EnvironmentProxies(LIMITS))


def make_async_client() -> httpx.AsyncClient:
    """`make_client` for asyncio."""
    return httpx.AsyncClient(transport=AsyncEnvironmentProxies(LIMITS))


def _built(client: httpx.Client | httpx.AsyncClient, request: Request) -> httpx.Request:
    return client.build_request(
        request.method,
        request.url,
        content=request.content,
        headers=dict(request.headers),
        timeout=httpx.Timeout(request.timeout_s, read=request.read_timeout_s),
    )


def _taken(response: httpx.Response, through: str = "") -> Response:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Response(response.status_code, headers, response.content, through)


def _lost(request: httpx.Request, error: Exception, *, is_closed: bool) -> ProtocolError | None:
    """What a failure of httpx means; None for one that is a bug."""
    where = f"{request.method} {request.url}"
    if isinstance(error, httpx.TimeoutException):
        return Disconnected(f"{where}: no answer in time{via(request)}")
    if isinstance(error, httpx.UnsupportedProtocol):  # a proxy that cannot be used: trying again does not help
        return ProtocolError(Error.UNKNOWN_SERVER_ERROR, str(error), action=Action.FIX)
    if isinstance(error, httpx.RequestError):
        return Disconnected(f"{where}: {error or type(error).__name__}{via(request)}")
    # httpx has no exception class for a client that was closed meanwhile.
    return Disconnected(f"{where}: the client was closed") if is_closed else None


def send(client: httpx.Client, request: Request) -> Response:
    """Send a request and wait for its answer. Raises Disconnected. Safe to use from several threads.

    Raises ProtocolError with the action `fix` for a proxy that cannot be used.
    """
    built = _built(client, request)
    try:
        return _taken(client.send(built), via(built))
    except (httpx.RequestError, RuntimeError) as error:
        lost = _lost(built, error, is_closed=client.is_closed)
        if lost is None:
            raise
        raise lost from error


async def send_async(client: httpx.AsyncClient, request: Request) -> Response:
    """Send a request and await its answer. Raises as `send` does."""
    built = _built(client, request)
    try:
        return _taken(await client.send(built), via(built))
    except (httpx.RequestError, RuntimeError) as error:
        lost = _lost(built, error, is_closed=client.is_closed)
        if lost is None:
            raise
        raise lost from error


class Http:
    """The core's `Http`, blocking: for tools that send one request after the other. Closes `client` with itself."""

    def __init__(self, token: str, timeout_ms: int, client: httpx.Client | None = None) -> None:
        self._http = http.Http(token, timeout_ms)
        self._client = client or make_client()

    def get(self, url: str, kind: type[T], *, params: Mapping[str, str] | None = None) -> T:
        """GET; decodes the answer as `kind`. Raises ProtocolError; Disconnected if no answer arrived."""
        return self.run(self._http.get(url, kind, params=params))

    def post(self, url: str, body: Mapping[str, Any], kind: type[T]) -> T:
        """POST `body` as JSON; decodes the answer as `kind`. Raises ProtocolError; Disconnected."""
        return self.run(self._http.post(url, body, kind))

    def patch(self, url: str, body: Mapping[str, Any], kind: type[T]) -> T:
        """PATCH with `body` as JSON; decodes the answer as `kind`. Raises ProtocolError; Disconnected."""
        return self.run(self._http.patch(url, body, kind))

    def delete(self, url: str, kind: type[T]) -> T:
        """DELETE; decodes the answer as `kind`. Raises ProtocolError; Disconnected if no answer arrived."""
        return self.run(self._http.delete(url, kind))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def run(self, call: Coroutine[Effect[Any], Any, T]) -> T:
        """Carry out part of the core that only sends requests."""
        try:
            effect = call.send(None)
            while True:
                assert isinstance(effect, Send), "nothing else is awaited by a single request"
                try:
                    response = send(self._client, effect.request)
                except Exception as error:  # noqa: BLE001 - passed on to the core
                    effect = call.throw(error)
                else:
                    effect = call.send(response)
        except StopIteration as end:
            result: T = end.value
            return result
