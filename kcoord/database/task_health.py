"""How Celery is doing, as far as the database knows: tasks that failed, tasks that wait.

Workers export nothing, so failures are counted in rows of `kcoord.database.counters`. The number of labels is that of
the tasks in the code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries

Q = queries("kcoord")

FAILED = "task_failed:"
"""Begins the names of the counters; the name of the task follows."""

LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class TaskHealth:
    """`failures` by task. `queued`: tasks that no worker has taken; None: not in this database."""

    failures: Mapping[str, int]
    queued: int | None


async def count_failure(db: Database, task: str) -> None:
    """Count a failed run of a task. Raises ProtocolError COORDINATOR_NOT_AVAILABLE."""

    async def work(connection: Connection) -> None:
        await connection.execute(Q.count.encode(), {"name": (FAILED + task)[:LONGEST_NAME], "by": 1})

    await db.transaction(work)


async def read(db: Database, connection: Connection, *, own_queue: bool) -> TaskHealth:
    """`own_queue`: the queue is in this database, if Celery has used it yet."""
    failures = await db.rows(connection, Q.task_failures, {"prefix": FAILED})
    queued = None
    if own_queue and await db.value(connection, Q.queue_table) is not None:
        queued = await db.value(connection, Q.queued_tasks)
    return TaskHealth({name.removeprefix(FAILED): value for name, value in failures}, queued)


class _Read(Collector):
    def __init__(self, health: TaskHealth) -> None:
        self._health = health

    def collect(self) -> Iterable[Metric]:
        """In the form Prometheus expects."""
        failures = CounterMetricFamily("kcoord_task_failures", "Runs of Celery tasks that failed.", labels=["task"])
        for task, count in sorted(self._health.failures.items()):
            failures.add_metric([task], count)
        yield failures
        if self._health.queued is not None:
            yield GaugeMetricFamily(
                "kcoord_task_queue_messages",
                "Tasks that no worker has taken; absent with another broker.",
                value=self._health.queued,
            )


def exposed(health: TaskHealth) -> bytes:
    """In the Prometheus text format."""
    registry = CollectorRegistry()
    registry.register(_Read(health))
    return generate_latest(registry)
