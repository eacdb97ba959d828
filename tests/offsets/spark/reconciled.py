"""Histories as DataFrames, and what reconcile finds in them: no Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from offsets.spark.reconcile.fencing import judged, overtaken
from offsets.spark.reconcile.findings import KEY, as_json
from offsets.spark.reconcile.order import COLUMNS, notable, signs_in
from offsets.spark.reconcile.reading import COLUMNS_OF, Horizon, Inputs
from offsets.spark.reconcile.reconciling import find
from offsets.spark.reconcile.state import VIEW, Known
from offsets.spark.tables import TABLES
from tests.offsets.spark.histories import World

Row = Mapping[str, Any]


def frame(spark: SparkSession, table: str, columns: Sequence[str], rows: Iterable[Row]) -> DataFrame:
    """Rows with these columns of a table of Postgres."""
    schema = ", ".join(f"`{name}` {TABLES[table].columns[name]}" for name in columns)
    return spark.createDataFrame([tuple(row[name] for name in columns) for row in rows], schema)


def inputs_of(spark: SparkSession, world: World) -> Inputs:
    """What the source would read."""
    others: dict[str, list[dict[str, Any]]] = {
        "topics": [{"topic": t.name, "created_at": t.created_at} for t in world.topics.values()],
        "deleted_topics": [{"topic": name} for name, _ in world.deleted],
        "events": world.events,
    }
    groups = [
        {"group_name": g.name, "type": g.kind, "created_at": g.created_at, "converted_at": converted_at(world, g.name)}
        for g in world.groups.values()
    ]
    return Inputs(
        history=frame(spark, "journal", COLUMNS, world.lines),
        view=frame(spark, "offsets", (*KEY, *VIEW), view_of(world)),
        groups=frame(spark, "groups", tuple(TABLES["groups"].columns), groups),
        table=lambda name: frame(spark, name, COLUMNS_OF[name], others[name]),
    )


def view_of(world: World) -> list[Row]:
    """The committed offsets, with what is known of their topics and logs."""
    rows: list[Row] = []
    deleted = {name for name, _ in world.deleted}
    for key, row in world.view.items():
        topic, mark = world.topics.get(key[1]), world.watermarks.get(key[1:], (None,) * 4)
        logs = dict(zip(("log_start_offset", "log_end_offset", "sampled_at"), mark[1:], strict=True))
        life = {
            "topic_partitions": topic and len(topic.ends),
            "topic_created_at": topic and topic.created_at,
            "topic_deleted": key[1] in deleted,
        }
        rows.append({**dict(zip(KEY, key, strict=True)), **row, **life, **logs})
    return rows


def converted_at(world: World, group: str) -> int | None:
    """When the group last changed its protocol."""
    times = [
        event["at"] for event in world.events if (event["group_name"], event["kind"]) == (group, "group_converted")
    ]
    return max(times, default=None)


def found_in(
    spark: SparkSession, world: World, *, sure_since: int = 0, events_from: int = 0, margin_ms: int = 0
) -> list[dict[str, Any]]:
    """The findings, as they are printed."""
    inputs = inputs_of(spark, world)
    first_id = min((line["id"] for line in world.lines), default=None)
    lines = notable(judged(inputs.history, inputs.groups, events_from)).persist()
    known, horizon = Known(first_id, sure_since, margin_ms), Horizon(sure_since, events_from)
    found = find(inputs, lines, signs_in(lines, overtaken), known, horizon)
    rows = found.orderBy("group_name", "topic", "partition", "kind").collect()
    lines.unpersist()
    return [as_json(row) for row in rows]
