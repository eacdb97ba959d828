"""Generations and members: commits that a fence should have refused.

A generation (an epoch of a consumer group) is comparable only within one lifetime of a group. A group that is deleted
and created again begins at 1, and so does one that changes its protocol while it is empty and keeps its offsets; a
static member that comes back continues in the same generation under another member id (KIP-345). Events of the group
record both, so nothing older than the events is judged.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from offsets.spark.reconcile.findings import finding, spread


def two_members(lines: DataFrame, events: DataFrame, events_from: int) -> DataFrame:
    """`two_members`: a partition that two members committed in one generation. `lines`: of `order.notable`.

    Except if the second one took over a static member. `events_from` (ms): since when the events are complete.
    """
    takeovers = events.where(F.col("kind") == "member_replaced").select("group_name", "member_id").distinct()
    found = lines.where(F.col("changes_hands") & (F.col("other.at") >= events_from))
    found = _not_converted(found, F.col("other.at"), events).join(takeovers, ["group_name", "member_id"], "left_anti")
    return spread(found, _of_members("two_members", "other", "committed_offset"))


def fenced_generations(lines: DataFrame, events: DataFrame, events_from: int) -> DataFrame:
    """`fenced_generation`, on one partition: an older generation after a newer one of another member.

    True for both protocols: a member that gets a partition is at the newest epoch by then.
    """
    found = lines.where(F.col("is_older") & (F.col("newest.at") >= events_from))
    found = _not_converted(found, F.col("newest.at"), events)
    return spread(found, _of_members("fenced_generation", "newest", "generation_id"))


def judged(history: DataFrame, groups: DataFrame, events_from: int) -> DataFrame:
    """The history with `is_judged`: lines whose generation is that of their group, so that all of the group compare.

    In the classic protocol all members commit in the group's generation: in existing groups, since they were created or
    converted. Transactional commits are left out: their lines are written when the transaction ends.
    """
    since = F.greatest("created_at", F.coalesce("converted_at", F.lit(0)), F.lit(events_from)).alias("since")
    known = groups.where(F.col("type") == "classic").select("group_name", since)
    counts = (F.col("kind") == "commit") & (F.col("generation_id") >= 0) & (F.col("at") > F.col("since"))
    joined = history.join(F.broadcast(known), "group_name", "left")
    return joined.withColumn("is_judged", F.coalesce(counts, F.lit(False))).drop("since")


def overtaken(lines: DataFrame) -> DataFrame:
    """Generations of groups with a line after a line of a `newest` one, again and again. `lines`: of `order.notable`.

    Of each partition and generation the first and the last judged line are turns, so turns tell all.
    """
    by_generation = Window.partitionBy("group_name").orderBy(F.desc(F.col("generation_id").cast("bigint")))
    newer = by_generation.rangeBetween(Window.unboundedPreceding, -1)
    first = F.min(F.struct("id", "at", "member_id", "generation_id")).over(newer)
    turns = lines.where("is_turn").select("group_name", "generation_id", "id", "at", "member_id")
    late = turns.withColumn("newest", first).where(F.col("id") > F.col("newest.id"))
    return late.select("group_name", "generation_id", "newest")


def fenced_in_classic_groups(history: DataFrame, generations: DataFrame) -> DataFrame:
    """`fenced_generation`, in the whole group. `history`: of `judged`, `generations`: of `overtaken`."""
    found = history.where("is_judged").join(F.broadcast(generations.distinct()), ["group_name", "generation_id"])
    return spread(
        found.where(F.col("id") > F.col("newest.id")),
        _of_members("fenced_generation", "newest", "generation_id"),
    )


def _not_converted(found: DataFrame, since: Column, events: DataFrame) -> DataFrame:
    """Without lines before which, since an instant of theirs, their group changed its protocol."""
    converted = events.where(F.col("kind") == "group_converted").select(
        F.col("group_name").alias("converted_group"), F.col("at").alias("converted_at")
    )
    between = F.col("converted_at").between(F.col("since"), F.col("at"))
    same = F.col("converted_group") == F.col("group_name")
    return found.withColumn("since", since).join(F.broadcast(converted), same & between, "left_anti")


def _of_members(kind: str, before: str, value: str) -> Column:
    return finding(
        kind,
        expected=F.col(f"{before}.{value}"),
        found=F.col(value),
        journal_ids=F.array(f"{before}.id", "id"),
        members=F.array(f"{before}.member_id", "member_id"),
        generations=F.array(f"{before}.generation_id", "generation_id"),
        instants=F.array(f"{before}.at", "at"),
    )
