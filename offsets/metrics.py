"""Series about groups for /metrics, from their latest samples: never from the rows that members write.

Their number is bounded by `metrics.max.groups` and `metrics.max.topics`; those of the largest lag are kept. A process
repeats an answer for `metrics.cache.ms` to callers who may describe the same names. Rows become the Prometheus text
format here: the client library takes nine times as long for the series of 10,000 groups.

Names and labels are ours, and those of exporters whose boards people already have. A quantity for which an exporter has
no name keeps ours. Those of the others are those of kminion (docs/metrics.md), kafka_exporter (README.md) and
kafka-lag-exporter (README.md) as of 2026; docs/monitoring says which of theirs have no counterpart here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, NamedTuple, TypeAlias

from groups.core.model.types import VerdictKind
from kcoord.access.rights import Operation, Principal, Resource
from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime
from kcoord.setting_table import OWN_DIALECT
from offsets.alerts.types import Outcomes
from offsets.core.types import Millis

Number: TypeAlias = int | float


class GroupRow(NamedTuple):
    """A group as last sampled; a tuple, because there are many. `found`: how many groups there are.

    Lag: over the topics that the caller may describe; None: of no partition is it known.
    """

    id: int
    found: int
    group: str
    type: str
    protocol_type: str
    protocol: str
    state: str
    generation_id: int
    members: int
    lag: int | None
    max_lag: int | None
    time_lag_ms: int | None

    @property
    def time_lag(self) -> float | None:
        """In seconds."""
        return None if self.time_lag_ms is None else self.time_lag_ms / 1000

    @property
    def is_stable(self) -> int:
        """1 or 0."""
        return int(self.state == "Stable")


class TopicRow(NamedTuple):
    """A topic of a group as last sampled: see `offsets.models.TopicLag`. `found`: how many there are."""

    found: int
    group: str
    topic: str
    lag: int | None
    time_lag_ms: int | None
    committed_offsets: int
    log_end_offsets: int | None
    unknown_partitions: int

    @property
    def time_lag(self) -> float | None:
        """In seconds."""
        return None if self.time_lag_ms is None else self.time_lag_ms / 1000


class VerdictRow(NamedTuple):
    """A verdict on a group as last judged: see `offsets.core.verdicts`. `since`: ms."""

    group: str
    verdict: str
    since: int


@dataclass(frozen=True, slots=True)
class Family:
    """A metric. `labels`: name -> attribute of the row; `constants`: labels that are the same for every row."""

    name: str
    help: str
    labels: Mapping[str, str]
    kind: str = "gauge"
    constants: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupFamily(Family):
    """A metric of groups. `value` None: the group has no such series now."""

    value: Callable[[GroupRow], Number | None] = lambda row: None


@dataclass(frozen=True, slots=True)
class TopicFamily(Family):
    """A metric of the topics of groups."""

    value: Callable[[TopicRow], Number | None] = lambda row: None


@dataclass(frozen=True, slots=True)
class VerdictFamily(Family):
    """A metric of the verdicts on groups."""

    value: Callable[[VerdictRow], Number | None] = lambda row: None


GROUP = {"group": "group"}
TOPIC = {"group": "group", "topic": "topic"}

GROUPS: Mapping[str, GroupFamily] = {
    "members": GroupFamily(
        "kcoord_group_members", "Members of the group when it was sampled.", GROUP, value=lambda row: row.members
    ),
    "state": GroupFamily(
        "kcoord_group_state",
        "Always 1; the state when the group was sampled is a label.",
        {**GROUP, "type": "type", "state": "state"},
        value=lambda row: 1,
    ),
    "rebalances": GroupFamily(
        "kcoord_group_rebalances_total",
        "Rebalances: generations of a classic group, epochs of a consumer group.",
        GROUP,
        "counter",
        value=lambda row: row.generation_id,
    ),
    "lag": GroupFamily("kcoord_group_lag", "Records behind, over all topics.", GROUP, value=lambda row: row.lag),
    "max_lag": GroupFamily(
        "kcoord_group_max_lag", "Records behind on the partition furthest behind.", GROUP, value=lambda row: row.max_lag
    ),
    "time_lag": GroupFamily(
        "kcoord_group_lag_seconds", "Age of the oldest unread record.", GROUP, value=lambda row: row.time_lag
    ),
}

TOPICS: Mapping[str, TopicFamily] = {
    "topic_lag": TopicFamily(
        "kcoord_group_topic_lag", "Records behind on the topic.", TOPIC, value=lambda row: row.lag
    ),
    "topic_time_lag": TopicFamily(
        "kcoord_group_topic_lag_seconds",
        "Age of the oldest unread record of the topic.",
        TOPIC,
        value=lambda row: row.time_lag,
    ),
    "committed": TopicFamily(
        "kcoord_group_topic_committed_offset_sum",
        "Sum of the offsets committed on the topic.",
        TOPIC,
        value=lambda row: row.committed_offsets,
    ),
    "log_end": TopicFamily(
        "kcoord_group_topic_log_end_offset_sum",
        "Sum of the log ends of the partitions whose lag is known.",
        TOPIC,
        value=lambda row: row.log_end_offsets,
    ),
    "unknown": TopicFamily(
        "kcoord_group_topic_unknown_partitions",
        "Partitions with a committed offset whose lag is unknown because no watermark was reported.",
        TOPIC,
        value=lambda row: row.unknown_partitions,
    ),
}


VERDICT = VerdictFamily(
    "kcoord_group_verdict_since_seconds",
    "Since when (Unix time) the group has had the verdict; absent without it.",
    {**GROUP, "verdict": "verdict"},
    value=lambda row: row.since / 1000,
)
"""No exporter has anything like it, so it is the same in every dialect."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """Metrics by quantity; the same quantities in every dialect."""

    groups: Mapping[str, GroupFamily]
    topics: Mapping[str, TopicFamily]


def _renamed(groups: Mapping[str, GroupFamily], topics: Mapping[str, tuple[str, Mapping[str, str]]]) -> Dialect:
    """Ours, with other metrics of groups, and other names and labels of those of topics."""
    others = {
        quantity: replace(TOPICS[quantity], name=name, labels=labels) for quantity, (name, labels) in topics.items()
    }
    return Dialect({**GROUPS, **groups}, {**TOPICS, **others})


def _kminion() -> Dialect:
    group = {"group_id": "group"}
    topic = {**group, "topic_name": "topic"}
    start = "kminion_kafka_consumer_group"
    info = GroupFamily(
        f"{start}_info",
        "1 if the group was Stable when it was sampled, otherwise 0.",
        {**group, "protocol": "protocol", "protocol_type": "protocol_type", "state": "state"},
        constants={"coordinator_id": "0"},
        value=lambda row: row.is_stable,
    )
    members = replace(GROUPS["members"], name=f"{start}_members", labels=group)
    topics = {"topic_lag": (f"{start}_topic_lag", topic), "committed": (f"{start}_topic_offset_sum", topic)}
    return _renamed({"state": info, "members": members}, topics)


def _kafka_exporter() -> Dialect:
    group = {"consumergroup": "group"}
    topic = {**group, "topic": "topic"}
    members = replace(GROUPS["members"], name="kafka_consumergroup_members", labels=group)
    topics = {
        "topic_lag": ("kafka_consumergroup_lag_sum", topic),
        "committed": ("kafka_consumergroup_current_offset_sum", topic),
    }
    return _renamed({"members": members}, topics)


def _kafka_lag_exporter() -> Dialect:
    start = "kafka_consumergroup_group"
    cluster = {"cluster_name": OWN_DIALECT}
    names = {"lag": "sum_lag", "max_lag": "max_lag", "time_lag": "max_lag_seconds"}
    groups = {
        quantity: replace(GROUPS[quantity], name=f"{start}_{name}", constants=cluster)
        for quantity, name in names.items()
    }
    lag = replace(TOPICS["topic_lag"], name=f"{start}_topic_sum_lag", constants=cluster)
    return Dialect({**GROUPS, **groups}, {**TOPICS, "topic_lag": lag})


DIALECTS: Mapping[str, Dialect] = {
    OWN_DIALECT: Dialect(GROUPS, TOPICS),
    "kminion": _kminion(),
    "kafka_exporter": _kafka_exporter(),
    "kafka-lag-exporter": _kafka_lag_exporter(),
}
"""By the value of `metrics.dialect`."""


_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def rendered(
    dialect: Dialect, groups: Sequence[GroupRow], topics: Sequence[TopicRow], verdicts: Sequence[VerdictRow]
) -> bytes:
    """All series of these rows."""
    labels = _Labels()
    lines: list[str] = []
    for of_group in dialect.groups.values():
        lines += _family(of_group, of_group.value, groups, labels)
    for of_topic in dialect.topics.values():
        lines += _family(of_topic, of_topic.value, topics, labels)
    lines += _family(VERDICT, VERDICT.value, verdicts, labels)
    return "".join(lines).encode()


def heading(name: str, kind: str, text: str) -> str:
    """The two lines before the series of a metric."""
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


class _Labels:
    """The labels of rows as text. Most metrics share theirs with others, and making them is most of the work."""

    def __init__(self) -> None:
        self._found: dict[object, list[str]] = {}

    def of(self, family: Family, rows: Sequence[object]) -> list[str]:
        """One text for each row."""
        key = (id(rows), *family.labels.items(), *family.constants.items())
        if key not in self._found:
            constants = "".join(f',{name}="{_escaped(text)}"' for name, text in family.constants.items())
            named = list(family.labels.items())
            self._found[key] = [
                ",".join([f'{name}="{_escaped(getattr(row, source))}"' for name, source in named]) + constants
                for row in rows
            ]
        return self._found[key]


def _family(
    family: Family, value: Callable[[Any], Number | None], rows: Sequence[object], labels: _Labels
) -> Iterator[str]:
    """A metric that no row has is left out."""
    series: Iterable[str] = [
        f"{family.name}{{{text}}} {number}\n"
        for row, text in zip(rows, labels.of(family, rows), strict=True)
        if (number := value(row)) is not None
    ]
    if series:
        yield heading(family.name, family.kind, family.help)
        yield from series


def _escaped(text: str) -> str:
    return text.translate(_ESCAPED) if "\\" in text or '"' in text or "\n" in text else text


Q = queries("offsets")

MAX_CACHED = 8
"""Answers that a process keeps; more kinds of callers than these share nothing."""


async def group_series(runtime: Runtime, caller: Principal | None) -> bytes:
    """See `kcoord.door.http.metrics_page.GroupSeries`. Raises COORDINATOR_NOT_AVAILABLE."""
    return await runtime.get(GroupMetrics).text(caller)


@dataclass(frozen=True, slots=True)
class Overview:
    """Groups of a type in a state: how many, their members, and when the last of them was sampled."""

    type: str
    state: str
    groups: int
    members: int
    at: Millis


@dataclass(frozen=True, slots=True)
class Named:
    """The rows that are shown."""

    groups: Sequence[GroupRow] = ()
    topics: Sequence[TopicRow] = ()
    verdicts: Sequence[VerdictRow] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """How many groups have each verdict, and when each check last ran."""

    groups: Mapping[str, int]
    runs: Mapping[str, Millis]


class GroupMetrics:
    """What /metrics says about groups. Only one query runs at a time, so that scrapes do not use up the pool."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._dialect = DIALECTS[runtime.config.str("metrics.dialect")]
        self._max_groups = runtime.config.int("metrics.max.groups")
        self._max_topics = runtime.config.int("metrics.max.topics")
        self._repeated_seconds = runtime.config.int("metrics.cache.ms") / 1000
        self._cache: dict[str, tuple[float, bytes]] = {}
        self._one_at_a_time = asyncio.Lock()
        runtime.on_connection_lost(self._cache.clear)

    async def text(self, caller: Principal | None) -> bytes:
        """The series in the text format; `caller` None: without names. Raises COORDINATOR_NOT_AVAILABLE."""
        key = _key(caller)
        async with self._one_at_a_time:
            found = self._cache.get(key)
            if found is not None and found[0] > monotonic():
                return found[1]
            text = await self._read(caller)
            self._cache.pop(key, None)
            if len(self._cache) >= MAX_CACHED:
                self._cache.pop(next(iter(self._cache)))
            self._cache[key] = monotonic() + self._repeated_seconds, text
            return text

    async def _read(self, caller: Principal | None) -> bytes:
        async with self._db.snapshot() as connection:
            now = await self._db.now_ms(connection)
            overview = await self._db.records(connection, Overview, Q.sampled_overview)
            ((offsets,),) = await self._db.rows(connection, Q.sampled_offsets)
            judged = Judged(
                dict(await self._db.rows(connection, Q.counted_verdicts)),
                dict(await self._db.rows(connection, Q.verdict_runs)),
            )
            alerts = await self._alerts(connection)
            named = Named() if caller is None else await self._named(connection, caller)
        text = _overview(overview, offsets, now) + _judged(judged, now) + _told(*alerts, now)
        if caller is not None:
            text += _left_out(named)
        series = len(named.groups) + len(named.topics) + len(named.verdicts)
        rows = named.groups, named.topics, named.verdicts
        return text.encode() + await off_loop.run(series, rendered, self._dialect, *rows)

    async def _alerts(self, connection: Connection) -> tuple[int, Outcomes]:
        opened = await self._db.rows(connection, Q.count_open_alerts)
        outcomes = await self._db.record(connection, Outcomes, Q.alert_messages_by_outcome)
        assert outcomes is not None
        return sum(number for _, number in opened), outcomes

    async def _named(self, connection: Connection, caller: Principal) -> Named:
        topics_of = caller.visible(Resource.TOPIC).parameters("topic")
        groups_of = caller.visible(Resource.GROUP).parameters("group")
        groups = await off_loop.records(
            connection, GroupRow, Q.sampled_groups, {**groups_of, **topics_of, "limit": self._max_groups}
        )
        parameters = {**topics_of, "groups": [row.id for row in groups], "limit": self._max_topics}
        topics = await off_loop.records(connection, TopicRow, Q.sampled_topics, parameters)
        return Named(groups, topics, await off_loop.records(connection, VerdictRow, Q.visible_verdicts, parameters))


