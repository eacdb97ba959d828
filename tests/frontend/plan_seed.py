"""Offset plans as they are stored."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import psycopg
from psycopg.types.json import Jsonb

TOTALS = {"changed": 3, "clamped": 0, "removed": 0, "lag_change": 1_200, "outside": 0, "unknown": 0}


def put_plan(
    connection: psycopg.Connection,
    group_id: str,
    *,
    made_at: int,
    state: str = "planned",
    made_by: str = "mara",
    reason: str = "",
    lines: int = 3,
    strategy: str = "to-earliest",
    parameters: Mapping[str, object] | None = None,
    **totals: int | None,
) -> uuid.UUID:
    """A plan on `lines` partitions of the topic orders, made at this instant (ms)."""
    plan_id = uuid.uuid4()
    applied, undone = state in ("applied", "undone"), state == "undone"
    connection.execute(
        "insert into offsets_offsetplan (id, group_name, strategy, parameters, totals, state, reason, created_at,"
        " created_by, applied_at, applied_by, undone_at, undone_by)"
        " values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        [
            plan_id,
            group_id,
            strategy,
            Jsonb(dict(parameters or {})),
            Jsonb({"partitions": lines, **TOTALS, **totals}),
            state,
            reason,
            made_at,
            made_by,
            made_at + 5_000 if applied else None,
            "ops" if applied else None,
            made_at + 9_000 if undone else None,
            "ops" if undone else None,
        ],
    )
    connection.execute(
        "insert into offsets_plannedoffset (plan_id, topic, partition, old_offset, old_leader_epoch, old_metadata,"
        " requested_offset, new_offset, log_start_offset, log_end_offset, note)"
        " select %s, 'orders', p, 100 + p, -1, '', 0, 0, 0, 12000, '' from generate_series(0, %s - 1) p",
        [plan_id, lines],
    )
    return plan_id
