"""The consumer for asyncio: the same core as `Consumer`, the same names, with `await` where a call may wait."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar, Unpack, overload

import httpx

from kcoord.client.base import BaseConsumer
from kcoord.client.config import ConsumerConfig, ConsumerSettings
from kcoord.client.core import arguments
from kcoord.client.core.consumer import ConsumerCore, named
from kcoord.client.core.offsets import Committed
from kcoord.client.errors import IllegalStateError
from kcoord.client.listener import AsyncConsumerRebalanceListener, ConsumerRebalanceListener
from kcoord.client.signals import StopSignals
from kcoord.client.tasks import Tasks
from kcoord.client.types import AnyRecordSource, OffsetAndMetadata, OffsetAndTimestamp, Record, TopicPartition

log = logging.getLogger("kcoord.client")

Listener = ConsumerRebalanceListener | AsyncConsumerRebalanceListener


T = TypeVar("T")


class AsyncConsumer(BaseConsumer, Generic[T]):
    """A member of a group, for asyncio. Parameters, units and errors are those of `Consumer`.

    Parameters: `source` and listeners may have plain or `async` methods; plain ones must not block the event loop.
    `http_client` is an httpx.AsyncClient.

    Only one task at a time may use a consumer, in the event loop that first did; `wakeup` may be called from any
    thread. Heartbeats are tasks of that loop: code that blocks the loop for longer than the session loses it.

    Every call may be cancelled. A commit that was cancelled may have been stored or not. A rebalance that was
    interrupted is continued by the next `poll`; records are not lost, since positions move only when `poll` returns.
    A `close` that is cancelled stops waiting, but the member still leaves the group; a second cancellation ends that.
    """

    @overload
    def __init__(
        self: AsyncConsumer[Any],
        *topics: str,
        source: None = None,
        http_client: httpx.AsyncClient | None = None,
        stop_on: Iterable[int] = (),
        **config: Unpack[ConsumerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self,
        *topics: str,
        source: AnyRecordSource[T],
        http_client: httpx.AsyncClient | None = None,
        stop_on: Iterable[int] = (),
        **config: Unpack[ConsumerSettings],
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
        self._config = ConsumerConfig.of(config)
        self._tasks = Tasks(http_client)
        self._core = ConsumerCore(self._config, source, self._tasks.condition, self._tasks)
        if wanted:
            self.subscribe(wanted)
        self._signals = StopSignals(stop_on, lambda: self._tasks.interrupt(self._core.stop))

    @property
    def _driver(self) -> Tasks:
        return self._tasks

    async def __aenter__(self) -> AsyncConsumer[T]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # After an error or a cancellation the positions may be ahead of what was processed.
        await self.close(autocommit=error is None)

    # Membership

    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | Listener | None = None,
        listener: Listener | None = None,
    ) -> None:
        """See `Consumer.subscribe`. Raises IllegalStateError for no topics and no pattern: await `unsubscribe`."""
        if not self._tasks.now(self._core.subscribe, topics, pattern, listener):
            raise IllegalStateError("no topics and no pattern: to leave the group, await unsubscribe()")

    async def unsubscribe(self) -> None:
        """See `Consumer.unsubscribe`."""
        await self._tasks.run_at_once(self._core.unsubscribe)

    # Records

    async def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> dict[TopicPartition, list[Record[T]]]:
        """See `Consumer.poll`. Gives other tasks a turn even if it does not have to wait."""
        return await self._tasks.run(self._core.poll, timeout_ms, max_records)

    def __aiter__(self) -> AsyncIterator[Record[T]]:
        return self

    async def __anext__(self) -> Record[T]:
        """The next record: `async for record in consumer`. See `Consumer.__next__`."""
        record = await self._tasks.run(self._core.next_record)
        if record is None:
            raise StopAsyncIteration
        return record

    async def position(self, partition: TopicPartition, timeout_ms: int | None = None) -> int:
        """See `Consumer.position`."""
        return await self._tasks.run(self._core.position, partition, timeout_ms)

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """See `Consumer.beginning_offsets`."""
        return await self._tasks.run(self._core.beginnings, partitions, timeout_ms)

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """See `Consumer.end_offsets`."""
        return await self._tasks.run(self._core.ends, partitions, timeout_ms)

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """See `Consumer.offsets_for_times`."""
        return await self._tasks.run(self._core.by_time, timestamps, timeout_ms)

    async def partitions_for_topic(self, topic: str, timeout_ms: int | None = None) -> set[int]:
        """See `Consumer.partitions_for_topic`."""
        return await self._tasks.run(self._core.partitions, topic, timeout_ms)

    # Offsets

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """See `Consumer.commit`. One that is cancelled before it was sent is not sent."""
        await self._tasks.run(self._core.commit, offsets, timeout_ms)

    @overload
    async def committed(
        self, partition: TopicPartition, metadata: Literal[False] = False, timeout_ms: int | None = None
    ) -> int | None: ...
    @overload
    async def committed(
        self, partition: TopicPartition, metadata: bool, timeout_ms: int | None = None
    ) -> int | OffsetAndMetadata | None: ...
    @overload
    async def committed(
        self, partition: Iterable[TopicPartition], metadata: bool = False, timeout_ms: int | None = None
    ) -> Committed: ...
    async def committed(
        self,
        partition: TopicPartition | Iterable[TopicPartition],
        metadata: bool = False,
        timeout_ms: int | None = None,
    ) -> int | OffsetAndMetadata | Committed | None:
        """See `Consumer.committed`."""
        found: int | OffsetAndMetadata | Committed | None = await self._tasks.run(
            self._core.committed, partition, metadata, timeout_ms
        )
        return found

    # End

    def stop(self) -> None:
        """End the reading: a waiting `poll` returns, an iteration ends after the record in hand, `stopping` is true.

        What follows is the program's: the end of a `with` block commits (if automatic) and leaves. May be called from
        any thread, is what a signal of `stop_on` does, and fits `loop.add_signal_handler(SIGTERM, consumer.stop)`.
        """
        self._tasks.interrupt(self._core.stop)

    @property
    def stopping(self) -> bool:
        """It was told to stop: `while not consumer.stopping: consumer.poll(1000)`."""
        return self._core.stopping

    def wakeup(self) -> None:
        """See `Consumer.wakeup`. May be called from any thread."""
        self._tasks.poke(self._core.wakeup)

    async def close(self, autocommit: bool = True, timeout_ms: int | None = None) -> None:
        """See `Consumer.close`. Afterwards no task of this consumer is left, also if it was cancelled."""
        arguments.flag("autocommit", autocommit, "a time is given as timeout_ms=…")
        limit_ms = self._config.request_timeout_ms
        if timeout_ms is not None:
            limit_ms = arguments.milliseconds("timeout_ms", timeout_ms)
        if self._core.closed:
            return
        deadline = time.monotonic() + limit_ms / 1000
        ended = False
        try:
            ended = await self._tasks.run_at_once(self._core.close, autocommit, deadline)
        finally:
            if self._core.closed:
                try:
                    ended = await self._tasks.finish(deadline if ended else time.monotonic()) and ended
                finally:
                    self._signals.restore()
        if not ended:
            log.warning("group %s: a request was still under way at close", self._config.group_id)
