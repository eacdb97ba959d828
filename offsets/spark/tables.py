"""The tables of Postgres that the source reads, and the types of their columns. Statements: `sql/sources.sql`.

Instants stay milliseconds since the epoch: a timestamp type would add a time zone and another unit to values that must
come back unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

ARROW: Mapping[str, pa.DataType] = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "boolean": pa.bool_(),
}
"""Spark's names of the types used, and the Arrow types."""


@dataclass(frozen=True, slots=True)
class Table:
    """A readable table: its name in Postgres, and its columns as `name type`, types by Spark's names."""

    relation: str
    columns: Mapping[str, str]


def _columns(text: str) -> dict[str, str]:
    columns = {}
    for pair in text.split(","):
        name, kind = pair.split()
        columns[name] = kind
    return columns


_HELD = _columns("group_name string, topic string, partition int, first bigint, after bigint")

TABLES: Mapping[str, Table] = {
    "journal": Table(
        "offset_commit_log",
        _columns(
            "id bigint, at bigint, xact_id bigint, kind string, group_name string, topic string, partition int,"
            "committed_offset bigint, leader_epoch int, metadata string, expire_timestamp bigint, member_id string,"
            "generation_id int, client_id string, principal string, transactional_id string, plan_id string"
        ),
    ),
    "offsets": Table(
        "offsets_committedoffset",
        _columns(
            "group_name string, topic string, partition int, committed_offset bigint, leader_epoch int,"
            "metadata string, commit_timestamp bigint, expire_timestamp bigint, member_id string, generation_id int,"
            "record_offset bigint, topic_partitions int, topic_created_at bigint, topic_deleted boolean,"
            "log_start_offset bigint, log_end_offset bigint, sampled_at bigint"
        ),
    ),
    "topics": Table(
        "groups_topic",
        _columns("topic_key bigint, topic string, topic_id string, partitions int, created_at bigint"),
    ),
    "deleted_topics": Table(
        "offsets_deletedtopic", _columns("topic string, deleted_at bigint, record_offset bigint, swept boolean")
    ),
    "events": Table(
        "groups_event",
        _columns(
            "id bigint, group_name string, at bigint, kind string, generation_id int, member_id string, detail string"
        ),
    ),
    "groups": Table(
        "groups_group",
        _columns("group_name string, type string, created_at bigint, converted_at bigint"),
    ),
    "share_partitions": Table(
        "offsets_sharepartition", _columns("group_name string, topic string, partition int, next_offset bigint")
    ),
    "share_locks": Table("offsets_sharelock", _HELD),
    "share_retries": Table("offsets_shareretry", _HELD),
    "share_dead": Table("offsets_sharedead", _HELD),
}
