"""Histories as DataFrames, and what reconcile finds in them: no Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from offsets.spark.reconcile.findings import as_json
from offsets.spark.reconcile.order import COLUMNS, notable, signs_in
from offsets.spark.reconcile.reading import Horizon, Inputs
from offsets.spark.reconcile.reconciling import find
from offsets.spark.reconcile.state import Known
from offsets.spark.tables import TABLES
from tests.offsets.spark.histories import World

Row = Mapping[str, Any]


def frame(spark: SparkSession, table: str, columns: Sequence[str], rows: Iterable[Row]) -> DataFrame:
    """Rows with these columns of a table of Postgres."""
    schema = ", ".join(f"`{name}` {TABLES[table].columns[name]}" for name in columns)
    return spark.createDataFrame([tuple(row[name] for name in columns) for row in rows], schema)


def inputs_of(spark: SparkSession, world: World) -> Inputs:
    """What the source would read."""
    view = [dict(zip(("group_name", "topic", "partition"), key, strict=True), **row) for key, row in world.view.items()]
    view_columns = (
        *("group_name", "topic", "partition", "committed_offset", "leader_epoch", "metadata", "commit_timestamp"),
        *("record_offset", "generation_id"),
    )
    topics = [{"topic": t.name, "partitions": len(t.ends), "created_at": t.created_at} for t in world.topics.values()]
    mark_columns = ("topic", "topic_key", "partition", "log_start_offset", "log_end_offset", "sampled_at")
    marks = [
        dict(zip(mark_columns, (topic, mark[0], partition, *mark[1:]), strict=True))
        for (topic, partition), mark in world.watermarks.items()
    ]
    groups = [{"group_name": g.name, "type": g.kind, "created_at": g.created_at} for g in world.groups.values()]
    return Inputs(
        history=frame(spark, "journal", COLUMNS, world.lines),
        view=frame(spark, "offsets", view_columns, view),
        topics=frame(spark, "topics", ("topic", "partitions", "created_at"), topics),
        deleted_topics=frame(spark, "deleted_topics", ("topic",), [{"topic": name} for name, _ in world.deleted]),
        watermarks=frame(spark, "watermarks", mark_columns, marks),
        groups=frame(spark, "groups", ("group_name", "type", "created_at"), groups),
        events=frame(spark, "events", ("group_name", "at", "kind", "member_id"), world.events),
        share_partitions=frame(spark, "share_partitions", tuple(TABLES["share_partitions"].columns), ()),
        held=frame(spark, "share_locks", tuple(TABLES["share_locks"].columns), ()),
    )


def found_in(
    spark: SparkSession, world: World, *, sure_since: int = 0, events_from: int = 0, margin_ms: int = 0
) -> list[dict[str, Any]]:
    """The findings, as they are printed."""
    inputs = inputs_of(spark, world)
    first_id = min((line["id"] for line in world.lines), default=None)
    lines = notable(inputs.history).persist()
    known, horizon = Known(first_id, sure_since, margin_ms), Horizon(sure_since, events_from)
    found = find(inputs, lines, signs_in(lines), known, horizon)
    rows = found.orderBy("group_name", "topic", "partition", "kind").collect()
    lines.unpersist()
    return [as_json(row) for row in rows]
