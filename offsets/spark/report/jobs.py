"""What reports say, as functions from DataFrames to DataFrames. Input: rows of the journal, with `COLUMNS` at least.

Days are in UTC. Consumed records are counted by how far commits moved forward; a record that was read twice after a
rewind counts twice.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from offsets.core.days import DAY_MS

COLUMNS = ("id", "at", "kind", "group_name", "topic", "partition", "committed_offset", "generation_id", "member_id")
COMMITS = ("commit", "txn_commit")
EVENT_COLUMNS = ("group_name", "at", "kind", "detail")
REBALANCES = ("rebalance_started", "group_epoch_bumped")
"""Events that begin a rebalance: in a classic group, and in one of the consumer protocol."""
KEY = ("group_name", "topic", "partition")
WIDE = "decimal(20,0)"
"""Holds the difference of any two offsets."""


def moves(history: DataFrame) -> DataFrame:
    """The commits, with their `date`, and how far each moved: `consumed` records forward, or back (`is_rewind`).

    A commit moved from what was committed, reset or removed before it on the partition; after a removal, and for the
    first commit, nothing is known to be consumed.
    """
    before = F.lag("committed_offset").over(Window.partitionBy(*KEY).orderBy("id"))
    moved = F.col("committed_offset").cast(WIDE) - F.col("before")
    return (
        history.select(*COLUMNS)
        .withColumn("before", before)
        .where(F.col("kind").isin(*COMMITS))
        .withColumn("consumed", _bigint(F.coalesce(F.greatest(moved, F.lit(0)), F.lit(0))))
        .withColumn("is_rewind", F.coalesce(moved < 0, F.lit(False)))
        .withColumn("date", _date("at"))
        .drop("before")
    )


def consumption(moved: DataFrame) -> DataFrame:
    """By group and day: commits, records consumed, their mean rate, rewinds, partitions. `moved`: of `moves`."""
    return (
        moved.groupBy("group_name", "date")
        .agg(
            F.count(F.lit(1)).alias("commits"),
            _consumed(),
            F.count_if("is_rewind").alias("rewinds"),
            F.count_distinct("topic", "partition").alias("partitions"),
        )
        .withColumn("records_per_second", F.col("consumed") / (DAY_MS / 1000))
    )


def busiest_partitions(moved: DataFrame, most: int) -> DataFrame:
    """The `most` partitions of topics with the highest consumption, by all groups together. `moved`: of `moves`."""
    found = moved.groupBy("topic", "partition").agg(
        _consumed(),
        F.count(F.lit(1)).alias("commits"),
        F.count_distinct("group_name").alias("groups"),
    )
    return found.orderBy(F.desc("consumed"), F.desc("commits"), "topic", "partition").limit(most)


def idle_groups(moved: DataFrame, now_ms: int, idle_ms: int) -> DataFrame:
    """Groups whose last commit is at least `idle_ms` old at `now_ms`, the longest idle first. `moved`: of `moves`."""
    last = moved.groupBy("group_name").agg(F.max("at").alias("last_commit_at"))
    idle = last.where(F.col("last_commit_at") <= now_ms - idle_ms)
    return idle.withColumn("idle_ms", F.lit(now_ms) - F.col("last_commit_at")).orderBy("last_commit_at", "group_name")


def generations(moved: DataFrame) -> DataFrame:
    """By group and day: generations, or member epochs, that first committed then: the least number of rebalances.

    `moved`: of `moves`. A generation in which nobody commits leaves no trace in the journal.
    """
    named = moved.where(F.col("generation_id") >= 0)
    first = named.groupBy("group_name", "generation_id").agg(F.min("at").alias("at"))
    return first.groupBy("group_name", _date("at").alias("date")).agg(F.count(F.lit(1)).alias("generations"))


def rebalances(events: DataFrame, since: int, kept: int) -> DataFrame:
    """By group and day with events: `rebalances` that began, a map `causes` with the number by cause, and `since`.

    `events`: rows with `EVENT_COLUMNS`. `since` (ms): no newer event was dropped for its age. At least the newest
    `kept` events of each group stay, so a group with fewer lost none to the limit; the count of any other is complete
    only since its first event.
    """
    reach = events.groupBy("group_name").agg(F.count(F.lit(1)).alias("events"), F.min("at").alias("first"))
    reach = reach.select(
        "group_name", F.when(F.col("events") < kept, F.lit(since)).otherwise(F.col("first")).alias("since")
    )
    cause = F.coalesce(F.get_json_object("detail", "$.cause"), F.lit("unknown"))
    begun = events.select(
        "group_name", _date("at").alias("date"), F.when(F.col("kind").isin(*REBALANCES), cause).alias("cause")
    )
    counted = begun.groupBy("group_name", "date", "cause").agg(F.count("cause").alias("count"))
    pair = F.when(F.col("cause").isNotNull(), F.struct("cause", "count"))
    by_day = counted.groupBy("group_name", "date").agg(
        F.sum("count").alias("rebalances"), F.map_from_entries(F.array_sort(F.collect_list(pair))).alias("causes")
    )
    return by_day.join(reach, "group_name")


def groups(moved: DataFrame, rebalanced: DataFrame, since: int) -> DataFrame:
    """Each group that ever committed, or has events: all of it in one row. `moved`: of `moves`.

    `rebalanced`: of `rebalances`, with the same `since`, which is that of groups without events as well.
    """
    committed = moved.groupBy("group_name").agg(
        F.count(F.lit(1)).alias("commits"),
        _consumed(),
        F.count_if("is_rewind").alias("rewinds"),
        F.count_distinct(F.when(F.col("member_id") != "", F.col("member_id"))).alias("members"),
        F.min("at").alias("first_commit_at"),
        F.max("at").alias("last_commit_at"),
    )
    begun = rebalanced.groupBy("group_name").agg(
        F.sum("rebalances").alias("rebalances"), F.first("since").alias("rebalances_since")
    )
    numbers = ("commits", "consumed", "rewinds", "members", "rebalances")
    both = committed.join(begun, "group_name", "full_outer")
    return both.fillna(0, subset=list(numbers)).fillna(since, subset=["rebalances_since"])


def members(moved: DataFrame) -> DataFrame:
    """Each member that committed: from when to when, in how many generations, how often. `moved`: of `moves`."""
    named = moved.where(F.col("member_id") != "")
    return named.groupBy("group_name", "member_id").agg(
        F.min("at").alias("first_commit_at"),
        F.max("at").alias("last_commit_at"),
        F.count_distinct("generation_id").alias("generations"),
        F.count(F.lit(1)).alias("commits"),
    )


def turnover(seen: DataFrame) -> DataFrame:
    """By group and day: members with their first (`came`) and last (`went`) commit. `seen`: of `members`."""
    came = seen.select(
        "group_name", _date("first_commit_at").alias("date"), F.lit(1).alias("came"), F.lit(0).alias("went")
    )
    went = seen.select(
        "group_name", _date("last_commit_at").alias("date"), F.lit(0).alias("came"), F.lit(1).alias("went")
    )
    both = came.unionByName(went).groupBy("group_name", "date")
    return both.agg(F.sum("came").alias("came"), F.sum("went").alias("went"))


def totals(by_group: DataFrame) -> DataFrame:
    """By day, over all groups. `by_group`: of `consumption`."""
    return by_group.groupBy("date").agg(
        F.count(F.lit(1)).alias("groups"),
        F.sum("commits").alias("commits"),
        _consumed(),
        F.sum("rewinds").alias("rewinds"),
    )


def _consumed() -> Column:
    return _bigint(F.sum(F.col("consumed").cast(WIDE))).alias("consumed")


def _bigint(amount: Column) -> Column:
    """A number that is not negative, or the largest of 64 bits: clients choose offsets, and Spark raises beyond."""
    return F.least(amount, F.lit(2**63 - 1)).cast("bigint")


def _date(column: str) -> Column:
    return F.date_from_unix_date(F.floor(F.col(column) / DAY_MS).cast("int"))
