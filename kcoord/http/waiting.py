"""Requests that are held until something happens: they end early if their client goes away or their token ends.

Source: http-api.md 1, "Waiting", and 7.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from starlette.types import Receive

from kcoord.access.rights import digest
from kcoord.access.token_watch import TokenWatch
from kcoord.http import body as bodies
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError


class _Request:
    """A request that waits. `ended`: gets the reason when its token is no longer valid."""

    __slots__ = ("ended", "secret", "token")

    def __init__(self, secret: str) -> None:
        self.secret, self.token = secret, digest(secret)
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def token_ended(self, reason: str) -> None:
        """The request is to be refused."""
        if not self.ended.done():
            self.ended.set_result(reason)


class Waiting:
    """The requests of this process that wait; one per runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self._requests: set[_Request] = set()
        self._watch = asyncio.create_task(TokenWatch(runtime, self._requests).watch(), name="kcoord-waiting-tokens")
        runtime.on_stop(self._stop)

    @contextmanager
    def under(self, secret: str) -> Iterator[asyncio.Future[str]]:
        """A request waits under this token. The future gets the reason when the token ends."""
        request = _Request(secret)
        self._requests.add(request)
        try:
            yield request.ended
        finally:
            self._requests.discard(request)

    async def _stop(self) -> None:
        self._watch.cancel()
        await asyncio.gather(self._watch, return_exceptions=True)


async def answered_or_gone(
    work: Awaitable[msgspec.Struct], receive: Receive, ended: asyncio.Future[str] | None = None
) -> msgspec.Struct:
    """The result of `work`. Raises ClientGone, with `work` cancelled and ended, if the connection ends first.

    Raises SASL_AUTHENTICATION_FAILED in the same way if `ended` comes first, which has the reason.
    """
    handler = asyncio.ensure_future(work)
    watcher = asyncio.ensure_future(_disconnected(receive))
    awaited: set[asyncio.Future[Any]] = {handler, watcher, *(() if ended is None else (ended,))}
    try:
        await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        if handler.done():
            return handler.result()
        if ended is not None and ended.done():
            raise ProtocolError(Error.SASL_AUTHENTICATION_FAILED, ended.result())
        raise bodies.ClientGone
    finally:
        watcher.cancel()
        if not handler.done():
            handler.cancel()
        await asyncio.gather(handler, watcher, return_exceptions=True)
        # An error's traceback refers to this frame: it would keep itself, and all of the request, until a full search.
        del handler, watcher, awaited


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
