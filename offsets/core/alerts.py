"""When an alert opens, is repeated and is resolved. Pure.

A rule names groups and a condition: verdicts, or a lag. A condition that holds for a group for `for_ms` opens an
alert, of which the receivers of the rule are told once; again every `remind_ms` while it lasts, if that is not 0; and
once when it is resolved. It is resolved after the condition was over for a while (`alerts.settle.ms`), so that a group
that goes back and forth is one alert. A muted alert goes on, and nobody is told of it until the mute ends.

Kafka has no counterpart. Burrow's notifier (one message when a group gets bad, one when it is well again) is the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from offsets.core.types import Millis

Key = tuple[int, str]
"""A rule and a group: there is one alert for it at a time."""


class Notice(str, Enum):
    """What receivers are told."""

    OPENED = "opened"
    REMINDER = "reminder"
    RESOLVED = "resolved"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class AlertRule:
    """What decides about the alerts of a rule. Lengths in ms; `remind_ms` 0: nobody is reminded."""

    id: int
    for_ms: Millis
    remind_ms: Millis = 0
    send_resolved: bool = True


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

    @property
    def key(self) -> Key:
        """Rule and group."""
        return self.rule_id, self.group_id


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

    @property
    def key(self) -> Key:
        """Rule and group."""
        return self.rule_id, self.group_id

    def is_muted(self, now: Millis) -> bool:
        """Nobody is told of it now."""
        return self.muted_until is not None and self.muted_until > now


@dataclass(frozen=True, slots=True)
class Decision:
    """What a check changes.

    `kept`: alerts as they are now. `dropped`: conditions that ended before they opened an alert. `notices`: what the
    receivers of each rule are told.
    """

    kept: Sequence[Alert] = ()
    resolved: Sequence[Alert] = ()
    dropped: Sequence[Alert] = ()
    notices: Mapping[tuple[int, Notice], Sequence[Alert]] = field(default_factory=dict)


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
    holding: dict[Key, Finding] = {}
    for one in found:
        if one.rule_id in by_id:
            holding.setdefault(one.key, one)
    next_ones = _Next(now, settle_ms, judged_at)
    for alert in alerts:
        rule = by_id.get(alert.rule_id)
        finding = holding.pop(alert.key, None)
        if rule is None:
            next_ones.resolved.append(alert)
        elif finding is not None:
            next_ones.last(rule, _updated(alert, finding))
        elif alert.opened_at is None:
            next_ones.dropped.append(alert)
        else:
            next_ones.end(rule, alert)
    for new in holding.values():
        since = now if new.since is None else min(new.since, now)
        next_ones.last(by_id[new.rule_id], Alert(new.rule_id, new.group_id, new.cause, new.value, since))
    return Decision(next_ones.kept, next_ones.resolved, next_ones.dropped, next_ones.notices)


class _Next:
    """The decision while it is made."""

    def __init__(self, now: Millis, settle_ms: Millis, judged_at: Millis) -> None:
        self._now = now
        self._settle_ms = settle_ms
        self._judged_at = judged_at
        self.kept: list[Alert] = []
        self.resolved: list[Alert] = []
        self.dropped: list[Alert] = []
        self.notices: dict[tuple[int, Notice], list[Alert]] = {}

    def last(self, rule: AlertRule, alert: Alert) -> None:
        """The condition of an alert holds: it opens, and receivers are told, if it is time."""
        if alert.opened_at is None and self._now - alert.since >= rule.for_ms:
            alert = replace(alert, opened_at=self._now)
        if alert.opened_at is None or alert.is_muted(self._now):
            self.kept.append(alert)
        elif alert.told_at is None:
            self.kept.append(self._told(Notice.OPENED, alert))
        elif rule.remind_ms and self._now - alert.told_at >= rule.remind_ms:
            self.kept.append(self._told(Notice.REMINDER, alert))
        else:
            self.kept.append(alert)

    def end(self, rule: AlertRule, alert: Alert) -> None:
        """The condition of an open alert is over: it is resolved after a while."""
        over_since = self._now if alert.over_since is None else alert.over_since
        over = replace(alert, over_since=over_since)
        if self._now - over_since < self._settle_ms or self._judged_at < over_since:
            self.kept.append(over)
            return
        if rule.send_resolved and over.told_at is not None and not over.is_muted(self._now):
            over = self._told(Notice.RESOLVED, over)
        self.resolved.append(over)

    def _told(self, notice: Notice, alert: Alert) -> Alert:
        self.notices.setdefault((alert.rule_id, notice), []).append(alert)
        return replace(alert, told_at=self._now)


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
