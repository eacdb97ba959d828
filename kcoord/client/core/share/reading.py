"""The source of a share consumer: how far it goes, and the records of what was acquired. Used by the user's lane.

Offsets without a record are gaps, and settled as such, but only once the source says that none can appear any more.
Source: share.md 7; sources.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kcoord.client.core.condition import Clock
from kcoord.client.core.effects import ask
from kcoord.client.core.share.held import Delivery, Held, Phase, ranges_of
from kcoord.client.core.watermarks import PARTITIONS_PER_POLL
from kcoord.client.core.wire import ReportedWatermark
from kcoord.client.errors import OffsetOutOfRangeError
from kcoord.client.share_config import ShareConsumerConfig
from kcoord.client.types import AnyRecordSource, Record, TopicPartition

MOST_SPANNED = 1_000
"""Offsets that are acquired at once for the sake of few items between many gaps."""


class Reading:
    """Asks the source, if there is one."""

    def __init__(self, config: ShareConsumerConfig, source: AnyRecordSource[Any] | None, clock: Clock) -> None:
        self._source = source
        self._pause_s = config.fetch_wait_ms / 1000
        self._clock = clock
        self._ends: dict[TopicPartition, int] = {}
        self._told: dict[TopicPartition, int] = {}
        self._spans: dict[TopicPartition, int] = {}
        self._look_at = 0.0
        self._read_at = 0.0
        self._turn = 0

    @property
    def has_source(self) -> bool:
        """There is a source; without one, items are offsets."""
        return self._source is not None

    # Ends

    async def look(self, assigned: Iterable[TopicPartition]) -> None:
        """Ask where the partitions end, every fetch_wait_ms at most. Raises what the source raises."""
        now = self._clock()
        if self._source is None or now < self._look_at:
            return
        self._look_at = now + self._pause_s
        partitions = sorted(assigned)
        for place in range(min(PARTITIONS_PER_POLL, len(partitions))):
            partition = partitions[(self._turn + place) % len(partitions)]
            self._ends[partition] = await self._end(partition)
        self._turn += PARTITIONS_PER_POLL

    def condition(self) -> dict[TopicPartition, int]:
        """Ends that grew since they were told."""
        return {partition: end for partition, end in self._ends.items() if end > self._told.get(partition, 0)}

    def told(self, ends: dict[TopicPartition, int]) -> None:
        """The service knows these."""
        self._told |= ends

    async def watermarks(self, partitions: Iterable[TopicPartition]) -> list[ReportedWatermark]:
        """Where these partitions of one topic begin and end. Raises what the source raises."""
        if self._source is None:
            return []
        return [
            ReportedWatermark(tp.partition, await ask(self._source.beginning_offset, *tp), await self._end(tp))
            for tp in partitions
        ]

    def wait_s(self) -> float | None:
        """How long there is nothing to ask; None: always."""
        return None if self._source is None else max(0.0, self._look_at - self._clock())

    async def _end(self, partition: TopicPartition) -> int:
        """A safe end: whatever is missing below it stays missing."""
        assert self._source is not None, "asked only with a source"
        settled = getattr(self._source, "settled_offset", None)
        # It answers at once, while the end of a source that does not know it yet may be waited for.
        if settled is not None and not await ask(settled, *partition):
            return 0
        return await ask(self._source.end_offset, *partition)

    # Records

    def span(self, wanted: int) -> int:
        """How many offsets to acquire for `wanted` items, going by the gaps that were found last."""
        return min(max(wanted, *self._spans.values(), 0), max(wanted, MOST_SPANNED))

    async def read(self, held: Held, wanted: int) -> list[Delivery]:
        """Read what was acquired; returns what are gaps. What may still appear is read again later.

        Raises what the source raises; then what it did not say is still to be read.
        """
        unread = held.within(Phase.UNREAD)
        if not unread or (self._clock() < self._read_at and self._source is not None):
            return []
        gaps: list[Delivery] = []
        for lock in {delivery.lock for delivery in unread}:
            mine = {delivery.offset: delivery for delivery in unread if delivery.lock is lock}
            if self._source is None:
                for offset, delivery in mine.items():
                    held.read(delivery, Record(*lock.partition, offset))
            else:
                gaps += await self._read(self._source, held, lock.partition, mine, wanted)
        self._read_at = self._clock() + self._pause_s if held.within(Phase.UNREAD) else 0.0
        return gaps

    async def _read(
        self,
        source: AnyRecordSource[Any],
        held: Held,
        partition: TopicPartition,
        mine: dict[int, Delivery],
        wanted: int,
    ) -> list[Delivery]:
        found = await self._records(source, partition, mine)
        below = 0
        if len(found) < len(mine):
            # Asked before the source is read again: a record that was still to come may have come meanwhile.
            settled = getattr(source, "settled_offset", source.end_offset)
            below = max(await ask(settled, *partition), 0)
            found |= await self._records(source, partition, mine.keys() - found.keys())
            if any(offset not in found and offset >= below for offset in mine):
                below = max(below, await ask(source.beginning_offset, *partition))
            await self._measure(source, partition, max(mine), wanted)
        else:
            self._spans.pop(partition, None)
        for offset, record in sorted(found.items()):
            held.read(mine[offset], record)
        return [delivery for offset, delivery in mine.items() if offset not in found and offset < below]

    async def _measure(self, source: AnyRecordSource[Any], partition: TopicPartition, last: int, wanted: int) -> None:
        """How far the next `wanted` records after `last` go: that many offsets are acquired at once."""
        following = await self._fetch(source, partition, last + 1, wanted)
        self._spans[partition] = following[-1].offset - last if following else 0

    async def _records(
        self, source: AnyRecordSource[Any], partition: TopicPartition, offsets: Iterable[int]
    ) -> dict[int, Record[Any]]:
        chosen = set(offsets)
        found = {}
        for first, last in ranges_of(chosen):
            for record in await self._fetch(source, partition, first, last - first + 1):
                if record.offset in chosen:
                    found[record.offset] = record
        return found

    async def _fetch(
        self, source: AnyRecordSource[Any], partition: TopicPartition, first: int, most: int
    ) -> Sequence[Record[Any]]:
        try:
            return await ask(source.fetch, *partition, first, most)
        except OffsetOutOfRangeError:
            return ()  # before the beginning, which is found out next, or not there yet
