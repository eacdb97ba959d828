"""The settings of a server process: its connections to Postgres, and to clients. Part of the table in `kcoord.config`.

Source: http-api.md 1 and 6.
"""

from __future__ import annotations

from kcoord.setting import Setting

LANE = "heartbeat.lane"
FLUSH_INTERVAL = "heartbeat.flush.interval.ms"

SERVER: tuple[Setting, ...] = (
    Setting("database.pool.size", 8, "connections", "Write connections of one process; as many for reading.", 2, 200),
    Setting("database.statement.timeout.ms", 15_000, "ms", "Longest statement of the data plane.", 100, 600_000),
    Setting("database.acquire.timeout.ms", 5_000, "ms", "Wait for a free connection before answering 503.", 10, 60_000),
    Setting(
        "database.transaction.timeout.ms",
        1_500,
        "ms",
        "How long a process that stalls in a transaction keeps its locks.",
        500,
        60_000,
    ),
    Setting(
        "request.max.age.ms",
        10_000,
        "ms",
        "Requests older than this, not counting max_wait_ms, write nothing.",
        4_000,
        600_000,
    ),
    Setting("http.max.body.bytes", 1_048_576, "bytes", "Largest request body; above it 413.", 1_024, 1_073_741_824),
    Setting("http.max.wait.ms", 60_000, "ms", "Upper bound of the max_wait_ms of a request.", 0, 3_600_000),
    Setting("http.max.connections", 10_000, "connections", "Open connections; above it 503.", 10, 1_000_000),
    Setting("http.max.queue", 10_000, "requests", "Requests that wait for their turn; above it 503.", 1, 1_000_000),
    Setting(
        "http.max.big.queue",
        64,
        "requests",
        "Requests with large bodies or answers that wait for their turn; above it 503.",
        0,
        10_000,
    ),
    Setting("http.head.timeout.ms", 10_000, "ms", "Time limit for the head of a request.", 100, 600_000),
    Setting(
        "http.body.timeout.ms",
        30_000,
        "ms",
        "Time limit for the body of a request; 1 s more for each 16 KiB received.",
        100,
        600_000,
    ),
    Setting(
        "http.write.timeout.ms",
        30_000,
        "ms",
        "How long a client may leave a response unread; 1 s more for each 16 KiB of it.",
        100,
        600_000,
    ),
    Setting(
        "cache.max.members",
        200_000,
        "members",
        "Members of groups a process keeps in memory, at about 2 kB. A group counts as one member, and so do ten"
        " partitions that a consumer group owns. The groups used least recently go first.",
        0,
        100_000_000,
    ),
    Setting("token.cache.ms", 5_000, "ms", "How long a process caches an API token.", 0, 600_000),
)
