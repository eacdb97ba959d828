"""Alerts and rules in words. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frontend.ui.states import State
from frontend.ui.verdicts import VERDICTS
from frontend.ui.wording import duration, joined, number, time_lag
from offsets.alerts.types import AlertRow, MessageRow, Rule

LAG = State("lag", "Lag", "warn", "More records are to be read than the rule allows.")
TIME_LAG = State("time-lag", "Behind", "warn", "The next record to read is older than the rule allows.")

NOTICES = {"opened": "opened", "reminder": "reminder", "resolved": "resolved", "test": "test"}
OUTCOMES: Mapping[str, State] = {
    "sent": State("sent", "Sent", "good", "The receiver took it."),
    "waiting": State("waiting", "Waiting", "warn", "It is sent again until it is taken, for up to half an hour."),
    "failed": State("failed", "Failed", "bad", "It was sent several times in vain, and is not sent again."),
}


@dataclass(frozen=True, slots=True)
class RuleWords:
    """What a rule says, in parts of a sentence."""

    groups: str
    condition: str
    lasting: str
    told: str


def cause(row: AlertRow) -> tuple[State, str]:
    """Why an alert is open: a badge, and what goes on after it."""
    if row.cause == "lag":
        limit = "" if row.min_lag is None else f", limit {number(row.min_lag)}"
        return LAG, f"{number(row.value or 0)} records{limit}"
    if row.cause == "time-lag":
        limit = "" if row.min_time_lag_ms is None else f", limit {duration(row.min_time_lag_ms)}"
        return TIME_LAG, f"{time_lag(row.value or 0)}{limit}"
    state = VERDICTS.get(row.cause) or State(row.cause, row.cause, "idle", "This version does not know the verdict.")
    return state, ""


def rule_words(rule: Rule) -> RuleWords:
    """A rule in words."""
    reminder = f"; reminds every {duration(rule.remind_ms)}" if rule.remind_ms else ""
    resolved = "" if rule.send_resolved else "; not when resolved"
    receivers = joined(list(rule.receivers), 6) if rule.receivers else "nobody"
    return RuleWords(
        groups(rule.pattern, rule.group_name, rule.label),
        condition(rule.verdicts, rule.min_lag, rule.min_time_lag_ms),
        f"for {duration(rule.for_ms)}" if rule.for_ms else "at once",
        f"{receivers}{reminder}{resolved}",
    )


def groups(pattern: str, name: str, label: str = "") -> str:
    """The groups of a rule."""
    labelled = f" with the label {label}" if label else ""
    if pattern == "literal":
        return f"Group {name}{labelled}"
    return f"Groups beginning with {name}{labelled}" if name else f"All groups{labelled}"


def condition(verdicts: Sequence[str], min_lag: int | None, min_time_lag_ms: int | None) -> str:
    """What a rule watches for: `stuck or stalled, or lag of at least 10,000`."""
    known = [VERDICTS[name].label.lower() if name in VERDICTS else name for name in verdicts]
    parts = [" or ".join(filter(None, (", ".join(known[:-1]), known[-1])))] if known else []
    if min_lag is not None:
        parts.append(f"lag of at least {number(min_lag)}")
    if min_time_lag_ms is not None:
        parts.append(f"at least {duration(min_time_lag_ms)} behind")
    return ", or ".join(parts)


def about(message: MessageRow) -> str:
    """What a message was about: how many groups, which is all that everybody who sees messages may know."""
    count: int = int(message.content.get("alert_count") or 0)
    return "" if not count else "1 group" if count == 1 else f"{number(count)} groups"
