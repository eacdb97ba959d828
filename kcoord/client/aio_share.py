"""The share consumer for asyncio: the same core as `ShareConsumer`, the same names, with `await` where it may wait."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any, Generic, TypeVar, Unpack, overload

import httpx

from kcoord.client.base_share import BaseShareConsumer
from kcoord.client.core import arguments
from kcoord.client.core.consumer import named
from kcoord.client.core.share.consumer import ShareCore
from kcoord.client.share import LANES_S
from kcoord.client.share_config import ShareConsumerConfig, ShareConsumerSettings
from kcoord.client.signals import StopSignals
from kcoord.client.tasks import Tasks
from kcoord.client.types import Acknowledged, AnyRecordSource, Item, TopicPartition

log = logging.getLogger("kcoord.client")

T = TypeVar("T")


class AsyncShareConsumer(BaseShareConsumer[T], Generic[T]):
    """A worker of a share group, for asyncio. Parameters, units and errors are those of `ShareConsumer`.

    Parameters: `source` may have plain or `async` methods; plain ones must not block the event loop. `http_client` is
    an httpx.AsyncClient.

    Only one task at a time may use it, in the event loop that first did; handlers of `run` are tasks of that loop.
    Every call may be cancelled: what was acquired stays with this worker, and a `close` that is cancelled still leaves.
    """

    @overload
    def __init__(
        self: AsyncShareConsumer[None],
        *topics: str,
        source: None = None,
        http_client: httpx.AsyncClient | None = None,
        stop_on: Iterable[int] = (),
        **config: Unpack[ShareConsumerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self,
        *topics: str,
        source: AnyRecordSource[T],
        http_client: httpx.AsyncClient | None = None,
        stop_on: Iterable[int] = (),
        **config: Unpack[ShareConsumerSettings],
    ) -> None: ...
    def __init__(
        self,
        *topics: str,
        source: AnyRecordSource[T] | None = None,
        http_client: httpx.AsyncClient | None = None,
        stop_on: Iterable[int] = (),
        **config: Any,
    ) -> None:
        wanted = named(topics)
        self._config = ShareConsumerConfig.of(config)
        self._tasks = Tasks(http_client)
        self._core = ShareCore(self._config, source, self._tasks.condition, self._tasks)
        if wanted:
            self.subscribe(wanted)
        self._signals = StopSignals(stop_on, lambda: self._tasks.interrupt(self._core.stop))

    @property
    def _driver(self) -> Tasks:
        return self._tasks

    async def __aenter__(self) -> AsyncShareConsumer[T]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._close(error is None, error, None)

    async def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> dict[TopicPartition, list[Item[T]]]:
        """See `ShareConsumer.poll`. Gives other tasks a turn even if it does not have to wait."""
        return await self._tasks.run(self._core.poll, timeout_ms, max_records)

    def __aiter__(self) -> AsyncIterator[Item[T]]:
        return self

    async def __anext__(self) -> Item[T]:
        """The next item: `async for item in worker`. See `ShareConsumer.__next__`."""
        item = await self._tasks.run(self._core.next_item)
        if item is None:
            raise StopAsyncIteration
        return item

    async def run(self, handler: Callable[[Item[T]], Awaitable[object] | object]) -> None:
        """Call or await `handler(item)` for each item, in as many tasks as `concurrency` says. See `ShareConsumer.run`.

        If it is cancelled, handlers that are under way are waited for.
        """
        await self._tasks.run(self._core.run, handler)

    async def commit(self, timeout_ms: int | None = None) -> list[Acknowledged]:
        """See `ShareConsumer.commit`."""
        return await self._tasks.run(self._core.commit, timeout_ms)

    def stop(self) -> None:
        """See `ShareConsumer.stop`. Fits `loop.add_signal_handler(SIGTERM, worker.stop)`."""
        self._tasks.interrupt(self._core.stop)

    def wakeup(self) -> None:
        """See `ShareConsumer.wakeup`. May be called from any thread."""
        self._tasks.poke(self._core.wakeup)

    async def close(self, accept: bool = True, timeout_ms: int | None = None) -> None:
        """See `ShareConsumer.close`. Afterwards no task of this consumer is left, also if it was cancelled."""
        await self._close(arguments.flag("accept", accept, "a time is given as timeout_ms=…"), None, timeout_ms)

    async def _close(self, accept: bool, error: BaseException | None, timeout_ms: int | None) -> None:
        limit_ms = self._config.request_timeout_ms
        if timeout_ms is not None:
            limit_ms = arguments.milliseconds("timeout_ms", timeout_ms)
        if self._core.closed:
            return
        deadline = time.monotonic() + limit_ms / 1000
        ended = False
        try:
            ended = await self._tasks.run_at_once(self._core.close, accept, error, deadline)
        finally:
            if self._core.closed:
                try:
                    await self._tasks.finish(min(deadline, time.monotonic() + LANES_S) if ended else time.monotonic())
                finally:
                    self._signals.restore()
        if not ended:
            log.warning("group %s: a request was still under way at close", self._config.group_id)
