"""What messages about alerts say: to programs as data, to people as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from kcoord.door.http.types import rfc3339
from offsets.alerts.types import AlertRuleView, Message
from offsets.core.alerts import Alert, Notice

MOST_ALERTS = 20
"""The alerts that a message names; of others it says how many there are."""

SAID = {
    "stuck": "stuck in a rebalance",
    "late": "members miss heartbeats",
    "flapping": "rebalances again and again",
    "stalled": "partitions make no progress",
    "stale": "watermarks are old",
    "disputed": "logs are reported to end earlier",
    "uncovered": "partitions have no owner",
    "expiring": "offsets expire soon",
    "unattended": "items wait and nobody works on them",
    "unsettled": "items are not settled",
    "dead-letters": "items were given up",
}
"""Verdicts in a few words."""
TOLD_LABELS = ("owner", "team", "contact", "runbook")
"""Labels that messages for people show: whom to call, and what to do."""

Labels = Mapping[str, str]


def content(
    rule: AlertRuleView, alerts: Sequence[Alert], link_url: str, labels: Mapping[str, Labels]
) -> dict[str, Any]:
    """The alerts of a message as data: the first MOST_ALERTS of them, and how many there are. `labels`: by group."""
    thresholds = {"lag": rule.min_lag, "time-lag": rule.min_time_lag_ms}
    told = [
        {
            "group_id": alert.group_id,
            "cause": alert.cause,
            "value": alert.value,
            "threshold": thresholds.get(alert.cause),
            "since": rfc3339(alert.since),
            "url": f"{link_url.rstrip('/')}/groups/{quote(alert.group_id, safe='')}" if link_url else None,
            "labels": labels.get(alert.group_id, {}),
        }
        for alert in alerts[:MOST_ALERTS]
    ]
    return {"alerts": told, "alert_count": len(alerts)}


def body(message: Message) -> dict[str, Any]:
    """What a webhook is sent. `id` is the same when a message is sent again: receivers can leave out repetitions."""
    return {
        "id": message.id,
        "notice": message.notice,
        "rule": message.rule_name,
        "rule_id": message.rule_id,
        "receiver": message.receiver,
        "at": rfc3339(message.created_at),
        **message.content,
    }


def title(message: Message) -> str:
    """The subject of a message for people."""
    alerts, count = message.content["alerts"], message.content["alert_count"]
    if message.notice == Notice.TEST.value:
        return "kcoord: a test"
    what = f"group {alerts[0]['group_id']}" if count == 1 else f"{count} groups"
    said = {"opened": "", "reminder": "still: ", "resolved": "resolved: "}[message.notice]
    return f"kcoord: {said}{message.rule_name}: {what}"


def text(message: Message) -> str:
    """The text of a message for people."""
    if message.notice == Notice.TEST.value:
        return f"This is a test of the receiver {message.receiver}. Nothing is wrong."
    lines = [_line(alert) for alert in message.content["alerts"]]
    if more := message.content["alert_count"] - len(lines):
        lines.append(f"and {more} more groups")
    return "\n".join(lines)


def _line(alert: Mapping[str, Any]) -> str:
    link = f" {alert['url']}" if alert["url"] else ""
    labels: Labels = alert.get("labels", {})
    known = "".join(f"\n    {name}: {labels[name]}" for name in TOLD_LABELS if name in labels)
    return f"{alert['group_id']}: {cause(alert['cause'], alert['value'])}, since {alert['since']}{link}{known}"


def cause(name: str, value: int | None) -> str:
    """Why an alert is open, in words. `value`: records of a lag, ms of a time lag."""
    if name == "lag":
        return f"lag of {value:,} records"
    if name == "time-lag":
        return f"behind by at least {(value or 0) // 1_000:,} s"
    return SAID.get(name, name)
