"""Lists in memory that only grow: for tests, and for work that one process hands to others of its threads."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from kcoord.client.errors import OffsetOutOfRangeError
from kcoord.client.types import Record, TopicPartition

T = TypeVar("T")


class Lists(Generic[T]):
    """A list for each partition; the offset of a value is its index. Safe to use from several threads."""

    def __init__(self, values: Mapping[tuple[str, int], Iterable[T]] | None = None) -> None:
        self._lock = threading.Lock()
        self._lists: dict[tuple[str, int], list[T]] = {key: list(found) for key, found in (values or {}).items()}

    def append(self, topic: str, partition: int, *values: T) -> int:
        """Add values to a partition; returns the offset of the next one."""
        with self._lock:
            found = self._lists.setdefault((topic, partition), [])
            found.extend(values)
            return len(found)

    def fetch(self, topic: str, partition: int, offset: int, max_records: int) -> Sequence[Record[T]]:
        """See `RecordSource.fetch`."""
        with self._lock:
            found = self._lists.get((topic, partition), [])
            if not 0 <= offset <= len(found):
                raise OffsetOutOfRangeError(f"{TopicPartition(topic, partition)} has {len(found)} values")
            chosen = found[offset : offset + max_records]
        return [Record(topic, partition, offset + place, value=value) for place, value in enumerate(chosen)]

    def beginning_offset(self, topic: str, partition: int) -> int:
        """0."""
        return 0

    def end_offset(self, topic: str, partition: int) -> int:
        """The length of the list."""
        with self._lock:
            return len(self._lists.get((topic, partition), ()))