def _key(caller: Principal | None) -> str:
    """Equal for callers who may describe the same names."""
    if caller is None:
        return "nobody"
    return " ".join(caller.rules.key(Operation.DESCRIBE, resource) for resource in (Resource.GROUP, Resource.TOPIC))


def _overview(found: Sequence[Overview], offsets: int, now: Millis) -> str:
    """Kafka's `classic-group-count` and `consumer-group-count` by state, and `offset-count` (offsets.md 12)."""
    if not found:
        return ""
    members: Mapping[str, int] = {
        kind: sum(row.members for row in found if row.type == kind) for kind in sorted({row.type for row in found})
    }
    age = max(now - max(row.at for row in found), 0) / 1000
    return "".join(
        [
            heading("kcoord_groups", "gauge", "Groups, when they were sampled."),
            *(f'kcoord_groups{{type="{row.type}",state="{row.state}"}} {row.groups}\n' for row in found),
            heading("kcoord_members", "gauge", "Members of all groups, when they were sampled."),
            *(f'kcoord_members{{type="{kind}"}} {count}\n' for kind, count in members.items()),
            heading("kcoord_offsets", "gauge", "Committed offsets of all groups, when they were sampled."),
            f"kcoord_offsets {offsets}\n",
            heading("kcoord_sample_age_seconds", "gauge", "How long ago groups were last sampled."),
            f"kcoord_sample_age_seconds {age}\n",
        ]
    )


