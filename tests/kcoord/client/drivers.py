"""Which driver of the client a test runs on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import httpx

from kcoord.client import Consumer
from tests.kcoord.client.blocking import BlockingConsumer

THREADS, ASYNCIO = "threads", "asyncio"
DRIVERS = (THREADS, ASYNCIO)

Handler = Callable[[httpx.Request], httpx.Response]


class ThreadedTransport(httpx.AsyncBaseTransport):
    """Answers with a function that may block, in a thread for each request."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._threads = ThreadPoolExecutor(16)
        self.closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        answer = await asyncio.get_running_loop().run_in_executor(self._threads, self._handler, request)
        # A scripted answer may have been given before: each one is read once only.
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.read())

    async def aclose(self) -> None:
        self.closed = True
        self._threads.shutdown(wait=False)


class Chosen:
    """The driver of the current test, set by the fixture `driver`."""

    name = THREADS


def consumer(handler: Handler, *topics: str, **settings: Any) -> Consumer:
    """A consumer whose requests `handler` answers."""
    if Chosen.name == THREADS:
        return Consumer(*topics, http_client=httpx.Client(transport=httpx.MockTransport(handler)), **settings)
    client = httpx.AsyncClient(transport=ThreadedTransport(handler))
    return cast(Consumer, BlockingConsumer(*topics, http_client=client, **settings))
