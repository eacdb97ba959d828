"""The history of each partition, line by line: where it goes back in offsets or in time, and which line is the last.

One pass over all lines, sorted by partition and `id`: within a group a larger id was written later. Only the few
notable lines are passed on to the other jobs, so the history is read once unless a fence failed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from offsets.spark.reconcile.findings import KEY, finding, spread

COLUMNS = (
    *("id", "at", "kind", "group_name", "topic", "partition", "committed_offset", "leader_epoch", "metadata"),
    *("expire_timestamp", "member_id", "generation_id"),
)
"""Columns of the journal that reconcile reads."""

SIGNS = ("goes_back", "is_earlier", "changes_hands", "is_older")
"""Columns of `notable` lines that may be a finding."""

OVERTAKEN = "is_overtaken"
"""The sign of a whole group, of `fencing.overtaken`."""

COMMITS = ("commit", "txn_commit")
"""Lines that consumers wrote. Writes of operators and the service may go back: that is the purpose of resets."""


def notable(history: DataFrame) -> DataFrame:
    """Lines that are the last of their partition (`is_last`), that may be a finding (`SIGNS`), with what was before, or
    that begin or end a row of lines of one generation (`is_turn`). `history`: of `fencing.judged`.

    `before`: the line before. `segment`: counts the removals before the line; a group that was deleted and created
    again, whose generations restart, always has one in between. `other`: the last line of a member before it in the
    segment; `newest`: the one with the largest generation.
    """
    lines = Window.partitionBy(*KEY).orderBy("id")
    earlier = lines.rowsBetween(Window.unboundedPreceding, -1)
    removals = F.sum(F.col("committed_offset").isNull().cast("int")).over(earlier)
    line = F.struct("id", "at", "kind", "committed_offset", "generation_id", "is_judged")
    by_member = F.struct("segment", "generation_id", "id", "at", "member_id", "committed_offset")
    seen = (
        history.select(*COLUMNS, "is_judged")
        .withColumn("segment", F.coalesce(removals, F.lit(0)))
        .withColumn("before", F.lag(line).over(lines))
        .withColumn("after", F.lead(F.struct("generation_id", "is_judged")).over(lines))
        .withColumn("other", F.last(F.when(of_member(), by_member), ignorenulls=True).over(earlier))
        .withColumn("newest", F.max(F.when(of_member(), by_member)).over(earlier))
    )
    signs = {
        "is_last": F.col("after").isNull(),
        "is_turn": is_turn(),
        "goes_back": goes_back(),
        "is_earlier": is_earlier(),
        "changes_hands": changes_hands(),
        "is_older": is_older(),
    }
    return seen.withColumns(signs).drop("after").where(reduce(or_, map(F.col, ("is_last", "is_turn", *SIGNS))))


def signs_in(lines: DataFrame, overtaken: Callable[[DataFrame], DataFrame]) -> dict[str, int]:
    """How many `notable` lines have each sign, how many are `is_last`, and how many `overtaken` finds (`OVERTAKEN`):
    absent signs need no job.
    """
    counts = Observation("signs")
    counted = lines.observe(counts, *[F.count_if(F.col(name)).alias(name) for name in ("is_last", *SIGNS)])
    return {OVERTAKEN: overtaken(counted).count(), **counts.get}


def of_member(line: str = "") -> Column:
    """A line that a member with a generation wrote."""
    return (
        F.col(f"{line}kind").isin(*COMMITS) & (F.col(f"{line}generation_id") >= 0) & (F.col(f"{line}member_id") != "")
    )


def is_turn() -> Column:
    """The first or the last of some lines of one generation, one behind the other, that are judged by their group."""
    before, after, generation = F.col("before"), F.col("after"), F.col("generation_id")
    goes_on = [
        F.coalesce(one["is_judged"] & (one["generation_id"] == generation), F.lit(False)) for one in (before, after)
    ]
    return F.col("is_judged") & ~(goes_on[0] & goes_on[1])


def goes_back() -> Column:
    """A consumer committed less than what was committed."""
    smaller = F.col("committed_offset") < F.col("before.committed_offset")
    return F.coalesce(F.col("kind").isin(*COMMITS) & smaller, F.lit(False))


def is_earlier() -> Column:
    """The line is older than the one written before it. Imported lines may have their original time."""
    imported = (F.col("kind") == "import") | (F.col("before.kind") == "import")
    return F.coalesce((F.col("at") < F.col("before.at")) & ~imported, F.lit(False))


def changes_hands() -> Column:
    """Another member than the last one, in the same generation."""
    other = F.col("other")
    same = (other["segment"] == F.col("segment")) & (other["generation_id"] == F.col("generation_id"))
    return F.coalesce(of_member() & same & (other["member_id"] != F.col("member_id")), F.lit(False))


def is_older() -> Column:
    """An older generation than another member's before it.

    By the same member it may be one that KIP-1251 allows: a commit with an older epoch, of a partition that it has had
    since then.
    """
    newest = F.col("newest")
    same = newest["segment"] == F.col("segment")
    older = (newest["generation_id"] > F.col("generation_id")) & (newest["member_id"] != F.col("member_id"))
    return F.coalesce(of_member() & same & older, F.lit(False))


def last_lines(lines: DataFrame) -> DataFrame:
    """Of `notable` lines, the last one of each partition."""
    return lines.where("is_last").select(*COLUMNS)


def rewinds(lines: DataFrame, topics: DataFrame, deleted: DataFrame) -> DataFrame:
    """`rewind`: consumers that committed less than what was committed, on the same topic.

    A topic that was created again begins at 0, and commits may come before the old offset is removed; so both lines
    must be newer than the topic. For a deleted topic nothing is known, unless its offset was never removed and is not
    being removed (`deleted`).
    """
    stands = last_lines(lines).where(F.col("committed_offset").isNotNull())
    kept = stands.join(F.broadcast(deleted), "topic", "left_anti").select(*KEY, F.lit(True).alias("kept"))
    found = (
        lines.where("goes_back")
        .join(F.broadcast(topics.select("topic", "created_at")), "topic", "left")
        .join(kept, list(KEY), "left")
    )
    known = F.when(F.col("created_at").isNull(), F.col("kept")).otherwise(F.col("before.at") > F.col("created_at"))
    return spread(
        found.where(known),
        finding(
            "rewind",
            expected=F.col("before.committed_offset"),
            found=F.col("committed_offset"),
            journal_ids=F.array("before.id", "id"),
            members=F.array("member_id"),
            generations=F.array("generation_id"),
            instants=F.array("before.at", "at"),
        ),
    )


def times_backwards(lines: DataFrame) -> DataFrame:
    """`time_backwards`: a line that is older than the one written before it on the same partition."""
    return spread(
        lines.where("is_earlier"),
        finding(
            "time_backwards",
            expected=F.col("before.at"),
            found=F.col("at"),
            journal_ids=F.array("before.id", "id"),
            members=F.array("member_id"),
            generations=F.array("generation_id"),
            instants=F.array("before.at", "at"),
        ),
    )
