"""The HTTP API without a network: this process's own code calls the real application.

    with httpx.Client(transport=LocalTransport(local_operator()), base_url=BASE_URL) as client:
        client.get("/v1/groups")

Management commands use it if no address is given: one code path for both, with the same checks, the same journal,
the same errors. A user who can start such a command can read and write the database already, so no token is
needed: the caller is named in the state of the connection (`kcoord.access.rights.TRUSTED_CALLER`), where servers never
put one.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os

import httpx
from django.conf import settings
from django.utils.module_loading import import_string

from kcoord.access.rights import ALL_ALLOWED, TRUSTED_CALLER, Principal
from kcoord.http.in_process import InProcessTransport
from kcoord.process import bridge
from kcoord.process import runtime as runtimes
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError

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
