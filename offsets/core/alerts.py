"""When an alert opens, is repeated and is resolved. Pure.

A rule names groups and a condition: verdicts, or a lag. A condition that holds for a group for `for_ms` opens an
alert, of which the receivers of the rule are told once; again every `remind_ms` while it lasts, if that is not 0; and
once when it is resolved. It is resolved after the condition was over for a while (`alerts.settle.ms`), so that a group
that goes back and forth is one alert. A muted alert goes on, and nobody is told of it until the mute ends.

Kafka has no counterpart. Burrow's notifier (one message when a group gets bad, one when it is well again) is the model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Protocol

from offsets.core.types import Millis


class Notice(str, Enum):
    """What receivers are told."""

    OPENED = "opened"
    REMINDER = "reminder"
    RESOLVED = "resolved"
    TEST = "test"


class AlertRule(Protocol):
    """What decides about the alerts of a rule. Lengths in ms; `remind_ms` 0: nobody is reminded."""

    id: int
    for_ms: Millis
    remind_ms: Millis
    send_resolved: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """The condition of a rule holds for a group.

    `cause`: the verdict, `lag` or `time-lag`. `value`: records or ms. `since` (ms): None if only the check knows.
    """

    rule_id: int
    group_id: str
    cause: str
    value: int | None = None
    since: Millis | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert that is not resolved, or, while `opened_at` is None, a condition that has not lasted long enough.

    Instants in ms. `id` 0: it is not stored yet. `over_since`: the condition has been over since then. `told_at`: when
    receivers were last told; None: never, because it is muted.
    """

    rule_id: int
    group_id: str
    cause: str
    value: int | None
    since: Millis
    id: int = 0
    opened_at: Millis | None = None
    over_since: Millis | None = None
    told_at: Millis | None = None
    muted_until: Millis | None = None

    def is_muted(self, now: Millis) -> bool:
        """Nobody is told of it now."""
        return self.muted_until is not None and self.muted_until > now


@dataclass(slots=True)
class Decision:
    """What a check at `now` changes.

    `kept`: alerts as they are now. `dropped`: conditions that ended before they opened an alert. `notices`: what the
    receivers of each rule are told.
    """

    now: Millis
    kept: list[Alert] = field(default_factory=list)
    resolved: list[Alert] = field(default_factory=list)
    dropped: list[Alert] = field(default_factory=list)
    notices: dict[tuple[int, Notice], list[Alert]] = field(default_factory=dict)

    def _tell(self, notice: Notice, alert: Alert) -> Alert:
        self.notices.setdefault((alert.rule_id, notice), []).append(alert)
        return replace(alert, told_at=self.now)

    def last(self, rule: AlertRule, alert: Alert) -> None:
        """The condition of an alert holds: it opens, and receivers are told, if it is time."""
        if alert.opened_at is None and self.now - alert.since >= rule.for_ms:
            alert = replace(alert, opened_at=self.now)
        if alert.opened_at is not None and not alert.is_muted(self.now):
            if alert.told_at is None:
                alert = self._tell(Notice.OPENED, alert)
            elif rule.remind_ms and self.now - alert.told_at >= rule.remind_ms:
                alert = self._tell(Notice.REMINDER, alert)
        self.kept.append(alert)

    def end(self, rule: AlertRule, alert: Alert, settle_ms: Millis, judged_at: Millis) -> None:
        """The condition of an open alert is over: it is resolved after a while."""
        over_since = self.now if alert.over_since is None else alert.over_since
        alert = replace(alert, over_since=over_since)
        if self.now - over_since < settle_ms or judged_at < over_since:
            self.kept.append(alert)
            return
        if rule.send_resolved and alert.told_at is not None and not alert.is_muted(self.now):
            alert = self._tell(Notice.RESOLVED, alert)
        self.resolved.append(alert)


def decide(
    rules: Iterable[AlertRule],
    found: Iterable[Finding],
    alerts: Iterable[Alert],
    now: Millis,
    *,
    settle_ms: Millis,
    judged_at: Millis,
) -> Decision:
    """The next state of all alerts.

    `found`: the conditions that hold; of several of one rule and group the first counts. `judged_at` (ms): groups were
    last judged then, so a condition is over only if it was over by that time: while nobody judges, nothing is resolved.
    """
    by_id = {rule.id: rule for rule in rules}
    holding: dict[tuple[int, str], Finding] = {}
    for one in found:
        if one.rule_id in by_id:
            holding.setdefault((one.rule_id, one.group_id), one)
    decision = Decision(now)
    for alert in alerts:
        rule = by_id.get(alert.rule_id)
        finding = holding.pop((alert.rule_id, alert.group_id), None)
        if rule is None:
            decision.resolved.append(alert)
        elif finding is not None:
            decision.last(rule, _updated(alert, finding))
        elif alert.opened_at is None:
            decision.dropped.append(alert)
        else:
            decision.end(rule, alert, settle_ms, judged_at)
    for new in holding.values():
        since = now if new.since is None else min(new.since, now)
        decision.last(by_id[new.rule_id], Alert(new.rule_id, new.group_id, new.cause, new.value, since))
    return decision


def _updated(alert: Alert, finding: Finding) -> Alert:
    """The alert while its condition holds. Its beginning only moves to an earlier instant."""
    since = alert.since if finding.since is None else min(alert.since, finding.since)
    return replace(alert, cause=finding.cause, value=finding.value, since=since, over_since=None)


ATTEMPTS = 6
"""How often a message is sent before it has failed for good."""
FIRST_PAUSE_MS: Millis = 15_000


def next_attempt(attempts: int, now: Millis) -> Millis | None:
    """When (ms) to send a message again that was sent `attempts` times in vain; None: never. In all, half an hour."""
    return None if attempts >= ATTEMPTS else now + FIRST_PAUSE_MS * 3 ** (attempts - 1)
