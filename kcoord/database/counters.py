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
from kcoord.database.sql import queries

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


class CountedBy(Enum):
    """What is counted by a label: the name without `kcoord_`, what it means, the label and its values.

    The row of a value is named `<name>:<value>`.
    """

    PARTITION_CHANGES = (
        "partition_changes",
        "Changes of the owner of a coordinator partition, of all nodes.",
        "reason",
        ("taken", "lapsed", "stopped", "balanced"),
    )


async def count(connection: Connection, counted: Counted, by: int) -> None:
    """Increment a counter in the caller's transaction, as its last statement."""
    if by:
        await connection.execute(Q.count.encode(), {"name": counted.key, "by": by})


async def stored(db: Database) -> Mapping[str, int]:
    """All rows by name. Raises ProtocolError COORDINATOR_NOT_AVAILABLE."""
    async with db.connection() as connection:
        return dict(await db.rows(connection, Q.counters))


async def read(db: Database) -> Mapping[Counted, int]:
    """All counters without labels. Raises ProtocolError COORDINATOR_NOT_AVAILABLE."""
    found = await stored(db)
    return {counted: found.get(counted.key, 0) for counted in Counted}


class _Read(Collector):
    def __init__(self, rows: Mapping[str, int]) -> None:
        self._rows = rows

    def collect(self) -> Iterable[CounterMetricFamily]:
        """In the form Prometheus expects. A value that was never counted is 0: its first increase is one, too."""
        for counted in Counted:
            yield CounterMetricFamily(f"kcoord_{counted.key}", counted.value[1], value=self._rows.get(counted.key, 0))
        for labelled in CountedBy:
            name, text, label, values = labelled.value
            family = CounterMetricFamily(f"kcoord_{name}", text, labels=[label])
            for value in values:
                family.add_metric([value], self._rows.get(f"{name}:{value}", 0))
            yield family


def exposed(rows: Mapping[str, int]) -> bytes:
    """The `stored` counters in the Prometheus text format."""
    registry = CollectorRegistry()
    registry.register(_Read(rows))
    return generate_latest(registry)
