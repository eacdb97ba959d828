"""Rows of rules, alerts, messages and receivers, and a file of receivers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from kcoord.setting_table import RECEIVERS_FILE

HOUR = 3_600_000


def put_rule(
    connection: psycopg.Connection,
    name: str = "billing stands still",
    *,
    pattern: str = "prefix",
    group_name: str = "billing",
    verdicts: Sequence[str] = ("stuck", "stalled"),
    min_lag: int | None = 10_000,
    min_time_lag_ms: int | None = None,
    receivers: Sequence[str] = ("oncall",),
    enabled: bool = True,
) -> int:
    """A rule; returns its id."""
    row = connection.execute(
        "insert into offsets_alertrule (name, enabled, pattern, group_name, verdicts, min_lag, min_time_lag_ms, for_ms,"
        " remind_ms, send_resolved, receivers, updated_at, updated_by)"
        " values (%s, %s, %s, %s, %s, %s, %s, 300000, 14400000, true, %s, 1700000000000, 'mara') returning id",
        [name, enabled, pattern, group_name, list(verdicts), min_lag, min_time_lag_ms, list(receivers)],
    ).fetchone()
    assert row is not None
    return int(row[0])


def put_receiver(connection: psycopg.Connection, name: str, kind: str = "webhook") -> None:
    """A receiver that was added, with an address that another key encrypted."""
    connection.execute("insert into offsets_alertreceiver values (%s, %s, '', 1700000000000, 'mara')", [name, kind])


def put_alert(
    connection: psycopg.Connection,
    rule_id: int,
    group_id: str,
    *,
    at: int,
    cause: str = "stuck",
    value: int | None = None,
    muted_until: int | None = None,
    over_since: int | None = None,
    resolved_at: int | None = None,
    told: bool = True,
) -> int:
    """An alert that opened at `at` (ms); returns its id."""
    row = connection.execute(
        "insert into offsets_alert (rule_id, group_name, cause, value, since, opened_at, told_at, muted_until,"
        " muted_by, over_since, resolved_at) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) returning id",
        [rule_id, group_id, cause, value, at - 300_000, at, at if told else None, muted_until,
         "mara" if muted_until else "", over_since, resolved_at],
    ).fetchone()  # fmt: skip
    assert row is not None
    return int(row[0])


def put_message(
    connection: psycopg.Connection,
    receiver: str,
    *,
    at: int,
    sent: bool = True,
    next_at: int | None = None,
    error: str = "",
    attempts: int = 1,
) -> None:
    """A message about two groups that was made at `at` (ms)."""
    connection.execute(
        "insert into offsets_alertmessage (id, rule_id, rule_name, receiver, notice, content, created_at, attempts,"
        " next_at, sent_at, error) values (%s, 1, 'a rule', %s, 'opened', %s, %s, %s, %s, %s, %s)",
        [uuid.uuid4(), receiver, Jsonb({"alerts": [], "alert_count": 2}), at, attempts, next_at, at if sent else None,
         error],
    )  # fmt: skip


def told(folder: Path, url: str = "http://127.0.0.1:9/hook") -> Mapping[str, Any]:
    """The setting of a file with two receivers that is written into a folder."""
    file = folder / "receivers.toml"
    file.touch(0o600)
    file.write_text(f'[oncall]\nwebhook = "{url}"\n\n[chat]\nurl = "json://127.0.0.1:9"\n', encoding="utf-8")
    return {RECEIVERS_FILE: str(file)}
