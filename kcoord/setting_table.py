"""Every setting of the service by topic: name, default, unit, help and bounds. What is not a setting is in
`kcoord.constants`.

A setting has its Kafka name (`group.max.size`) or one in the same style. Where Kafka has it (KIP-848, 932, 1240),
default and bounds are Kafka's. `kcoord.identity_settings` has the settings of sign-in with their rules.

Source: classic.md 10.1, consumer.md 10, offsets.md 10.1, share.md 6, http-api.md 1 and 6.
"""

from __future__ import annotations

from collections.abc import Mapping

from kcoord.identity_settings import IDENTITY
from kcoord.setting import Setting

INT_MAX = 2_147_483_647
_DAY_MS = 86_400_000

ARCHIVE_PATH = "archive.path"
OWN_DIALECT = "kcoord"
ROUTING = "coordinator.routing"
LEASE = "coordinator.lease.ms"
KAFKA_PORT = "kafka.port"
KAFKA_HOST = "kafka.host"
KAFKA_ADVERTISED_HOST = "kafka.advertised.host"
KAFKA_ADVERTISED_PORT = "kafka.advertised.port"
KAFKA_CERTIFICATE = "kafka.tls.certificate"
KAFKA_KEY = "kafka.tls.key"
RECEIVERS_FILE = "alerts.receivers.file"
SERVICES_FILE = "dashboard.services.file"
LINK_URL = "alerts.link.url"
SESSION_TIMEOUT = "group.consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "group.consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "group.consumer.assignment.interval.ms"
REBALANCE_PROTOCOLS = "group.coordinator.rebalance.protocols"


BOUNDED = (
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "assignment.interval.ms",
    "record.lock.duration.ms",
    "delivery.count.limit",
    "partition.max.record.locks",
)
"""Those of which groups may have others, between a smallest and a largest of the server: settings or constants."""

