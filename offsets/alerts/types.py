"""Rules, alerts and messages as services return them. Instants and lengths in ms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from groups.core.model.types import VerdictKind
from kcoord.control.rest.answers import Answer, Instant, doc, one_of
from offsets.core.types import Millis

PATTERNS = ("literal", "prefix")
VERDICTS = [kind.value for kind in VerdictKind]
"""The worst first."""


class AlertRuleView(Answer):
    """A rule."""

    # 0: it is not stored.
    id: int
    name: str
    enabled: bool
    pattern: Annotated[str, one_of(PATTERNS)]
    group_name: str
    label: str
    verdicts: list[Annotated[str, one_of(VERDICTS)]]
    min_lag: int | None
    min_time_lag_ms: int | None
    for_ms: int
    remind_ms: int
    send_resolved: bool
    receivers: list[str]
    updated_at: Instant
    updated_by: str


GIVEN = AlertRuleView.__struct_fields__[1:-2]
"""The fields of a rule that people give."""


def given_of(rule: AlertRuleView) -> dict[str, Any]:
    """What people gave of a rule, by field."""
    return {name: getattr(rule, name) for name in GIVEN}


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
class MessageView:
    """What a receiver was told, or is to be told."""

    id: UUID
    rule_id: int | None
    rule_name: str
    receiver: str
    notice: Annotated[str, one_of(["opened", "reminder", "resolved"])]
    state: Annotated[str, one_of(["sent", "waiting", "failed"])]
    alert_count: int
    created_at: Instant
    attempts: int
    next_at: Annotated[Instant | None, doc("When it is sent again.")]
    sent_at: Instant | None
    error: Annotated[str, doc("Why the last attempt failed.")]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How many messages were sent, wait and have failed. `unsent_since`: the oldest that waits was made then."""

    sent: int
    waiting: int
    failed: int
    unsent_since: Millis | None
    failed_at: Millis | None
