"""Prometheus metrics of a process. Labels are bounded: never a group id, a member id or a topic.

Those of groups are read from samples (`offsets.metrics`), those that any process may count from the database
(`kcoord.database.counters`).

What happens in every request is counted by the event loop's thread only. The counters and histograms of
prometheus-client are for any thread: each count takes a lock and several calls, and the five of a heartbeat were a
tenth of its cost. Ours add to plain numbers, and make series of them when they are asked for.

Source: http-api.md 5; offsets.md 12, for what is worth counting.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate

from prometheus_client import REGISTRY, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


class Tally:
    """One series of `Tallies`."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def inc(self, amount: int = 1) -> None:
        """Count `amount` more."""
        self.value += amount


class Tallies(Collector):
    """A counter. Parameters: its name without `_total`, what it says, the names of its labels."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str]) -> None:
        self._name, self._documentation, self._labels = name, documentation, tuple(labels)
        self._found: dict[tuple[str, ...], Tally] = {}
        REGISTRY.register(self)

    def labels(self, *values: str) -> Tally:
        """The series with these labels, by position."""
        found = self._found.get(values)
        if found is None:
            assert len(values) == len(self._labels), (self._name, values)
            found = self._found.setdefault(values, Tally())
        return found

    def describe(self) -> Iterator[Metric]:
        """Its name, for the registry."""
        yield CounterMetricFamily(self._name, self._documentation, labels=self._labels)

    def collect(self) -> Iterator[Metric]:
        """All series as they are now."""
        family = CounterMetricFamily(self._name, self._documentation, labels=self._labels)
        for values, tally in tuple(self._found.items()):
            family.add_metric(values, tally.value)
        yield family


class Durations:
    """One series of `Latencies`. `counts`: by bucket, the last one for what is longer than every bound."""

    __slots__ = ("_bounds", "counts", "seconds")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.seconds = 0.0

    def observe(self, seconds: float) -> None:
        """Something took `seconds`."""
        self.counts[bisect_left(self._bounds, seconds)] += 1
        self.seconds += seconds


class Latencies(Collector):
    """A histogram of seconds. Parameters: name, what it says, the name of its label, the bounds of its buckets."""

    def __init__(self, name: str, documentation: str, label: str, buckets: Sequence[float]) -> None:
        self._name, self._documentation, self._label = name, documentation, label
        self._bounds = tuple(float(bound) for bound in buckets)
        self._found: dict[str, Durations] = {}
        REGISTRY.register(self)

    def labels(self, value: str) -> Durations:
        """The series with this label."""
        found = self._found.get(value)
        if found is None:
            found = self._found.setdefault(value, Durations(self._bounds))
        return found

    def describe(self) -> Iterator[Metric]:
        """Its name, for the registry."""
        yield HistogramMetricFamily(self._name, self._documentation, labels=[self._label])

    def collect(self) -> Iterator[Metric]:
        """All series as they are now."""
        family = HistogramMetricFamily(self._name, self._documentation, labels=[self._label])
        bounds = [str(floatToGoString(bound)) for bound in (*self._bounds, float("inf"))]  # type: ignore[no-untyped-call]
        for value, found in tuple(self._found.items()):
            family.add_metric([value], list(zip(bounds, accumulate(found.counts), strict=True)), found.seconds)
        yield family


disable_created_metrics()  # type: ignore[no-untyped-call]  # they double the number of series and our queries ignore them

REQUESTS = Tallies("kcoord_http_requests", "HTTP requests answered.", ["route", "method", "status"])
LATENCY = Latencies(
    "kcoord_http_request_seconds",
    "Time from the first byte of a request to the end of its response, waiting included.",
    "route",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
CONNECTIONS = Gauge("kcoord_http_connections", "Open connections of clients.")
CONNECTIONS_CLOSED = Counter(
    "kcoord_http_connections_closed",
    "Connections closed or refused because of the client.",
    ["reason"],
)
KAFKA_REQUESTS = Tallies("kcoord_kafka_requests", "Requests of Kafka's protocol answered.", ["api", "version"])
KAFKA_LATENCY = Latencies(
    "kcoord_kafka_request_seconds",
    "Time from the last byte of a request of Kafka's protocol to its answer, waiting included.",
    "api",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
KAFKA_CONNECTIONS = Gauge("kcoord_kafka_connections", "Open connections of Kafka clients.")
KAFKA_CLOSED = Counter(
    "kcoord_kafka_connections_closed",
    "Connections of Kafka clients closed or refused because of the client.",
    ["reason"],
)
COMMANDS = Tallies("kcoord_commands", "Commands of members, by Kafka error name of the response.", ["command", "error"])
OFFSETS_COMMITTED = Counter("kcoord_offsets_committed", "Offsets in accepted commits.")
SHARE_ACQUIRED = Counter("kcoord_share_items_acquired", "Items that workers of share groups were given over HTTP.")
SHARE_ACKNOWLEDGED = Counter(
    "kcoord_share_acknowledgements", "Items that workers of share groups settled over HTTP.", ["type"]
)
LOST_COMMITS = Counter(
    "kcoord_database_lost_commits",
    "Offsets that this process had acknowledged and the database no longer had after a fail-over, and partitions of "
    "which it stored the last one again.",
    ["outcome"],
)
OFFSETS_DELETED = Counter("kcoord_offsets_deleted", "Offsets removed by OffsetDelete; not those of deleted groups.")
TRANSACTIONS_ENDED = Counter(
    "kcoord_offset_transactions_ended",
    "Transactions with pending offsets ended by their producer or its successor.",
    ["outcome"],
)
TRANSACTIONS = Counter("kcoord_group_transactions", "Transactions of group mailboxes.", ["outcome"])
BATCH_SIZE = Histogram(
    "kcoord_group_batch_commands",
    "Commands decided together in one group transaction.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
)
HEARTBEATS_FROM_MEMORY = Tallies(
    "kcoord_heartbeats_from_memory", "Heartbeats answered from memory; their sessions are stored shortly after.", []
).labels()
SESSIONS_FLUSHED = Counter("kcoord_sessions_flushed", "Sessions renewed in memory that were stored.")
FLUSH_SECONDS = Histogram(
    "kcoord_sessions_flush_seconds",
    "Time to store the sessions that were renewed in memory since the last time.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
COMMITS = Counter(
    "kcoord_offset_commits",
    "Commits by the way they took: `lane`, or why it was the normal one.",
    ["way"],
)
BATCH_COMMITS = Histogram(
    "kcoord_commit_batch_commits",
    "Commits written together by the commit lane.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
)
BATCH_FETCHES = Histogram(
    "kcoord_fetch_batch_fetches",
    "Fetches of offsets read together by the fetch lane.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
)
ADMISSION_WAITING = Gauge("kcoord_admission_waiting", "What waits to be let in, by queue.", ["queue"])
ADMISSION_HELD = Gauge("kcoord_admission_held", "Places that requests have taken, by queue.", ["queue"])
PARKED = Gauge("kcoord_parked_requests", "Requests waiting on the server.", ["kind"])
NODE_PARTITIONS = Gauge("kcoord_node_partitions", "Coordinator partitions that this process owns.")
NODE_LEASE = Gauge("kcoord_node_lease", "Whether this process holds its lease as a coordinator node: 1 or 0.")
RENEWAL_AGE = Gauge(
    "kcoord_node_renewal_age_seconds", "Since the last renewal of this process's lease; NaN: it never had one."
)
LIVE_NODES = Gauge("kcoord_nodes", "Live coordinator nodes, as this process sees them; NaN: it is not a node.")
COORDINATOR_PARTITIONS = Gauge(
    "kcoord_coordinator_partitions",
    "Coordinator partitions by state (active, loading, unowned), as this process sees them; NaN: it is not a node.",
    ["state"],
)
LEASES_LOST = Counter("kcoord_node_leases_lost", "Leases of this process that ran out or were ended by others.")
PARTITION_LOAD_MS = Histogram(
    "kcoord_partition_load_ms",
    "Time from getting a coordinator partition until it is active, in ms.",
    buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000),
)
TICK_LAG_MS = Gauge("kcoord_tick_lag_ms", "How long ago the timers last ran, in ms, when this process last looked.")
DATABASE_UP = Gauge("kcoord_database_up", "Whether Postgres answered this scrape: 1 or 0.")
DATABASE_SECONDS = Gauge(
    "kcoord_database_answer_seconds", "How long this scrape waited for a connection and an answer."
)
DATABASE_CONNECTIONS = Gauge(
    "kcoord_database_connections", "Connections of this process to Postgres, by pool and state.", ["pool", "state"]
)
DATABASE_CONNECTIONS_MAX = Gauge("kcoord_database_connections_max", "The most that a pool may have.", ["pool"])
DATABASE_WAITING = Gauge("kcoord_database_waiting", "Callers that wait for a connection of a pool.", ["pool"])


@cache
def commands(command: str, error: str) -> Tally:
    """COMMANDS with these labels, remembered: to find them takes longer than to count."""
    return COMMANDS.labels(command, error)


@cache
def requests(route: str, method: str, status: int) -> Tally:
    """REQUESTS with these labels, remembered."""
    return REQUESTS.labels(route, method, str(status))


@cache
def latency(route: str) -> Durations:
    """LATENCY with this label, remembered."""
    return LATENCY.labels(route)


@cache
def kafka_requests(api: str, version: int) -> Tally:
    """KAFKA_REQUESTS with these labels, remembered."""
    return KAFKA_REQUESTS.labels(api, str(version))


@cache
def kafka_latency(api: str) -> Durations:
    """KAFKA_LATENCY with this label, remembered."""
    return KAFKA_LATENCY.labels(api)
