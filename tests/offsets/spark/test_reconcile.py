"""Reconcile on a real Postgres: what the service wrote, what was tampered with, archives, repairs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from offsets.runs.repair import planned
from offsets.spark.errors import JobError
from offsets.spark.reconcile.reconciling import ReconcileReport
from tests.offsets.spark.support import Archive, Reconciler, jobs_begun
from tests.support.ledger import Ledger

pytestmark = pytest.mark.whole("test_round_trip has Spark archive, restore and reconcile")


@pytest.fixture
def ledger(journal: str) -> Iterator[Ledger]:
    """The group `billing` and the topic `orders`, with clean commits on partitions 0 to 12."""
    made = Ledger(journal)
    made.topic("orders")
    made.group("billing")
    for partition in range(13):
        made.commit(partition, 10, member="m1", generation=1)
        made.commit(partition, 20, member="m1", generation=1)
    yield made
    made.connection.close()


@pytest.fixture
def run(journal: str, spark: SparkSession) -> Reconciler:
    """Runs without an archive, unless told."""
    return Reconciler(journal, lambda: spark)


def short(report: ReconcileReport) -> list[tuple[str, int, int | None, int | None]]:
    """Kind, partition, expected and found of each finding, by partition."""
    found = [(one["kind"], one["partition"], one["expected"], one["found"]) for one in report.listed]
    return sorted(found, key=lambda one: (one[1], one[0]))


def tamper(ledger: Ledger) -> list[tuple[str, int, int | None, int | None]]:
    """A fault of each kind, each on a partition of its own; what is to be found."""
    ledger.execute("delete from offsets_committedoffset where partition = 0")
    ledger.execute("delete from offset_commit_log where partition = 1")
    ledger.execute("update offsets_committedoffset set committed_offset = 99 where partition = 2")
    ledger.execute("update offsets_committedoffset set metadata = 'x' where partition = 3")
    ledger.execute(
        "insert into offset_commit_log (at, kind, group_name, topic, partition)"
        " values (%(at)s, 'delete', 'billing', 'orders', 4)", at=ledger.now,
    )  # fmt: skip
    ledger.commit(5, 15, member="m1", generation=1)
    ledger.watermark(6, 0, 19)
    ledger.watermark(7, 21, 30)
    ledger.commit(8, 30, member="m2", generation=1)
    ledger.commit(9, 30, member="m2", generation=2)
    ledger.commit(9, 31, member="m1", generation=1)
    last = ledger.execute("select max(at) as at from offset_commit_log where partition = 10")[0]["at"]
    ledger.commit(10, 30, member="m2", generation=2, at=last - 5)
    ledger.execute("update offsets_committedoffset set topic = 'gone' where partition = 11")
    ledger.execute("update offset_commit_log set topic = 'gone' where partition = 11")
    ledger.execute("update groups_topic set partitions = 12")
    return [
        ("missing_in_view", 0, 20, None),
        ("missing_in_journal", 1, None, 20),
        ("other_offset", 2, 20, 99),
        ("other_metadata", 3, 20, 20),
        ("surplus_in_view", 4, None, 20),
        ("rewind", 5, 20, 15),
        ("beyond_log_end", 6, 19, 20),
        ("below_log_start", 7, 21, 20),
        ("two_members", 8, 20, 30),
        ("fenced_generation", 9, 2, 1),
        ("time_backwards", 10, last, last - 5),
        ("topic_gone", 11, None, 20),
        ("partition_gone", 12, None, 20),
    ]


def findings_counted(ledger: Ledger) -> int:
    """The counter behind `/metrics`."""
    rows = ledger.execute("select value from kcoord_counter where name = 'reconcile_findings'")
    return sum(row["value"] for row in rows)


def test_every_kind_is_found_and_nothing_else(
    ledger: Ledger, run: Reconciler, spark: SparkSession, tmp_path: Path
) -> None:
    before = jobs_begun(spark)
    clean = run()
    assert jobs_begun(spark) - before == 3, "the groups, one pass over the history, one over the committed offsets"
    assert (clean.listed, clean.total, clean.rows, clean.partitions) == ([], 0, 26, 13)
    counted = findings_counted(ledger)
    expected = tamper(ledger)
    report = run(str(tmp_path / "archive"), most_listed=100)  # nothing is archived there yet
    assert short(report) == expected
    assert (report.total, report.with_archive) == (13, False)
    assert [(one.partition, one.seen_offset, one.offset, one.metadata) for one in planned(report.listed)] == [
        (0, None, 20, "note"),
        (2, 99, 20, "note"),
        (3, 20, 20, "note"),
        (4, 20, None, ""),
    ]
    stored = ledger.execute("select * from offsets_reconcilefinding order by number")
    assert [(one["kind"], one["expected"], one["found"]) for one in stored] == [
        (one["kind"], one["expected"], one["found"]) for one in report.listed
    ]
    (path,) = report.exported
    assert pq.read_table(tmp_path / "archive" / path).num_rows == 13
    assert findings_counted(ledger) - counted == 13
    runs = ledger.execute("select findings, result from offsets_sparkrun order by requested_at")
    assert [one["findings"] for one in runs] == [0, 13]
    assert runs[1]["result"]["by_kind"] == dict.fromkeys(sorted(kind for kind, *_ in expected), 1)
    fenced = next(one for one in report.listed if one["kind"] == "fenced_generation")
    assert fenced["evidence"]["members"] == ["m2", "m1"]
    assert fenced["evidence"]["generations"] == [2, 1]


def test_the_history_is_archive_and_journal(ledger: Ledger, run: Reconciler, archive: Archive) -> None:
    archive.run()
    ledger.execute("delete from offset_commit_log")  # the days that the archive covers were dropped
    ledger.commit(0, 30, member="m1", generation=1)
    ledger.commit(1, 5, member="m1", generation=1)
    ledger.execute("update offsets_committedoffset set committed_offset = 99 where partition = 2")
    report = run(archive.path, most_listed=1)
    assert (short(report), report.total) == ([("rewind", 1, 20, 5)], 2)
    assert (report.rows, report.with_archive) == (28, True)
    result = report.outcome().result
    assert result is not None
    assert (result["by_kind"], result["not_listed"]) == ({"other_offset": 1, "rewind": 1}, 1)
    assert pq.read_table(Path(archive.path) / report.exported[0]).column("kind").to_pylist().count("other_offset") == 1


def test_what_was_dropped_without_archive_is_not_missing(ledger: Ledger, run: Reconciler) -> None:
    ledger.execute("update offsets_committedoffset set commit_timestamp = commit_timestamp - 90 * 86400000::bigint")
    ledger.execute("update offset_commit_log set at = at - 90 * 86400000::bigint")
    ledger.execute("delete from offset_commit_log where partition < 6 or partition = 12")  # 12 is younger than the rest
    assert short(run()) == [("missing_in_journal", 12, None, 20)]


def test_an_archive_that_is_gone_is_named(ledger: Ledger, run: Reconciler, archive: Archive) -> None:
    archive.run()
    Path(archive.path).rename(f"{archive.path}-elsewhere")
    with pytest.raises(JobError, match=f"the archive at {archive.path} is gone"):
        run(archive.path)


def test_commits_that_go_on_are_no_findings(ledger: Ledger, run: Reconciler, journal: str) -> None:
    over, offsets = threading.Event(), iter(range(21, 1_000_000))
    busy = Ledger(journal)
    busy.now = ledger.now

    def commit() -> None:
        while not over.is_set():
            number = next(offsets)
            busy.commit(number % 13, number, member="m1", generation=1, after_ms=1)

    thread = threading.Thread(target=commit)
    thread.start()
    try:
        report = run()
    finally:
        over.set()
        thread.join()
        busy.connection.close()
    assert report.listed == []
    assert next(offsets) > 22
