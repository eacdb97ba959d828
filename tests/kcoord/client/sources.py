"""A record source in memory."""

from __future__ import annotations

from collections.abc import Sequence

from kcoord.client import OffsetOutOfRangeError, Record


class MemorySource:
    """Partitions as lists of values; the offset is the index. `failing` holds partitions that cannot be read."""

    def __init__(self, partitions: dict[tuple[str, int], list[str]]) -> None:
        self.partitions = partitions
        self.failing: set[tuple[str, int]] = set()

    def fetch(self, topic: str, partition: int, offset: int, max_records: int) -> Sequence[Record]:
        """See `RecordSource.fetch`."""
        if (topic, partition) in self.failing:
            raise OSError(f"{topic}-{partition} cannot be read")
        values = self.partitions.get((topic, partition), [])
        if offset > len(values):
            raise OffsetOutOfRangeError(f"{topic}-{partition} ends at {len(values)}")
        return [
            Record(topic, partition, offset + i, None, value)
            for i, value in enumerate(values[offset : offset + max_records])
        ]

    def beginning_offset(self, topic: str, partition: int) -> int:
        """See `RecordSource.beginning_offset`."""
        return 0

    def end_offset(self, topic: str, partition: int) -> int:
        """See `RecordSource.end_offset`."""
        return len(self.partitions.get((topic, partition), []))


def lettered(count: int, length: int, topic: str = "t") -> MemorySource:
    """`count` partitions with `length` records each."""
    return MemorySource({(topic, p): [f"{p}:{i}" for i in range(length)] for p in range(count)})
