"""Limits and intervals that are not settings, each with the reason why it has its value.

They are read like settings (`kcoord.config.Config`), so that a test can give another value in process; no environment
variable does.
"""

from __future__ import annotations

from dataclasses import dataclass

from kcoord.setting import PREFIX, Value

LANE = "heartbeat.lane"
FLUSH_INTERVAL = "heartbeat.flush.interval.ms"
RENEWAL = "coordinator.renewal.interval.ms"


@dataclass(frozen=True, slots=True)
class Constant:
    """One constant and why it has this value."""

    name: str
    value: Value
    why: str

    @property
    def env(self) -> str:
        """The environment variable that set it up to version 0.2."""
        return PREFIX + self.name.upper().replace(".", "_")


CONSTANTS: tuple[Constant, ...] = (
    Constant("database.lock.timeout.ms", 3000, "Clients retry a 503 sooner than a longer wait would end."),
    Constant(
        "database.acquire.timeout.ms",
        5000,
        "A request that waits longer for a connection is better answered 503 and sent again.",
    ),
    Constant(
        "database.statement.timeout.ms",
        15000,
        "Requests are refused at an age of 10 s; what runs longer would answer nobody.",
    ),
    Constant(
        "database.transaction.timeout.ms",
        1500,
        "How long a process that stalls in a transaction keeps its locks: half of the shortest lease.",
    ),
    Constant(
        "notifications.repair.interval.ms",
        3000,
        "How often a process looks for changes whose notification was lost: one short query.",
    ),
    Constant(
        "token.cache.ms",
        5000,
        "Changes are notified; this is how long a revoked token works on if the notification is lost.",
    ),
    Constant("cache.max.groups", 100000, "`cache.max.members` bounds the memory, and counts each group."),
    Constant(
        "mailbox.max.batch",
        256,
        "Commands of one group in one transaction, so that it ends within tens of milliseconds.",
    ),
    Constant(
        "http.retry.after.ms",
        1000,
        "Retry-After in seconds cannot be less, and members that wait longer lose time after a restart.",
    ),
    Constant(
        "http.max.big.requests",
        0,
        "As many requests with large bodies or answers at a time as cores, at least 2: more would only take longer.",
    ),
    Constant(
        "http.max.queue",
        10000,
        "Requests that wait for their turn, more than a server answers within their age; above it 503.",
    ),
    Constant(
        "http.max.big.queue",
        64,
        "Requests with large bodies or answers that wait: more would be too old when their turn comes; above it 503.",
    ),
    Constant(
        "http.max.wait.ms", 60000, "Upper bound of the max_wait_ms of a request: proxies end requests that take longer."
    ),
    Constant("http.head.timeout.ms", 10000, "For the head of a request, which fits into a few packets."),
    Constant(
        "http.body.timeout.ms",
        30000,
        "For the body of a request; 1 s more for each 16 KiB received, so that slow networks are served.",
    ),
    Constant(
        "http.write.timeout.ms", 30000, "How long a client may leave a response unread; 1 s more for each 16 KiB of it."
    ),
    Constant(
        LANE,
        True,
        "Heartbeats that only extend a session are answered from memory; tests compare the other way.",
    ),
    Constant(FLUSH_INTERVAL, 200, "Five writes a second store all sessions; sessions take seconds at least."),
    Constant("commit.lane", True, "Steady commits of all groups are written together; tests compare the other way."),
    Constant(
        "fetch.lane", True, "Offsets that fetches of all groups ask for are read together; tests compare the other way."
    ),
    Constant(
        "kafka.max.handshakes",
        64,
        "TLS handshakes at a time: they are work of the CPU, so more would only take longer.",
    ),
    Constant(
        "kafka.max.request.items",
        100000,
        "Entries of all lists of a request; a request of `kafka.max.request.bytes` has fewer as a rule.",
    ),
    Constant(
        "kafka.max.queued.bytes", 67108864, "Requests that are being read or answered, of all connections: 64 MiB."
    ),
    Constant(
        "kafka.max.requests", 10000, "Requests that are being answered, parked ones included: one for each connection."
    ),
    Constant(
        "kafka.request.timeout.ms",
        30000,
        "For the arrival of a request that has begun; 1 s more for each 16 KiB received.",
    ),
    Constant("kafka.write.timeout.ms", 30000, "How long a client may leave answers unread."),
    Constant("kafka.login.timeout.ms", 10000, "For the login of a connection, TLS included: three exchanges."),
    Constant("kafka.max.idle.ms", 600000, "Kafka's `connections.max.idle.ms`, which its clients expect."),
    Constant("oidc.timeout.ms", 5000, "A page that waits longer for the provider looks broken."),
    Constant("oidc.clock.skew.ms", 60000, "Clocks that keep time by NTP differ by less."),
    Constant(
        "quota.max.throttle.ms",
        1000,
        "Kafka's `quota.window.size.seconds`: clients that are silent for longer seem dead.",
    ),
    Constant(
        RENEWAL,
        1000,
        "Three renewals fit into the shortest useful lease; `coordinator.lease.ms` is what to change.",
    ),
    Constant(
        "offsets.retention.check.interval.ms",
        600000,
        "As in Kafka; offsets are kept for days, ten minutes more do no harm.",
    ),
    Constant(
        "transactional.id.expiration.ms", 604800000, "As in Kafka: a producer that was silent for a week starts over."
    ),
    Constant("offsets.retention.batch", 2000, "Offsets removed under one lock, which then lasts tens of milliseconds."),
    Constant("group.consumer.min.assignment.interval.ms", 0, "Bound of the configs of single groups, as in Kafka."),
    Constant("group.consumer.max.assignment.interval.ms", 15000, "Bound of the configs of single groups, as in Kafka."),
    Constant(
        "group.consumer.max.heartbeat.interval.ms",
        15000,
        "Bound of the configs of single groups, as in Kafka: with longer intervals members hear late of rebalances.",
    ),
    Constant(
        "group.consumer.regex.refresh.interval.ms",
        600000,
        "Created and deleted topics are matched at once; as in Kafka, this is for a notification that was lost.",
    ),
    Constant("group.share.min.assignment.interval.ms", 0, "Bound of the configs of single groups, as in Kafka."),
    Constant("group.share.max.assignment.interval.ms", 15000, "Bound of the configs of single groups, as in Kafka."),
    Constant("group.share.max.heartbeat.interval.ms", 15000, "As for consumer groups."),
    Constant(
        "group.share.min.delivery.count.limit", 2, "Bound as in Kafka: with one, a single crash makes a dead letter."
    ),
    Constant("group.share.min.partition.max.record.locks", 100, "Bound of the configs of single groups, as in Kafka."),
    Constant("group.share.max.partition.max.record.locks", 4000, "Bound of the configs of single groups, as in Kafka."),
    Constant(
        "group.max.hold.ms", 3600000, "A hold stops all members of a group; one that was forgotten ends within an hour."
    ),
    Constant("verdict.late.percent", 50, "A member that was silent for half of its session has missed a heartbeat."),
    Constant("verdict.stalled.lag", 1, "A single unread record is one too many if nothing moves."),
    Constant("verdict.flapping.rebalances", 10, "One a minute: deployments of a dozen members make fewer."),
    Constant("verdict.flapping.window.ms", 600000, "The time in which these are counted."),
    Constant(
        "verdict.check.interval.ms",
        5000,
        "How often all groups are judged by their members; verdicts have thresholds of minutes.",
    ),
    Constant(
        "verdict.expiring.ms",
        86400000,
        "Offsets that expire within a day are announced: time enough to react on a working day.",
    ),
    Constant(
        "alerts.check.interval.ms",
        60000,
        "`alerts.settle.ms` and the receivers' limits decide how often people hear of something.",
    ),
    Constant(
        "timer.tick.interval.ms",
        1000,
        "The tick is for groups that send nothing; owners run the timers of the others precisely.",
    ),
    Constant("timer.tick.batch", 200, "Groups of one tick, so that it ends before the next one."),
    Constant("timer.poison.delay.ms", 60000, "A group whose tick fails must not delay those of others."),
    Constant(
        "timer.lag.ready.ms",
        15000,
        "Timers this late miss whole heartbeats; /readyz answers 503, so that others get the requests.",
    ),
    Constant(
        "metrics.cache.ms", 5000, "How long a process repeats what it said of groups; collectors scrape less often."
    ),
)
