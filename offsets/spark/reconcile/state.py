"""The last line of each partition against the view, and the view against the logs.

The view names the line that wrote it (`record_offset`). One exception: a transactional commit keeps the position of its
write, but its line is written when the transaction ends, so the line has a larger id.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from offsets.spark.reconcile.findings import KEY, finding, spread

VIEW = (
    *("committed_offset", "leader_epoch", "metadata", "commit_timestamp", "record_offset", "generation_id"),
    *("topic_partitions", "topic_created_at", "topic_deleted", "log_start_offset", "log_end_offset", "sampled_at"),
)
"""Columns of the committed offsets that reconcile reads, with those of their topics and logs."""

OTHER_METADATA, BEYOND, BELOW = "other_metadata", "beyond_log_end", "below_log_start"


@dataclass(frozen=True, slots=True)
class Known:
    """What the checks may rely on.

    `first_id`: the smallest id of the history, None if it is empty. Earlier lines may have been dropped with their day,
    unless they are not older than `sure_since` (ms). `margin_ms`: a watermark proves where a log ended at a commit if
    it was reported later than the commit by more than this margin.
    """

    first_id: int | None
    sure_since: int
    margin_ms: int = 0


def side_by_side(last: DataFrame, view: DataFrame) -> DataFrame:
    """A row for each partition that the history or the view knows: `line` and `row`, of which one may be null."""
    lines = last.select(*KEY, F.struct(*[name for name in last.columns if name not in KEY]).alias("line"))
    return lines.join(view.select(*KEY, F.struct(*VIEW).alias("row")), list(KEY), "full")


def compared(both: DataFrame, known: Known) -> DataFrame:
    """The findings of one pass over both sides: `disagreements` and `outside_of_logs`."""
    wrong = {**disagreements(known), **outside_of_logs(known)}
    kinds = F.array_compact(F.array(*[F.when(condition, F.lit(kind)) for kind, condition in wrong.items()]))
    return spread(both.withColumn("kind", F.explode(kinds)), _evidence())


def disagreements(known: Known) -> dict[str, Column]:
    """`missing_in_view`, `missing_in_journal`, `surplus_in_view`, `other_offset`, `other_metadata`."""
    line, row = F.col("line"), F.col("row")
    lost = _is_known(row, known) & (line.isNull() | (row["record_offset"] > line["id"]))
    there = line.isNotNull() & row.isNotNull() & ~(row["record_offset"] > line["id"])
    removed = line["committed_offset"].isNull()
    # A sweep's removal for a deleted topic, while something was committed on the current topic of the same name.
    of_old_topic = (line["kind"] == "topic_delete") & (row["commit_timestamp"] >= row["topic_created_at"])
    same = row["committed_offset"] == line["committed_offset"]
    same_rest = (row["metadata"] == line["metadata"]) & (row["leader_epoch"] == line["leader_epoch"])
    written = (row["record_offset"] == line["id"]) | (line["kind"] == "txn_commit")
    return {
        "missing_in_view": line.isNotNull() & ~removed & row.isNull(),
        "missing_in_journal": row.isNotNull() & lost,
        "surplus_in_view": there & removed & ~F.coalesce(of_old_topic, F.lit(False)),
        "other_offset": there & ~removed & ~same,
        OTHER_METADATA: there & ~removed & same & written & ~same_rest,
    }


def _is_known(row: Column, known: Known) -> Column:
    """Whether the line that wrote the row must be in the history."""
    recent = (row["commit_timestamp"] >= known.sure_since) | (row["record_offset"] <= 0)
    return recent if known.first_id is None else recent | (row["record_offset"] > known.first_id)


def outside_of_logs(known: Known) -> dict[str, Column]:
    """`topic_gone`, `partition_gone`, `beyond_log_end`, `below_log_start`: committed offsets compared with the logs.

    If a topic was deleted and its offsets are still being removed, nothing is reported. Logs only grow at their ends: a
    watermark newer than the commit proves where the log ended then, any other does not. Logs only lose records at their
    beginnings, so any watermark proves that.
    """
    row = F.col("row")
    committed = row.isNotNull() & ~row["topic_deleted"]
    written_at = F.greatest(row["commit_timestamp"], F.col("line.at"))
    is_proved = row["sampled_at"] > written_at + known.margin_ms
    return {
        "topic_gone": committed & row["topic_created_at"].isNull(),
        "partition_gone": committed & (F.col("partition") >= row["topic_partitions"]),
        BEYOND: committed & (row["committed_offset"] > row["log_end_offset"]) & is_proved,
        BELOW: committed & (row["committed_offset"] < row["log_start_offset"]),
    }


def _evidence() -> Column:
    """The finding of a row of `side_by_side` with its `kind`.

    What is outside of a log is proved by row and log, everything else by line and row.
    """
    kind, line, row = F.col("kind"), F.col("line"), F.col("row")
    is_outside = kind.isin("topic_gone", "partition_gone", BEYOND, BELOW)
    end_of_log = F.when(kind == BEYOND, row["log_end_offset"]).when(kind == BELOW, row["log_start_offset"])

    def known(*columns: Column) -> Column:
        return F.array_compact(F.array(*columns))

    def of_log(name: str) -> Column:
        return F.when(is_outside, row[name])

    repaired = F.struct(
        *[line[name].alias(name) for name in ("id", "at", "committed_offset", "leader_epoch", "metadata")],
        line["expire_timestamp"].alias("expire_timestamp"),
    )
    return finding(
        kind,
        expected=F.when(is_outside, end_of_log).otherwise(line["committed_offset"]),
        found=row["committed_offset"],
        journal_ids=known(line["id"]),
        members=F.array_remove(known(line["member_id"]), ""),
        generations=F.when(is_outside, F.array(row["generation_id"])).otherwise(known(line["generation_id"])),
        instants=F.when(is_outside, F.array(row["commit_timestamp"])).otherwise(
            known(line["at"], row["commit_timestamp"])
        ),
        record_offset=row["record_offset"],
        log_start_offset=of_log("log_start_offset"),
        log_end_offset=of_log("log_end_offset"),
        sampled_at=of_log("sampled_at"),
        metadata=F.when(kind == OTHER_METADATA, F.array(line["metadata"], row["metadata"])),
        line=F.when(~is_outside & line.isNotNull(), repaired),
    )