def _judged(judged: Judged, now: Millis) -> str:
    if not judged.runs:
        return ""
    return "".join(
        [
            heading("kcoord_verdicts", "gauge", "Groups with a verdict, when they were last judged."),
            *(
                f'kcoord_verdicts{{verdict="{kind.value}"}} {judged.groups.get(kind.value, 0)}\n'
                for kind in VerdictKind
            ),
            heading("kcoord_verdict_age_seconds", "gauge", "How long ago groups were last judged."),
            *(
                f'kcoord_verdict_age_seconds{{check="{check}"}} {max(now - at, 0) / 1000}\n'
                for check, at in sorted(judged.runs.items())
            ),
        ]
    )


def _told(opened: int, outcomes: Outcomes, now: Millis) -> str:
    states = {"failed": outcomes.failed, "sent": outcomes.sent, "waiting": outcomes.waiting}
    unsent = 0 if outcomes.unsent_since is None else max(now - outcomes.unsent_since, 0)
    return "".join(
        [
            heading("kcoord_alerts_open", "gauge", "Alerts that are open."),
            f"kcoord_alerts_open {opened}\n",
            heading("kcoord_alert_messages", "gauge", "Messages about alerts that are kept, by what became of them."),
            *(f'kcoord_alert_messages{{state="{state}"}} {count}\n' for state, count in states.items()),
            heading("kcoord_alert_unsent_seconds", "gauge", "Age of the oldest message that waits to be sent."),
            f"kcoord_alert_unsent_seconds {unsent / 1000}\n",
        ]
    )


def _left_out(named: Named) -> str:
    missing = {
        kind: rows[0].found - len(rows) if rows else 0
        for kind, rows in (("groups", named.groups), ("topics", named.topics))
    }
    return "".join(
        [
            heading("kcoord_metrics_left_out", "gauge", "What has no series because of metrics.max.groups and topics."),
            *(f'kcoord_metrics_left_out{{kind="{kind}"}} {count}\n' for kind, count in missing.items()),
        ]
    )
