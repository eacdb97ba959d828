"""Items of share groups: each offset since a partition began is in one place, and in no other.

The places: finished (lines of the journal since its last beginning), a lock, a retry or a dead letter (rows), and never
given out (from the next offset on). What is below the start counts nowhere, though a dead letter from before may be
there. A partition whose beginning is not in the history is not judged. Source: share.md 7.1, 8.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from offsets.spark.reconcile.findings import KEY, finding, spread

HELD = ("share_locks", "share_retries", "share_dead")
"""The tables with ranges that are held, in one form."""

BEGIN, DONE, DEAD = "items_begin", "items_done", "items_dead"

_PARTS = ("accept", "gap", "discard")
_SAID = ", ".join(["begin bigint", *[f"{part} array<array<bigint>>" for part in _PARTS]])
_MOST_LINES = 10
"""Lines that a finding names as evidence."""


def of_items() -> Column:
    """A line about items, which is no change of a committed offset."""
    return F.col("kind").isin(BEGIN, DONE, DEAD)


def told(history: DataFrame) -> DataFrame:
    """The lines that say where items began and which are finished: they are used several times."""
    said = F.from_json("metadata", _SAID).alias("said")
    return history.where(F.col("kind").isin(BEGIN, DONE)).select(*KEY, "id", "at", "member_id", said)


def misplaced(lines: DataFrame, partitions: DataFrame, held: DataFrame) -> DataFrame:
    """`item_lost` and `item_twice`, one for each range of offsets that are in no place, or in several.

    `lines`: of `told`. `partitions`: `KEY` and `next_offset` (null: not begun). `held`: `KEY`, `first` and `after` of
    a range that a row has.
    """
    begun = (
        lines.where(F.col("said.begin").isNotNull())
        .groupBy(*KEY)
        .agg(F.max_by("said.begin", "id").alias("start"), F.max("id").alias("begin_id"))
    )
    lives = partitions.where(F.col("next_offset").isNotNull()).join(begun, list(KEY))
    part = F.explode(F.flatten(F.array_compact(F.array(*[f"said.{name}" for name in _PARTS])))).alias("part")
    finished = (
        lines.join(lives, list(KEY))
        .where(F.col("id") > F.col("begin_id"))
        .select(*KEY, "start", "id", "at", "member_id", part)
        .select("*", F.col("part")[0].alias("first"), (F.col("part")[1] + 1).alias("after"))
    )
    done = _from_the_start(finished)
    there = _from_the_start(held.join(lives, list(KEY)))
    spans = _spans(lives, done.select(*KEY, "first", "after").unionByName(there.select(*KEY, "first", "after")))
    return _findings(spans, done)


def _from_the_start(ranges: DataFrame) -> DataFrame:
    return ranges.withColumn("first", F.greatest("first", "start")).where(F.col("first") < F.col("after"))


def _spans(lives: DataFrame, ranges: DataFrame) -> DataFrame:
    """Ranges of offsets, with in how many `places` they are, where that is not one."""

    def steps(rows: DataFrame, offset: str, step: int) -> DataFrame:
        return rows.select(*KEY, F.col(offset).alias("offset"), F.lit(step).alias("step"))

    # Below the start and from the next offset on, an offset is in one place without a range.
    together = (
        steps(lives, "start", -1)
        .unionByName(steps(lives, "next_offset", 1))
        .unionByName(steps(ranges, "first", 1))
        .unionByName(steps(ranges, "after", -1))
    )
    summed = together.groupBy(*KEY, "offset").agg(F.sum("step").alias("step")).where(F.col("step") != 0)
    in_order = Window.partitionBy(*KEY).orderBy("offset")
    return (
        summed.withColumn("places", 1 + F.sum("step").over(in_order.rowsBetween(Window.unboundedPreceding, 0)))
        .withColumn("until", F.lead("offset").over(in_order))
        .where(F.col("until").isNotNull() & (F.col("places") != 1))
    )


def _findings(spans: DataFrame, done: DataFrame) -> DataFrame:
    line = F.struct("id", "at", "member_id")
    overlap = (F.col("first") < F.col("until")) & (F.col("after") > F.col("offset"))
    proved = (
        spans.join(done.select(*KEY, "first", "after", line.alias("line")), list(KEY), "left")
        .groupBy(*KEY, "offset", "until", "places")
        .agg(F.slice(F.array_sort(F.collect_set(F.when(overlap, F.col("line")))), 1, _MOST_LINES).alias("lines"))
    )
    members = F.array_distinct(F.col("lines.member_id"))

    def found(kind: str) -> Column:
        return finding(
            kind,
            expected=F.col("offset"),
            found=F.col("until") - 1,
            journal_ids=F.col("lines.id"),
            members=F.array_remove(members, ""),
            instants=F.col("lines.at"),
        )

    places = F.col("places")
    return spread(proved, F.when(places < 1, found("item_lost")), F.when(places > 1, found("item_twice")))
