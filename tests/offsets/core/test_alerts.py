"""When alerts open, are repeated and are resolved: the cases as a table, and every history by a state machine."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from offsets.core.alerts import (
    ATTEMPTS,
    Alert,
    Decision,
    Finding,
    Notice,
    decide,
    next_attempt,
)

NOW, SETTLE, FOR, REMIND = 1_000_000, 300, 60, 1_000


@dataclass
class Rule:
    """An `AlertRule`."""

    id: int
    for_ms: int
    remind_ms: int
    send_resolved: bool = True


RULE = Rule(1, FOR, REMIND)
STUCK = Finding(1, "g", "stuck", None, NOW - FOR)
OPEN = Alert(1, "g", "stuck", None, NOW - 500, 7, NOW - 400, None, NOW - 400)


def decided(*alerts: Alert, found: tuple[Finding, ...] = (), the_rule: Rule = RULE, judged_at: int = NOW) -> Decision:
    return decide([the_rule], found, alerts, NOW, settle_ms=SETTLE, judged_at=judged_at)


def told(decision: Decision) -> dict[Notice, int]:
    return {notice: len(alerts) for (_, notice), alerts in decision.notices.items()}


def test_a_condition_opens_an_alert_once_it_has_lasted() -> None:
    early = decided(found=(replace(STUCK, since=NOW - FOR + 1),))
    assert ([alert.opened_at for alert in early.kept], told(early)) == ([None], {})
    due = decided(*early.kept, found=(STUCK,))
    assert ([alert.opened_at for alert in due.kept], told(due)) == ([NOW], {Notice.OPENED: 1})
    at_once = decided(found=(STUCK,))
    assert told(at_once) == {Notice.OPENED: 1}


def test_a_lag_lasts_since_it_was_first_seen() -> None:
    seen = decided(found=(Finding(1, "g", "lag", 5),))
    assert [(alert.since, alert.opened_at) for alert in seen.kept] == [(NOW, None)]


def test_a_beginning_in_the_future_is_now() -> None:
    assert [alert.since for alert in decided(found=(replace(STUCK, since=NOW + 5),)).kept] == [NOW]


@pytest.mark.parametrize(
    ("told_at", "remind_ms", "expected"),
    [(NOW - REMIND, REMIND, {Notice.REMINDER: 1}), (NOW - REMIND + 1, REMIND, {}), (NOW - 10**6, 0, {})],
)
def test_receivers_are_reminded_while_it_lasts(told_at: int, remind_ms: int, expected: dict[Notice, int]) -> None:
    found = decided(replace(OPEN, told_at=told_at), found=(STUCK,), the_rule=replace(RULE, remind_ms=remind_ms))
    assert told(found) == expected


def test_it_is_resolved_after_the_condition_was_over_for_a_while() -> None:
    over = decided(OPEN)
    assert ([alert.over_since for alert in over.kept], over.resolved, told(over)) == ([NOW], [], {})
    back = decided(*over.kept, found=(STUCK,))
    assert ([alert.over_since for alert in back.kept], told(back)) == ([None], {})
    ended = decided(replace(OPEN, over_since=NOW - SETTLE))
    assert ([alert.id for alert in ended.resolved], ended.kept, told(ended)) == ([7], [], {Notice.RESOLVED: 1})


def test_nothing_is_resolved_while_nobody_judges() -> None:
    over = replace(OPEN, over_since=NOW - SETTLE)
    assert decided(over, judged_at=NOW - SETTLE - 1).resolved == []
    assert len(decided(over, judged_at=NOW - SETTLE).resolved) == 1


@pytest.mark.parametrize("case", ["muted", "never told", "not wanted"])
def test_of_what_nobody_was_told_nobody_is_told_the_end(case: str) -> None:
    alert = replace(OPEN, over_since=NOW - SETTLE)
    if case == "muted":
        alert = replace(alert, muted_until=NOW + 1)
    if case == "never told":
        alert = replace(alert, told_at=None)
    the_rule = replace(RULE, send_resolved=case != "not wanted")
    found = decided(alert, the_rule=the_rule)
    assert (len(found.resolved), told(found)) == (1, {})


def test_of_a_muted_alert_receivers_are_told_when_the_mute_ends() -> None:
    muted = replace(OPEN, told_at=None, muted_until=NOW + 1)
    assert told(decided(muted, found=(STUCK,))) == {}
    assert told(decided(replace(muted, muted_until=NOW), found=(STUCK,))) == {Notice.OPENED: 1}


def test_without_its_rule_an_alert_ends_in_silence() -> None:
    found = decide([], [STUCK], [OPEN], NOW, settle_ms=SETTLE, judged_at=NOW)
    assert (found.resolved, found.kept, found.notices) == ([OPEN], [], {})


def test_the_first_condition_of_a_group_counts() -> None:
    found = decided(found=(STUCK, Finding(1, "g", "lag", 5)))
    assert [(alert.cause, alert.value) for alert in found.kept] == [("stuck", None)]


def test_messages_are_sent_again_for_half_an_hour() -> None:
    waits = [(next_attempt(attempts, 0) or 0) / 1_000 for attempts in range(1, ATTEMPTS)]
    assert waits == [15, 45, 135, 405, 1_215]
    assert next_attempt(ATTEMPTS, 0) is None


class Alerts(RuleBasedStateMachine):
    """Groups get bad and well again, rules are disabled, alerts are muted, checks come when they come."""

    @initialize(for_ms=st.integers(0, 100), remind_ms=st.sampled_from([0, 50]), send_resolved=st.booleans())
    def begin(self, for_ms: int, remind_ms: int, send_resolved: bool) -> None:
        self.rules = {n: Rule(n, for_ms, remind_ms, send_resolved) for n in (1, 2)}
        self.now, self.judged_at, self.last_id = 0, 0, 0
        self.bad: dict[tuple[int, str], int] = {}
        self.alerts: dict[int, Alert] = {}
        self.open_told: Counter[int] = Counter()
        self.ended_told: Counter[int] = Counter()

    @rule(n=st.sampled_from([1, 2]), group=st.sampled_from("ab"))
    def turn(self, n: int, group: str) -> None:
        key = (n, group)
        if key in self.bad:
            del self.bad[key]
        else:
            self.bad[key] = self.now

    @rule(ms=st.integers(1, 400))
    def wait(self, ms: int) -> None:
        self.now += ms

    @rule()
    def judge(self) -> None:
        self.judged_at = self.now

    @rule(n=st.sampled_from([1, 2]))
    def toggle(self, n: int) -> None:
        if n in self.rules:
            self.off = self.rules.pop(n)
        else:
            self.rules[n] = replace(next(iter(self.rules.values()), self.off), id=n)

    @rule(ms=st.integers(0, 500))
    def mute(self, ms: int) -> None:
        for number, alert in self.alerts.items():
            if alert.opened_at is not None:
                self.alerts[number] = replace(alert, muted_until=self.now + ms)
                return

    @rule()
    def check(self) -> None:
        found = [Finding(n, group, "stuck", None, since) for (n, group), since in self.bad.items()]
        was = dict(self.alerts)
        decision = decide(
            self.rules.values(), found, was.values(), self.now, settle_ms=SETTLE, judged_at=self.judged_at
        )
        for alert in decision.resolved:
            assert alert.opened_at is not None or alert.rule_id not in self.rules
        ended = {alert.id for alert in (*decision.resolved, *decision.dropped)}
        kept = {alert.id for alert in decision.kept if alert.id}
        assert ended.isdisjoint(kept)
        assert ended | kept == set(was), "no alert is forgotten"
        self._count(decision, was)
        self.alerts = {}
        for alert in decision.kept:
            if not alert.id:
                self.last_id += 1
                alert = replace(alert, id=self.last_id)
                self.open_told[alert.id] += alert.told_at is not None
            self.alerts[alert.id] = alert

    def _count(self, decision: Decision, was: dict[int, Alert]) -> None:
        for (rule_id, notice), alerts in decision.notices.items():
            assert alerts, "no message without an alert"
            assert rule_id in self.rules
            for alert in alerts:
                assert not alert.is_muted(self.now)
                if notice is Notice.OPENED and alert.id:
                    assert was[alert.id].told_at is None
                    self.open_told[alert.id] += 1
                if notice is Notice.REMINDER:
                    assert was[alert.id].told_at is not None
                if notice is Notice.RESOLVED:
                    assert self.open_told[alert.id] == 1
                    assert (alert.rule_id, alert.group_id) not in self.bad
                    self.ended_told[alert.id] += 1

    @invariant()
    def one_alert_of_a_rule_and_group(self) -> None:
        keys = [(alert.rule_id, alert.group_id) for alert in self.alerts.values()]
        assert len(keys) == len(set(keys))

    @invariant()
    def everything_is_told_at_most_once(self) -> None:
        assert all(count <= 1 for count in (*self.open_told.values(), *self.ended_told.values()))

    @invariant()
    def what_is_open_and_not_muted_was_told(self) -> None:
        for alert in self.alerts.values():
            if alert.opened_at is not None and alert.muted_until is None:
                assert self.open_told[alert.id] == 1


Alerts.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestAlerts = Alerts.TestCase
