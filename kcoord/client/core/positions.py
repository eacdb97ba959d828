"""Where reading starts: the committed offset, else what auto_offset_reset says. Used by the user's lane."""

from __future__ import annotations

import logging
from typing import Any

from kcoord.client.config import ConsumerConfig
from kcoord.client.core.backoff import Backoff
from kcoord.client.core.condition import Clock
from kcoord.client.core.effects import ask
from kcoord.client.core.offsets import Found, OffsetManager, OutdatedMember
from kcoord.client.core.subscription import SubscriptionState
from kcoord.client.core.worker import Job
from kcoord.client.errors import IllegalStateError, KcoordError, NoOffsetForPartitionError, error_of
from kcoord.client.types import AnyRecordSource, TopicPartition
from kcoord.protocol.errors import ProtocolError

log = logging.getLogger("kcoord.client")


class Positions:
    """Finds the positions of assigned partitions that have none."""

    def __init__(
        self,
        config: ConsumerConfig,
        subscription: SubscriptionState,
        offsets: OffsetManager,
        source: AnyRecordSource[Any] | None,
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._config = config
        self._subscription = subscription
        self._offsets = offsets
        self._source = source
        self._fetch: Job[Found] | None = None
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._not_before = 0.0

    async def update(self) -> None:
        """Use what was found, request what is missing; does not wait.

        Raises NoOffsetForPartitionError, and permanent refusals of the coordinator.
        """
        await self._resets()
        if self._fetch is not None and self._fetch.done:
            fetch, self._fetch = self._fetch, None
            await self._take(fetch)
        missing = self._subscription.to_look_up()
        if missing and self._fetch is None and self._clock() >= self._not_before:
            self._fetch = self._offsets.fetch_later(missing)

    def wait_s(self) -> float | None:
        """How long `update` has nothing to do; None: until something changes."""
        if self._fetch is not None or not self._subscription.to_look_up():
            return None
        return max(0.0, self._not_before - self._clock())

    def forget(self) -> None:
        """The assignment changed: offsets being fetched may date from another owner's time."""
        self._fetch = None
        self._not_before = 0.0

    async def reset(self, partition: TopicPartition, to: str) -> None:
        """Set the position to the "earliest" or "latest" offset of the source. Raises NoOffsetForPartitionError."""
        state = self._subscription.state(partition)
        if to == "none":
            raise NoOffsetForPartitionError(
                f'{partition} has no offset to start at and auto_offset_reset is "none": seek(), or commit one'
            )
        source = self.source
        find = source.beginning_offset if to == "earliest" else source.end_offset
        state.position = found = await ask(find, partition.topic, partition.partition)
        state.reset_to = None
        log.info("%s: position reset to %s: %d", partition, to, found)

    @property
    def source(self) -> AnyRecordSource[Any]:
        """The record source. Raises IllegalStateError if the consumer has none."""
        if self._source is None:
            raise IllegalStateError("this consumer has no record source: pass source=… to read, or seek() first")
        return self._source

    async def _resets(self) -> None:
        for partition in self._subscription.without_position():
            to = self._subscription.state(partition).reset_to
            if to is not None:
                await self.reset(partition, to)

    async def _take(self, fetch: Job[Found]) -> None:
        failure = fetch.error
        if isinstance(failure, ProtocolError):
            if not failure.error.value.retriable:
                raise error_of(failure)
            self._not_before = self._clock() + self._backoff.next_ms(failure.retry_after_ms) / 1000
            # An outdated epoch means a rebalance is in progress: no reason for a warning.
            level = logging.INFO if isinstance(failure, OutdatedMember) else logging.WARNING
            log.log(level, "committed offsets could not be read, trying again: %s", failure)
            return
        if failure is not None:
            raise failure if isinstance(failure, KcoordError) else RuntimeError("fetching offsets failed") from failure
        found = fetch.result()
        unsettled = [tp for tp in found.offsets if not self._settle_topic(tp, found.topic_ids.get(tp, ""))]
        if unsettled:
            self._not_before = self._clock() + self._backoff.next_ms() / 1000
        else:
            self._backoff.reset()
        for partition, committed in found.offsets.items():
            state = self._subscription.get(partition)
            if state is None or state.position is not None or state.topic_id is None:
                continue
            if state.topic_id != found.topic_ids.get(partition, ""):
                continue
            if committed is None:
                await self.reset(partition, self._config.auto_offset_reset)
            else:
                state.position = committed.offset

    def _settle_topic(self, partition: TopicPartition, topic_id: str) -> bool:
        """Note which topic an answer is about. False: not the one that is read, or none: it has to be fetched again.

        A node may answer for a topic of that name that was deleted a moment ago; and after a topic is gone, its
        partitions have no position until there is a new one.
        """
        state = self._subscription.get(partition)
        if state is None:
            return True
        if topic_id in self._subscription.gone or (state.renewed and not topic_id):
            return False
        if state.topic_id is None or (state.position is None and not state.topic_id):
            state.topic_id = topic_id
        return state.position is not None or state.topic_id == topic_id
