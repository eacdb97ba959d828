"""The logs of the showcase: partitions that grow with the clock and hold nothing but numbers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from kcoord.client import OffsetOutOfRangeError, Record
from kcoord.tools.showcase.cast import Topic

HISTORY_SECONDS = 3_600.0
UNLIMITED = 2**53


class Logs:
    """When the showcase began, and so where each log ends. Not for several threads."""

    def __init__(self, started: float | None = None) -> None:
        self._started = time.time() if started is None else started

    def end(self, topic: Topic, partition: int) -> int:
        """The offset that the next record will have. Partitions of a topic grow at different rates."""
        seconds = time.time() - self._started + HISTORY_SECONDS
        return int(seconds * topic.rate * (1 + (partition % 4) / 4))


class GrowingSource:
    """A record source (`kcoord.client.AsyncRecordSource`) for one topic.

    `pace`: records per second that a member can read of each partition; None: all there are.
    """

    def __init__(self, logs: Logs, topic: Topic, pace: float | None = None) -> None:
        self._logs = logs
        self._topic = topic
        self._pace = pace
        self._read_at: dict[int, float] = {}

    async def fetch(self, topic: str, partition: int, offset: int, max_records: int) -> Sequence[Record[None]]:
        """See `AsyncRecordSource.fetch`."""
        await asyncio.sleep(0)
        end = self._logs.end(self._topic, partition)
        if offset > end:
            raise OffsetOutOfRangeError(f"{topic}-{partition}: offset {offset} is beyond the end {end}")
        count = min(end - offset, self._allowance(partition))
        # Offsets of a log may have gaps: one record stands for all that were read, whatever the rate.
        return [Record(topic, partition, offset + count - 1)] if count > 0 else []

    async def beginning_offset(self, topic: str, partition: int) -> int:
        """See `AsyncRecordSource.beginning_offset`."""
        return 0

    async def end_offset(self, topic: str, partition: int) -> int:
        """See `AsyncRecordSource.end_offset`."""
        return self._logs.end(self._topic, partition)

    def _allowance(self, partition: int) -> int:
        now = time.monotonic()
        before = self._read_at.setdefault(partition, now)
        if self._pace is None:
            return UNLIMITED
        allowed = int((now - before) * self._pace)
        if allowed:
            self._read_at[partition] = now
        return allowed
