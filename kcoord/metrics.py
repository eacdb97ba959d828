"""Prometheus metrics of a process. Labels are bounded: never a group id, a member id or a topic.

Source: http-api.md 5; offsets.md 12, for what is worth counting.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call]  # they double the number of series and our queries ignore them

REQUESTS = Counter("kcoord_http_requests", "HTTP requests answered.", ["route", "method", "status"])
LATENCY = Histogram(
    "kcoord_http_request_seconds",
    "Time from the first byte of a request to the end of its response, waiting included.",
    ["route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
CONNECTIONS = Gauge("kcoord_http_connections", "Open connections of clients.")
CONNECTIONS_CLOSED = Counter(
    "kcoord_http_connections_closed",
    "Connections closed or refused because of the client.",
    ["reason"],
)
COMMANDS = Counter("kcoord_commands", "Commands of members, by Kafka error name of the response.", ["command", "error"])
OFFSETS_COMMITTED = Counter("kcoord_offsets_committed", "Offsets in accepted commits.")
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
PARKED = Gauge("kcoord_parked_requests", "Requests waiting on the server.", ["kind"])
TICK_LAG_MS = Gauge("kcoord_tick_lag_ms", "How long ago the timers last ran, in ms, when this process last looked.")
