"""Samples of watermarks over time: read for interpolation.

Source: HTTP contract, section 3 (watermarks are reported by producers or probes).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from kcoord.db import Connection
from kcoord.runtime import Runtime
from kcoord.sql import queries
from offsets.core.samples import Sample
from offsets.core.types import Millis

Q = queries("offsets")


class SampleReads:
    """What is known of where logs ended. Methods may raise COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db

    async def around(
        self,
        topic: str,
        partitions: Sequence[int] | None,
        at: Millis,
        *,
        connection: Connection | None = None,
    ) -> Mapping[int, tuple[Sample, ...]]:
        """The samples by partition that `offset_at` needs for the instant `at` (ms), the current watermark among them.

        `partitions` None: all of the topic. One statement, however many they are; `connection`: read in the caller's
        transaction. Partitions without a watermark are absent, and so are all of a topic that does not exist. Samples
        of an earlier topic of the same name are never among them.
        """
        parameters = {"topic": topic, "partitions": None if partitions is None else list(partitions), "at": at}
        if connection is not None:
            rows = await self._db.rows(connection, Q.samples_around, parameters)
        else:
            async with self._db.connection() as own:
                rows = await self._db.rows(own, Q.samples_around, parameters)
        return {
            partition: in_order(Sample(*row[1:]) for row in found)
            for partition, found in groupby(rows, key=lambda row: int(row[0]))
        }


def in_order(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """Samples by time, without those that say nothing after the one before: a watermark that is sampled already."""
    kept: list[Sample] = []
    for sample in samples:
        if not kept or sample.at > kept[-1].until:
            kept.append(sample)
    return tuple(kept)
