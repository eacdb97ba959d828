"""Every setting of the service: name, default, unit, bounds and help in one place. What is no setting is in
`kcoord.constants`.

A setting has its Kafka name (`group.max.size`) or one in the same style; the environment variable is derived:
`KCOORD_` + the name in capitals with `_` for `.`. `manage.py settings_reference` lists this table, system checks
(`kcoord.E001`) refuse values that break it, and nothing else reads the environment.

Source: classic.md 10.1, consumer.md 10, offsets.md 10.1, http-api.md 1 and 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from kcoord import identity_settings
from kcoord.alert_settings import ALERTS
from kcoord.constants import CONSTANTS
from kcoord.identity_settings import IDENTITY
from kcoord.quota_settings import QUOTAS
from kcoord.server_settings import SERVER
from kcoord.setting import PREFIX, Setting, Switch, Text, Value
from kcoord.share_settings import BOUNDED, SHARE
from kcoord.verdict_settings import VERDICTS
from kcoord.wire_settings import WIRE

INT_MAX = 2_147_483_647
BASE_DIR = Path(__file__).resolve().parent.parent
ARCHIVE_PATH = "archive.path"
OWN_DIALECT = "kcoord"
ROUTING = "coordinator.routing"
LEASE = "coordinator.lease.ms"
RENEWAL = "coordinator.renewal.interval.ms"
LATE_RENEWAL_MS = 500
"""How late a renewal may come before timers wait for it."""

SETTINGS: tuple[Setting, ...] = (
    # Where things are
    Setting("host", "127.0.0.1", "address", "Address the server listens on; by default loopback."),
    Setting("port", 8000, "port", "Port the server listens on.", 1, 65_535),
    Setting(
        "nodes", 1, "servers", "Servers that `make up` runs behind that port; more than one: port + 1 … too.", 1, 32
    ),
    Setting("data.dir", ".kcoord", "path", "Directory of the embedded Postgres, generated secrets and the log."),
    Setting("database.url", "", "url", "Postgres 14 or newer to use instead of the embedded one.", secret=True),
    Setting("broker.url", "", "url", "Celery broker instead of the queue in Postgres, e.g. redis://…", secret=True),
    Setting(
        "advertised.url",
        "",
        "url",
        "Address of this server as clients see it; empty: http://host:port, or the address that a request came by if "
        "the host is 0.0.0.0 or ::.",
    ),
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
    Setting(
        "otlp.endpoint",
        "",
        "url",
        "Collector that gets traces over OTLP/HTTP, e.g. http://collector:4318; empty: no traces.",
    ),
    Setting("otlp.group.ids", False, "switch", "Name the groups of requests in traces."),
    *SERVER,
    *WIRE,
    *IDENTITY,
    *QUOTAS,
    # Coordinator nodes
    Setting("node.id", "", "text", "Name of this server among the nodes, unique; empty: its host name and port."),
    Setting(
        ROUTING,
        "any",
        "routing",
        "Which nodes answer for a group: any, or only the owner of its coordinator partition.",
        choices=("any", "owner"),
    ),
    Setting(LEASE, 3_000, "ms", "How long a node that is silent stays the owner of its partitions.", 500, 60_000),
    # Groups (names, defaults and bounds are Kafka's)
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
    # Groups of the consumer protocol (KIP-848; names, defaults and bounds are Kafka's)
    Setting("group.consumer.session.timeout.ms", 45_000, "ms", "Session timeout of a group's members.", 1, INT_MAX),
    Setting(
        "group.consumer.min.session.timeout.ms", 45_000, "ms", "Smallest session timeout of any group.", 1, INT_MAX
    ),
    Setting("group.consumer.max.session.timeout.ms", 60_000, "ms", "Largest session timeout of any group.", 1, INT_MAX),
    Setting("group.consumer.heartbeat.interval.ms", 5_000, "ms", "How often members send heartbeats.", 1, INT_MAX),
    Setting(
        "group.consumer.min.heartbeat.interval.ms", 5_000, "ms", "Smallest heartbeat interval of any group.", 1, INT_MAX
    ),
    Setting(
        "group.consumer.max.heartbeat.interval.ms", 15_000, "ms", "Largest heartbeat interval of any group.", 1, INT_MAX
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
    Setting(
        "group.consumer.regex.refresh.interval.ms",
        600_000,
        "ms",
        "How often subscriptions by regular expression are matched again without a cause.",
        10_000,
        INT_MAX,
    ),
    *SHARE,
    # Offsets
    Setting("offset.metadata.max.bytes", 4_096, "characters", "Longest metadata of a committed offset.", 0, INT_MAX),
    Setting(
        "offsets.topic.num.partitions", 50, "partitions", "Coordinator partitions; do not change it later.", 1, 10_000
    ),
    Setting("offsets.retention.minutes", 10_080, "min", "How long an offset is kept without a new commit.", 1, INT_MAX),
    Setting("offsets.retention.check.interval.ms", 600_000, "ms", "How often expired offsets are removed.", 1, INT_MAX),
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
    Setting(
        "transactional.id.expiration.ms",
        604_800_000,
        "ms",
        "How long a producer without a finished transaction is remembered.",
        60_000,
        2**53,
    ),
    Setting("group.max.hold.ms", 3_600_000, "ms", "Longest hold of a group.", 1, 86_400_000),
    Setting("lag.sample.interval.ms", 60_000, "ms", "How often watermarks and lag are sampled.", 1_000, INT_MAX),
    Setting("lag.stale.ms", 300_000, "ms", "Age of a watermark beyond which lag is stale.", 1_000, INT_MAX),
    Setting("lag.sample.retention.days", 7, "days", "How long samples of watermarks and lag are kept.", 1, 365),
    *VERDICTS,
    *ALERTS,
    # Archive and other jobs of Spark
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
    # Metrics
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
    Setting("metrics.cache.ms", 5_000, "ms", "How long a process repeats what it said of groups.", 0, 600_000),
    Setting(
        "metrics.public.groups", False, "switch", "Name groups and topics in /metrics to callers without a token, too."
    ),
    # Timers and maintenance
    Setting("timer.lag.ready.ms", 15_000, "ms", "Timers later than this make /readyz answer 503.", 1_000, 3_600_000),
    Setting(
        "notifications.repair.interval.ms",
        3_000,
        "ms",
        "How often a process checks for changes of which it received no notification.",
        100,
        60_000,
    ),
    Setting("events.max.per.group", 5_000, "events", "Most events kept of one group.", 100, 10_000_000),
    Setting("events.retention.days", 30, "days", "How long the events of groups are kept.", 1, 3_650),
    Setting(
        "audit.retention.ms",
        400 * 86_400_000,
        "ms",
        "How long records of the audit are kept; the default is 400 days.",
        86_400_000,
        100 * 366 * 86_400_000,
    ),
)

BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}

SESSION_TIMEOUT = "group.consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "group.consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "group.consumer.assignment.interval.ms"
REBALANCE_PROTOCOLS = "group.coordinator.rebalance.protocols"

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

ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - what to ask instead
"""Hosts that mean every address of the machine, and how this machine itself reaches a server that listens there."""

LEAST_TIME_TO_BEGIN_MS = 3_000
"""Half a second less than this remains for a request to begin its write: a gap that short goes unnoticed."""


def _nearest(key: str, known: Iterable[str]) -> str:
    """`did you mean …? ` for a variable that is spelled nearly like a known one, else nothing."""
    from difflib import get_close_matches

    names = [name.removeprefix(PREFIX) for name in known]
    found = get_close_matches(key.removeprefix(PREFIX), names, n=1, cutoff=0.7)
    return f"did you mean {PREFIX}{found[0]}? " if found else ""


class Config:
    """The values in effect. `problems` holds one sentence for each value that could not be used."""

    def __init__(self, values: Mapping[str, Value], problems: tuple[str, ...] = ()) -> None:
        self._values: dict[str, Value] = {
            **{constant.name: constant.value for constant in CONSTANTS},
            **{setting.name: setting.default for setting in SETTINGS},
        }
        unknown = set(values) - set(self._values)
        if unknown:
            raise KeyError(f"no such setting: {', '.join(sorted(unknown))}")
        self._values |= values
        self.problems = problems

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Config:
        """Read the environment. An invalid value keeps its default and is listed in `problems`.

        The files of the embedded Postgres are kept in the data directory, and so is the archive unless set elsewhere.
        """
        values: dict[str, Value] = {}
        problems: list[str] = []
        known = {setting.env: setting for setting in SETTINGS}
        constants = {constant.env: constant for constant in CONSTANTS}
        for key, text in environ.items():
            if not key.startswith(PREFIX) or key in NOT_SETTINGS:
                continue
            setting = known.get(key)
            if constant := constants.get(key):
                problems.append(
                    f"{key}: no longer a setting, remove it; always {str(constant.value).lower()}: {constant.why}"
                )
                continue
            if setting is None:
                problems.append(
                    f"{key}: no such setting; {_nearest(key, known)}`manage.py settings_reference` lists them"
                )
                continue
            try:
                values[setting.name] = setting.parse(text)
            except ValueError as error:
                problems.append(str(error))
        config = cls(values, tuple(problems))
        if ARCHIVE_PATH not in values and not config.str("database.url"):
            config = config.override({ARCHIVE_PATH: str(config.data_dir / "archive")})
        config.problems += tuple(config._contradictions())
        return config

    @property
    def data_dir(self) -> Path:
        """The data directory; a relative one is resolved from the project's directory."""
        return (BASE_DIR / self.str("data.dir")).resolve()

    @property
    def only_owners(self) -> Switch:
        """Only the owner of its coordinator partition answers for a group (`coordinator.routing`)."""
        return self.str(ROUTING) == "owner"

    def replace(self, **values: Value) -> Config:
        """A copy with other values; names use `_` for `.`."""
        return self.override({name.replace("_", "."): value for name, value in values.items()})

    def override(self, values: Mapping[str, Value]) -> Config:
        """A copy with other values, by their full names. Raises KeyError for an unknown name."""
        return Config({**self._values, **values}, self.problems)

    def _contradictions(self) -> list[str]:
        found = [f"{small} is larger than {large}" for small, large in NOT_LARGER if self.int(small) > self.int(large)]
        if self.int(HEARTBEAT_INTERVAL) >= self.int(SESSION_TIMEOUT):
            found.append(f"{HEARTBEAT_INTERVAL} must be smaller than {SESSION_TIMEOUT}")
        if self.int("request.max.age.ms") < self.int("database.transaction.timeout.ms") + LEAST_TIME_TO_BEGIN_MS:
            found.append(
                f"request.max.age.ms must be at least {LEAST_TIME_TO_BEGIN_MS} ms larger than "
                "database.transaction.timeout.ms"
            )
        least = self.int(RENEWAL) + self.int("database.transaction.timeout.ms") + LATE_RENEWAL_MS
        if self.int(LEASE) < least:
            found.append(
                f"{LEASE} must be at least {least}: {RENEWAL}, database.transaction.timeout.ms and {LATE_RENEWAL_MS} ms"
            )
        if self.only_owners and self.str("host") in ANY_ADDRESS and not self.str("advertised.url"):
            found.append(f"advertised.url is needed for {ROUTING}=owner: {self.str('host')} is not an address to go to")
        if "classic" not in self.names(REBALANCE_PROTOCOLS):
            found.append(f"{REBALANCE_PROTOCOLS} must include classic")
        found.extend(identity_settings.problems(self.str))
        return found

    def int(self, name: Text) -> int:
        """The value of a number setting."""
        value = self._values[name]
        assert isinstance(value, int)
        return value

    def str(self, name: Text) -> Text:
        """The value of a text setting."""
        value = self._values[name]
        assert isinstance(value, str)
        return value

    def names(self, name: Text) -> tuple[Text, ...]:
        """The value of a list setting."""
        return tuple(self.str(name).split(","))

    def bool(self, name: Text) -> Switch:
        """The value of a switch."""
        value = self._values[name]
        assert isinstance(value, bool)
        return value


NOT_SETTINGS = frozenset({"KCOORD_CONFORMANCE_DIR", "KCOORD_TOKEN", "KCOORD_URL"})
"""Variables with the same prefix that the client, the demo and the tests read; not settings of the service."""
