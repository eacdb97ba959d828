"""Requests to this process as a server takes them, without a network: an httpx transport in front of a connection.

    transport = InProcessTransport(application, state)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        await client.get("/v1/groups")

The bytes of a request go to a connection (`kcoord.http.connection`), those of the answer come from it. Each request has
a connection of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httptools
import httpx
import uvicorn
from django.conf import settings
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from kcoord.http.connection import HttpProtocol
from kcoord.http.framing import Headers
from kcoord.http.peers import HttpPeers, PeerLimits


class InProcessTransport(httpx.AsyncBaseTransport):
    """Parameters: `application` for what is not an operation; `state` gives what the application's lifespan gives to a
    server, for each request; `client`, the address and port of the peer.

    Raises httpx.RemoteProtocolError if the connection ends without an answer.
    """

    def __init__(
        self, application: ASGIApp, state: Callable[[], dict[str, Any]], client: tuple[str, int] = ("127.0.0.1", 0)
    ) -> None:
        self._config = uvicorn.Config(application, lifespan="off", log_config=None, ws="none", proxy_headers=False)
        self._state = state
        self._client = client
        self._peers = HttpPeers(PeerLimits.of(settings.KCOORD))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The whole answer, after all that belongs to the request has ended. A cancelled caller has gone away."""
        server = ServerState()
        connection = HttpProtocol(self._peers, config=self._config, server_state=server, app_state=self._state())
        link = _Link(self._client, has_body=request.method != "HEAD")
        connection.connection_made(link)
        try:
            async for part in _parts(request):
                connection.data_received(part)
                if link.answered.done():
                    break
            answer = await link.answered
            if server.tasks:
                await asyncio.wait(server.tasks)
            return answer
        finally:
            link.end()
            connection.connection_lost(None)


async def _parts(request: httpx.Request) -> AsyncIterator[bytes]:
    """What is sent for a request. The head comes with the first part of the body."""
    assert isinstance(request.stream, httpx.AsyncByteStream)
    lines = b"".join(b"%b: %b\r\n" % header for header in request.headers.raw)
    part = b"%b %b HTTP/1.1\r\n%b\r\n" % (request.method.encode(), request.url.raw_path, lines)
    in_chunks = "transfer-encoding" in request.headers
    async for piece in request.stream:
        if in_chunks:
            part += b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""
        else:
            part += piece
        yield part
        part = b""
    if in_chunks or part:
        yield part + (b"0\r\n\r\n" if in_chunks else b"")


class _Link(asyncio.Transport):
    """The transport of a connection; `answered` is the answer that was written to it."""

    def __init__(self, client: tuple[str, int], *, has_body: bool) -> None:
        super().__init__({"peername": client})
        self.answered: asyncio.Future[httpx.Response] = asyncio.get_running_loop().create_future()
        self._has_body = has_body
        self._headers: Headers = []
        self._content = bytearray()
        self._is_closing = False
        self._parser = httptools.HttpResponseParser(self)

    # asyncio.Transport

    def write(self, data: Any) -> None:
        """A part of the answer."""
        if not self.answered.done():
            self._parser.feed_data(data)

    def get_write_buffer_size(self) -> int:
        """Nothing waits."""
        return 0

    def pause_reading(self) -> None:
        """All of the request has been passed on."""

    def resume_reading(self) -> None:
        """See `pause_reading`."""

    def is_closing(self) -> bool:
        """Either side has closed it."""
        return self._is_closing

    def close(self) -> None:
        """End the connection."""
        self._is_closing = True
        if not self.answered.done():
            self.answered.set_exception(httpx.RemoteProtocolError("the connection was closed without an answer"))
            self.answered.exception()  # a caller that is cancelled does not look

    abort = close

    def end(self) -> None:
        """It is not used any more. It and its parser refer to each other."""
        self.close()
        del self._parser

    # httptools.HttpResponseParser

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The end of the head."""
        if not self._has_body:
            self.on_message_complete()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._content += body

    def on_message_complete(self) -> None:
        """The end of the answer."""
        if not self.answered.done():
            status = self._parser.get_status_code()
            self.answered.set_result(httpx.Response(status, headers=self._headers, content=bytes(self._content)))
