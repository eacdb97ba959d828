"""The consumer: what users see of the client. Names and semantics follow the Java and Python clients of Kafka."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import httpx

from kcoord.client.config import CLASSIC, ConsumerConfig
from kcoord.client.consumer_group.coordinator import ConsumerGroupCoordinator
from kcoord.client.coordinator import GroupCoordinator
from kcoord.client.errors import ClientTimeoutError, IllegalStateError, WakeupError
from kcoord.client.fetcher import Fetcher
from kcoord.client.group import Coordinator, Parts
from kcoord.client.http import Http
from kcoord.client.link import Link
from kcoord.client.listener import ConsumerRebalanceListener
from kcoord.client.membership import Generation
from kcoord.client.monitor import Monitor
from kcoord.client.offsets import CommitCallback, Committed, OffsetManager
from kcoord.client.positions import Positions
from kcoord.client.strategies import Strategies
from kcoord.client.subscription import SubscriptionState
from kcoord.client.types import MemberState, OffsetAndMetadata, Record, RecordSource, TopicPartition
from kcoord.client.worker import Worker

log = logging.getLogger("kcoord.client")

CLOSE_TIMEOUT_MS = 30_000


class Consumer:
    """A member of a group.

    Parameters: `topics` to subscribe to immediately; `source` where records come from (without one, `poll` only takes
    part in the group); `http_client` replaces the consumer's own (for a private certificate authority, say; it is
    closed with the consumer); `config` the settings of `ConsumerConfig`, among them `group_id`, which is required.
    Raises InvalidConfigurationError.

    Only one thread at a time may use a consumer; `wakeup` may be called by any. Heartbeats have their own thread. All
    times are in ms; offsets are always the next offset to read.
    """

    def __init__(
        self, *topics: str, source: RecordSource | None = None, http_client: httpx.Client | None = None, **config: Any
    ) -> None:
        self._config = ConsumerConfig.of(config)
        strategies = Strategies(self._config.partition_assignment_strategy)
        self._monitor = Monitor()
        self._http = Http(self._config.token, self._config.request_timeout_ms, http_client)
        link = Link(self._config, self._http)
        self._worker = Worker(f"kcoord-requests-{self._config.group_id}", self._monitor)
        self._subscription = SubscriptionState()
        self._offsets = OffsetManager(self._config, link, self._monitor, self._worker, self._raise_wakeup)
        self._positions = Positions(self._config, self._subscription, self._offsets, source)
        self._fetcher = Fetcher(self._config, self._subscription, self._positions, source)
        self._has_source = source is not None
        parts = Parts(
            self._config, link, self._monitor, self._worker, self._subscription, self._offsets, self._positions
        )
        self._coordinator: Coordinator
        if self._config.group_protocol == CLASSIC:
            self._coordinator = GroupCoordinator(strategies, parts)
        else:
            self._coordinator = ConsumerGroupCoordinator(parts)
        self._offsets.member = self._coordinator
        self._user = threading.RLock()
        self._woken = False
        self._closed = False
        if topics:
            self.subscribe(topics)

    def __enter__(self) -> Consumer:
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
        listener: ConsumerRebalanceListener | None = None,
        *,
        pattern: str | None = None,
    ) -> None:
        """Subscribe to `topics` instead of the previous ones; the group assigns their partitions in a later `poll`.

        `listener` is notified of rebalances. `pattern`, alone or with topics: every topic whose whole name matches this
        regular expression (RE2 syntax), now or later; the service matches it, so it needs group_protocol="consumer".
        Neither topics nor pattern: `unsubscribe`. Raises IllegalStateError after `assign`, and for a pattern in the
        classic protocol.
        """
        wanted = [topics] if isinstance(topics, str) else list(topics)
        if pattern is not None and self._config.group_protocol == CLASSIC:
            raise IllegalStateError(
                'pattern: not supported by the classic protocol; use group_protocol="consumer", or name the topics'
            )
        with self._use():
            if not wanted and not pattern:
                self.unsubscribe()
                return
            self._subscription.subscribe(wanted, listener, pattern)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read `partitions` without joining the group; commits are those of a standalone reader (generation -1)."""
        with self._use():
            self._subscription.assign_by_hand(TopicPartition(*tp) for tp in partitions)
            self._positions.forget()

    def unsubscribe(self) -> None:
        """Leave the group: commit (if automatic), report the partitions revoked, forget them."""
        with self._use():
            if self._subscription.automatic:
                deadline = time.monotonic() + self._config.default_api_timeout_ms / 1000
                self._coordinator.leave("the consumer unsubscribed from all topics", deadline, commit=True)
            self._subscription.clear()
            self._positions.forget()

    def subscription(self) -> frozenset[str]:
        """The topics subscribed to by name."""
        return self._subscription.topics

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this consumer currently reads."""
        return self._subscription.assigned

    @property
    def state(self) -> MemberState:
        """The state of the member in the group."""
        return self._coordinator.state

    @property
    def generation(self) -> Generation:
        """The member's id and generation, as far as known; in a consumer group, `generation_id` is the member
        epoch.
        """
        return self._coordinator.generation

    def group_metadata(self) -> Generation:
        """The member for commits not sent through this client, such as inside a sink's transaction: the member and the
        generation, or epoch, whose assignment is in place.

        Unlike `generation` it is never that of a rebalance which this consumer has not taken part in with a `poll`.
        Raises what `commit` raises where it cannot succeed: CommitFailedError, RebalanceInProgressError, FatalErrors.
        """
        with self._use():
            return self._coordinator.begin_commit()()

    def enforce_rebalance(self, reason: str = "requested by the user") -> None:
        """Join again at the next poll (KIP-568, KIP-800). Raises IllegalStateError in a consumer group."""
        with self._use():
            self._coordinator.request_rejoin(reason)

    # Records

    def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> dict[TopicPartition, list[Record]]:
        """Take part in the group and return records by partition; waits at most `timeout_ms` for some.

        The position of each partition moves past what is returned. Records that were returned count as processed
        when `poll` is called again: that is when automatic commits happen. Listeners run inside this call.
        Raises WakeupError; FatalErrors such as GroupAuthorizationError, FencedInstanceIdError;
        NoOffsetForPartitionError; what the source or the listener raises.
        """
        with self._use():
            if not self._subscription.automatic and not self._subscription.manual:
                raise IllegalStateError("nothing to poll: subscribe() or assign() first")
            deadline = time.monotonic() + timeout_ms / 1000
            while True:
                seen = self._monitor.version
                self._raise_wakeup()
                self._offsets.run_callbacks()
                self._coordinator.poll()
                if self._has_source:
                    self._positions.update()
                records = self._fetcher.fetch(max_records or self._config.max_poll_records)
                left_s = deadline - time.monotonic()
                if records or left_s <= 0:
                    return records
                self._monitor.wait(seen, min(left_s, self._idle_s()))

    def position(self, partition: TopicPartition, timeout_ms: int | None = None) -> int:
        """The offset that is read next. Waits if it has to be fetched first.

        Raises IllegalStateError for a partition that is not assigned, ClientTimeoutError, NoOffsetForPartitionError.
        """
        with self._use():
            state = self._subscription.state(TopicPartition(*partition))
            deadline = time.monotonic() + self._timeout_ms(timeout_ms) / 1000
            while state.position is None:
                seen = self._monitor.version
                self._raise_wakeup()
                self._positions.update()
                left_s = deadline - time.monotonic()
                if state.position is None and left_s <= 0:
                    raise ClientTimeoutError(f"the position of {partition} is not known yet; poll first")
                if state.position is None:
                    self._monitor.wait(seen, min(left_s, self._positions.wait_s() or left_s))
            return state.position

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue reading `partition` at `offset`. Raises IllegalStateError, ValueError for a negative offset."""
        if offset < 0:
            raise ValueError(f"offset {offset}: an offset is 0 or more; use seek_to_beginning or seek_to_end")
        with self._use():
            state = self._subscription.state(TopicPartition(*partition))
            state.position = offset
            state.reset_to = None

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Continue reading `partitions` (default: all assigned) at their first offset."""
        self._seek_to("earliest", partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Continue reading `partitions` (default: all assigned) at their end."""
        self._seek_to("latest", partitions)

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of `partitions` until `resume`; they stay assigned. A rebalance that takes them away
        clears this."""
        self._set_paused(partitions, True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of `partitions` again."""
        self._set_paused(partitions, False)

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return self._subscription.paused()

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
        with self._use():
            self._offsets.commit(self._to_commit(offsets), self._timeout_ms(timeout_ms))

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commit without waiting; one attempt. `callback(offsets, error)` runs in a later `poll`, `commit` or `close`.

        Commits reach the service in the order in which they were made. Without a callback, failures are logged.
        """
        with self._use():
            self._offsets.commit_async(self._to_commit(offsets), callback)

    def committed(self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None) -> Committed:
        """The committed offsets of `partitions`, regardless of which member reads them; None if not committed."""
        with self._use():
            return self._offsets.committed([TopicPartition(*tp) for tp in partitions], self._timeout_ms(timeout_ms))

    # End

    def wakeup(self) -> None:
        """Make a waiting `poll` (or `commit`, `committed`, `position`), or else the next one, raise WakeupError."""
        self._woken = True
        self._monitor.changed()

    def close(self, timeout_ms: int = CLOSE_TIMEOUT_MS, autocommit: bool = True) -> None:
        """Commit (if automatic), report the partitions revoked, leave the group (unless a static member), stop.

        Takes at most about `timeout_ms`; closing twice does nothing. `autocommit` False: commit nothing, so that the
        records of the last poll are read again. An exception of the listener is raised at the end.
        """
        if self._closed:
            return
        with self._use():
            self._woken = False
            deadline = time.monotonic() + timeout_ms / 1000
            try:
                self._leave_for_good(deadline, autocommit)
            finally:
                self._closed = True
                stopped = self._coordinator.stop(max(0.0, deadline - time.monotonic()))
                stopped = self._worker.close(max(0.0, deadline - time.monotonic())) and stopped
                if not stopped:
                    log.warning("group %s: a request was still under way at close", self._config.group_id)
                self._http.close()
        self._offsets.run_callbacks()

    def _leave_for_good(self, deadline: float, autocommit: bool) -> None:
        if self._subscription.automatic:
            self._coordinator.leave("the consumer is being closed", deadline, commit=autocommit)
        elif autocommit and self._config.enable_auto_commit and self._subscription.manual:
            left_ms = max(1, int((deadline - time.monotonic()) * 1000))
            self._offsets.commit(self._subscription.consumed(), left_ms)

    def _to_commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        if offsets is None:
            return self._subscription.consumed()
        chosen = {}
        for partition, offset in offsets.items():
            chosen[TopicPartition(*partition)] = OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        for partition, committed in chosen.items():
            if committed.offset < 0:
                raise ValueError(f"{partition}: offset {committed.offset} cannot be committed: it must not be negative")
        return chosen

    def _seek_to(self, where: str, partitions: tuple[TopicPartition, ...]) -> None:
        with self._use():
            for partition in partitions or sorted(self._subscription.assigned):
                state = self._subscription.state(TopicPartition(*partition))
                state.position = None
                state.reset_to = where

    def _set_paused(self, partitions: tuple[TopicPartition, ...], paused: bool) -> None:
        with self._use():
            for partition in partitions:
                self._subscription.state(TopicPartition(*partition)).paused = paused

    def _timeout_ms(self, timeout_ms: int | None) -> int:
        return self._config.default_api_timeout_ms if timeout_ms is None else timeout_ms

    def _idle_s(self) -> float:
        """How long a poll without records may wait before it checks again, if no news arrives."""
        waits = [self._config.max_poll_interval_ms / 2000]
        if self._has_source and self._subscription.fetchable():
            waits.append(self._config.fetch_wait_ms / 1000)
        waits.extend(s for s in (self._coordinator.wait_s(), self._positions.wait_s()) if s is not None)
        return min(waits)

    def _raise_wakeup(self) -> None:
        if self._woken:
            self._woken = False
            raise WakeupError("wakeup() was called")

    @contextmanager
    def _use(self) -> Iterator[None]:
        """Refuse use from a second thread, and use after close."""
        if not self._user.acquire(blocking=False):
            raise IllegalStateError("the consumer is in use by another thread: one thread at a time")
        try:
            if self._closed:
                raise IllegalStateError("the consumer is closed")
            yield
        finally:
            self._user.release()
