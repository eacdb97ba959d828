"""The consumer: what users see of the client. Names and semantics follow the Java and Python clients of Kafka."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar, Unpack, overload

import httpx

from kcoord.client.base import BaseConsumer
from kcoord.client.config import ConsumerConfig, ConsumerSettings
from kcoord.client.core import arguments
from kcoord.client.core.consumer import ConsumerCore, named
from kcoord.client.core.offsets import Committed
from kcoord.client.listener import ConsumerRebalanceListener
from kcoord.client.signals import StopSignals
from kcoord.client.threads import Threads
from kcoord.client.types import OffsetAndMetadata, OffsetAndTimestamp, Record, RecordSource, TopicPartition

log = logging.getLogger("kcoord.client")


T = TypeVar("T")


class Consumer(BaseConsumer, Generic[T]):
    """A member of a group.

    Parameters: `topics` to subscribe to immediately; `source` where records come from (without one, `poll` only takes
    part in the group); `http_client` replaces the consumer's own (for a private certificate authority, say; it is
    closed with the consumer); `stop_on` signals that end the reading, as `stop` does, until the consumer is closed:
    only in the main thread; `config` the settings of `ConsumerConfig`, among them `group_id`, which is required.
    Raises InvalidConfigurationError.

    Only one thread at a time may use a consumer; `wakeup` may be called by any. Heartbeats have their own thread. All
    times are in ms; offsets are always the next offset to read. Names, order and units of parameters are those of
    kafka-python, so that calls mean the same or fail.
    """

    @overload
    def __init__(
        self: Consumer[Any],
        *topics: str,
        source: None = None,
        http_client: httpx.Client | None = None,
        stop_on: Iterable[int] = (),
        **config: Unpack[ConsumerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self,
        *topics: str,
        source: RecordSource[T],
        http_client: httpx.Client | None = None,
        stop_on: Iterable[int] = (),
        **config: Unpack[ConsumerSettings],
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
        self._config = ConsumerConfig.of(config)
        arguments.plain_source(source)
        self._threads = Threads(http_client)
        self._core = ConsumerCore(self._config, source, self._threads.condition, self._threads)
        if wanted:
            self.subscribe(wanted)
        self._signals = StopSignals(stop_on, lambda: self._threads.interrupt(self._core.stop))

    @property
    def _driver(self) -> Threads:
        return self._threads

    def __enter__(self) -> Consumer[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Differs from Kafka: after an error the positions may be ahead of what was processed; they are not committed.
        self.close(autocommit=error is None)

    # Membership

    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | ConsumerRebalanceListener | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Subscribe to `topics` instead of the previous ones; the group assigns their partitions in a later `poll`.

        `pattern`, alone or with topics: every topic whose whole name matches this regular expression (RE2 syntax), now
        or later; the service matches it, so it needs group_protocol="consumer". `listener` is notified of rebalances;
        it may also be the second argument, as in Java. Neither topics nor pattern: `unsubscribe`. Raises
        IllegalStateError after `assign`, and for a pattern in the classic protocol; TypeError.
        """
        if not self._threads.now(self._core.subscribe, topics, pattern, listener):
            self.unsubscribe()

    def unsubscribe(self) -> None:
        """Leave the group: commit (if automatic), report the partitions revoked, forget them."""
        self._threads.run(self._core.unsubscribe)

    # Records

    def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> dict[TopicPartition, list[Record[T]]]:
        """Take part in the group and return records by partition; waits at most `timeout_ms` for some.

        The position of each partition moves past what is returned. Records that were returned count as processed
        when `poll` is called again: that is when automatic commits happen. Listeners run inside this call.
        Told to `stop`, it returns nothing, at once; the call after that raises WakeupError.
        Raises WakeupError; FatalErrors such as GroupAuthorizationError, FencedInstanceIdError;
        NoOffsetForPartitionError; TypeError for a time in seconds; what the source or the listener raises.
        """
        return self._threads.run(self._core.poll, timeout_ms, max_records)

    def __iter__(self) -> Iterator[Record[T]]:
        return self

    def __next__(self) -> Record[T]:
        """The next record: `for record in consumer`. Ends after consumer_timeout_ms without one, by `stop`, and after
        `close`.

        The position moves past a record when it is returned, so it counts as processed when the next one is asked
        for. Do not mix with `poll`. Raises what `poll` raises.
        """
        record = self._threads.run(self._core.next_record)
        if record is None:
            raise StopIteration
        return record

    def position(self, partition: TopicPartition, timeout_ms: int | None = None) -> int:
        """The offset that is read next. Waits if it has to be fetched first.

        Raises IllegalStateError for a partition that is not assigned, ClientTimeoutError, NoOffsetForPartitionError.
        """
        return self._threads.run(self._core.position, partition, timeout_ms)

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The first offsets of `partitions`, assigned or not, from the record source.

        A source cannot be interrupted: `timeout_ms` counts between two partitions. Raises IllegalStateError without a
        source, ClientTimeoutError, what the source raises.
        """
        return self._threads.run(self._core.beginnings, partitions, timeout_ms)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The offsets that the next records of `partitions` will have. Otherwise as `beginning_offsets`."""
        return self._threads.run(self._core.ends, partitions, timeout_ms)

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition at or after its time (ms since the epoch), None if it has none.

        Raises IllegalStateError if the source has no `offset_for_time`; otherwise as `beginning_offsets`.
        """
        return self._threads.run(self._core.by_time, timestamps, timeout_ms)

    def partitions_for_topic(self, topic: str, timeout_ms: int | None = None) -> set[int]:
        """The partitions of `topic`; empty if it does not exist, or the token may not describe it.

        Raises ClientTimeoutError, AuthenticationError.
        """
        return self._threads.run(self._core.partitions, topic, timeout_ms)

    # Offsets

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Commit `offsets` (default: the positions of all assigned partitions) and wait until that is done.

        Raises CommitFailedError when the group has moved on without this member, RebalanceInProgressError when a poll
        must finish a rebalance first, ClientTimeoutError, FatalErrors.
        """
        self._threads.run(self._core.commit, offsets, timeout_ms)

    @overload
    def committed(
        self, partition: TopicPartition, metadata: Literal[False] = False, timeout_ms: int | None = None
    ) -> int | None: ...
    @overload
    def committed(
        self, partition: TopicPartition, metadata: bool, timeout_ms: int | None = None
    ) -> int | OffsetAndMetadata | None: ...
    @overload
    def committed(
        self, partition: Iterable[TopicPartition], metadata: bool = False, timeout_ms: int | None = None
    ) -> Committed: ...
    def committed(
        self,
        partition: TopicPartition | Iterable[TopicPartition],
        metadata: bool = False,
        timeout_ms: int | None = None,
    ) -> int | OffsetAndMetadata | Committed | None:
        """The committed offset of one partition, regardless of which member reads it; None if not committed.

        With `metadata` it is an OffsetAndMetadata. For a collection of partitions the answer is a dict of those.
        Raises ClientTimeoutError, FatalErrors.
        """
        found: int | OffsetAndMetadata | Committed | None = self._threads.run(
            self._core.committed, partition, metadata, timeout_ms
        )
        return found

    # End

    def stop(self) -> None:
        """End the reading: a waiting `poll` returns, an iteration ends after the record in hand, `stopping` is true.

        What follows is the program's: the end of a `with` block commits (if automatic) and leaves. May be called from
        any thread, and is what a signal of `stop_on` does.
        """
        self._threads.look(self._core.stop)

    @property
    def stopping(self) -> bool:
        """It was told to stop: `while not consumer.stopping: consumer.poll(1000)`."""
        return self._core.stopping

    def wakeup(self) -> None:
        """Make a waiting `poll` (or `commit`, `committed`, `position`), or else the next one, raise WakeupError.

        May be called from any thread, and by a signal handler.
        """
        self._threads.look(self._core.wakeup)

    def close(self, autocommit: bool = True, timeout_ms: int | None = None) -> None:
        """Commit (if automatic), report the partitions revoked, leave the group (unless a static member), stop.

        Takes at most about `timeout_ms` (default: request_timeout_ms); closing twice does nothing. `autocommit` False:
        commit nothing, so that the records of the last poll are read again. An exception of the listener is raised at
        the end. Raises TypeError for an `autocommit` that is not a bool.
        """
        arguments.flag("autocommit", autocommit, "a time is given as timeout_ms=…")
        limit_ms = self._config.request_timeout_ms
        if timeout_ms is not None:
            limit_ms = arguments.milliseconds("timeout_ms", timeout_ms)
        if self._core.closed:
            return
        deadline = time.monotonic() + limit_ms / 1000
        ended = False
        try:
            ended = self._threads.run(self._core.close, autocommit, deadline)
        finally:
            if self._core.closed:
                ended = self._threads.finish(deadline if ended else time.monotonic()) and ended
                self._signals.restore()
        if not ended:
            log.warning("group %s: a request was still under way at close", self._config.group_id)
