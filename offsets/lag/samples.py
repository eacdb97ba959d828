"""Samples of watermarks and lag over time: taken, thinned, and read for interpolation.

Watermarks are reported by producers or probes (http-api.md 3); reporting does not sample. Celery beat calls `sample`
every `lag.sample.interval.ms` and `thin` every hour, through the bridge. A sample has the instant at which the
watermark was reported, not that of the run, so a missing report is not mistaken for an idle log.
Source: architecture.md 6.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg

from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from offsets.core.samples import DAY_MS, TIERS, Sample, thinned
from offsets.core.types import Millis

T = TypeVar("T")

NAMED = 10
"""Groups that the error names."""


class GroupsFailed(Exception):
    """Raised at the end of a run that is complete but for some groups, so that its task counts as failed."""


class Spared:
    """Finds the groups of a batch whose data Postgres refuses, and does the others. `what`: what fails for a group."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._failed: dict[int, psycopg.DataError] = {}

    async def run(self, work: Callable[[int, int], Awaitable[T]], after: int, upto: int) -> list[T]:
        """The results of `work` on the groups with the keys from `after`, excluded, to `upto`.

        Where it fails with a DataError it is repeated on both halves, until one group is left.
        """
        try:
            return [await work(after, upto)]
        except psycopg.DataError as error:
            if upto - after == 1:
                self._failed[upto] = error
                return []
        middle = (after + upto) // 2
        return [*await self.run(work, after, middle), *await self.run(work, middle, upto)]

    def check(self) -> None:
        """Raises GroupsFailed naming the keys of the groups that failed."""
        if self._failed:
            keys = ", ".join(map(str, sorted(self._failed)[:NAMED]))
            first = next(iter(self._failed.values()))
            text = f"{self._what}: {len(self._failed)} groups, the first by groups_group.id {keys}: {first}"
            raise GroupsFailed(text) from first


Q = queries("offsets")

WATERMARK_BATCH = 10_000
"""Partitions that are sampled in one transaction."""

GROUP_BATCH = 1_000
OFFSET_BATCH = 20_000
"""Groups and about how many of their offsets are looked at in one transaction; a group is not split."""

THIN_BATCH = 500
"""Partitions whose samples are thinned in one transaction."""

DROP_BATCH = 5_000
"""Samples that are dropped in one transaction."""

_SAMPLING_LOCK, _THINNING_LOCK = 0x6B636F_01, 0x6B636F_02


@dataclass(frozen=True, slots=True)
class Sampled:
    """The result of a run: `partitions` whose watermark was newer than its sample, and `lags` of groups on topics."""

    partitions: int
    lags: int


