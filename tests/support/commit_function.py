"""Calls of `kcoord.commit_offsets`, and what came of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from tests.support.commits import PartitionCommit

CALL = """
select kcoord.commit_offsets(%(group_id)s, %(member_id)s, %(generation_id)s, %(offsets)s::text::jsonb,
                             %(group_instance_id)s, %(retention_time_ms)s)
"""


@dataclass(frozen=True)
class Refusal:
    """A call that raised one of Kafka's errors."""

    sqlstate: str
    name: str
    detail: str
    hint: str


def commit(
    connection: psycopg.Connection[Any],
    offsets: Sequence[PartitionCommit] | str | None,
    *,
    group_id: str | None = "g",
    member_id: str | None = "",
    generation_id: int | None = -1,
    group_instance_id: str | None = None,
    retention_time_ms: int | None = -1,
) -> int | Refusal:
    """The number of partitions committed, or why not. `offsets` as text is sent as it is."""
    text = offsets if offsets is None or isinstance(offsets, str) else json.dumps([entry_of(o) for o in offsets])
    parameters = {
        "group_id": group_id,
        "member_id": member_id,
        "generation_id": generation_id,
        "offsets": text,
        "group_instance_id": group_instance_id,
        "retention_time_ms": retention_time_ms,
    }
    try:
        row = connection.execute(CALL, parameters).fetchone()
    except psycopg.Error as error:
        if error.sqlstate is None or not error.sqlstate.startswith("KC"):
            raise
        name, _, detail = (error.diag.message_primary or "").partition(": ")
        return Refusal(error.sqlstate, name, detail, error.diag.message_hint or "")
    assert row is not None
    return int(row[0])


def entry_of(commit: PartitionCommit) -> dict[str, object]:
    """One element of the argument `offsets`."""
    return {
        "topic": commit.topic,
        "partition": commit.partition,
        "committed_offset": commit.offset,
        "committed_leader_epoch": commit.leader_epoch,
        "committed_metadata": commit.metadata,
    }
