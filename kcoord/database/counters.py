"""Counters stored in the database, for work that any process may do but no process exports: Celery's maintenance.

A count is one more row in the transaction that did the work, so it is exact and survives every process. Counting must
be the last statement: until its transaction ends, others that increment the same counter wait for it.
Source: offsets.md 12.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from kcoord.database.pool import Connection, Database
from kcoord.sql import queries

Q = queries("kcoord")


class Counted(Enum):
    """What is counted here: the name without `kcoord_`, and what it means."""

    OFFSETS_EXPIRED = ("offsets_expired", "Offsets removed by retention.")
    RECONCILE_FINDINGS = ("reconcile_findings", "Findings of reconcile; each run counts a persisting one again.")
    TRANSACTIONS_ABANDONED = ("transactions_abandoned", "Transactions aborted because they were not ended in time.")

    @property
    def key(self) -> str:
        """The name of its row."""
        return self.value[0]


async def count(connection: Connection, counted: Counted, by: int) -> None:
    """Increment a counter in the caller's transaction, as its last statement."""
    if by:
        await connection.execute(Q.count.encode(), {"name": counted.key, "by": by})


async def read(db: Database) -> Mapping[Counted, int]:
    """All counters. Raises ProtocolError COORDINATOR_NOT_AVAILABLE."""
    async with db.connection() as connection:
        found: dict[str, int] = dict(await db.rows(connection, Q.counters))
    return {counted: found.get(counted.key, 0) for counted in Counted}


class _Read(Collector):
    def __init__(self, counts: Mapping[Counted, int]) -> None:
        self._counts = counts

    def collect(self) -> Iterable[CounterMetricFamily]:
        """In the form Prometheus expects."""
        for counted, value in self._counts.items():
            yield CounterMetricFamily(f"kcoord_{counted.key}", counted.value[1], value=value)


def exposed(counts: Mapping[Counted, int]) -> bytes:
    """The counters in the Prometheus text format."""
    registry = CollectorRegistry()
    registry.register(_Read(counts))
    return generate_latest(registry)
