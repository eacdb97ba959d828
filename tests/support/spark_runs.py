"""Runs and findings as processes of Spark leave them, written straight into the tables."""

from __future__ import annotations

import time
import uuid
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

RUN = """
insert into offsets_sparkrun (id, kind, state, parameters, requested_at, requested_by, started_at, ended_at,
                              heartbeat_at, host, pid, log_path, stage, slices_done, slices_total, system_identifier,
                              archive_path, archive_id, manifest_sha256, rows, files, bytes, findings, result, error)
values (%(id)s, %(kind)s, %(state)s, '{}', %(requested_at)s, %(requested_by)s, %(started_at)s, %(ended_at)s,
        %(heartbeat_at)s, 'host', 1, '', %(stage)s, %(slices_done)s, %(slices_total)s, '', '', '', '', %(rows)s,
        %(files)s, %(bytes)s, %(findings)s, %(result)s, %(error)s)
"""
FINDING = """
insert into offsets_reconcilefinding (run_id, number, kind, group_name, topic, partition, expected, found, evidence)
values (%s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
DAY = """
insert into offsets_archivedday (run_id, manifest, day, archive_id, system_identifier, timeline, rows, checksum, counts)
values (%s, 1, %s, 'a', 's', 1, %s, 0, true)
"""


def now_ms() -> int:
    """The time of this machine, which is the database's in tests."""
    return time.time_ns() // 1_000_000


def put_run(connection: psycopg.Connection, kind: str = "archive", state: str = "succeeded", **given: Any) -> str:
    """A run; what is not given is as a run of its state has it. `ago_ms`: how long ago it was asked for."""
    asked = now_ms() - given.pop("ago_ms", 60_000)
    begun = None if state == "requested" else asked + 1_000
    ended = None if state in ("requested", "running") else asked + 31_000
    row = {
        "id": str(uuid.uuid4()),
        "kind": kind,
        "state": state,
        "requested_at": asked,
        "requested_by": "schedule",
        "started_at": begun,
        "ended_at": ended,
        "heartbeat_at": ended or begun,
        "stage": "" if state == "requested" else "write",
        "slices_done": 0,
        "slices_total": 0,
        **dict.fromkeys(("rows", "files", "bytes", "findings", "result")),
        "error": "",
    } | given
    if row["result"] is not None:
        row["result"] = Jsonb(row["result"])
    connection.execute(RUN.encode(), row)
    return str(row["id"])


def put_finding(
    connection: psycopg.Connection,
    run_id: str,
    number: int,
    kind: str = "other_offset",
    group: str = "billing",
    topic: str = "orders",
    **given: Any,
) -> None:
    """A finding of a run."""
    row = {"partition": 0, "expected": 10, "found": 7, "evidence": {"journal_ids": [number]}} | given
    values = (row["partition"], row["expected"], row["found"], Jsonb(row["evidence"]))
    connection.execute(FINDING.encode(), (run_id, number, kind, group, topic, *values))


def put_day(connection: psycopg.Connection, run_id: str, day: int, rows: int = 10) -> None:
    """A day that a run archived."""
    connection.execute(DAY.encode(), (run_id, day, rows))