SERVER: tuple[Setting, ...] = (
    Setting("host", "127.0.0.1", "address", "Address the server listens on; by default loopback."),
    Setting("port", 8000, "port", "Port the server listens on.", 1, 65_535),
    Setting(
        "nodes", 1, "servers", "Servers that `make up` runs behind that port; more than one: port + 1 … too.", 1, 32
    ),
    Setting("data.dir", ".kcoord", "path", "Directory of the embedded Postgres, generated secrets and the log."),
    Setting("allowed.hosts", "", "names", "Host names, separated by commas, that the pages accept besides loopback."),
    Setting(
        "trusted.proxies",
        "127.0.0.1,::1",
        "names",
        "Addresses or networks, separated by commas, whose X-Forwarded-For and X-Forwarded-Proto are believed.",
        listed=True,
    ),
    Setting("secret.key", "", "text", "Django's secret key; empty: generated into the data directory.", secret=True),
    Setting("dashboard.read.only", False, "switch", "Show everything on the pages and change nothing there."),
    Setting(
        SERVICES_FILE,
        "",
        "path",
        "TOML file that names other kcoord services, whose groups the pages show too; empty: none.",
    ),
    Setting("secure.cookies", False, "switch", "Send cookies over https only; enable behind TLS."),
    Setting(
        "log.level", "info", "level", "Lowest level that is logged.", choices=("debug", "info", "warning", "error")
    ),
    Setting(
        "log.hot.requests",
        0,
        "requests",
        "Log one in this number of successful heartbeats, commits and fetches; 1: all, 0: none.",
        0,
        INT_MAX,
    ),
)
DATABASE: tuple[Setting, ...] = (
    Setting("database.url", "", "url", "Postgres 14 or newer to use instead of the embedded one.", secret=True),
    Setting("broker.url", "", "url", "Celery broker instead of the queue in Postgres, e.g. redis://…", secret=True),
    Setting("database.pool.size", 8, "connections", "Write connections of one process; as many for reading.", 2, 200),
    Setting(
        "cache.max.members",
        200_000,
        "members",
        "Members of groups a process keeps in memory, at about 2 kB. A group counts as one member, and so do ten"
        " partitions that a consumer group owns. The groups used least recently go first.",
        0,
        100_000_000,
    ),
)
NODES: tuple[Setting, ...] = (
    Setting(
        "advertised.url",
        "",
        "url",
        "Address of this server as clients see it; empty: http://host:port, or the address that a request came by if "
        "the host is 0.0.0.0 or ::.",
    ),
    Setting("node.id", "", "text", "Name of this server among the nodes, unique; empty: its host name and port."),
    Setting(
        ROUTING,
        "any",
        "routing",
        "Which nodes answer for a group: any, or only the owner of its coordinator partition.",
        choices=("any", "owner"),
    ),
    # At least `coordinator.renewal.interval.ms`, `database.transaction.timeout.ms` and a renewal that is 0.5 s late.
    Setting(LEASE, 3_000, "ms", "How long a node that is silent stays the owner of its partitions.", 3_000, 60_000),
)
HTTP: tuple[Setting, ...] = (
    # At least `database.transaction.timeout.ms`, and 3 s in which a request may begin to write.
    Setting(
        "request.max.age.ms",
        10_000,
        "ms",
        "Requests older than this, not counting max_wait_ms, write nothing.",
        4_500,
        600_000,
    ),
    Setting("http.max.body.bytes", 1_048_576, "bytes", "Largest request body; above it 413.", 1_024, 1_073_741_824),
    Setting("http.max.connections", 10_000, "connections", "Open connections; above it 503.", 10, 1_000_000),
)
KAFKA: tuple[Setting, ...] = (
    Setting(
        KAFKA_PORT,
        0,
        "port",
        "Port for clients of Kafka's wire protocol; 0: none. With several nodes: + 0, 1, …",
        0,
        65_535,
    ),
    Setting(KAFKA_HOST, "127.0.0.1", "address", "Address to listen on for Kafka clients; by default loopback."),
    Setting(
        KAFKA_ADVERTISED_HOST,
        "",
        "address",
        "Host that Kafka clients are told; empty: that of kafka.host, or the one that a client came by "
        "if that is 0.0.0.0 or ::.",
    ),
    Setting(KAFKA_ADVERTISED_PORT, 0, "port", "Port that Kafka clients are told; 0: kafka.port.", 0, 65_535),
    Setting(KAFKA_CERTIFICATE, "", "path", "PEM file with the certificate chain for Kafka clients; empty: no TLS."),
    Setting(KAFKA_KEY, "", "path", "PEM file with the key of that certificate; empty: it is in the same file."),
    Setting(
        "kafka.max.connections", 10_000, "connections", "Open connections of Kafka clients; more are closed.", 1, 10**6
    ),
    Setting(
        "kafka.max.request.bytes",
        1_048_576,
        "bytes",
        "Largest request; a larger one ends the connection.",
        1_024,
        2**30,
    ),
)
GROUPS: tuple[Setting, ...] = (
    Setting("group.min.session.timeout.ms", 6_000, "ms", "Smallest session timeout a member may ask for.", 0, INT_MAX),
    Setting(
        "group.max.session.timeout.ms", 1_800_000, "ms", "Largest session timeout a member may ask for.", 0, INT_MAX
    ),
    Setting(
        "group.initial.rebalance.delay.ms", 3_000, "ms", "How long an empty group waits for more members.", 0, INT_MAX
    ),
    Setting("group.max.size", INT_MAX, "members", "Most members of a classic group.", 1, INT_MAX),
    Setting(
        "group.coordinator.rebalance.protocols",
        "classic,consumer",
        "names",
        "Protocols that groups may use; must include classic.",
        choices=("classic", "consumer"),
        listed=True,
    ),
    Setting("group.consumer.session.timeout.ms", 45_000, "ms", "Session timeout of a group's members.", 1, INT_MAX),
    Setting(
        "group.consumer.min.session.timeout.ms", 45_000, "ms", "Smallest session timeout of any group.", 1, INT_MAX
    ),
    Setting("group.consumer.max.session.timeout.ms", 60_000, "ms", "Largest session timeout of any group.", 1, INT_MAX),
    Setting("group.consumer.heartbeat.interval.ms", 5_000, "ms", "How often members send heartbeats.", 1, INT_MAX),
    Setting(
        "group.consumer.min.heartbeat.interval.ms", 5_000, "ms", "Smallest heartbeat interval of any group.", 1, INT_MAX
    ),
    # Differs from Kafka: 1000 there, so that what happens within a second is assigned together. Here commands that
    # arrive together are decided together anyway, and no member has to wait.
    Setting("group.consumer.assignment.interval.ms", 0, "ms", "Least time between two targets of a group.", 0, INT_MAX),
    Setting("group.consumer.max.size", INT_MAX, "members", "Most members of a consumer group.", 1, INT_MAX),
    Setting(
        "group.consumer.assignors",
        "uniform,range",
        "names",
        "Assignors of the server, the default first: uniform, range, or the dotted path of a class of your own.",
        listed=True,
    ),
    Setting(
        "group.consumer.migration.policy",
        "bidirectional",
        "policy",
        "Which groups with members may change between the classic and the consumer protocol.",
        choices=("bidirectional", "upgrade", "downgrade", "disabled"),
        any_case=True,
    ),
    Setting("group.share.session.timeout.ms", 45_000, "ms", "Session timeout of a share group's members.", 1, INT_MAX),
    Setting(
        "group.share.min.session.timeout.ms", 45_000, "ms", "Smallest session timeout of any share group.", 1, INT_MAX
    ),
    Setting(
        "group.share.max.session.timeout.ms", 60_000, "ms", "Largest session timeout of any share group.", 1, INT_MAX
    ),
    Setting(
        "group.share.heartbeat.interval.ms",
        5_000,
        "ms",
        "How often members of a share group send heartbeats.",
        1,
        INT_MAX,
    ),
    Setting(
        "group.share.min.heartbeat.interval.ms",
        5_000,
        "ms",
        "Smallest heartbeat interval of any share group.",
        1,
        INT_MAX,
    ),
    Setting(
        "group.share.assignment.interval.ms",
        1_000,
        "ms",
        "Least time between two targets of a share group.",
        0,
        INT_MAX,
    ),
    Setting("group.share.max.size", 200, "members", "Most members of a share group.", 1, INT_MAX),
    Setting(
        "group.share.record.lock.duration.ms", 30_000, "ms", "How long an acquired item is locked.", 1_000, 3_600_000
    ),
    Setting(
        "group.share.min.record.lock.duration.ms",
        15_000,
        "ms",
        "Smallest record lock duration of any share group.",
        1_000,
        3_600_000,
    ),
    Setting(
        "group.share.max.record.lock.duration.ms",
        60_000,
        "ms",
        "Largest record lock duration of any share group.",
        1_000,
        3_600_000,
    ),
    Setting("group.share.delivery.count.limit", 5, "deliveries", "How often an item is delivered at most.", 1, 100),
    Setting(
        "group.share.max.delivery.count.limit",
        10,
        "deliveries",
        "Largest delivery count limit of any share group.",
        1,
        100,
    ),
    Setting("group.share.partition.max.record.locks", 2_000, "items", "Most locked items of a partition.", 1, 100_000),
    Setting("group.share.release.backoff.ms", 0, "ms", "After how long a released item is due again.", 0, _DAY_MS),
    Setting("group.share.release.backoff.max.ms", 60_000, "ms", "Longest back-off of a released item.", 0, _DAY_MS),
    Setting(
        "group.share.release.backoff.multiplier",
        2,
        "times",
        "By how much the back-off grows with each delivery.",
        1,
        100,
    ),
    Setting(
        "group.share.auto.offset.reset",
        "earliest",
        "offset",
        "Where partitions begin for a share group that names their topic: at the first known offset, or at the end.",
        choices=("earliest", "latest"),
    ),
    Setting("events.max.per.group", 5_000, "events", "Most events kept of one group.", 100, 10_000_000),
    Setting("events.retention.days", 30, "days", "How long the events of groups are kept.", 1, 3_650),
)
OFFSETS: tuple[Setting, ...] = (
    Setting("offset.metadata.max.bytes", 4_096, "characters", "Longest metadata of a committed offset.", 0, INT_MAX),
    Setting(
        "offsets.topic.num.partitions", 50, "partitions", "Coordinator partitions; do not change it later.", 1, 10_000
    ),
    Setting("offsets.retention.minutes", 10_080, "min", "How long an offset is kept without a new commit.", 1, INT_MAX),
    Setting("offsets.journal.retention.days", 30, "days", "How long the commit history is kept.", 1, 3_650),
    Setting("plans.second.person", False, "switch", "Someone other than the maker of a plan must approve it."),
    Setting(
        "transaction.max.timeout.ms",
        900_000,
        "ms",
        "How long a transaction may stay open before it is aborted.",
        1_000,
        INT_MAX,
    ),
)
VERDICTS: tuple[Setting, ...] = (
    Setting("lag.sample.interval.ms", 60_000, "ms", "How often watermarks and lag are sampled.", 1_000, INT_MAX),
    Setting("lag.stale.ms", 300_000, "ms", "Age of a watermark beyond which lag is stale.", 1_000, INT_MAX),
    Setting("lag.sample.retention.days", 7, "days", "How long samples of watermarks and lag are kept.", 1, 365),
    Setting("verdict.stuck.ms", 60_000, "ms", "Longest rebalance of a group that is not stuck.", 1_000, 86_400_000),
    Setting(
        "verdict.stalled.ms",
        300_000,
        "ms",
        "How long the owner of a partition with unread records may make no progress, and items wait or stay unsettled.",
        1_000,
        604_800_000,
    ),
    Setting(
        "verdict.uncovered.ms", 60_000, "ms", "How long a group is Stable before it is uncovered.", 1_000, 86_400_000
    ),
)
ALERTS: tuple[Setting, ...] = (
    Setting(RECEIVERS_FILE, "", "path", "TOML file that names who can be told of alerts, besides who is added."),
    Setting(LINK_URL, "", "url", "Address of the dashboard for links in messages; empty: messages have no links."),
    Setting(
        "alerts.settle.ms",
        300_000,
        "ms",
        "How long a condition must be over before its alert is resolved: a group that comes and goes is one alert.",
        0,
        86_400_000,
    ),
)
QUOTAS: tuple[Setting, ...] = (
    Setting(
        "quota.connections.per.address",
        0,
        "connections",
        "Open connections from one address, for HTTP and for Kafka clients each; 0: no limit.",
        0,
        10**12,
    ),
)
AUDIT: tuple[Setting, ...] = (
    Setting(
        "audit.retention.ms",
        400 * 86_400_000,
        "ms",
        "How long records of the audit are kept; the default is 400 days.",
        86_400_000,
        100 * 366 * 86_400_000,
    ),
)
METRICS: tuple[Setting, ...] = (
    Setting(
        "otlp.endpoint",
        "",
        "url",
        "Collector that gets traces over OTLP/HTTP, e.g. http://collector:4318; empty: no traces.",
    ),
    Setting("otlp.group.ids", False, "switch", "Name the groups of requests in traces."),
    Setting(
        "metrics.dialect",
        OWN_DIALECT,
        "exporter",
        "Whose names /metrics uses for groups, where that exporter has one.",
        choices=(OWN_DIALECT, "kminion", "kafka_exporter", "kafka-lag-exporter"),
    ),
    Setting("metrics.max.groups", 1_000, "groups", "Most groups in /metrics: those of the largest lag.", 0, 1_000_000),
    Setting(
        "metrics.max.topics",
        5_000,
        "topics",
        "Most topics of groups in /metrics, of all groups together: those of the largest lag.",
        0,
        10_000_000,
    ),
    Setting(
        "metrics.public.groups", False, "switch", "Name groups and topics in /metrics to callers without a token, too."
    ),
)
ARCHIVE: tuple[Setting, ...] = (
    Setting(
        ARCHIVE_PATH,
        "",
        "path",
        "Where the journal is archived: a folder, s3a://… or hdfs://…; empty: no archive. Not set: `archive` "
        "in the data directory with the embedded Postgres, otherwise no archive.",
    ),
    Setting(
        "archive.snapshot.timeout.ms",
        1_800_000,
        "ms",
        "How long a run may read one snapshot of the database; it holds back vacuum.",
        10_000,
        86_400_000,
    ),
    Setting("spark.master", "local[2]", "master", "Where Spark runs: local[cores], spark://…, yarn or k8s://…"),
    Setting("spark.driver.memory.mb", 1_024, "MB", "Memory of Spark's driver; local executors share it.", 512, 262_144),
)

