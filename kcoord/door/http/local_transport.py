"""The HTTP API without a network: this process's own code calls the real application.

    with httpx.Client(transport=LocalTransport(local_operator()), base_url=BASE_URL) as client:
        client.get("/v1/groups")

Management commands use it if no address is given: one code path for both, with the same checks, the same journal,
the same errors. A user who can start such a command can read and write the database already, so no token is
needed: the caller is named in the state of the connection (`kcoord.access.rights.TRUSTED_CALLER`), where servers never
put one. The bytes of a request go to a connection (`kcoord.door.http.connection`), those of the answer come from it;
each request has a connection of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import httptools
import httpx
import uvicorn
from django.conf import settings
from django.utils.module_loading import import_string
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from kcoord.access.rights import ALL_ALLOWED, TRUSTED_CALLER, Principal
from kcoord.door.http.connection import HttpProtocol
from kcoord.door.http.door import Headers
from kcoord.door.http.peers import HttpPeers, PeerLimits
from kcoord.process import bridge
from kcoord.process import runtime as runtimes
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError


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


BASE_URL = "http://localhost"
"""Nothing is resolved or connected; Django requires an allowed host name."""

CLOSE_SECONDS = bridge.TIMEOUT_SECONDS + 5
"""How long closing waits for abandoned requests; views give up on their own before that."""


def local_operator() -> Principal:
    """The user running this process, allowed everything; journals and plans say `local:` and the account name."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # the account has no name, as in some containers
        name = str(os.getuid())
    return Principal(0, f"local:{name}", ALL_ALLOWED)


class LocalTransport(httpx.BaseTransport):
    """Answers requests with the application of this process (`ASGI_APPLICATION`), as a trusted caller.

    It runs on the runtime of `kcoord.process.bridge`; while it is open and the process has no other, that becomes the
    current runtime, so that both planes answer. Parameters: `principal` the caller. A request that cannot be served
    raises `httpx.ConnectError`, one without an answer in time `httpx.ReadTimeout`, as they would over a network; and
    as over a network, it continues without its caller. `close` waits for such requests: otherwise their threads would
    wait for a loop that has ended, and the process would never exit.
    """

    def __init__(self, principal: Principal) -> None:
        self._principal = principal
        self._in_use: Runtime | None = None
        self._open: set[asyncio.Task[httpx.Response]] = set()
        self._connections = InProcessTransport(import_string(settings.ASGI_APPLICATION), self._state)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The whole response."""
        seconds = request.extensions.get("timeout", {}).get("read") or bridge.TIMEOUT_SECONDS
        try:
            self._have_a_runtime()
            return bridge.call(lambda _: self._answered(request), seconds)
        except ProtocolError as error:
            kind = httpx.ReadTimeout if error.error is Error.REQUEST_TIMED_OUT else httpx.ConnectError
            raise kind(error.detail, request=request) from error

    def close(self) -> None:
        """Wait for open requests, and leave the process without a current runtime if it had none before."""
        if self._open:
            with contextlib.suppress(ProtocolError):  # it took too long, or the loop has ended already
                bridge.call(lambda _: asyncio.wait(self._open), CLOSE_SECONDS)
        if self._in_use is not None and runtimes.is_running() and runtimes.current() is self._in_use:
            runtimes.use(None)
        self._in_use = None

    def _have_a_runtime(self) -> None:
        if not runtimes.is_running():
            self._in_use = bridge.call(_itself)
            runtimes.use(self._in_use)

    async def _answered(self, request: httpx.Request) -> httpx.Response:
        task = asyncio.create_task(self._connections.handle_async_request(request), name="kcoord-local")
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        return await asyncio.shield(task)

    def _state(self) -> dict[str, object]:
        state: dict[str, object] = import_string("kcoord.asgi.state")()
        return {**state, TRUSTED_CALLER: self._principal}


async def _itself(runtime: Runtime) -> Runtime:
    return runtime
