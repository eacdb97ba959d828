"""The share consumer: a worker of a queue. Names and semantics follow Kafka's `KafkaShareConsumer` (KIP-932)."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, TypeVar, Unpack, overload

import httpx

from kcoord.client.base_share import BaseShareConsumer
from kcoord.client.core import arguments
from kcoord.client.core.consumer import named
from kcoord.client.core.share.consumer import ShareCore
from kcoord.client.share_config import ShareConsumerConfig, ShareConsumerSettings
from kcoord.client.signals import StopSignals
from kcoord.client.threads import Threads
from kcoord.client.types import Acknowledged, Item, RecordSource, TopicPartition

log = logging.getLogger("kcoord.client")

T = TypeVar("T")

LANES_S = 1.0
"""How long the end of requests is waited for whose answers do not matter any more."""


class ShareConsumer(BaseShareConsumer[T], Generic[T]):
    """A worker of a share group, whose members work on the items of the same partitions, each item by one at a time.

    Parameters: `topics` to subscribe to immediately; `source` where items are read from (without one, they are offsets:
    the program knows its table); `http_client` and `stop_on` as for `Consumer`; `config` the settings of
    `ShareConsumerConfig`, among them `group_id`, which is required. Raises InvalidConfigurationError.

    Items are locked for a time, and locks are renewed while an item is worked on, up to max_processing_s. `poll`
    returns several items, an iteration one after the other, `run` calls a function for several at once. In an iteration
    and in `run`, an item is accepted when the program is done with it: asks for the next one, or returns; it is
    released if the program raises. At the end, what was not begun is handed back to other workers.

    Only one thread at a time may use it, except for `acknowledge` and its like; `wakeup` may be called by any.
    """

    @overload
    def __init__(
        self: ShareConsumer[None],
        *topics: str,
        source: None = None,
        http_client: httpx.Client | None = None,
        stop_on: Iterable[int] = (),
        **config: Unpack[ShareConsumerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self,
        *topics: str,
        source: RecordSource[T],
        http_client: httpx.Client | None = None,
        stop_on: Iterable[int] = (),
        **config: Unpack[ShareConsumerSettings],
    ) -> None: ...
    def __init__(
        self,
        *topics: str,
        source: RecordSource[T] | None = None,
        http_client: httpx.Client | None = None,
        stop_on: Iterable[int] = (),
        **config: Any,
    ) -> None:
        wanted = named(topics)
        self._config = ShareConsumerConfig.of(config)
        arguments.plain_source(source)
        self._threads = Threads(http_client)
        self._core = ShareCore(self._config, source, self._threads.condition, self._threads)
        if wanted:
            self.subscribe(wanted)
        self._signals = StopSignals(stop_on, lambda: self._threads.interrupt(self._core.stop))

    @property
    def _driver(self) -> Threads:
        return self._threads

    def __enter__(self) -> ShareConsumer[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close(error is None, error, None)

    def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> dict[TopicPartition, list[Item[T]]]:
        """Take part in the group and return items by partition; waits at most `timeout_ms` for some.

        In implicit mode this accepts what the call before returned. Told to `stop`, it returns nothing, at once; the
        call after that raises WakeupError. Raises WakeupError; in explicit mode IllegalStateError while returned items
        are not acknowledged; FatalErrors such as GroupAuthorizationError; what the source raises.
        """
        return self._threads.run(self._core.poll, timeout_ms, max_records)

    def __iter__(self) -> Iterator[Item[T]]:
        return self

    def __next__(self) -> Item[T]:
        """The next item: `for item in worker`. Ends after consumer_timeout_ms without one, by `stop`, after `close`.

        The item before is accepted, unless it was acknowledged. Do not mix with `poll`. Raises what `poll` raises.
        """
        item = self._threads.run(self._core.next_item)
        if item is None:
            raise StopIteration
        return item

    def run(self, handler: Callable[[Item[T]], object]) -> None:
        """Call `handler(item)` for each item, in as many threads as `concurrency` says, until `stop`.

        An item is accepted when `handler` returns, and released with the error when it raises, which is logged;
        `acknowledge` in the handler says otherwise. Handlers that are under way are waited for. Raises what `poll`
        raises; TypeError for an asynchronous handler.
        """
        if inspect.iscoroutinefunction(handler):
            raise TypeError(f"{handler!r} is asynchronous: use kcoord.client.AsyncShareConsumer")
        self._threads.run(self._core.run, handler)

    def commit(self, timeout_ms: int | None = None) -> list[Acknowledged]:
        """Send what was acknowledged (in implicit mode: accept what was returned) and wait until that is stored.

        Returns what came of every item since the last commit, also of those that were sent by themselves meanwhile. The
        `error` of one whose lock was lost is an InvalidRecordStateError. Raises ClientTimeoutError, WakeupError.
        """
        return self._threads.run(self._core.commit, timeout_ms)

    def stop(self) -> None:
        """End the work: a waiting `poll` returns, an iteration and `run` end after what is in hand.

        What follows is the program's: the end of a `with` block settles, hands back and leaves. May be called from any
        thread, and is what a signal of `stop_on` does.
        """
        self._threads.look(self._core.stop)

    def wakeup(self) -> None:
        """Make a waiting `poll`, `run` or `commit`, or else the next one, raise WakeupError. From any thread."""
        self._threads.look(self._core.wakeup)

    def close(self, accept: bool = True, timeout_ms: int | None = None) -> None:
        """Settle what is in hand, hand back what was not begun, leave the group, stop.

        `accept` True: accept what was returned by a poll in implicit mode, and the item of an iteration; False: release
        it. Takes at most about `timeout_ms` (default: request_timeout_ms); closing twice does nothing. Raises
        TypeError for an `accept` that is not a bool.
        """
        self._close(arguments.flag("accept", accept, "a time is given as timeout_ms=…"), None, timeout_ms)

    def _close(self, accept: bool, error: BaseException | None, timeout_ms: int | None) -> None:
        limit_ms = self._config.request_timeout_ms
        if timeout_ms is not None:
            limit_ms = arguments.milliseconds("timeout_ms", timeout_ms)
        if self._core.closed:
            return
        deadline = time.monotonic() + limit_ms / 1000
        ended = False
        try:
            ended = self._threads.run(self._core.close, accept, error, deadline)
        finally:
            if self._core.closed:
                self._threads.finish(min(deadline, time.monotonic() + LANES_S) if ended else time.monotonic())
                self._signals.restore()
        if not ended:
            log.warning("group %s: a request was still under way at close", self._config.group_id)
