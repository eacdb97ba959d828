"""Fetches records from the source, taking turns between partitions. Used by the user's lane."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from kcoord.client.config import ConsumerConfig
from kcoord.client.core.effects import ask
from kcoord.client.core.positions import Positions
from kcoord.client.core.subscription import SubscriptionState
from kcoord.client.errors import OffsetOutOfRangeError
from kcoord.client.types import AnyRecordSource, Record, TopicPartition

log = logging.getLogger("kcoord.client")


class Fetcher:
    """Asks the source for records of the partitions that can be read, and moves their positions."""

    def __init__(
        self,
        config: ConsumerConfig,
        subscription: SubscriptionState,
        positions: Positions,
        source: AnyRecordSource[Any] | None,
    ) -> None:
        self._config = config
        self._subscription = subscription
        self._positions = positions
        self._source = source
        self._last: TopicPartition | None = None

    async def fetch(self, max_records: int, *, move: bool = True) -> dict[TopicPartition, list[Record[Any]]]:
        """At most `max_records` records by partition, beginning after the partition that was read last.

        `move` False: the positions stay where they are.

        Exceptions of the source are passed on; then no position has moved and no record is lost.
        """
        found: dict[TopicPartition, list[Record[Any]]] = {}
        if self._source is None:
            return found
        left = max_records
        for partition in self._turns():
            if left <= 0:
                break
            records = await self._read(self._source, partition, left)
            if records:
                found[partition] = list(records)
                left -= len(records)
        for partition, read in found.items():
            if move:
                self._subscription.state(partition).position = read[-1].offset + 1
            self._last = partition
        return found

    def _turns(self) -> list[TopicPartition]:
        ready = sorted(self._subscription.fetchable())
        later = [tp for tp in ready if self._last is not None and tp > self._last]
        return later + ready[: len(ready) - len(later)]

    async def _read(self, source: AnyRecordSource[Any], partition: TopicPartition, limit: int) -> Sequence[Record[Any]]:
        state = self._subscription.state(partition)
        position = state.position
        assert position is not None, "only partitions with a position are fetched"
        try:
            records = await ask(source.fetch, partition.topic, partition.partition, position, limit)
        except OffsetOutOfRangeError as error:
            log.warning("%s: offset %d is out of range: %s", partition, position, error)
            await self._positions.reset(partition, self._config.auto_offset_reset)
            return ()
        if len(records) > limit:
            raise ValueError(
                f"the record source returned {len(records)} records of {partition}; at most {limit} were requested"
            )
        if records and records[0].offset < position:
            raise ValueError(
                f"the record source returned offset {records[0].offset} of {partition}; offset {position} was requested"
            )
        return records
