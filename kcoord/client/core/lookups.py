"""What the record source and the catalogue know of partitions, independent of the assignment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from kcoord.client.core.condition import Clock
from kcoord.client.core.effects import ask
from kcoord.client.core.link import Link
from kcoord.client.core.offsets import OffsetManager
from kcoord.client.core.positions import Positions
from kcoord.client.errors import ClientTimeoutError, IllegalStateError
from kcoord.client.types import OffsetAndTimestamp, TopicPartition


class Lookups:
    """Answers questions about partitions. A source cannot be interrupted: the timeout counts between partitions."""

    def __init__(self, positions: Positions, offsets: OffsetManager, link: Link, clock: Clock) -> None:
        self._positions = positions
        self._offsets = offsets
        self._link = link
        self._clock = clock

    async def beginnings(self, partitions: Iterable[TopicPartition], timeout_ms: int) -> dict[TopicPartition, int]:
        """The first offsets. Raises IllegalStateError without a source, ClientTimeoutError."""
        find = self._positions.source.beginning_offset
        return await self._each(find, dict.fromkeys(partitions, ()), timeout_ms)

    async def ends(self, partitions: Iterable[TopicPartition], timeout_ms: int) -> dict[TopicPartition, int]:
        """The offsets that the next records will have. Raises IllegalStateError, ClientTimeoutError."""
        find = self._positions.source.end_offset
        return await self._each(find, dict.fromkeys(partitions, ()), timeout_ms)

    async def by_time(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first records at or after these times. Raises IllegalStateError if the source cannot tell."""
        source = self._positions.source
        find = getattr(source, "offset_for_time", None)
        if find is None:
            raise IllegalStateError(
                f"the record source {type(source).__name__} does not find records by time: give it a method "
                "offset_for_time(topic, partition, timestamp_ms)"
            )
        return await self._each(find, {tp: (at,) for tp, at in timestamps.items()}, timeout_ms)

    async def partitions(self, topic: str, timeout_ms: int) -> set[int]:
        """The partitions of a topic; none if it does not exist, or may not be seen. Raises ClientTimeoutError."""
        found = await self._offsets.patiently(lambda: self._link.topic(topic), timeout_ms)
        return set(range(0 if found is None else found.partitions))

    async def _each(
        self,
        find: Callable[..., Any | Awaitable[Any]],
        questions: Mapping[TopicPartition, tuple[Any, ...]],
        timeout_ms: int,
    ) -> dict[TopicPartition, Any]:
        deadline = self._clock() + timeout_ms / 1000
        found: dict[TopicPartition, Any] = {}
        for partition, more in questions.items():
            if found and self._clock() >= deadline:
                raise ClientTimeoutError(
                    f"the record source answered for {len(found)} of {len(questions)} partitions within {timeout_ms} ms"
                )
            found[partition] = await ask(find, *partition, *more)
        return found
