"""Where the logs of partitions begin and end, for clients that ask a broker: the watermarks and what was committed.

A watermark lags behind the log, and many partitions have none. So the end is never below what some group has committed:
no group has a negative lag, and "latest" does not lead back behind what was read.
Source: Kafka's ListOffsets; docs/kafka-clients.md, "The end of a partition".
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from offsets.core.samples import offset_at
from offsets.core.types import Millis
from offsets.lag.samples import SampleReads

Q = queries("offsets")

KNOWN_SECONDS = 5.0
"""How long an end is used that is only shown: consumers ask twice a second for partitions that did not change."""

MAX_KNOWN = 10_000
"""Topics whose ends a process remembers; the one read longest ago is forgotten first."""


@dataclass(frozen=True, slots=True)
class LogEnd:
    """`start`: the first offset of a log, 0 if no watermark is known; `end`: the offset after its last."""

    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first offset that was written at an instant or after; None: nothing was, as far as is known.

    `is_known` false: there are samples, and they do not reach back that far.
    """

    offset: int | None
    is_known: bool = True


class LogEnds:
    """Reads the ends of logs. Methods may raise ProtocolError COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._samples = runtime.get(SampleReads)
        self._lately: dict[str, tuple[float, dict[int, LogEnd]]] = {}
        runtime.on_connection_lost(self._lately.clear)

    async def read(self, topic: str, partitions: Sequence[int]) -> Mapping[int, LogEnd]:
        """The ends of these partitions of a topic as of now, each of them, whether it exists or not."""
        parameters = {"topic": topic, "partitions": list(partitions)}
        async with self._db.connection() as connection:
            rows = await self._db.rows(connection, Q.log_ends, parameters)
        return {
            partition: LogEnd(start or 0, max(start or 0, end or 0, committed or 0))
            for partition, start, end, committed in rows
        }

    async def lately(self, topic: str, partitions: Iterable[int]) -> Mapping[int, LogEnd]:
        """As `read`, but what was read within KNOWN_SECONDS is not read again."""
        wanted = set(partitions)
        read_at, known = self._lately.get(topic, (0.0, {}))
        if time.monotonic() - read_at >= KNOWN_SECONDS:
            read_at, known = time.monotonic(), {}
        missing = sorted(wanted - known.keys())
        if missing:
            known = {**known, **await self.read(topic, missing)}
            self._lately.pop(topic, None)
            if len(self._lately) >= MAX_KNOWN:
                self._lately.pop(next(iter(self._lately)))
            self._lately[topic] = read_at, known
        return {partition: known[partition] for partition in wanted}

    async def at(self, topic: str, partitions: Sequence[int], instant: Millis) -> Mapping[int, AtTime]:
        """The offsets that belong to an instant (ms), by the samples of watermarks (`offsets.core.samples`).

        Everything was written at the instant 0 or after, which needs no samples: consoles learn the start so. A
        partition without any sample counts as one without records.
        """
        if instant == 0:
            logs = await self.read(topic, partitions)
            return {n: AtTime(log.start if log.start < log.end else None) for n, log in logs.items()}
        found: dict[int, AtTime] = {}
        for partition, samples in (await self._samples.around(topic, partitions, instant)).items():
            offset = offset_at(samples, instant)
            last = samples[-1]
            if offset is None:
                found[partition] = AtTime(None, is_known=False)
            else:
                is_past = offset >= last.log_end_offset
                found[partition] = AtTime(None if is_past else max(offset, last.log_start_offset))
        return {partition: found.get(partition, AtTime(None)) for partition in partitions}