TOPICS: tuple[tuple[str, tuple[Setting, ...]], ...] = (
    ("Server", SERVER),
    ("Database and queue", DATABASE),
    ("Coordinator nodes and timers", NODES),
    ("HTTP", HTTP),
    ("Kafka's protocol", KAFKA),
    ("Groups", GROUPS),
    ("Offsets and transactions", OFFSETS),
    ("Lag and verdicts", VERDICTS),
    ("Alerts", ALERTS),
    ("Quotas", QUOTAS),
    ("Signing in", IDENTITY),
    ("Audit", AUDIT),
    ("Metrics and traces", METRICS),
    ("Archive", ARCHIVE),
)
"""Titles and their settings, in the order of docs/settings.md."""

SETTINGS: tuple[Setting, ...] = tuple(setting for _, settings in TOPICS for setting in settings)

BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}

NOT_LARGER = (
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    ("group.consumer.min.heartbeat.interval.ms", HEARTBEAT_INTERVAL),
    (HEARTBEAT_INTERVAL, "group.consumer.max.heartbeat.interval.ms"),
    ("group.consumer.min.session.timeout.ms", SESSION_TIMEOUT),
    (SESSION_TIMEOUT, "group.consumer.max.session.timeout.ms"),
    ("group.consumer.min.assignment.interval.ms", ASSIGNMENT_INTERVAL),
    (ASSIGNMENT_INTERVAL, "group.consumer.max.assignment.interval.ms"),
    *((f"group.share.min.{name}", f"group.share.{name}") for name in BOUNDED),
    *((f"group.share.{name}", f"group.share.max.{name}") for name in BOUNDED),
)
"""The first of a pair is not larger than the second; max >= min follows from both."""
