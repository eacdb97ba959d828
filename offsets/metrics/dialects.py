"""The names and labels of series about groups: ours, and those of exporters whose boards people already have.

A quantity for which an exporter has no name keeps ours. Names and labels of the others are those of kminion
(docs/metrics.md), kafka_exporter (README.md) and kafka-lag-exporter (README.md) as of 2026; docs/monitoring says which
of theirs have no counterpart here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from kcoord.setting_table import OWN_DIALECT

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
