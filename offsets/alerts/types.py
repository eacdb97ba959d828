"""Rules, alerts and messages as services return them. Instants and lengths in ms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from kcoord.control.rest.answers import Instant, doc
from offsets.core.alerts import AlertRule
from offsets.core.types import Millis


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """What a rule says: which groups (`pattern`: `literal` or `prefix` of `group_name`), what, for how long, to whom.

    `label`: only groups with this label, `name=value`, or `name` for any value; "": any group.
    A verdict of `verdicts`, a lag of `min_lag` records, or a time lag of `min_time_lag_ms`: any of them, and at least
    one of them is given.
    """

    name: str
    pattern: str
    group_name: str
    verdicts: Sequence[str]
    min_lag: int | None
    min_time_lag_ms: Millis | None
    for_ms: Millis
    remind_ms: Millis
    send_resolved: bool
    receivers: Sequence[str]
    enabled: bool
    label: str


@dataclass(frozen=True, slots=True)
class Rule(RuleSpec):
    """A stored rule."""

    id: int
    updated_at: Millis
    updated_by: str

    @property
    def deciding(self) -> AlertRule:
        """What decides about its alerts."""
        return AlertRule(self.id, self.for_ms, self.remind_ms, self.send_resolved)


@dataclass(frozen=True, slots=True)
class Preview:
    """What a rule would do now. `groups`: how many it is about; `opened`: those for which it would open an alert.

    `waiting`: for how many more its condition holds, but not for `for_ms` yet.
    """

    groups: int
    opened: Sequence[str]
    waiting: int
    for_ms: Millis


@dataclass(frozen=True, slots=True)
class AlertView:
    """An alert. `cause`: a verdict, `lag` or `time-lag`; `value`: records or ms."""

    id: int
    rule_id: int
    rule_name: str
    group_id: str
    cause: str
    value: int | None
    since: Instant
    opened_at: Instant | None
    over_since: Annotated[Instant | None, doc("The condition has been over since then, but not for long enough.")]
    told_at: Annotated[Instant | None, doc("null: it is muted, and nobody was told.")]
    muted_until: Instant | None
    muted_by: str
    resolved_at: Instant | None
    receivers: list[str]


@dataclass(frozen=True, slots=True)
class AlertRow(AlertView):
    """An alert as lists show it. `resolved_at` None: it is open."""

    min_lag: int | None
    min_time_lag_ms: Millis | None


@dataclass(frozen=True, slots=True)
class Message:
    """What a receiver is told. `content`: see `offsets.alerts.wording.content`."""

    id: str
    rule_id: int | None
    rule_name: str
    receiver: str
    notice: str
    content: Mapping[str, Any]
    created_at: Millis
    attempts: int


@dataclass(frozen=True, slots=True)
class MessageRow(Message):
    """A message as lists show it. It waits while `next_at` is set; without `sent_at` after that, it has failed."""

    next_at: Millis | None
    sent_at: Millis | None
    error: str

    @property
    def state(self) -> str:
        """`sent`, `waiting` or `failed`."""
        if self.sent_at is not None:
            return "sent"
        return "failed" if self.next_at is None else "waiting"


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How many messages were sent, wait and have failed. `unsent_since`: the oldest that waits was made then."""

    sent: int
    waiting: int
    failed: int
    unsent_since: Millis | None
    failed_at: Millis | None
