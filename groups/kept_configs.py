"""Settings of groups that are kept and shown to Kafka clients, and that nothing here reads.

They belong to the records that a broker has, to streams groups and to the threads of a broker, which are not served.
Tools set and show them together with the others, so they are accepted with the limits that a broker has by default, and
listed as it does.
Differs from Kafka: they are without effect.

Source: `GroupConfig` of Kafka 4.4, asked of a running broker by DescribeConfigs and IncrementalAlterConfigs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from kcoord.setting_table import INT_MAX


class Kind(Enum):
    """What a value is; the number is Kafka's (`ConfigEntry.ConfigType`)."""

    BOOLEAN = 1
    STRING = 2
    INTEGER = 3
    LIST = 7


MOST_CHARACTERS = 1_000
"""Of a text. Kafka has no limit."""


@dataclass(frozen=True, slots=True)
class KeptSetting:
    """A setting. `synonym`: a broker's setting that it inherits from; `limits`: of a number, both included.

    `pattern`: what a text has to match as a whole.
    """

    name: str
    kind: Kind
    default: str
    synonym: str
    help: str
    limits: tuple[int, int] = (0, INT_MAX)
    pattern: str = ".*"

    def checked(self, text: str) -> str:
        """The value as it is kept. Raises ValueError saying what it has to be."""
        text = text.strip()
        if self.kind is Kind.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise ValueError(f"{text[:100]!r} is neither true nor false")
            return text.lower()
        if self.kind is Kind.INTEGER:
            least, most = self.limits
            if not (re.fullmatch("[0-9]{1,10}", text) and least <= int(text) <= most):
                raise ValueError(f"{text[:100]!r} is no integer from {least} to {most}")
            return str(int(text))
        if len(text) > MOST_CHARACTERS or not re.fullmatch(self.pattern, text, re.DOTALL):
            matched = "" if self.pattern == ".*" else f" that matches {self.pattern}"
            raise ValueError(f"{text[:100]!r} is no text of up to {MOST_CHARACTERS} characters{matched}")
        return text


def _number(name: str, default: int, least: int, most: int, help: str) -> KeptSetting:
    return KeptSetting(name, Kind.INTEGER, str(default), f"group.{name}", help, (least, most))


def _switch(name: str, default: str, help: str, synonym: str = "") -> KeptSetting:
    return KeptSetting(name, Kind.BOOLEAN, default, synonym or name, help)


_ALL = (
    _switch(
        "consumer.assignor.offload.enable",
        "true",
        "Whether assignments are computed in the background. Here that depends on their size.",
        "group.consumer.assignor.offload.enable",
    ),
    _switch("share.renew.acknowledge.enable", "true", "Whether locks of records can be renewed."),
    KeptSetting(
        "share.isolation.level",
        Kind.STRING,
        "read_uncommitted",
        "share.isolation.level",
        "Whether records of transactions that did not commit are delivered.",
        pattern="read_committed|read_uncommitted",
    ),
    _switch("errors.deadletterqueue.copy.record.enable", "false", "Whether a dead letter has the record itself."),
    KeptSetting(
        "errors.deadletterqueue.topic.name",
        Kind.STRING,
        "",
        "errors.deadletterqueue.topic.name",
        "The topic of dead letters of a share group.",
    ),
    _number("streams.session.timeout.ms", 45_000, 45_000, 60_000, "Session timeout of streams groups."),
    _number("streams.heartbeat.interval.ms", 5_000, 5_000, 15_000, "Heartbeat interval of streams groups."),
    _number("streams.assignment.interval.ms", 1_000, 0, 15_000, "Least time between two targets of a streams group."),
    _number("streams.initial.rebalance.delay.ms", 3_000, 0, INT_MAX, "How long a new streams group waits for others."),
    _number("streams.num.standby.replicas", 0, 0, 2, "Standby replicas of each task."),
    KeptSetting(
        "streams.assignor.name",
        Kind.STRING,
        "sticky",
        "group.streams.assignors",
        "The assignor of tasks.",
        pattern="sticky",
    ),
    KeptSetting(
        "streams.rack.aware.assignment.tags",
        Kind.LIST,
        "",
        "group.streams.rack.aware.assignment.tags",
        "Tags of clients that standby replicas are spread over.",
    ),
)

KEPT: Mapping[str, KeptSetting] = {setting.name: setting for setting in _ALL}
