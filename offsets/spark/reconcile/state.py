"""The last line of each partition against the view, and the view against the logs.

The view names the line that wrote it (`record_offset`). One exception: a transactional commit keeps the position of its
write, but its line is written when the transaction ends, so the line has a larger id.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from offsets.spark.reconcile.findings import KEY, finding, spread

VIEW = ("committed_offset", "leader_epoch", "metadata", "commit_timestamp", "record_offset", "generation_id")


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


def side_by_side(
    last: DataFrame, view: DataFrame, topics: DataFrame, deleted: DataFrame, watermarks: DataFrame
) -> DataFrame:
    """A row for each partition that the history or the view knows: `line`, `row`, `log`, `life`, `going`.

    `line` and `row` are null if only the other side knows it; `life` is the topic, `going`: the topic was deleted and
    its offsets are still being removed.
    """
    lines = last.select(*KEY, F.struct(*[name for name in last.columns if name not in KEY]).alias("line"))
    rows = view.select(*KEY, F.struct(*VIEW).alias("row"))
    life = topics.select("topic", F.struct("partitions", "created_at").alias("life"))
    going = deleted.select("topic").distinct().withColumn("going", F.lit(True))
    log = watermarks.select(
        "topic", "partition", F.struct("log_start_offset", "log_end_offset", "sampled_at").alias("log")
    )
    return (
        lines.join(rows, list(KEY), "full")
        .join(F.broadcast(life), "topic", "left")
        .join(F.broadcast(going), "topic", "left")
        .join(F.broadcast(log), ["topic", "partition"], "left")
    )


def compared(both: DataFrame, known: Known) -> DataFrame:
    """The findings of one pass over both sides: `disagreements` and `outside_of_logs`."""
    return spread(both, *disagreements(known), *outside_of_logs(known))


def disagreements(known: Known) -> list[Column]:
    """`missing_in_view`, `missing_in_journal`, `surplus_in_view`, `other_offset`, `other_metadata`."""
    line, row = F.col("line"), F.col("row")
    lost = _is_known(row, known) & (line.isNull() | (row["record_offset"] > line["id"]))
    there = line.isNotNull() & row.isNotNull() & ~(row["record_offset"] > line["id"])
    removed = line["committed_offset"].isNull()
    # A sweep's removal for a deleted topic, while something was committed on the current topic of the same name.
    of_old_topic = (line["kind"] == "topic_delete") & (row["commit_timestamp"] >= F.col("life.created_at"))
    same = row["committed_offset"] == line["committed_offset"]
    same_rest = (row["metadata"] == line["metadata"]) & (row["leader_epoch"] == line["leader_epoch"])
    written = (row["record_offset"] == line["id"]) | (line["kind"] == "txn_commit")
    return [
        F.when(line.isNotNull() & ~removed & row.isNull(), _disagreement("missing_in_view", line, row)),
        F.when(row.isNotNull() & lost, _disagreement("missing_in_journal", line, row)),
        F.when(there & removed & ~F.coalesce(of_old_topic, F.lit(False)), _disagreement("surplus_in_view", line, row)),
        F.when(there & ~removed & ~same, _disagreement("other_offset", line, row)),
        F.when(there & ~removed & same & written & ~same_rest, _disagreement("other_metadata", line, row)),
    ]


def _is_known(row: Column, known: Known) -> Column:
    """Whether the line that wrote the row must be in the history."""
    recent = (row["commit_timestamp"] >= known.sure_since) | (row["record_offset"] <= 0)
    return recent if known.first_id is None else recent | (row["record_offset"] > known.first_id)


def _disagreement(kind: str, line: Column, row: Column) -> Column:
    def known(column: Column) -> Column:
        return F.array_compact(F.array(column))

    texts = {"metadata": F.array(line["metadata"], row["metadata"])} if kind == "other_metadata" else {}
    repaired = F.struct(
        *[line[name].alias(name) for name in ("id", "at", "committed_offset", "leader_epoch", "metadata")],
        line["expire_timestamp"].alias("expire_timestamp"),
    )
    return finding(
        kind,
        expected=line["committed_offset"],
        found=row["committed_offset"],
        journal_ids=known(line["id"]),
        members=F.array_remove(known(line["member_id"]), ""),
        generations=known(line["generation_id"]),
        instants=F.array_compact(F.array(line["at"], row["commit_timestamp"])),
        record_offset=row["record_offset"],
        line=F.when(line.isNotNull(), repaired),
        **texts,
    )


def outside_of_logs(known: Known) -> list[Column]:
    """`topic_gone`, `partition_gone`, `beyond_log_end`, `below_log_start`: committed offsets compared with the logs.

    If a topic was deleted and its offsets are still being removed, nothing is reported. Logs only grow at their ends: a
    watermark newer than the commit proves where the log ended then, any other does not. Logs only lose records at their
    beginnings, so any watermark proves that.
    """
    row, log, life = F.col("row"), F.col("log"), F.col("life")
    committed = row.isNotNull() & F.col("going").isNull()
    written_at = F.greatest(row["commit_timestamp"], F.col("line.at"))
    beyond = (row["committed_offset"] > log["log_end_offset"]) & (log["sampled_at"] > written_at + known.margin_ms)
    below = row["committed_offset"] < log["log_start_offset"]
    return [
        F.when(committed & life.isNull(), _outside("topic_gone")),
        F.when(committed & (F.col("partition") >= life["partitions"]), _outside("partition_gone")),
        F.when(committed & beyond, _outside("beyond_log_end", log["log_end_offset"])),
        F.when(committed & below, _outside("below_log_start", log["log_start_offset"])),
    ]


def _outside(kind: str, expected: Column | None = None) -> Column:
    row, log = F.col("row"), F.col("log")
    return finding(
        kind,
        expected=expected,
        found=row["committed_offset"],
        journal_ids=F.array_compact(F.array("line.id")),
        members=F.array_remove(F.array_compact(F.array("line.member_id")), ""),
        generations=F.array(row["generation_id"]),
        instants=F.array(row["commit_timestamp"]),
        record_offset=row["record_offset"],
        log_start_offset=log["log_start_offset"],
        log_end_offset=log["log_end_offset"],
        sampled_at=log["sampled_at"],
    )
