"""A consumer without its driver: what each call of the user does. `kcoord.client.Consumer` documents the calls."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from random import Random
from typing import Any

from kcoord.client.config import CLASSIC, ConsumerConfig
from kcoord.client.core import arguments
from kcoord.client.core.batch import Batch
from kcoord.client.core.calls import ClientCore
from kcoord.client.core.catalogue import TopicIds
from kcoord.client.core.condition import Condition
from kcoord.client.core.consumer_group.coordinator import ConsumerGroupCoordinator
from kcoord.client.core.coordinator import GroupCoordinator
from kcoord.client.core.effects import Lanes, Wait
from kcoord.client.core.fetcher import Fetcher
from kcoord.client.core.group import Coordinator, Parts
from kcoord.client.core.http import Http
from kcoord.client.core.link import Link
from kcoord.client.core.lookups import Lookups
from kcoord.client.core.membership import Generation
from kcoord.client.core.offsets import CommitCallback, OffsetManager
from kcoord.client.core.positions import Positions
from kcoord.client.core.strategies import Strategies
from kcoord.client.core.subscription import SubscriptionState
from kcoord.client.core.watermarks import WatermarkReports
from kcoord.client.core.worker import Worker
from kcoord.client.errors import ClientTimeoutError, IllegalStateError
from kcoord.client.types import AnyRecordSource, OffsetAndTimestamp, Offsets, Record, TopicPartition

log = logging.getLogger("kcoord.client")


class ConsumerCore(ClientCore):
    """The calls of a consumer. Those that may wait are coroutines for the driver; it runs one call at a time.

    `rng` decides which server is asked first, and random delays (default: one with a seed of its own).
    """

    def __init__(
        self,
        config: ConsumerConfig,
        source: AnyRecordSource[Any] | None,
        condition: Condition,
        lanes: Lanes,
        rng: Random | None = None,
    ) -> None:
        super().__init__(config, condition)
        self.config = config
        strategies = Strategies(config.partition_assignment_strategy)
        link = Link(config, Http(config.token, config.request_timeout_ms), condition, rng)
        self._worker = Worker(f"kcoord-requests-{config.group_id}", condition, lanes)
        self.subscription = SubscriptionState()
        self.offsets = OffsetManager(config, link, condition, self._worker, self.subscription, self._raise_wakeup)
        arguments.source(source)
        self._positions = Positions(config, self.subscription, self.offsets, source, condition.clock)
        self._fetcher = Fetcher(config, self.subscription, self._positions, source)
        self._batch = Batch(self.subscription)
        self._topic_ids = TopicIds(config, self.subscription, link, self._worker, condition.clock)
        self._reporter = Worker(f"kcoord-watermarks-{config.group_id}", condition, lanes)
        self._reports = WatermarkReports(config, self.subscription, source, link, self._reporter, condition.clock)
        self.lookups = Lookups(self._positions, self.offsets, link, condition.clock)
        self._has_source = source is not None
        parts = Parts(config, link, condition, lanes, self._worker, self.subscription, self.offsets, self._positions)
        self.coordinator: Coordinator
        if config.group_protocol == CLASSIC:
            self.coordinator = GroupCoordinator(strategies, parts)
        else:
            self.coordinator = ConsumerGroupCoordinator(parts)
        self.offsets.member = self.coordinator

    # Membership

    def subscribe(self, topics: Any, pattern: Any, listener: Any) -> bool:
        """Change the subscription. False if nothing is subscribed to: `unsubscribe` instead."""
        self._require_open()
        wanted = arguments.topics_of(topics)
        expression, told = arguments.listener_of(pattern, listener)
        if expression is not None and self.config.group_protocol == CLASSIC:
            raise IllegalStateError(
                'pattern: not supported by the classic protocol; use group_protocol="consumer", or name the topics'
            )
        if not wanted and not expression:
            return False
        self.subscription.subscribe(wanted, told, expression)
        return True

    def assign(self, partitions: Any) -> None:
        """Read these partitions, without the group."""
        self._require_open()
        chosen = arguments.partitions_of(partitions)
        if self.subscription.manual and self.config.enable_auto_commit:
            self.offsets.commit_async(self.subscription.consumed(), None)
        self.subscription.assign_by_hand(chosen)
        self._positions.forget()

    async def unsubscribe(self) -> None:
        """Leave the group; no topics, no partitions."""
        self._require_open()
        try:
            if self.subscription.automatic:
                deadline = self.condition.clock() + self.config.default_api_timeout_ms / 1000
                await self.coordinator.leave("the consumer unsubscribed from all topics", deadline, commit=True)
            elif self.subscription.manual and self.config.enable_auto_commit:
                self.offsets.commit_async(self.subscription.consumed(), None)
        finally:
            self.subscription.clear()
            self._positions.forget()

    def group_metadata(self) -> Generation:
        """The member whose assignment is in place."""
        self._require_open()
        return self.coordinator.begin_commit()()

    def request_rejoin(self, reason: str) -> None:
        """Join again at the next poll."""
        self._require_open()
        self.coordinator.request_rejoin(reason)

    # Records

    async def poll(self, timeout_ms: Any, max_records: Any) -> dict[TopicPartition, list[Record[Any]]]:
        """Take part in the group, return records."""
        wait_s = arguments.milliseconds("timeout_ms", timeout_ms) / 1000
        limit = self.config.max_poll_records if max_records is None else arguments.count("max_records", max_records)
        return await self._poll(self.condition.clock() + wait_s, limit)

    async def next_record(self) -> Record[Any] | None:
        """The next record of an iteration; None: it ends."""
        timeout_ms = self.config.consumer_timeout_ms
        deadline = math.inf if timeout_ms is None else self.condition.clock() + timeout_ms / 1000
        while not self.closed and not self.stopping:
            record = self._batch.take()
            if record is not None:
                return record
            found = await self._poll(deadline, self.config.max_poll_records, move=False)
            if not found:
                return None
            self._batch.fill(found)
        return None

    async def _poll(
        self, deadline: float, max_records: int, *, move: bool = True
    ) -> dict[TopicPartition, list[Record[Any]]]:
        self._require_open()
        if not self.subscription.automatic and not self.subscription.manual:
            raise IllegalStateError("nothing to poll: subscribe() or assign() first")
        while True:
            seen = self.condition.version
            self._raise_wakeup()
            if self.stopping:
                self._last_poll()
                return {}
            await self.offsets.run_callbacks()
            await self.coordinator.poll()
            await self._renew()
            if self._has_source:
                await self._positions.update()
                await self._reports.when_due()
            records = await self._fetcher.fetch(max_records, move=move)
            left_s = deadline - self.condition.clock()
            if records or left_s <= 0:
                return records
            await Wait(seen, min(left_s, self._idle_s()))

    async def _renew(self) -> None:
        """Begin again with partitions whose topic was deleted, and perhaps created again."""
        if self.subscription.manual or self.config.group_protocol == CLASSIC:
            self._topic_ids.when_due()
        gone = self.subscription.of_topics_gone()
        if not gone:
            return
        if self.subscription.automatic:
            await self.coordinator.renew(gone)
        else:
            self.subscription.renew(gone)
            self._positions.forget()
        log.warning(
            "group %s: the topic of %s is gone, or another one has its name: positions are found again "
            "(auto_offset_reset=%s)",
            self.config.group_id,
            ", ".join(map(str, sorted(gone))),
            self.config.auto_offset_reset,
        )

    async def position(self, partition: Any, timeout_ms: Any) -> int:
        """The offset that is read next."""
        self._require_open()
        chosen = arguments.partition_of(partition)
        state = self.subscription.state(chosen)
        deadline = self.condition.clock() + self.timeout_ms(timeout_ms) / 1000
        while state.position is None:
            seen = self.condition.version
            self._raise_wakeup()
            await self._positions.update()
            left_s = deadline - self.condition.clock()
            if state.position is None and left_s <= 0:
                raise ClientTimeoutError(f"the position of {chosen} is not known yet; poll first")
            if state.position is None:
                await Wait(seen, min(left_s, self._positions.wait_s() or left_s))
        return state.position

    def seek(self, partition: Any, offset: Any) -> None:
        """Continue at an offset."""
        self._require_open()
        chosen = arguments.partition_of(partition)
        position = arguments.offset(offset, "; use seek_to_beginning or seek_to_end")
        state = self.subscription.state(chosen)
        state.position = position
        state.reset_to = None

    def seek_to(self, where: str, partitions: tuple[Any, ...]) -> None:
        """Continue at the "earliest" or "latest" offset of these partitions, or of all."""
        self._require_open()
        chosen = arguments.partitions_of(partitions) if partitions else sorted(self.subscription.assigned)
        for state in [self.subscription.state(partition) for partition in chosen]:
            state.position = None
            state.reset_to = where

    def set_paused(self, partitions: tuple[Any, ...], paused: bool) -> None:
        """Pause or resume these partitions."""
        self._require_open()
        for state in [self.subscription.state(arguments.partition_of(partition)) for partition in partitions]:
            state.paused = paused

    # Offsets

    async def commit(self, offsets: Any, timeout_ms: Any) -> None:
        """Commit and wait."""
        self._require_open()
        await self.offsets.commit(self._to_commit(offsets), self.timeout_ms(timeout_ms))

    def commit_async(self, offsets: Any, callback: CommitCallback | None) -> None:
        """Commit without waiting."""
        self._require_open()
        self.offsets.commit_async(self._to_commit(offsets), callback)

    async def committed(self, partition: Any, metadata: Any, timeout_ms: Any) -> Any:
        """The committed offset of one partition, or those of several."""
        self._require_open()
        arguments.flag("metadata", metadata, "a time is given as timeout_ms=…")
        limit_ms = self.timeout_ms(timeout_ms)
        if not arguments.is_partition(partition):
            return await self.offsets.committed(arguments.partitions_of(partition), limit_ms)
        chosen = arguments.partition_of(partition)
        found = (await self.offsets.committed([chosen], limit_ms))[chosen]
        return found if found is None or metadata else found.offset

    async def beginnings(self, partitions: Any, timeout_ms: Any) -> dict[TopicPartition, int]:
        """The first offsets."""
        self._require_open()
        return await self.lookups.beginnings(arguments.partitions_of(partitions), self.timeout_ms(timeout_ms))

    async def ends(self, partitions: Any, timeout_ms: Any) -> dict[TopicPartition, int]:
        """The end offsets."""
        self._require_open()
        return await self.lookups.ends(arguments.partitions_of(partitions), self.timeout_ms(timeout_ms))

    async def by_time(self, timestamps: Any, timeout_ms: Any) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Offsets by time."""
        self._require_open()
        return await self.lookups.by_time(arguments.times_of(timestamps), self.timeout_ms(timeout_ms))

    async def partitions(self, topic: str, timeout_ms: Any) -> set[int]:
        """The partitions of a topic."""
        self._require_open()
        return await self.lookups.partitions(topic, self.timeout_ms(timeout_ms))

    # End

    async def close(self, autocommit: bool, deadline: float) -> bool:
        """Commit, leave, stop. True if nothing is under way any more."""
        self._woken = False
        stopped = False
        try:
            await self._leave_for_good(deadline, autocommit)
        except Exception:
            raise
        except BaseException:
            # Cancelled or interrupted: wait for nothing more; the driver ends what still runs.
            deadline = self.condition.clock()
            raise
        finally:
            self.closed = True
            try:
                stopped = await self.coordinator.stop(deadline)
            finally:
                stopped = await self._worker.close(deadline) and stopped
                stopped = await self._reporter.close(deadline) and stopped
        await self.offsets.run_callbacks()
        return stopped

    async def _leave_for_good(self, deadline: float, autocommit: bool) -> None:
        if self.subscription.automatic:
            await self.coordinator.leave("the consumer is being closed", deadline, commit=autocommit)
        elif autocommit and self.config.enable_auto_commit and self.subscription.manual:
            left_ms = max(1, int((deadline - self.condition.clock()) * 1000))
            await self.offsets.commit(self.subscription.consumed(), left_ms)

    def _to_commit(self, offsets: Any) -> Offsets:
        return self.subscription.consumed() if offsets is None else arguments.offsets_of(offsets)

    def _idle_s(self) -> float:
        """How long a poll without records may wait before it checks again, if nothing changes."""
        waits = [self.config.max_poll_interval_ms / 2000]
        if self._has_source and self.subscription.fetchable():
            waits.append(self.config.fetch_wait_ms / 1000)
        lanes = (self.coordinator.wait_s(), self._positions.wait_s(), self._reports.wait_s())
        waits.extend(s for s in lanes if s is not None)
        return min(waits)


def named(topics: Iterable[Any]) -> list[str]:
    """The topics given to a constructor. Raises TypeError."""
    return arguments.topics_of(topics)