class SampleService:
    """Takes and thins samples. Every method is idempotent: late or double runs are harmless.

    Work is done in batches of bounded size, each in a separate transaction; no group is locked. Methods may raise
    COORDINATOR_NOT_AVAILABLE; what was done until then is kept.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._interval_ms = runtime.config.int("lag.sample.interval.ms")
        self._retention_ms = runtime.config.int("lag.sample.retention.days") * DAY_MS

    async def sample(self) -> Sampled:
        """Sample all watermarks reported since the last run, then the lag of all groups."""
        return Sampled(await self._sample_watermarks(), await self._sample_lag())

    async def _sample_watermarks(self) -> int:
        oldest = await self._now() - self._retention_ms
        return await self._walk(Q.sample_watermarks, {"oldest": oldest}, WATERMARK_BATCH, _SAMPLING_LOCK)

    async def _sample_lag(self) -> int:
        """All groups at one instant, unless a run just did so: totals over topics must be of one instant."""
        async with self._db.connection() as connection:
            now = await self._db.now_ms(connection)
            last = await self._db.value(connection, Q.last_lag_sample)
        if last is not None and 0 <= now - last < self._interval_ms // 2:
            return 0
        after, sampled = 0, 0
        spared = Spared("lag cannot be sampled")

        async def look(after: int, upto: int) -> int:
            row = await self._batch(Q.sample_lag, {"after": after, "upto": upto, "now": now}, _SAMPLING_LOCK)
            assert row is not None
            return row[0]

        while True:
            bounds = {"after": after, "groups": GROUP_BATCH, "offsets": OFFSET_BATCH}
            async with self._db.connection() as connection:
                upto = await self._db.value(connection, Q.groups_to_sample, bounds)
            if upto is None:
                break
            sampled += sum(await spared.run(look, after, upto))
            after = upto
        await self._total(now)  # cannot fail by what is stored: every sum is brought back into the range
        spared.check()
        return sampled

    async def _total(self, now: Millis) -> None:
        async def work(connection: Connection) -> None:
            await connection.execute(Q.one_at_a_time.encode(), {"key": _SAMPLING_LOCK})
            await connection.execute(Q.total_topics.encode(), {"now": now})

        await self._db.transaction(work, long=True)  # every topic is written

    async def thin(self) -> int:
        """Thin older samples, drop those that are too old or of deleted topics; returns the number dropped."""
        now = await self._now()
        return await self._thin_watermarks(now) + await self._thin_lag(now)

    async def _thin_watermarks(self, now: Millis) -> int:
        dropped = await self._drop_all(Q.drop_samples_of_deleted_topics, {})
        parameters = {
            "oldest": now - self._retention_ms,
            "tier_ends": [tier.ends(now) for tier in TIERS],
            "tier_steps": [tier.step_ms for tier in TIERS],
        }
        return dropped + await self._walk(Q.thin_watermark_samples, parameters, THIN_BATCH, _THINNING_LOCK)

    async def _thin_lag(self, now: Millis) -> int:
        async with self._db.connection() as connection:
            instants = await self._db.column(connection, Q.lag_sample_instants)
            await connection.execute(Q.drop_lag_of_deleted_groups.encode())
        oldest = now - self._retention_ms
        unwanted = [instant for instant in instants if instant < oldest]
        for step in thinned((instant for instant in instants if instant >= oldest), now):
            # What is largest must be stored before what it is taken from is dropped, a part at a time.
            around = {"first": step.first, "last": step.last, "kept": list(step.kept)}
            async with self._db.connection() as connection:
                await connection.execute(Q.keep_lag_peaks.encode(), around)
            unwanted += step.dropped
        await self._drop_all(Q.drop_lag_peaks, {"oldest": oldest})
        return await self._drop_all(Q.drop_lag_samples, {"instants": unwanted}) if unwanted else 0

    async def _walk(self, statement: str, parameters: Mapping[str, object], batch: int, lock: int) -> int:
        """Run a statement on all partitions that have a watermark, `batch` of them per transaction.

        It returns the last partition, how many partitions it looked at, and a count; returns the sum of the counts.
        """
        topic, partition, counted = 0, -1, 0
        while True:
            position = {"after_topic": topic, "after_partition": partition, "limit": batch}
            row = await self._batch(statement, {**parameters, **position}, lock)
            if row is None:
                return counted
            topic, partition, looked, found = row
            counted += found
            if looked < batch:
                return counted

    async def _drop_all(self, statement: str, parameters: Mapping[str, object]) -> int:
        """Run a deletion that takes a `limit` until it finds fewer rows than that."""
        dropped = 0
        while True:
            async with self._db.connection() as connection:
                cursor = await connection.execute(statement.encode(), {**parameters, "limit": DROP_BATCH})
            dropped += cursor.rowcount
            if cursor.rowcount < DROP_BATCH:
                return dropped

    async def _batch(self, statement: str, parameters: Mapping[str, object], lock: int) -> Sequence[int] | None:
        """The first row of a statement, run in a separate transaction while no other run has the lock."""

        async def work(connection: Connection) -> Sequence[int] | None:
            await connection.execute(Q.one_at_a_time.encode(), {"key": lock})
            return await self._db.row(connection, statement, dict(parameters))

        return await self._db.transaction(work)

    async def _now(self) -> Millis:
        async with self._db.connection() as connection:
            return await self._db.now_ms(connection)


class SampleReads:
    """What is known about the ends of logs. Methods may raise COORDINATOR_NOT_AVAILABLE."""

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
            rows = await self._db.records(connection, _of_partition, Q.samples_around, parameters)
        else:
            async with self._db.connection() as own:
                rows = await self._db.records(own, _of_partition, Q.samples_around, parameters)
        found: dict[int, list[Sample]] = {}
        for partition, sample in rows:
            found.setdefault(partition, []).append(sample)
        return {partition: in_order(samples) for partition, samples in found.items()}


def _of_partition(*, partition: int, **sample: Any) -> tuple[int, Sample]:
    return partition, Sample(**sample)


def in_order(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """Samples by time, without those that add nothing to the previous one: a watermark that is already sampled."""
    kept: list[Sample] = []
    for sample in samples:
        if not kept or sample.at > kept[-1].until:
            kept.append(sample)
    return tuple(kept)
